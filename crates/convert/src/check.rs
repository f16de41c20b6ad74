//! Holds a trace against the code that it is said to come from.

use mepof_address::ImageAddress;
use mepof_machine::Flow;
use mepof_trace::{Branch, Cause, FallThrough, ImageTrace, Tally};

use rustc_hash::FxHashMap;

use crate::code::Code;
use crate::patched::Patched;

/// A trace whose every branch and range can have happened in the binary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    pub branches: Vec<Branch>,
    pub ranges: Vec<FallThrough>,
    /// Branches, by count: used, and dropped by cause.
    pub branch_tally: Tally,
    /// Ranges, by count: used, and dropped by cause.
    pub range_tally: Tally,
    /// Counts of branches whose source is not a branch instruction: interrupts and exceptions, of
    /// which there are few; in the wrong binary nearly all are.
    pub asynchronous: u64,
    /// Counts of branches whose source was moved on to the branch that it is fused with.
    pub fused: u64,
}

impl Checked {
    /// The branches that were recorded alone. In a binary without a range, all count as such.
    pub fn single(&self) -> Vec<Branch> {
        let has_stacks = !self.ranges.is_empty();
        let alone = |one: &Branch| if has_stacks { one.single } else { one.count };
        counted(self.branches.iter().map(|one| Branch { count: alone(one), ..*one }))
    }

    /// The branches of stacks, which have ranges beside them.
    pub fn of_stacks(&self) -> Vec<Branch> {
        let rest = |one: &Branch| one.count.saturating_sub(one.single);
        counted(self.branches.iter().map(|one| Branch { count: rest(one), ..*one }))
    }
}

fn counted(branches: impl Iterator<Item = Branch>) -> Vec<Branch> {
    branches.filter(|branch| branch.count > 0).collect()
}

/// Checks `trace` against `code`; what the file says of `patched` code may not hold.
pub(crate) fn check(trace: &ImageTrace, code: &Code, patched: &Patched) -> Checked {
    let is_instruction = |address| code.at(address).is_some() || patched.contains(address);
    let mut checked = Checked::default();
    let mut fused = FxHashMap::default(); // the branch that an instruction was fused with
    for branch in &trace.branches {
        if branch.to.is_some_and(|to| !is_instruction(to)) {
            checked.branch_tally.drop(Cause::InsideInstruction, branch.count);
            continue;
        }
        let mut branch = *branch;
        if let Some(from) = branch.from.filter(|&from| !is_branch(code, patched, from)) {
            if let Some(with) = fused_with(code, from, branch.to) {
                add(&mut checked.fused, branch.count);
                fused.insert(from, with);
                branch.from = Some(with);
            } else {
                add(&mut checked.asynchronous, branch.count);
            }
        }
        add(&mut checked.branch_tally.used, branch.count);
        checked.branches.push(branch);
    }
    for range in &trace.ranges {
        let (first, last) = (range.first, *fused.get(&range.last).unwrap_or(&range.last));
        let cause = if first > last {
            Some(Cause::InvertedRange)
        } else if !is_instruction(first) || !is_instruction(last) {
            Some(Cause::InsideInstruction)
        } else if code.barriers(first, last).iter().any(|&barrier| !patched.contains(barrier)) {
            Some(Cause::CrossingRange)
        } else {
            None
        };
        match cause {
            Some(cause) => checked.range_tally.drop(cause, range.count),
            None => {
                add(&mut checked.range_tally.used, range.count);
                checked.ranges.push(FallThrough { last, ..*range });
            }
        }
    }
    checked
}

fn add(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

fn is_branch(code: &Code, patched: &Patched, from: ImageAddress) -> bool {
    patched.contains(from) || code.at(from).is_some_and(|placed| placed.is_branch())
}

/// Whether a branch from `from`, to wherever, can have been recorded.
pub(crate) fn may_branch(code: &Code, patched: &Patched, from: ImageAddress) -> bool {
    let next = || code.after(code.at(from)?);
    let is_fused = || next().is_some_and(|next| matches!(next.flow, Flow::Conditional(_)));
    is_branch(code, patched, from) || is_fused()
}

/// AMD records the first of two instructions that were fused into one, say a `cmp` and the `jcc`
/// after it; the kernel corrects it only since 6.1, commit df3e9612f758 "perf/x86: Make branch
/// classifier fusion-aware".
fn fused_with(code: &Code, from: ImageAddress, to: Option<ImageAddress>) -> Option<ImageAddress> {
    let next = code.after(code.at(from)?)?;
    (next.flow == Flow::Conditional(to?)).then_some(next.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Placed;

    const SIZE: u64 = 4;

    /// Instructions of four bytes each, from address 0 on.
    fn code(flows: &[Flow]) -> Code {
        let location = |(index, &flow): (usize, &Flow)| Placed {
            address: ImageAddress(SIZE * index as u64),
            size: SIZE as u8,
            flow,
        };
        Code::of(flows.iter().enumerate().map(location).collect())
    }

    fn trace(branches: &[(u64, u64)], ranges: &[(u64, u64)]) -> ImageTrace {
        let address = |index| ImageAddress(index * SIZE);
        let branch = |&(from, to)| Branch {
            from: Some(address(from)),
            to: Some(address(to)),
            count: 1,
            single: 0,
        };
        let range =
            |&(first, last)| FallThrough { first: address(first), last: address(last), count: 1 };
        ImageTrace {
            branches: branches.iter().map(branch).collect(),
            ranges: ranges.iter().map(range).collect(),
            ..ImageTrace::default()
        }
    }

    const JUMP: Flow = Flow::IndirectJump;
    const NEXT: Flow = Flow::Next;

    #[test]
    fn a_range_may_end_with_a_jump_but_not_cross_one() {
        let code = code(&[NEXT, JUMP, NEXT, JUMP]);
        let checked = check(&trace(&[], &[(0, 1), (0, 3)]), &code, &Patched::default());
        assert_eq!(checked.ranges.len(), 1);
        assert_eq!(checked.range_tally.dropped_for(Cause::CrossingRange), 1);
    }

    #[test]
    fn a_jump_that_the_kernel_rewrites_may_be_crossed() {
        let code = code(&[NEXT, JUMP, NEXT, JUMP]);
        let patched = Patched::of(vec![ImageAddress(4)..ImageAddress(8)]);
        let checked = check(&trace(&[(1, 3)], &[(0, 3)]), &code, &patched);
        assert_eq!((checked.ranges.len(), checked.asynchronous), (1, 0));
    }

    #[test]
    fn an_inverted_range_is_dropped() {
        let checked = check(&trace(&[], &[(1, 0)]), &code(&[NEXT, JUMP]), &Patched::default());
        assert_eq!(checked.range_tally.dropped_for(Cause::InvertedRange), 1);
    }

    #[test]
    fn a_branch_into_the_middle_of_an_instruction_is_dropped() {
        let mut trace = trace(&[(1, 0)], &[]);
        trace.branches[0].to = Some(ImageAddress(2));
        let checked = check(&trace, &code(&[NEXT, JUMP]), &Patched::default());
        assert_eq!(checked.branch_tally.dropped_for(Cause::InsideInstruction), 1);
        assert!(checked.branches.is_empty());
    }

    #[test]
    fn a_fused_compare_stands_for_the_branch_after_it() {
        let code = code(&[NEXT, NEXT, Flow::Conditional(ImageAddress(0)), JUMP]);
        let checked = check(&trace(&[(1, 0)], &[(0, 1)]), &code, &Patched::default());
        assert_eq!(checked.fused, 1);
        assert_eq!(checked.branches[0].from, Some(ImageAddress(8)));
        assert_eq!(checked.ranges[0].last, ImageAddress(8));
    }

    #[test]
    fn an_interrupt_is_counted_and_its_range_is_kept() {
        let code = code(&[NEXT, NEXT, Flow::Conditional(ImageAddress(0)), JUMP]);
        let checked = check(&trace(&[(1, 3)], &[(0, 1)]), &code, &Patched::default());
        assert_eq!((checked.asynchronous, checked.fused, checked.ranges.len()), (1, 0, 1));
    }
}
