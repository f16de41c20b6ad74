use std::ops::Range;

use mepof_address::{ImageAddress, Placement, RuntimeAddress};

use crate::{Aggregate, Cause, Tally};

/// A taken branch of one binary. A side that is `None` lies outside of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch {
    /// The branch instruction.
    pub from: Option<ImageAddress>,
    /// Where it went.
    pub to: Option<ImageAddress>,
    /// How often.
    pub count: u64,
    /// How often of these it was recorded alone, so that nothing is known of the code on its two
    /// sides.
    pub single: u64,
}

/// Code of one binary that ran straight through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FallThrough {
    /// The first instruction.
    pub first: ImageAddress,
    /// The last instruction, which it includes.
    pub last: ImageAddress,
    /// How often.
    pub count: u64,
}

/// The part of an aggregate that belongs to one binary, sorted by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageTrace {
    /// Taken branches with one side or both in the binary.
    pub branches: Vec<Branch>,
    /// Fall-through ranges within the binary.
    pub ranges: Vec<FallThrough>,
    /// Branch counts that were used and dropped.
    pub mapped: Tally,
    /// Range counts that were used and dropped.
    pub mapped_ranges: Tally,
}

/// The branches and ranges of `aggregate` that lie in the binary that ran at `placement`.
/// `shared`, by address: where another binary ran too, at another time.
pub fn map_to_image(
    aggregate: &Aggregate,
    placement: &Placement,
    shared: &[Range<RuntimeAddress>],
) -> ImageTrace {
    let image = |address: RuntimeAddress| placement.to_image(address);
    let is_shared = |address: RuntimeAddress| {
        let after = shared.partition_point(|range| range.start <= address);
        let range = after.checked_sub(1).and_then(|index| shared.get(index));
        range.is_some_and(|range| address < range.end)
    };
    let cause = |one, another| match is_shared(one) || is_shared(another) {
        true => Cause::Ambiguous,
        false => Cause::OutsideBinary,
    };
    let mut trace = ImageTrace::default();
    // A stack of one branch is the remainder of a longer one, unless all are like that.
    let has_stacks = aggregate.ranges().next().is_some();
    let of_stacks = aggregate.of_stacks().map(|branch| (branch, !has_stacks));
    for ((from, to, count), alone) in of_stacks.chain(aggregate.single().map(|one| (one, true))) {
        let (source, target) = (image(from), image(to));
        if source.is_none() && target.is_none() {
            trace.mapped.drop(cause(from, to), count);
        } else {
            trace.mapped.used = trace.mapped.used.saturating_add(count);
            let single = if alone { count } else { 0 };
            trace.branches.push(Branch { from: source, to: target, count, single });
        }
    }
    for (first, last, count) in aggregate.ranges() {
        if let (Some(first), Some(last)) = (image(first), image(last)) {
            trace.mapped_ranges.used = trace.mapped_ranges.used.saturating_add(count);
            trace.ranges.push(FallThrough { first, last, count });
        } else {
            trace.mapped_ranges.drop(cause(first, last), count);
        }
    }
    trace.normalise(); // two run-time addresses may be one image address
    trace
}

impl ImageTrace {
    /// Takes over what `other`, a trace of the same binary, has.
    pub fn merge(&mut self, other: Self) {
        self.branches.extend(other.branches);
        self.ranges.extend(other.ranges);
        self.mapped.merge(&other.mapped);
        self.mapped_ranges.merge(&other.mapped_ranges);
        self.normalise();
    }

    /// Sorts, and adds up what is the same.
    fn normalise(&mut self) {
        self.branches.sort_unstable();
        self.branches.dedup_by(|next, kept| {
            let same = (next.from, next.to) == (kept.from, kept.to);
            if same {
                kept.count = kept.count.saturating_add(next.count);
                kept.single = kept.single.saturating_add(next.single);
            }
            same
        });
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| {
            let same = (next.first, next.last) == (kept.first, kept.last);
            if same {
                kept.count = kept.count.saturating_add(next.count);
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use mepof_address::Region;

    use super::*;
    use crate::{BranchEntry, Sample, Sink};

    const REGIONS: [(u64, u64, u64); 2] = [(0x1000, 0x10, 0x100), (0x9000, 0x10, 0x100)];

    fn placement() -> Placement {
        let region = |(runtime, image, size)| Region {
            runtime: RuntimeAddress(runtime),
            image: ImageAddress(image),
            size,
        };
        Placement::new(REGIONS.map(region).to_vec())
    }

    #[test]
    fn a_branch_from_elsewhere_keeps_its_target() {
        let mut aggregate = Aggregate::default();
        aggregate.branch(RuntimeAddress(5), RuntimeAddress(0x1008), 2);
        aggregate.branch(RuntimeAddress(5), RuntimeAddress(6), 3);
        let trace = map_to_image(&aggregate, &placement(), &[]);
        let expected = Branch { from: None, to: Some(ImageAddress(0x18)), count: 2, single: 2 };
        assert_eq!(trace.branches, [expected], "without ranges, all are alone");
        assert_eq!((trace.mapped.used, trace.mapped.dropped_for(Cause::OutsideBinary)), (2, 3));
    }

    #[test]
    fn branches_that_were_recorded_alone_stay_known_beside_stacks() {
        let mut aggregate = Aggregate::default();
        let entry = |from, to| BranchEntry {
            from: RuntimeAddress(from),
            to: RuntimeAddress(to),
            ..BranchEntry::default()
        };
        let stack = [entry(0x1040, 0x1000), entry(0x1020, 0x1030)];
        for (branches, consecutive, count) in
            [(&stack[..], true, 3), (&stack[..1], true, 2), (&stack[..1], false, 5)]
        {
            aggregate.sample(&Sample { time: None, address: None, branches, consecutive, count });
        }
        let trace = map_to_image(&aggregate, &placement(), &[]);
        let counts: Vec<_> = trace.branches.iter().map(|one| (one.count, one.single)).collect();
        assert_eq!((counts, trace.mapped.used), (vec![(3, 0), (10, 5)], 13));
    }

    #[test]
    fn what_ran_at_two_locations_is_added_up() {
        let mut aggregate = Aggregate::default();
        for base in [0x1000, 0x9000] {
            aggregate.range(RuntimeAddress(base), RuntimeAddress(base + 4), 2);
        }
        aggregate.range(RuntimeAddress(0x1000), RuntimeAddress(0x200), 2);
        let mut trace = map_to_image(&aggregate, &placement(), &[]);
        trace.merge(trace.clone());
        let (first, last) = (ImageAddress(0x10), ImageAddress(0x14));
        assert_eq!(trace.ranges, [FallThrough { first, last, count: 8 }]);
        let ranges = &trace.mapped_ranges;
        assert_eq!((ranges.used, ranges.dropped_for(Cause::OutsideBinary)), (8, 4));
    }

    #[test]
    fn what_lies_where_two_binaries_were_is_ambiguous() {
        let mut aggregate = Aggregate::default();
        for base in [0x5000, 0x7000] {
            aggregate.branch(RuntimeAddress(base), RuntimeAddress(base + 8), 2);
            aggregate.range(RuntimeAddress(base + 8), RuntimeAddress(base + 16), 3);
        }
        let shared = [RuntimeAddress(0x5000)..RuntimeAddress(0x5100)];
        let trace = map_to_image(&aggregate, &placement(), &shared);
        let dropped = |tally: &Tally| {
            [Cause::Ambiguous, Cause::OutsideBinary].map(|cause| tally.dropped_for(cause))
        };
        assert_eq!((dropped(&trace.mapped), dropped(&trace.mapped_ranges)), ([2, 2], [3, 3]));
    }
}
