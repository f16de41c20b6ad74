//! BOLT's two text formats: what `perf2bolt` and `llvm-bolt` read with `--pa`, and the `fdata`
//! that they read without.
//!
//! Formats: LLVM 22, `bolt/include/bolt/Profile/DataAggregator.h` and
//! `bolt/lib/Profile/DataReader.cpp`. Mispredictions are not in a trace and are written as 0.

use std::io::{self, Write};

use mepof_address::ImageAddress;
use mepof_binary::{Binary, instructions};
use mepof_machine::{CodeKind, Flow, Instruction};
use mepof_trace::{Branch, FallThrough, ImageTrace};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Symbols;

/// A side of a branch that lies in an unknown binary.
const ELSEWHERE: &str = "X:0";

/// BOLT reads counts as signed 64-bit numbers.
fn count(count: u64) -> u64 {
    count.min(i64::MAX as u64)
}

fn location(address: Option<ImageAddress>) -> String {
    address.map_or_else(|| ELSEWHERE.to_owned(), |address| format!("{:x}", address.0))
}

/// Writes branches (`B`) and fall-through ranges (`F`) for `--pa`. Every BOLT that knows
/// pre-aggregated profiles reads them.
pub fn write_branches(out: &mut impl Write, trace: &ImageTrace) -> io::Result<()> {
    for branch in trace.branches.iter().filter(|branch| branch.count > 0) {
        write_branch(out, branch, branch.count)?;
    }
    for range in trace.ranges.iter().filter(|range| range.count > 0) {
        write_range(out, range, range.count)?;
    }
    Ok(())
}

fn write_branch(out: &mut impl Write, branch: &Branch, times: u64) -> io::Result<()> {
    writeln!(out, "B {} {} {} 0", location(branch.from), location(branch.to), count(times))
}

fn write_range(out: &mut impl Write, range: &FallThrough, times: u64) -> io::Result<()> {
    writeln!(out, "F {:x} {:x} {}", range.first.0, range.last.0, count(times))
}

/// Writes branches together with the range that follows them (`T`), for `--pa` of LLVM 21 and
/// later.
///
/// A trace knows how often a branch went to an address and how often each range began there,
/// not which branch each range followed; where several did, the ranges are shared out among
/// them in the order of addresses. The sums are those of the trace, and BOLT only uses the
/// sums. What has no counterpart is written as `B` and `F`.
pub fn write_traces(out: &mut impl Write, trace: &ImageTrace) -> io::Result<()> {
    let mut branches: Vec<(Branch, u64)> =
        trace.branches.iter().map(|&branch| (branch, branch.count)).collect();
    branches.sort_unstable_by_key(|(branch, _)| (branch.to, branch.from));
    let mut ranges: Vec<FallThrough> = trace.ranges.clone();
    ranges.sort_unstable();
    let mut ranges = ranges.into_iter().peekable();
    for (branch, left) in &mut branches {
        let Some(to) = branch.to else { continue };
        while let Some(range) = ranges.next_if(|range| range.first < to) {
            write_left(out, &range)?;
        }
        while let Some(range) = ranges.peek_mut().filter(|range| range.first == to && *left > 0) {
            let times = range.count.min(*left);
            if times > 0 {
                let (from, last) = (location(branch.from), range.last.0);
                writeln!(out, "T {from} {:x} {last:x} {}", to.0, count(times))?;
            }
            *left -= times;
            range.count -= times;
            if range.count == 0 {
                ranges.next();
            }
        }
    }
    ranges.try_for_each(|range| write_left(out, &range))?;
    let left = branches.iter().filter(|&&(_, left)| left > 0);
    left.into_iter().try_for_each(|(branch, left)| write_branch(out, branch, *left))
}

fn write_left(out: &mut impl Write, range: &FallThrough) -> io::Result<()> {
    if range.count > 0 { write_range(out, range, range.count) } else { Ok(()) }
}

/// Writes `fdata`: branches, and what went on to the next block instead, by function and
/// offset. Returns are left out, as `perf2bolt` does. Addresses that no function's symbol covers
/// are written as unknown.
pub fn write_fdata(
    out: &mut impl Write,
    binary: &Binary,
    symbols: &Symbols,
    trace: &ImageTrace,
) -> io::Result<()> {
    let executed = executed(binary, trace);
    let mut onwards = not_taken(binary, &executed, trace);
    onwards.extend(returned(binary, &executed, trace));
    for branch in trace.branches.iter().chain(&onwards).filter(|branch| branch.count > 0) {
        let position = |address: Option<ImageAddress>| function_offset(binary, symbols, address?);
        let (from, to) = (position(branch.from), position(branch.to));
        // BOLT ignores what it cannot attribute, and has no use for where a return goes.
        let returns = |from| flow(binary, from) == Some(Flow::Return);
        if (from.is_none() && to.is_none()) || branch.from.is_some_and(returns) {
            continue;
        }
        let text = |position: Option<(String, u64)>| match position {
            Some((name, offset)) => format!("1 {name} {offset:x}"),
            None => "0 [unknown] 0".to_owned(),
        };
        writeln!(out, "{} {} 0 {}", text(from), text(to), count(branch.count))?;
    }
    Ok(())
}

/// The function at `address` as BOLT names it, and the offset from its start.
fn function_offset(
    binary: &Binary,
    symbols: &Symbols,
    address: ImageAddress,
) -> Option<(String, u64)> {
    let start = binary.function_at(address)?.addresses.start;
    let symbol = symbols.at(start)?;
    let mut name = String::new();
    for letter in symbol.names.first()?.chars() {
        if letter.is_control() {
            return None;
        }
        if matches!(letter, ' ' | '\\') {
            name.push('\\');
        }
        name.push(letter);
    }
    if let Some(number) = symbol.local_number {
        name = format!("{name}/{number}");
    }
    Some((name, address.0 - start.0))
}

/// Where control went from one of BOLT's blocks to the next without a taken branch, as branches
/// from a block's last instruction. A block ends at a branch, and before what is branched to.
/// `ranges` are walked together, so that overlapping ones cost nothing extra.
fn not_taken(binary: &Binary, executed: &Executed, trace: &ImageTrace) -> Vec<Branch> {
    // (address, whether it ends there, count): at one address a range begins before one ends.
    let mut events: Vec<(ImageAddress, bool, u64)> = Vec::with_capacity(trace.ranges.len() * 2);
    for range in trace.ranges.iter().filter(|range| range.first <= range.last) {
        events.push((range.first, false, range.count));
        events.push((range.last, true, range.count));
    }
    events.sort_unstable();
    let mut events = events.into_iter().peekable();
    let mut not_taken = Vec::new();
    let mut running: i128 = 0;
    let mut at = ImageAddress(0);
    loop {
        if running == 0 {
            let Some(&(next, ..)) = events.peek() else { return not_taken };
            at = next;
        }
        // The last instruction of a range is the branch that was taken.
        while let Some((_, ends, count)) = events.next_if(|&(address, ..)| address <= at) {
            running += if ends { -i128::from(count) } else { i128::from(count) };
        }
        if running == 0 {
            continue;
        }
        // A kernel patches its code. What is shorter then goes on where no instruction of the file
        // begins.
        if let Some(next) = executed.start_after(binary, at) {
            at = next;
            continue;
        }
        let Some(instruction) = instruction(binary, at) else {
            // Not code: what runs through here is not to be believed.
            let Some(&(next, ..)) = events.peek() else { return not_taken };
            at = next;
            continue;
        };
        let next = ImageAddress(at.0.saturating_add(instruction.size.into()));
        let ends_block = executed.heads.contains(&next)
            || match instruction.flow {
                // A jump that only follows it belongs to the same block.
                Flow::Conditional(_) => !matches!(flow(binary, next), Some(Flow::Jump(_))),
                // What goes on behind a jump is what the kernel has patched to none.
                Flow::Jump(_) => true,
                _ => false,
            };
        if ends_block {
            let count = u64::try_from(running).unwrap_or(u64::MAX);
            not_taken.push(Branch { from: Some(at), to: Some(next), count, single: 0 });
        }
        at = next;
    }
}

fn flow(binary: &Binary, at: ImageAddress) -> Option<Flow> {
    instruction(binary, at).map(|instruction| instruction.flow)
}

fn instruction(binary: &Binary, at: ImageAddress) -> Option<Instruction> {
    let thumb = binary.code_kind(at) == Some(CodeKind::Thumb);
    let code = binary.code(at..ImageAddress(at.0.saturating_add(16)));
    binary.machine().decode(thumb, at, code).filter(|instruction| instruction.size > 0)
}

/// From calls behind which a block ends, to where they returned.
fn returned(binary: &Binary, executed: &Executed, trace: &ImageTrace) -> Vec<Branch> {
    let returns = trace
        .branches
        .iter()
        .filter(|branch| branch.from.is_some_and(|from| flow(binary, from) == Some(Flow::Return)));
    returns
        .filter_map(|branch| {
            let to = branch.to?;
            let to = executed.start_after(binary, to).unwrap_or(to);
            let call = executed.calls.get(&to).filter(|_| executed.heads.contains(&to))?;
            Some(Branch { from: Some(*call), to: Some(to), ..*branch })
        })
        .collect()
}

/// The code of the functions that ran.
#[derive(Default)]
struct Executed {
    /// What is jumped to.
    heads: FxHashSet<ImageAddress>,
    /// Where instructions begin, sorted.
    starts: Vec<ImageAddress>,
    /// Calls, by what follows them.
    calls: FxHashMap<ImageAddress, ImageAddress>,
}

impl Executed {
    /// The next start of an instruction in the function at `at`, where none begins at `at`.
    fn start_after(&self, binary: &Binary, at: ImageAddress) -> Option<ImageAddress> {
        let next = *self.starts.get(self.starts.binary_search(&at).err()?)?;
        binary.function_at(at).filter(|function| function.addresses.contains(&next)).map(|_| next)
    }
}

fn executed(binary: &Binary, trace: &ImageTrace) -> Executed {
    let mut found = Executed::default();
    for branch in &trace.branches {
        let jumps = !matches!(
            branch.from.and_then(|from| flow(binary, from)),
            Some(Flow::Return | Flow::Call(_) | Flow::IndirectCall)
        );
        found.heads.extend(branch.to.filter(|_| jumps));
    }
    let mut functions: Vec<_> = trace
        .ranges
        .iter()
        .filter_map(|range| binary.function_at(range.first))
        .map(|function| (function.addresses.start, function.addresses.end))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    for (start, end) in functions {
        for (at, instruction) in instructions(binary, start..end) {
            found.starts.push(at);
            match instruction.flow {
                Flow::Conditional(target) | Flow::Jump(target) => {
                    found.heads.insert(target);
                }
                Flow::Call(_) | Flow::IndirectCall => {
                    let next = ImageAddress(at.0.saturating_add(instruction.size.into()));
                    found.calls.insert(next, at);
                }
                _ => {}
            }
        }
    }
    found.starts.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(branches: &[(u64, u64, u64)], ranges: &[(u64, u64, u64)]) -> ImageTrace {
        let side = |address| (address != 0).then_some(ImageAddress(address));
        let branch =
            |&(from, to, count)| Branch { from: side(from), to: side(to), count, single: 0 };
        let range = |&(first, last, count)| FallThrough {
            first: ImageAddress(first),
            last: ImageAddress(last),
            count,
        };
        ImageTrace {
            branches: branches.iter().map(branch).collect(),
            ranges: ranges.iter().map(range).collect(),
            ..ImageTrace::default()
        }
    }

    fn written(
        write: fn(&mut Vec<u8>, &ImageTrace) -> io::Result<()>,
        trace: &ImageTrace,
    ) -> String {
        let mut out = Vec::new();
        write(&mut out, trace).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn branches_and_ranges_are_hexadecimal_and_counts_are_not() {
        let trace = trace(
            &[(0x10, 0xabc, 12), (0, 0x20, 3), (0x30, 0, 4), (0x1, 0x2, 0)],
            &[(0xabc, 0xac0, 11), (0x20, 0x24, u64::MAX)],
        );
        let expected = "B 10 abc 12 0\nB X:0 20 3 0\nB 30 X:0 4 0\n\
                        F abc ac0 11\nF 20 24 9223372036854775807\n";
        assert_eq!(written(write_branches, &trace), expected);
    }

    #[test]
    fn a_range_goes_with_the_branch_that_it_follows() {
        let trace = trace(
            &[(0x10, 0x40, 5), (0x18, 0x40, 5), (0x50, 0x60, 2), (0x70, 0, 1)],
            &[(0x40, 0x44, 6), (0x40, 0x48, 3), (0x58, 0x5c, 9), (0x80, 0x84, 1)],
        );
        let expected = "T 10 40 44 5\nT 18 40 44 1\nT 18 40 48 3\nF 58 5c 9\nF 80 84 1\n\
                        B 70 X:0 1 0\nB 18 40 1 0\nB 50 60 2 0\n";
        assert_eq!(written(write_traces, &trace), expected);
    }
}
