//! Where a binary's code is, of an input that has offsets and does not say of what.

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::{Binary, Section};

use crate::check::may_branch;
use crate::code::Code;
use crate::patched::Patched;

/// Where the code of `binary` is in an input whose branches come from `sources`, with their
/// counts: at its offsets in the file, or as far from the address of the first segment. In one
/// of the two, more of the sources are branch instructions.
pub(crate) fn placement(
    binary: &Binary,
    sources: impl Iterator<Item = (RuntimeAddress, u64)>,
) -> Placement {
    let sources: Vec<_> = sources.collect();
    // If that is damaged, the verdict's reader says so.
    let patched = Patched::read(binary).unwrap_or_default();
    let branches = |placement: &Placement| {
        let inside = |&(at, count)| Some((placement.to_image(at)?, count));
        let inside: Vec<(ImageAddress, u64)> = sources.iter().filter_map(inside).collect();
        let addresses: Vec<_> = inside.iter().map(|&(at, _)| at).collect();
        let code = Code::new(binary, &addresses);
        let real = inside.iter().filter(|&&(at, _)| may_branch(&code, &patched, at));
        real.fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    };
    let by_file = placed(binary, |section| section.file_offset);
    let Some(base) = binary.load_base() else { return by_file };
    let by_segment = placed(binary, |section| section.addresses.start.0.wrapping_sub(base.0));
    if branches(&by_segment) > branches(&by_file) { by_segment } else { by_file }
}

/// The code of `binary`, each section `at` an offset.
fn placed(binary: &Binary, at: impl Fn(&Section) -> u64) -> Placement {
    let regions = binary.sections().iter().map(|section| Region {
        runtime: RuntimeAddress(at(section)),
        image: section.addresses.start,
        size: section.addresses.end.0.saturating_sub(section.addresses.start.0),
    });
    Placement::new(regions.collect())
}
