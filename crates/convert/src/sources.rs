//! Whether branches come from a binary's branch instructions, for those who do not convert them.

use std::collections::HashMap;

use mepof_address::{ImageAddress, Placement, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::{Aggregate, Sample, Sink, Speculation};

use crate::check::may_branch;
use crate::code::Code;
use crate::patched::Patched;
use crate::verdict::{MAX_IMPOSSIBLE, Reason};
use crate::{ConvertError, Subject};

/// Sources at most, of about 100 bytes each.
const MAX_SOURCES: usize = 1 << 16;

/// How often branches came from where. Of many sources, it keeps those that a hash chooses: the
/// same ones however the input was split.
#[derive(Clone, Debug, Default)]
pub struct BranchSources {
    kept: HashMap<u64, u64>, // the input chooses the addresses: the hash has a seed
    level: u32,              // a source is kept if its choice is this or more
}

impl BranchSources {
    /// Those of `aggregate`.
    pub(crate) fn of(aggregate: &Aggregate) -> Self {
        let mut sources = Self::default();
        aggregate.branches().for_each(|(from, _, count)| sources.add(from.0, count));
        sources
    }

    /// Why `binary`, which ran at `placement`, can hardly be what ran: too many branches come from
    /// other instructions, as [`judge`](crate::judge()) says it.
    ///
    /// # Errors
    /// The binary is damaged.
    pub fn doubt(
        &self,
        binary: &Binary,
        placement: &Placement,
    ) -> Result<Option<Reason>, ConvertError> {
        let inside = |(&source, &count): (&u64, &u64)| {
            Some((placement.to_image(RuntimeAddress(source))?, count))
        };
        let sources: Vec<_> = self.kept.iter().filter_map(inside).collect();
        let addresses: Vec<ImageAddress> = sources.iter().map(|&(address, _)| address).collect();
        let (code, patched) = (Code::new(binary, &addresses), Patched::read(binary)?);
        let (mut all, mut impossible) = (0.0, 0.0);
        for (address, count) in sources {
            all += count as f64;
            if !may_branch(&code, &patched, address) {
                impossible += count as f64;
            }
        }
        Ok((impossible > MAX_IMPOSSIBLE * all).then(|| Reason::ImpossibleBranches {
            binary: binary.path().to_owned(),
            percent: 100.0 * impossible / all,
            subject: Subject::of(binary),
        }))
    }

    /// The addresses of those that are kept, with their counts.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (RuntimeAddress, u64)> {
        self.kept.iter().map(|(&source, &count)| (RuntimeAddress(source), count))
    }

    fn add(&mut self, source: u64, count: u64) {
        if choice(source) >= self.level {
            let total = self.kept.entry(source).or_default();
            *total = total.saturating_add(count);
            self.bound();
        }
    }

    fn bound(&mut self) {
        while self.kept.len() > MAX_SOURCES {
            self.level += 1;
            self.kept.retain(|&source, _| choice(source) >= self.level);
        }
    }
}

/// Half of the addresses have 0, a fourth has 1, and so on. Multiplied by the golden ratio.
fn choice(source: u64) -> u32 {
    source.wrapping_mul(0x9e37_79b9_7f4a_7c15).leading_zeros()
}

impl Sink for BranchSources {
    fn sample(&mut self, sample: &Sample<'_>) {
        for entry in sample.branches {
            if entry.speculation != Speculation::WrongPath && entry.from.0 != 0 && entry.to.0 != 0 {
                self.add(entry.from.0, sample.count);
            }
        }
    }

    fn branch(&mut self, from: RuntimeAddress, _: RuntimeAddress, count: u64) {
        self.add(from.0, count);
    }

    fn range(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {}

    fn fork(&self) -> Self {
        Self::default()
    }

    fn merge(&mut self, other: Self) {
        self.level = self.level.max(other.level);
        self.kept.retain(|&source, _| choice(source) >= self.level);
        other.kept.into_iter().for_each(|(source, count)| self.add(source, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_sources_are_kept_however_the_input_was_split() {
        let mut whole = BranchSources::default();
        let mut parts = [BranchSources::default(), BranchSources::default()];
        for number in 0..4 * MAX_SOURCES {
            let from = RuntimeAddress(0xffff_ffff_8100_0000 + 3 * number as u64);
            whole.branch(from, from, 1);
            // The first part has a tenth.
            parts[usize::from(number % 10 > 0)].branch(from, from, 1);
        }
        let [mut one, another] = parts;
        one.merge(another);
        assert!(whole.kept.len() > MAX_SOURCES / 4, "{}", whole.kept.len());
        assert_eq!((one.level, one.kept), (whole.level, whole.kept));
    }
}
