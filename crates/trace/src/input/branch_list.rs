//! Branch lists: what `simpleperf inject --output branch-list` makes of an ETM trace.
//!
//! A list says that code ran from an address on, and for each branch instruction on the way
//! whether it was taken. It takes the binary's code to know where that leads, so that a branch
//! list is read in two steps: [`read`] takes it in, and [`Walk`] follows it with a decoder of
//! instructions.
//!
//! Source of the format: Android's system/extras, simpleperf/branch_list.proto and
//! simpleperf/BranchListFile.cpp; what a list means, simpleperf/ETMDecoder.cpp.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering;

use mepof_address::{BuildId, RuntimeAddress};

use super::Options;
use super::branch_list_message as message;
pub use super::branch_list_message::{LbrData, LbrSample};
use super::perf_data::OTHER_SIDE;
use crate::{BranchEntry, Cause, Facts, Sample, Sink, Tally, TraceError};

/// What a file begins with. Files before 2024 are one message, whose first field this is.
const MAGIC: &[u8] = b"simpleperf:EtmBranchList";
/// More of one message is not held in memory; simpleperf writes some MiB in each.
const MAX_MESSAGE: u64 = 512 << 20;
/// Bytes that all lists may take in memory.
const MAX_HELD: u64 = 512 << 20;
/// Instructions from one branch to the next, at most.
const LONGEST_STRAIGHT: u32 = 1 << 16;
/// Instructions that are followed for each bit of the lists so far, on average: code has a branch
/// every five to ten.
const STRAIGHT_FOR_A_BIT: u64 = 64;
/// Instructions besides, so that few bits need not be average.
const STRAIGHT_AT_FIRST: u64 = 1 << 24;
/// Bits of a list, or samples, after which it is asked whether to go on.
const CHECK_EVERY: u32 = 1 << 12;

/// What kind of binary was traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracedKind {
    /// A program or library.
    #[default]
    Program,
    /// A vmlinux.
    Kernel,
    /// A kernel module.
    Module,
}

/// How code ran from an address on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenBits {
    /// The first instruction. On 32-bit Arm, bit 0 set means T32 code.
    pub address: u64,
    /// Whether each branch on the way was taken, from the lowest bit of the first byte on.
    pub bits: Vec<u8>,
    /// How many bits count.
    pub length: u32,
    /// How often code ran this way.
    pub count: u64,
}

/// All that was traced of one binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedBinary {
    /// Its path on the device.
    pub path: String,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// What it is.
    pub kind: TracedKind,
    /// For a kernel whose addresses are still those of run time: where `_stext` ran. All
    /// other addresses are as the linker gave them.
    pub kernel_start: Option<RuntimeAddress>,
    /// How its code ran.
    pub lists: Vec<TakenBits>,
}

/// A branch list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchList {
    /// The binaries, in the order of the file. One may occur several times.
    pub binaries: Vec<TracedBinary>,
    /// Samples of branch stacks, which simpleperf stores in image addresses.
    pub lbr: LbrData,
}

/// What an instruction does to control, for [`Walk::follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// On to the next instruction.
    Next,
    /// A branch to a known target, if taken: `b`, `bl`, `cbz`, ….
    Branch(u64),
    /// A branch to where a register says: `br`, `blr`, `ret`, `eret`.
    Indirect,
    /// No branch, but the trace has a bit for it: `isb`.
    Marker,
}

/// Reads the branch list at `path`.
///
/// # Errors
/// [`TraceError::UnknownFormat`] if it is none, [`TraceError::Corrupt`] if it is damaged.
pub fn read(path: &Path, options: &Options<'_>) -> Result<BranchList, TraceError> {
    let file = super::open(path)?;
    parse(file, path, options)
}

/// Reads a branch list from `input`; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(
    mut input: impl Read,
    path: &Path,
    options: &Options<'_>,
) -> Result<BranchList, TraceError> {
    let corrupt = |offset: u64, what: &str| TraceError::Corrupt {
        path: path.to_owned(),
        offset,
        what: what.to_owned(),
    };
    let mut list = BranchList::default();
    let mut room = MAX_HELD;
    let too_large = || TraceError::Unsupported {
        path: path.to_owned(),
        what: "it has more lists than fit into memory; convert the recording in parts".to_owned(),
    };
    let mut head = take(&mut input, MAGIC.len() as u64, path)?;
    if head != MAGIC {
        // The older form: one message, to the end of the file.
        if head.get(..2) != Some(&[0x0a, MAGIC.len() as u8]) {
            let found = "it does not begin with simpleperf:EtmBranchList".to_owned();
            return Err(TraceError::UnknownFormat { path: path.to_owned(), found });
        }
        head.extend(take(&mut input, MAX_MESSAGE, path)?);
        options.progress.fetch_add(head.len() as u64, Ordering::Relaxed);
        return match message::branch_list(&head, &mut list, &mut room) {
            Some(()) => Ok(list),
            None if room == 0 => Err(too_large()),
            None => Err(corrupt(0, "a message that contradicts itself")),
        };
    }
    let settings = take(&mut input, 5, path)?;
    let [version @ .., compressed] = settings.as_slice() else {
        return Err(corrupt(MAGIC.len() as u64, "the header is cut off"));
    };
    if version != [1, 0, 0, 0] {
        let what = "a branch list of a version that mepof does not know".to_owned();
        return Err(TraceError::Unsupported { path: path.to_owned(), what });
    }
    let mut offset = MAGIC.len() as u64 + 5;
    loop {
        if options.cancelled.load(Ordering::Relaxed) {
            return Err(TraceError::Cancelled);
        }
        let size = take(&mut input, 4, path)?;
        if size.is_empty() {
            return Ok(list);
        }
        let size = <[u8; 4]>::try_from(size).map_err(|_| corrupt(offset, "it is cut off"))?;
        let size = u64::from(u32::from_le_bytes(size));
        let mut bytes = take(&mut input, size.min(MAX_MESSAGE), path)?;
        if bytes.len() as u64 != size {
            return Err(corrupt(offset, "a message longer than the file"));
        }
        if *compressed == 1 {
            bytes = decompressed(&bytes).ok_or_else(|| corrupt(offset, "damaged zstd data"))?;
        }
        if message::branch_list(&bytes, &mut list, &mut room).is_none() {
            if room == 0 {
                return Err(too_large());
            }
            return Err(corrupt(offset, "a message that contradicts itself"));
        }
        offset += 4 + size;
        options.progress.store(offset, Ordering::Relaxed);
    }
}

fn io(path: &Path, source: std::io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}

fn take(input: &mut impl Read, size: u64, path: &Path) -> Result<Vec<u8>, TraceError> {
    let mut bytes = Vec::new();
    input.take(size).read_to_end(&mut bytes).map_err(|source| io(path, source))?;
    Ok(bytes)
}

/// One zstd frame, if it is no larger than a branch list becomes: 64 times as large.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let limit = bytes.len().saturating_mul(64).saturating_add(1 << 20).min(MAX_MESSAGE as usize);
    let mut context = zstd_safe::DCtx::try_create()?;
    let mut source = zstd_safe::InBuffer::around(bytes);
    let (mut all, mut piece) = (Vec::new(), vec![0; 256 << 10]);
    loop {
        let mut target = zstd_safe::OutBuffer::around(&mut piece[..]);
        let before = source.pos();
        let left = context.decompress_stream(&mut target, &mut source).ok()?;
        let count = target.pos();
        all.extend_from_slice(piece.get(..count)?);
        if left == 0 {
            return Some(all);
        }
        if all.len() > limit || (count == 0 && source.pos() == before) {
            return None;
        }
    }
}

impl TakenBits {
    fn taken(&self, place: u32) -> Option<bool> {
        let byte = self.bits.get(usize::try_from(place / 8).ok()?)?;
        (place < self.length).then_some(byte >> (place % 8) & 1 == 1)
    }
}

/// Follows lists through the code of binaries.
///
/// Time is bounded by the bits of the lists, whatever the code: see [`Cause::LongRange`].
#[derive(Debug)]
pub struct Walk<'a> {
    path: &'a Path,
    options: &'a Options<'a>,
    /// Instructions that may still be followed.
    left: u64,
}

/// Why a list is followed no further.
enum Stop {
    /// The list makes no sense.
    Lost(Cause),
    /// Nothing goes on.
    Failed(TraceError),
}

impl<'a> Walk<'a> {
    /// `path` is for messages.
    pub fn new(path: &'a Path, options: &'a Options<'a>) -> Self {
        Self { path, options, left: STRAIGHT_AT_FIRST }
    }

    /// Follows the lists of `binary` through its code and gives `sink` the branches that were
    /// taken and the code between them.
    ///
    /// `slide` is added to the addresses of the lists: see [`TracedBinary::kernel_start`].
    /// `decode` says of the instruction at an address (bit 0 is set in T32 code, as the list
    /// has it) what it does and how many bytes it has; `None` where there is no code.
    ///
    /// An indirect branch ends a list: where it went begins another. Returns what became of
    /// the lists: [`Cause::OutsideBinary`] counts those that lead to where there is no code,
    /// [`Cause::LongRange`] those that lead through more code without a branch than there is.
    ///
    /// # Errors
    /// [`TraceError::Cancelled`] and [`TraceError::TooManyBranches`].
    pub fn follow<S: Sink>(
        &mut self,
        binary: &TracedBinary,
        slide: u64,
        mut decode: impl FnMut(u64) -> Option<(Step, u64)>,
        sink: &mut S,
    ) -> Result<Tally, TraceError> {
        let mut tally = Tally::default();
        for list in &binary.lists {
            match self.list(list, slide, &mut decode, sink) {
                Ok(()) => tally.used = tally.used.saturating_add(list.count),
                Err(Stop::Lost(cause)) => tally.drop(cause, list.count),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        Ok(tally)
    }

    fn list<S: Sink>(
        &mut self,
        list: &TakenBits,
        slide: u64,
        decode: &mut impl FnMut(u64) -> Option<(Step, u64)>,
        sink: &mut S,
    ) -> Result<(), Stop> {
        let code = |address: u64| RuntimeAddress(address & !1);
        let mut first = list.address.wrapping_add(slide);
        let mut at = first;
        let mut last = None; // the latest instruction that is known to have run
        for place in 0.. {
            let Some(taken) = list.taken(place) else { break };
            if place % CHECK_EVERY == 0 {
                go_on(self.path, self.options, sink).map_err(Stop::Failed)?;
            }
            self.left = self.left.saturating_add(STRAIGHT_FOR_A_BIT);
            let (step, size) = self.next_branch(&mut at, decode).map_err(Stop::Lost)?;
            last = Some(at);
            match step {
                Step::Branch(target) if taken => {
                    sink.range(code(first), code(at), list.count);
                    sink.branch(code(at), code(target), list.count);
                    // The instruction set does not change in a direct branch but `blx`, which
                    // `decode` gives out in the target.
                    (first, at, last) = (target, target, None);
                }
                Step::Indirect if taken => break,
                _ => at = at.checked_add(size).ok_or(Stop::Lost(Cause::OutsideBinary))?,
            }
        }
        if let Some(last) = last {
            sink.range(code(first), code(last), list.count);
        }
        Ok(())
    }

    /// Goes on from `at` to the next instruction that the trace has a bit for.
    fn next_branch(
        &mut self,
        at: &mut u64,
        decode: &mut impl FnMut(u64) -> Option<(Step, u64)>,
    ) -> Result<(Step, u64), Cause> {
        for _ in 0..LONGEST_STRAIGHT {
            self.left = self.left.checked_sub(1).ok_or(Cause::LongRange)?;
            match decode(*at).ok_or(Cause::OutsideBinary)? {
                (Step::Next, size) => {
                    *at = at.checked_add(size.max(1)).ok_or(Cause::OutsideBinary)?;
                }
                branch => return Ok(branch),
            }
        }
        Err(Cause::LongRange)
    }
}

/// An error if the user wants to stop, or `sink` has too much.
fn go_on<S: Sink>(path: &Path, options: &Options<'_>, sink: &S) -> Result<(), TraceError> {
    if options.cancelled.load(Ordering::Relaxed) {
        return Err(TraceError::Cancelled);
    }
    let limit = options.max_distinct;
    if sink.distinct() > limit {
        return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
    }
    Ok(())
}

impl BranchList {
    /// Gives `sink` the branch stacks with branches of those of [`LbrData::binaries`] that
    /// `is_ours` says yes to, by index, in addresses of these binaries. The other binaries' are
    /// [`OTHER_SIDE`]. Returns how many stacks that were.
    ///
    /// # Errors
    /// [`TraceError::Cancelled`] and [`TraceError::TooManyBranches`]; `path` is for messages.
    pub fn give_stacks<S: Sink>(
        &self,
        is_ours: impl Fn(usize) -> bool,
        path: &Path,
        options: &Options<'_>,
        sink: &mut S,
    ) -> Result<u64, TraceError> {
        let side = |(of, address): (Option<usize>, u64)| {
            if of.is_some_and(&is_ours) { RuntimeAddress(address) } else { OTHER_SIDE }
        };
        let (mut given, mut branches) = (0, Vec::new());
        for (number, sample) in self.lbr.samples.iter().enumerate() {
            if number % CHECK_EVERY as usize == 0 {
                go_on(path, options, sink)?;
            }
            let sides = sample.branches.iter().map(|&[from, to]| (side(from), side(to)));
            let entries =
                sides.map(|(from, to)| BranchEntry { from, to, ..BranchEntry::default() });
            let ours = |entry: &BranchEntry| entry.from != OTHER_SIDE || entry.to != OTHER_SIDE;
            branches.clear();
            branches.extend(entries.filter(ours));
            if !branches.is_empty() {
                given += 1;
                let branches = branches.as_slice();
                sink.sample(&Sample {
                    time: None,
                    address: None,
                    branches,
                    consecutive: true,
                    count: 1,
                });
            }
        }
        go_on(path, options, sink)?;
        Ok(given)
    }

    /// What it says about itself.
    pub fn facts(&self) -> Facts {
        let lists = self.binaries.iter().flat_map(|binary| &binary.lists);
        let mut facts = Facts {
            format: "simpleperf branch list".to_owned(),
            machine: Some(mepof_address::Machine::Aarch64),
            ..Facts::default()
        };
        facts.samples.used = lists.fold(0, |sum: u64, list| sum.saturating_add(list.count));
        facts
    }
}
