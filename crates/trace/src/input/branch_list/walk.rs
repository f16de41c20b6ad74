//! What ran, from the bits of a branch list and the code of its binaries.

use std::path::Path;
use std::sync::atomic::Ordering;

use mepof_address::RuntimeAddress;

use super::message::{BranchList, TakenBits, TracedBinary};
use crate::input::options::Options;
use crate::record::OTHER_SIDE;
use crate::{BranchEntry, Cause, Sample, Sink, Tally, TraceError};

/// Instructions from one branch to the next, at most.
const MAX_STRAIGHT: u32 = 1 << 16;
/// Instructions that are followed for each bit of the lists so far, on average: code has a branch
/// every five to ten.
const STRAIGHT_FOR_A_BIT: u64 = 64;
/// Instructions in addition, so that a short list may deviate from the average.
const STRAIGHT_AT_FIRST: u64 = 1 << 24;
/// Branches of a list that are given as one stack, at most.
const MAX_STACK: usize = 1 << 10;
/// Bits of a list, or samples, after which it is asked whether to go on.
const CHECK_EVERY: u32 = 1 << 12;

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
    /// taken, as stacks, and the code before and after them.
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
        let first = list.address.wrapping_add(slide);
        let mut taken = Taken { first, count: list.count, branches: Vec::new() };
        let last = self.branches(list, decode, &mut taken, sink);
        let first = taken.give(sink);
        if let Some(last) = last? {
            sink.range(code(first), code(last), list.count);
        }
        Ok(())
    }

    /// Takes the branches of `list`. Returns the latest instruction behind them that is known to
    /// have run.
    fn branches<S: Sink>(
        &mut self,
        list: &TakenBits,
        decode: &mut impl FnMut(u64) -> Option<(Step, u64)>,
        taken: &mut Taken,
        sink: &mut S,
    ) -> Result<Option<u64>, Stop> {
        let (mut at, mut last) = (taken.first, None);
        for position in 0.. {
            let Some(is_taken) = list.taken(position) else { break };
            if position % CHECK_EVERY == 0 {
                go_on(self.path, self.options, sink).map_err(Stop::Failed)?;
            }
            self.left = self.left.saturating_add(STRAIGHT_FOR_A_BIT);
            let (step, size) = self.next_branch(&mut at, decode).map_err(Stop::Lost)?;
            last = Some(at);
            match step {
                Step::Branch(target) if is_taken => {
                    taken.branch(at, target, sink);
                    // The instruction set does not change in a direct branch but `blx`, which
                    // `decode` returns in the target.
                    (at, last) = (target, None);
                }
                Step::Indirect if is_taken => break,
                _ => at = at.checked_add(size).ok_or(Stop::Lost(Cause::OutsideBinary))?,
            }
        }
        Ok(last)
    }

    /// Goes on from `at` to the next instruction that the trace has a bit for.
    fn next_branch(
        &mut self,
        at: &mut u64,
        decode: &mut impl FnMut(u64) -> Option<(Step, u64)>,
    ) -> Result<(Step, u64), Cause> {
        for _ in 0..MAX_STRAIGHT {
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

/// An address of a list as that of an instruction.
fn code(address: u64) -> RuntimeAddress {
    RuntimeAddress(address & !1)
}

/// The branches of a list that are still to be given.
struct Taken {
    first: u64, // where the code before the oldest of them begins
    count: u64,
    branches: Vec<(u64, u64)>, // the oldest first
}

impl Taken {
    fn branch<S: Sink>(&mut self, from: u64, to: u64, sink: &mut S) {
        self.branches.push((from, to));
        if self.branches.len() >= MAX_STACK {
            self.first = self.give(sink);
        }
    }

    /// Gives the branches as a stack, and returns where the newest of them went.
    fn give<S: Sink>(&mut self, sink: &mut S) -> u64 {
        let (Some(&(oldest, _)), Some(&(_, newest))) =
            (self.branches.first(), self.branches.last())
        else {
            return self.first;
        };
        sink.range(code(self.first), code(oldest), self.count);
        let entry =
            |(from, to)| BranchEntry { from: code(from), to: code(to), ..BranchEntry::default() };
        let branches: Vec<_> = self.branches.drain(..).rev().map(entry).collect();
        sink.sample(&Sample {
            time: None,
            address: None,
            branches: &branches,
            consecutive: true,
            count: self.count,
        });
        newest
    }
}

impl BranchList {
    /// Gives `sink` the branch stacks with branches of those of [`LbrData::binaries`] that for
    /// which `is_ours` is true, by index, in addresses of these binaries. The other binaries' are
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
