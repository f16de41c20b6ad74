//! Finds where KASLR put a kernel by its branches, for inputs that do not say.
//!
//! The low bits of an address do not change, so a source of branches can only be one of the branch
//! instructions that have the same. Each of these votes for the distance from itself to the source.
//! The true distance gets a vote of nearly every source, any other one only as many as the density
//! of branch instructions gives by chance: one of four at most, where all have four bytes.

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::{Binary, instructions};
use mepof_machine::Flow;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::sources::BranchSources;

/// What every distance is a multiple of: `MIN_KIMG_ALIGN` of arm64, or the 64 KiB to which its EFI
/// stub aligns (`EFI_KIMG_ALIGN`); the others take more (`CONFIG_PHYSICAL_ALIGN` of x86).
const ALIGNMENT: u64 = 1 << 16;
/// Fewer sources may agree by chance.
const MIN_SOURCES: u64 = 32;

/// Where `binary`, a kernel, ran, by the `sources` of branches; `None` if they do not agree.
pub(crate) fn placement(binary: &Binary, sources: &BranchSources) -> Option<Placement> {
    let kernel_space = binary.machine().kernel_space();
    let is_linked_there = binary.sections().first()?.addresses.start.0 >= kernel_space;
    let mut by_low_bits: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    let mut all = 0;
    for (RuntimeAddress(source), _) in sources.kept() {
        if (source >= kernel_space) == is_linked_there {
            by_low_bits.entry(source % ALIGNMENT).or_default().push(source);
            all += 1;
        }
    }
    let votes = binary
        .functions()
        .par_iter()
        .fold(FxHashMap::default, |mut votes: FxHashMap<u64, u64>, function| {
            for (ImageAddress(address), instruction) in
                instructions(binary, function.addresses.clone())
            {
                if matches!(instruction.flow, Flow::Next | Flow::Stop) {
                    continue;
                }
                for source in by_low_bits.get(&(address % ALIGNMENT)).into_iter().flatten() {
                    *votes.entry(source.wrapping_sub(address)).or_default() += 1;
                }
            }
            votes
        })
        .reduce(FxHashMap::default, |mut all, votes| {
            votes.into_iter().for_each(|(slide, count)| *all.entry(slide).or_default() += count);
            all
        });
    binary.release();
    let slide = elected(&votes, all)?;
    let regions = binary.sections().iter().map(|section| Region {
        runtime: RuntimeAddress(section.addresses.start.0.wrapping_add(slide)),
        image: section.addresses.start,
        size: section.addresses.end.0 - section.addresses.start.0,
    });
    Some(Placement::new(regions.collect()))
}

/// The distance that has twice as many `votes` as any other, and those of a fourth of `all` sources
/// at least: the rest may be in modules.
fn elected(votes: &FxHashMap<u64, u64>, all: u64) -> Option<u64> {
    let (&slide, &most) = votes.iter().max_by_key(|&(_, count)| count)?;
    let others = votes.iter().filter(|&(&other, _)| other != slide);
    let second = others.map(|(_, &count)| count).max().unwrap_or_default();
    (most >= MIN_SOURCES.max(all / 4) && most >= 2 * second).then_some(slide)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(votes: &[(u64, u64)], all: u64) -> Option<u64> {
        elected(&votes.iter().copied().collect(), all)
    }

    #[test]
    fn a_distance_must_have_many_votes_and_no_rival() {
        assert_eq!(election(&[(0x10_0000, 900), (0x20_0000, 200)], 1000), Some(0x10_0000));
        assert_eq!(election(&[(0x10_0000, 900), (0x20_0000, 500)], 1000), None);
        assert_eq!(election(&[(0x10_0000, 240), (0x20_0000, 2)], 1000), None);
        assert_eq!(election(&[(0x10_0000, 20), (0x20_0000, 2)], 20), None);
        assert_eq!(election(&[], 0), None);
    }
}
