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
    pub placed: Tally,
}

/// The branches and ranges of `aggregate` that lie in the binary that ran at `placement`.
pub fn place(aggregate: &Aggregate, placement: &Placement) -> ImageTrace {
    let image = |address: RuntimeAddress| placement.to_image(address);
    let mut trace = ImageTrace::default();
    for (from, to, count) in aggregate.branches() {
        let (from, to) = (image(from), image(to));
        if from.is_none() && to.is_none() {
            trace.placed.drop(Cause::OutsideBinary, count);
        } else {
            trace.placed.used = trace.placed.used.saturating_add(count);
            trace.branches.push(Branch { from, to, count });
        }
    }
    for (first, last, count) in aggregate.ranges() {
        if let (Some(first), Some(last)) = (image(first), image(last)) {
            trace.ranges.push(FallThrough { first, last, count });
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
        self.placed.merge(&other.placed);
        self.normalise();
    }

    /// Sorts, and adds up what is the same.
    fn normalise(&mut self) {
        self.branches.sort_unstable();
        self.branches.dedup_by(|next, kept| {
            let same = (next.from, next.to) == (kept.from, kept.to);
            if same {
                kept.count = kept.count.saturating_add(next.count);
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
    use crate::Sink;

    const PLACES: [(u64, u64, u64); 2] = [(0x1000, 0x10, 0x100), (0x9000, 0x10, 0x100)];

    fn placement() -> Placement {
        let region = |(runtime, image, size)| Region {
            runtime: RuntimeAddress(runtime),
            image: ImageAddress(image),
            size,
        };
        Placement::new(PLACES.map(region).to_vec())
    }

    #[test]
    fn a_branch_from_elsewhere_keeps_its_target() {
        let mut aggregate = Aggregate::default();
        aggregate.branch(RuntimeAddress(5), RuntimeAddress(0x1008), 2);
        aggregate.branch(RuntimeAddress(5), RuntimeAddress(6), 3);
        let trace = place(&aggregate, &placement());
        let expected = Branch { from: None, to: Some(ImageAddress(0x18)), count: 2 };
        assert_eq!(trace.branches, [expected]);
        assert_eq!((trace.placed.used, trace.placed.dropped_for(Cause::OutsideBinary)), (2, 3));
    }

    #[test]
    fn what_ran_at_two_places_is_added_up() {
        let mut aggregate = Aggregate::default();
        for base in [0x1000, 0x9000] {
            aggregate.range(RuntimeAddress(base), RuntimeAddress(base + 4), 2);
        }
        aggregate.range(RuntimeAddress(0x1000), RuntimeAddress(0x200), 2);
        let mut trace = place(&aggregate, &placement());
        trace.merge(trace.clone());
        let (first, last) = (ImageAddress(0x10), ImageAddress(0x14));
        assert_eq!(trace.ranges, [FallThrough { first, last, count: 8 }]);
    }
}
