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
    // Two run-time addresses may be one image address: add up what then is the same.
    trace.branches.sort_unstable();
    trace.branches.dedup_by(|next, kept| {
        let same = (next.from, next.to) == (kept.from, kept.to);
        if same {
            kept.count = kept.count.saturating_add(next.count);
        }
        same
    });
    trace.ranges.sort_unstable();
    trace.ranges.dedup_by(|next, kept| {
        let same = (next.first, next.last) == (kept.first, kept.last);
        if same {
            kept.count = kept.count.saturating_add(next.count);
        }
        same
    });
    trace
}
