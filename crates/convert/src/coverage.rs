//! How much of a binary a trace covers.

use mepof_address::ImageAddress;
use mepof_trace::FallThrough;
use rayon::prelude::*;

use crate::code::Code;

/// The share of all executions that hot code has.
const HOT: f64 = 0.99;

/// What ran of a binary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Coverage {
    /// Bytes of code that ran.
    pub executed: u64,
    /// Bytes that [`HOT`] of all executions fall on, the hottest first.
    pub hot: u64,
    /// Share of executions for which `mapped` is true; 1 if nothing ran.
    pub mapped: f64,
}

/// Measures `ranges`, which do not overlap. `mapped`: whether the profile can say something about
/// an address.
pub(crate) fn coverage(
    code: &Code,
    ranges: &[FallThrough],
    mapped: impl Fn(ImageAddress) -> bool + Sync,
) -> Coverage {
    // (count, bytes that ran so often, bytes of them that are mapped)
    let mut executed: Vec<(u64, u64, u64)> = ranges
        .par_iter()
        .filter(|range| range.count > 0)
        .map(|range| {
            code.within(range.first, range.last).iter().fold((range.count, 0, 0), |sum, placed| {
                let size = u64::from(placed.size);
                (sum.0, sum.1 + size, sum.2 + if mapped(placed.address) { size } else { 0 })
            })
        })
        .collect();
    executed.sort_unstable_by(|a, b| b.cmp(a));
    let weight = |count: u64, bytes: u64| count as f64 * bytes as f64;
    let total: f64 = executed.iter().map(|&(count, bytes, _)| weight(count, bytes)).sum();
    let known: f64 = executed.iter().map(|&(count, _, mapped)| weight(count, mapped)).sum();
    let (mut hot, mut seen) = (0, 0.0);
    for &(count, bytes, _) in &executed {
        if seen >= HOT * total {
            break;
        }
        hot += bytes;
        seen += weight(count, bytes);
    }
    Coverage {
        executed: executed.iter().map(|&(_, bytes, _)| bytes).sum(),
        hot,
        mapped: if total > 0.0 { known / total } else { 1.0 },
    }
}

#[cfg(test)]
mod tests {
    use mepof_machine::Flow;

    use super::*;
    use crate::code::Placed;

    #[test]
    fn bytes_and_shares_are_weighed_by_how_often_they_ran() {
        let location =
            |address| Placed { address: ImageAddress(address), size: 2, flow: Flow::Next };
        let code = Code::of((0..10).map(|index| location(2 * index)).collect());
        let range = |first, last, count| FallThrough {
            first: ImageAddress(first),
            last: ImageAddress(last),
            count,
        };
        let ranges = [range(0, 2, 10_000), range(4, 8, 1), range(10, 18, 0)];
        let mapped = |address: ImageAddress| address.0 != 2;
        let expected = Coverage { executed: 10, hot: 4, mapped: 20_006.0 / 40_006.0 };
        assert_eq!(coverage(&code, &ranges, mapped), expected);
    }

    #[test]
    fn nothing_ran_and_nothing_is_unmapped() {
        let coverage = coverage(&Code::default(), &[], |_| false);
        assert_eq!(coverage, Coverage { mapped: 1.0, ..Coverage::default() });
    }
}
