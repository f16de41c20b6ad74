//! How much of each function a trace executed.

use mepof_address::ImageAddress;
use mepof_binary::Function;
use mepof_trace::ImageTrace;

/// What ran of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Bytes of its code that ran straight through, each as often as it ran.
    pub bytes: u64,
    /// Taken branches that begin or end in it.
    pub branches: u64,
}

/// Adds up `trace` by function: one entry for each of `functions`, which are in the order of their
/// addresses and do not overlap.
pub fn executed(functions: &[Function], trace: &ImageTrace) -> Vec<Executed> {
    let mut found = vec![Executed::default(); functions.len()];
    // The first function that ends after an address.
    let from = |address: ImageAddress| {
        functions.partition_point(|function| function.addresses.end <= address)
    };
    for branch in &trace.branches {
        for side in [branch.from, branch.to].into_iter().flatten() {
            let index = from(side);
            let inside = functions.get(index).is_some_and(|one| one.addresses.contains(&side));
            if let Some(ran) = found.get_mut(index).filter(|_| inside) {
                ran.branches = ran.branches.saturating_add(branch.count);
            }
        }
    }
    for range in &trace.ranges {
        let first = from(range.first);
        for (function, ran) in functions.iter().zip(&mut found).skip(first) {
            if function.addresses.start > range.last {
                break;
            }
            let start = function.addresses.start.max(range.first).0;
            // The size of the last instruction is unknown here: its first byte stands for it.
            let end = function.addresses.end.0.min(range.last.0.saturating_add(1));
            ran.bytes =
                ran.bytes.saturating_add(end.saturating_sub(start).saturating_mul(range.count));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mepof_trace::{Branch, FallThrough};

    use super::*;

    fn function(start: u64, end: u64) -> Function {
        let addresses = ImageAddress(start)..ImageAddress(end);
        Function { name: format!("f{start}"), addresses, is_entry: true }
    }

    fn functions() -> [Function; 3] {
        [function(100, 110), function(110, 120), function(130, 135)]
    }

    fn bytes(ranges: &[(u64, u64, u64)]) -> Vec<u64> {
        let ranges = ranges.iter().map(|&(first, last, count)| FallThrough {
            first: ImageAddress(first),
            last: ImageAddress(last),
            count,
        });
        let trace = ImageTrace { ranges: ranges.collect(), ..ImageTrace::default() };
        executed(&functions(), &trace).iter().map(|ran| ran.bytes).collect()
    }

    #[test]
    fn bytes_of_a_range_are_those_of_the_functions_in_it() {
        let ranges = [(105, 111, 3), (100, 100, 7), (120, 140, 2), (90, 99, 5)];
        assert_eq!(bytes(&ranges), [3 * 5 + 7, 3 * 2, 2 * 5]);
    }

    #[test]
    fn a_range_runs_every_function_that_it_touches() {
        assert_eq!(bytes(&[(109, 110, 1)]), [1, 1, 0]);
        assert_eq!(bytes(&[(105, 130, 1)]), [5, 10, 1]);
        assert_eq!(bytes(&[(120, 129, 1)]), [0, 0, 0]);
        assert_eq!(bytes(&[(135, 200, 1), (1, 99, 1)]), [0, 0, 0]);
    }

    #[test]
    fn both_ends_of_a_branch_are_counted() {
        let branch = |from, to, count| Branch {
            from: Some(ImageAddress(from)),
            to: Some(ImageAddress(to)),
            count,
            single: 0,
        };
        let branches = vec![branch(109, 110, 2), branch(134, 125, 3), branch(99, 135, 4)];
        let trace = ImageTrace { branches, ..ImageTrace::default() };
        let counts: Vec<u64> =
            executed(&functions(), &trace).iter().map(|ran| ran.branches).collect();
        assert_eq!(counts, [2, 2, 3]);
    }
}
