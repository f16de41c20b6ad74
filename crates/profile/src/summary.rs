use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ATTRIBUTE_DUPLICATED_INTO_BASE, FunctionProfile, Profile};

/// Shares of all counts, in millionths, at which LLVM's summaries have an entry
/// (`ProfileSummaryBuilder::DefaultCutoffs`).
pub const CUTOFFS: [u32; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];

/// How the counts of a profile are distributed: what tells a compiler hot from cold.
///
/// LLVM 22, `llvm/lib/ProfileData/ProfileSummaryBuilder.cpp`: each line with samples counts as a
/// block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The sum of all counts.
    pub total_count: u64,
    /// The highest count.
    pub max_count: u64,
    /// The highest head count of a function.
    pub max_function_count: u64,
    /// How many counts there are.
    pub counts: u64,
    /// How many functions, inlined copies aside.
    pub functions: u64,
    /// For each of [`CUTOFFS`], the counts that make up this share.
    pub entries: Vec<SummaryEntry>,
}

/// The highest counts that together make up a share of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryEntry {
    /// The share, in millionths.
    pub cutoff: u32,
    /// The least of these counts.
    pub min_count: u64,
    /// How many there are.
    pub counts: u64,
}

impl Summary {
    /// The summary of `profile`.
    pub fn of(profile: &Profile) -> Self {
        let mut summary = Self { functions: profile.functions.len() as u64, ..Self::default() };
        let mut counts = Vec::new();
        for function in profile.functions.values() {
            summary.max_function_count = summary.max_function_count.max(function.head);
            summary.add(function, &mut counts);
        }
        counts.sort_unstable();
        summary.max_count = counts.last().copied().unwrap_or(0);
        summary.counts = counts.len() as u64;
        summary.entries = entries(summary.total_count, &counts);
        summary
    }

    fn add(&mut self, function: &FunctionProfile, counts: &mut Vec<u64>) {
        for count in function.body.values().map(|line| line.count) {
            self.total_count = self.total_count.saturating_add(count);
            counts.push(count);
        }
        for callee in function.inlined.values().flat_map(BTreeMap::values) {
            if callee.attributes & ATTRIBUTE_DUPLICATED_INTO_BASE == 0 {
                self.add(callee, counts);
            }
        }
    }

    /// The lowest count of a hot line, as compilers take it: with the greatest, 99 % of all.
    pub fn hot_threshold(&self) -> u64 {
        self.threshold(990_000)
    }

    /// Lines with less are cold, as compilers take it: without them, 99.9999 % of all remain.
    pub fn cold_threshold(&self) -> u64 {
        self.threshold(999_999)
    }

    /// The lowest count among those that make up `cutoff` millionths of all; `cutoff` must not
    /// exceed the last of [`CUTOFFS`], and is rounded up to one of them.
    pub fn threshold(&self, cutoff: u32) -> u64 {
        let entry = self.entries.iter().find(|entry| entry.cutoff >= cutoff);
        entry.or(self.entries.last()).map_or(0, |entry| entry.min_count)
    }
}

/// The entries of counts that are sorted, the least first.
fn entries(total: u64, sorted: &[u64]) -> Vec<SummaryEntry> {
    let mut remaining = sorted.chunk_by(|a, b| a == b).rev();
    let (mut sum, mut min_count, mut counts) = (0_u128, 0, 0);
    let entry = |cutoff: u32| {
        let desired = u128::from(total) * u128::from(cutoff) / 1_000_000;
        while sum < desired {
            let Some(same @ [count, ..]) = remaining.next() else { break };
            min_count = *count;
            counts += same.len() as u64;
            sum += u128::from(*count) * same.len() as u128;
        }
        SummaryEntry { cutoff, min_count, counts }
    };
    CUTOFFS.map(entry).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn the_greatest_counts_make_up_each_share() {
        let profile = text::read(b"f:0:7\n 1: 60\n 2: 30\n 3: 9\n 4: 1\n 5: 0\n").unwrap();
        let summary = Summary::of(&profile);
        assert_eq!((summary.total_count, summary.max_count, summary.counts), (100, 60, 5));
        assert_eq!((summary.functions, summary.max_function_count), (1, 7));
        let at = |cutoff| {
            let entry = summary.entries.iter().find(|entry| entry.cutoff == cutoff).unwrap();
            (entry.min_count, entry.counts)
        };
        assert_eq!(at(10_000), (60, 1));
        assert_eq!(at(600_000), (60, 1));
        assert_eq!(at(700_000), (30, 2));
        assert_eq!(at(990_000), (9, 3));
        assert_eq!(at(999_999), (9, 3));
        assert_eq!((summary.hot_threshold(), summary.cold_threshold()), (9, 9));
    }

    #[test]
    fn copies_that_stand_elsewhere_do_not_count_twice() {
        let text = "f:3:1\n 1: 1\n 2: g:2\n  1: 2\n  !Attributes: 4\n";
        assert_eq!(Summary::of(&text::read(text.as_bytes()).unwrap()).total_count, 1);
    }

    #[test]
    fn sums_beyond_64_bits_do_not_wrap() {
        let text = format!("f:1:1\n 1: {0}\n 2: {0}\n", u64::MAX);
        let summary = Summary::of(&text::read(text.as_bytes()).unwrap());
        assert_eq!(summary.total_count, u64::MAX);
        assert_eq!(summary.hot_threshold(), u64::MAX);
    }

    #[test]
    fn nothing_has_no_thresholds() {
        let summary = Summary::of(&Profile::default());
        assert_eq!((summary.hot_threshold(), summary.entries.len()), (0, 16));
    }
}
