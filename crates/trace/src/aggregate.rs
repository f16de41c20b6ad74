use mepof_address::RuntimeAddress;

use crate::pair_counts::PairCounts;
use crate::{Cause, Sample, Sink, Speculation, Tally};

/// Branches and fall-through ranges with their counts, at run-time addresses.
///
/// Memory grows with the number of distinct branches and ranges, whatever the input's size:
/// 21 to 43 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    branches: PairCounts, // without the single ones
    single: PairCounts,
    ranges: PairCounts,
    entries: Tally,
    taken: Vec<(u64, u64)>,    // branches of the current sample
    straight: Vec<(u64, u64)>, // ranges of it
}

impl Aggregate {
    /// How often each branch (from, to) was taken. One that was recorded both in stacks and alone
    /// comes twice.
    pub fn branches(&self) -> impl Iterator<Item = (RuntimeAddress, RuntimeAddress, u64)> {
        self.of_stacks().chain(self.single())
    }

    /// The branches that were not recorded alone.
    pub(crate) fn of_stacks(&self) -> impl Iterator<Item = (RuntimeAddress, RuntimeAddress, u64)> {
        self.branches.iter().map(addresses)
    }

    /// The branches that were recorded alone: nothing is known of the code on their two sides.
    pub(crate) fn single(&self) -> impl Iterator<Item = (RuntimeAddress, RuntimeAddress, u64)> {
        self.single.iter().map(addresses)
    }

    /// How often code ran straight through from the first address to the last, both of them
    /// first bytes of instructions.
    pub fn ranges(&self) -> impl Iterator<Item = (RuntimeAddress, RuntimeAddress, u64)> {
        self.ranges.iter().map(addresses)
    }

    /// Distinct branches and ranges.
    pub fn len(&self) -> usize {
        let branches = self.branches.len().saturating_add(self.single.len());
        branches.saturating_add(self.ranges.len())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happened to the entries of branch stacks.
    pub fn entries(&self) -> &Tally {
        &self.entries
    }
}

fn addresses((first, second, count): (u64, u64, u64)) -> (RuntimeAddress, RuntimeAddress, u64) {
    (RuntimeAddress(first), RuntimeAddress(second), count)
}

impl Sink for Aggregate {
    fn sample(&mut self, sample: &Sample<'_>) {
        let count = sample.count;
        let (mut wrong_path, mut empty) = (0_u64, 0_u64);
        let mut newer = None; // the source of the entry that came after this one
        self.taken.clear();
        self.straight.clear();
        for entry in sample.branches {
            if entry.speculation == Speculation::WrongPath {
                // It never happened: what ran before it and what ran after it are one range.
                wrong_path += 1;
            } else if entry.from.0 == 0 || entry.to.0 == 0 {
                // A gap: what ran between the entries on its two sides is not known.
                empty += 1;
                newer = None;
            } else {
                self.taken.push((entry.from.0, entry.to.0));
                if let Some(source) = newer.filter(|_| sample.consecutive) {
                    self.straight.push((entry.to.0, source));
                }
                newer = Some(entry.from.0);
            }
        }
        let used = self.taken.len() as u64;
        let branches = if sample.consecutive { &mut self.branches } else { &mut self.single };
        branches.add_all(self.taken.iter().copied(), count);
        self.ranges.add_all(self.straight.iter().copied(), count);
        self.entries.used = self.entries.used.saturating_add(used.saturating_mul(count));
        self.entries.drop(Cause::WrongPath, wrong_path.saturating_mul(count));
        self.entries.drop(Cause::EmptyEntry, empty.saturating_mul(count));
    }

    fn branch(&mut self, from: RuntimeAddress, to: RuntimeAddress, count: u64) {
        self.branches.add(from.0, to.0, count);
        self.entries.used = self.entries.used.saturating_add(count);
    }

    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) {
        self.ranges.add(first.0, last.0, count);
    }

    fn distinct(&self) -> usize {
        self.len()
    }

    fn fork(&self) -> Self {
        Self::default()
    }

    fn merge(&mut self, other: Self) {
        self.branches.merge(other.branches);
        self.single.merge(other.single);
        self.ranges.merge(other.ranges);
        self.entries.merge(&other.entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BranchEntry;

    fn entry(from: u64, to: u64) -> BranchEntry {
        let (from, to) = (RuntimeAddress(from), RuntimeAddress(to));
        BranchEntry { from, to, ..BranchEntry::default() }
    }

    fn aggregate(branches: &[BranchEntry], consecutive: bool) -> Aggregate {
        let mut aggregate = Aggregate::default();
        let sample = Sample { time: None, address: None, branches, consecutive, count: 3 };
        aggregate.sample(&sample);
        aggregate
    }

    fn ranges(aggregate: &Aggregate) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<_> = aggregate.ranges().map(|(a, b, count)| (a.0, b.0, count)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn code_ran_straight_through_between_two_entries() {
        let stack = [entry(0x30, 0x50), entry(0x20, 0x28), entry(0x10, 0x18)];
        let aggregate = aggregate(&stack, true);
        assert_eq!(aggregate.branches().count(), 3);
        assert_eq!(ranges(&aggregate), [(0x18, 0x20, 3), (0x28, 0x30, 3)]);
        assert_eq!(aggregate.entries().used, 9);
    }

    #[test]
    fn a_wrong_path_is_as_if_it_were_not_there() {
        let wrong = BranchEntry { speculation: Speculation::WrongPath, ..entry(0x2c, 0x70) };
        let aggregate = aggregate(&[entry(0x30, 0x50), wrong, entry(0x20, 0x28)], true);
        assert_eq!(ranges(&aggregate), [(0x28, 0x30, 3)]);
        assert_eq!(aggregate.entries().dropped_for(Cause::WrongPath), 3);
    }

    #[test]
    fn nothing_is_known_across_an_empty_slot() {
        let aggregate = aggregate(&[entry(0x30, 0x50), entry(0, 0), entry(0x20, 0x28)], true);
        assert_eq!(ranges(&aggregate), []);
        assert_eq!(aggregate.branches().count(), 2);
    }

    #[test]
    fn single_branches_have_no_ranges() {
        assert_eq!(ranges(&aggregate(&[entry(0x30, 0x50), entry(0x20, 0x28)], false)), []);
    }
}
