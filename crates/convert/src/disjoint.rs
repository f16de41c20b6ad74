//! Overlapping ranges, made into ranges that do not overlap.

use mepof_address::ImageAddress;
use mepof_trace::FallThrough;

/// Cuts `ranges` at each other's ends. The result is sorted; each of its ranges has the sum of
/// the counts of all ranges that cover it. Ranges of zero count mark code that belongs to a
/// function that ran: where nothing else covers them, the result has zero.
///
/// Ends are inclusive: `last` is the first byte of the last instruction, so a range that follows
/// another begins in the middle of an instruction, and a reader rounds it up to the next one.
///
/// Takes time n log n.
pub(crate) fn disjoint(ranges: impl Iterator<Item = FallThrough>) -> Vec<FallThrough> {
    // (address, does a range end there?, count, ranges)
    let mut edges: Vec<(u64, bool, u64)> = ranges
        .filter(|range| range.first <= range.last)
        .flat_map(|range| [(range.first.0, false, range.count), (range.last.0, true, range.count)])
        .collect();
    edges.sort_unstable();
    let mut result: Vec<FallThrough> = Vec::with_capacity(edges.len());
    let (mut open, mut count, mut begin) = (0usize, 0u128, Some(0u64));
    let mut emit = |first: u64, last: u64, count: u128| {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        result.push(FallThrough { first: ImageAddress(first), last: ImageAddress(last), count });
    };
    for (address, ends, amount) in edges {
        if ends {
            if let Some(first) = begin.filter(|&first| first <= address) {
                emit(first, address, count);
                begin = address.checked_add(1);
            }
            count -= u128::from(amount);
            open -= 1;
        } else {
            if let Some(first) = begin.filter(|&first| open > 0 && first < address) {
                emit(first, address - 1, count);
            }
            begin = Some(address);
            count += u128::from(amount);
            open += 1;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(ranges: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
        let ranges = ranges.iter().map(|&(first, last, count)| FallThrough {
            first: ImageAddress(first),
            last: ImageAddress(last),
            count,
        });
        disjoint(ranges).iter().map(|range| (range.first.0, range.last.0, range.count)).collect()
    }

    #[test]
    fn counts_add_up_where_ranges_overlap() {
        assert_eq!(cut(&[(10, 20, 100), (10, 30, 200)]), [(10, 20, 300), (21, 30, 200)]);
        assert_eq!(
            cut(&[(10, 20, 100), (20, 30, 200)]),
            [(10, 19, 100), (20, 20, 300), (21, 30, 200)]
        );
    }

    #[test]
    fn code_between_ranges_of_a_function_has_zero() {
        let ranges = [(12, 20, 100), (24, 30, 200), (10, 40, 0)];
        let expected = [(10, 11, 0), (12, 20, 100), (21, 23, 0), (24, 30, 200), (31, 40, 0)];
        assert_eq!(cut(&ranges), expected);
    }

    #[test]
    fn code_that_no_range_covers_is_left_out() {
        assert_eq!(cut(&[(10, 20, 1), (30, 40, 2)]), [(10, 20, 1), (30, 40, 2)]);
    }

    #[test]
    fn the_same_as_counting_every_address() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..500 {
            let ranges: Vec<_> = (0..random(8) + 1)
                .map(|_| {
                    let first = random(30);
                    (first, first + random(10), random(4))
                })
                .collect();
            let mut covered = [None::<u64>; 64];
            for &(first, last, count) in &ranges {
                for address in first..=last {
                    *covered[address as usize].get_or_insert(0) += count;
                }
            }
            let mut from_cut = [None::<u64>; 64];
            for (first, last, count) in cut(&ranges) {
                for address in first..=last {
                    assert_eq!(from_cut[address as usize], None, "{ranges:?}");
                    from_cut[address as usize] = Some(count);
                }
            }
            assert_eq!(covered, from_cut, "{ranges:?}");
        }
    }

    #[test]
    fn counts_do_not_overflow() {
        assert_eq!(cut(&[(1, 2, u64::MAX), (1, 2, u64::MAX)]).last(), Some(&(1, 2, u64::MAX)));
    }

    #[test]
    fn the_last_address_is_an_address() {
        assert_eq!(cut(&[(5, u64::MAX, 1), (5, u64::MAX, 1)]), [(5, u64::MAX, 2)]);
    }
}
