use mepof_address::RuntimeAddress;

/// Whether a recorded branch was on the path that the program really took, as the hardware
/// says: AMD's LbrExtV2 and Arm's BRBE record wrong paths too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speculation {
    /// The hardware does not say.
    #[default]
    Unknown,
    /// Speculative, and on a wrong path: it never happened.
    WrongPath,
    /// Not speculative, or speculative on the right path.
    Correct,
}

/// What kind of branch it was, as far as the record says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BranchKind {
    /// The record does not say.
    #[default]
    Unknown,
    /// A conditional branch.
    Conditional,
    /// A direct or indirect jump.
    Jump,
    /// A direct or indirect call.
    Call,
    /// A return.
    Return,
    /// Into the kernel: a system call, an interrupt or an exception.
    Entry,
    /// Out of the kernel, or back from an interrupt or exception.
    Exit,
}

/// One taken branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchEntry {
    /// The branch instruction, as recorded: AMD may give an instruction fused with it.
    pub from: RuntimeAddress,
    /// Where it went.
    pub to: RuntimeAddress,
    /// Whether the branch predictor got it wrong, if the record says.
    pub mispredicted: Option<bool>,
    /// Whether it really happened.
    pub speculation: Speculation,
    /// What it was.
    pub kind: BranchKind,
}

/// Stands for every address of the other side of the system-call boundary. A kernel's profile
/// needs to know that control came from user space, not from where; and a machine runs so many
/// processes that their addresses would fill the memory.
pub const OTHER_SIDE: RuntimeAddress = RuntimeAddress(1);

/// One sample: the branches that led to an event, the newest first.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Nanoseconds on the input's clock, if it gives them.
    pub time: Option<u64>,
    /// Where the event happened, if the input says.
    pub address: Option<RuntimeAddress>,
    /// The newest first. Between an entry's target and the source of the next newer one, code
    /// ran straight through: that is a fall-through range.
    pub branches: &'a [BranchEntry],
    /// Whether the entries are consecutive. Arm's SPE samples single branches that are not.
    pub consecutive: bool,
    /// How often exactly this stack was seen; 1 for a sample as recorded.
    pub count: u64,
}

/// What takes the records of an input, in the input's order.
///
/// Readers may feed several sinks of the same type in parallel and [`merge`](Sink::merge)
/// them; the outcome must not depend on how the input was split.
pub trait Sink: Send + Sized {
    /// A sample of consecutive branches.
    fn sample(&mut self, sample: &Sample<'_>);
    /// A branch that was taken `count` times, from an input that is aggregated already.
    fn branch(&mut self, from: RuntimeAddress, to: RuntimeAddress, count: u64);
    /// Code from `first` to `last`, both the first bytes of instructions, that ran straight
    /// through `count` times, from an input that is aggregated already.
    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64);
    /// How many distinct things it holds, if its memory grows with the input: a reader stops
    /// when there are more than [`Options::max_distinct`](crate::input::Options::max_distinct).
    fn distinct(&self) -> usize {
        0
    }
    /// An empty sink with the same settings, for another thread.
    fn fork(&self) -> Self;
    /// Takes over what `other` has.
    fn merge(&mut self, other: Self);
}

/// Gives both the same records.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn sample(&mut self, sample: &Sample<'_>) {
        self.0.sample(sample);
        self.1.sample(sample);
    }

    fn branch(&mut self, from: RuntimeAddress, to: RuntimeAddress, count: u64) {
        self.0.branch(from, to, count);
        self.1.branch(from, to, count);
    }

    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) {
        self.0.range(first, last, count);
        self.1.range(first, last, count);
    }

    fn distinct(&self) -> usize {
        self.0.distinct().saturating_add(self.1.distinct())
    }

    fn fork(&self) -> Self {
        (self.0.fork(), self.1.fork())
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}
