use std::collections::BTreeMap;

/// Why something in an input was not used.
///
/// Each cause has a stable name for reports ([`Cause::name`]) and an explanation for people
/// ([`Cause::explanation`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A record that is not what its header says, or a line that cannot be read.
    Malformed,
    /// The input ends in the middle of a record.
    Truncated,
    /// The kernel or perf says that it lost records.
    Lost,
    /// A sample without a branch stack, or with an empty one.
    NoBranches,
    /// A sample of an event that was not asked for.
    OtherEvent,
    /// A sample of the other side of a virtual machine: guest or host.
    OtherSpace,
    /// A sample taken while user code ran.
    UserSpace,
    /// A branch that the hardware followed speculatively and then undid.
    WrongPath,
    /// An entry whose source or target is zero: a slot of the stack that was never filled.
    EmptyEntry,
    /// An address outside of the binary.
    OutsideBinary,
    /// A range that ends before it begins.
    InvertedRange,
    /// A range that crosses from one function to another, or an unconditional branch.
    CrossingRange,
    /// Code that would have run for longer without a branch than real code does.
    LongRange,
    /// A branch whose target is not the first byte of an instruction.
    InsideInstruction,
    /// A branch that other records contradict: two modules shared its address. Or one between
    /// names that several symbols have.
    Ambiguous,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Malformed,
        Self::Truncated,
        Self::Lost,
        Self::NoBranches,
        Self::OtherEvent,
        Self::OtherSpace,
        Self::UserSpace,
        Self::WrongPath,
        Self::EmptyEntry,
        Self::OutsideBinary,
        Self::InvertedRange,
        Self::CrossingRange,
        Self::LongRange,
        Self::InsideInstruction,
        Self::Ambiguous,
    ];

    /// The name in reports; it does not change between releases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::Lost => "lost",
            Self::NoBranches => "no-branches",
            Self::OtherEvent => "other-event",
            Self::OtherSpace => "other-space",
            Self::UserSpace => "user-space",
            Self::WrongPath => "wrong-path",
            Self::EmptyEntry => "empty-entry",
            Self::OutsideBinary => "outside-binary",
            Self::InvertedRange => "inverted-range",
            Self::CrossingRange => "crossing-range",
            Self::LongRange => "long-range",
            Self::InsideInstruction => "inside-instruction",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// What happened, for people, to follow a count.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Malformed => "could not be read",
            Self::Truncated => "cut off at the end of the input",
            Self::Lost => "lost while recording: the buffer was full",
            Self::NoBranches => "without a branch stack",
            Self::OtherEvent => "of another event",
            Self::OtherSpace => "of the other side of a virtual machine",
            Self::UserSpace => "of user space",
            Self::WrongPath => "speculative and undone: they never happened",
            Self::EmptyEntry => "empty slots of the branch stack",
            Self::OutsideBinary => "outside of the binary",
            Self::InvertedRange => "ranges that end before they begin",
            Self::CrossingRange => "ranges that leave a function or cross a jump",
            Self::LongRange => "of code that runs on for too long without a branch",
            Self::InsideInstruction => "into the middle of an instruction",
            Self::Ambiguous => "at addresses or names that several modules or symbols share",
        }
    }
}

/// How many of something were read, and what became of them. `read` is what was used and all
/// that was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were used.
    pub used: u64,
    dropped: BTreeMap<Cause, u64>,
}

impl Tally {
    /// Counts `count` as dropped for `cause`.
    pub fn drop(&mut self, cause: Cause, count: u64) {
        if count > 0 {
            let total = self.dropped.entry(cause).or_default();
            *total = total.saturating_add(count);
        }
    }

    /// What was dropped, by cause; none is zero.
    pub fn dropped(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        self.dropped.iter().map(|(&cause, &count)| (cause, count))
    }

    /// How many were dropped for `cause`.
    pub fn dropped_for(&self, cause: Cause) -> u64 {
        self.dropped.get(&cause).copied().unwrap_or_default()
    }

    /// How many there were in all.
    pub fn read(&self) -> u64 {
        self.dropped.values().fold(self.used, |total, &count| total.saturating_add(count))
    }

    /// Takes over what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.used = self.used.saturating_add(other.used);
        other.dropped().for_each(|(cause, count)| self.drop(cause, count));
    }
}
