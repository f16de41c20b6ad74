//! AutoFDO profiles from a checked trace, by debug lines.
//!
//! The rules are those of llvm-profgen, so that compilers get what they were tuned for: a
//! location's count is the highest of its instructions', a function's total the sum over its bytes.
//! Source: LLVM 22, `llvm/tools/llvm-profgen/ProfileGenerator.cpp`.

use std::collections::BTreeSet;
use std::sync::Arc;

use mepof_address::ImageAddress;
use mepof_binary::{Frame, NameId, Subprograms, Symbolizer};
use mepof_profile::{FunctionProfile, LineLocation, Profile, SuffixElision, canonical_name};
use mepof_trace::{Branch, FallThrough};
use rayon::prelude::*;

use crate::code::Code;
use crate::discriminator::Discriminators;
use crate::tree::Tree;

/// Instructions that one task works on at least; fewer are not worth a task.
const RANGES_PER_TASK: usize = 1024;

/// The function that a branch to `address` calls.
pub(crate) fn entered_at(functions: &Subprograms, address: ImageAddress) -> Option<NameId> {
    functions.starting_at(address).filter(|range| range.is_entry).map(|range| range.name)
}

/// A function's name as profiles have it.
pub(crate) fn profile_name(functions: &Subprograms, id: NameId) -> Arc<str> {
    let Some(name) = functions.names().get(id) else { return Arc::default() };
    let short = canonical(name);
    if short.len() == name.len() { name.clone() } else { short.into() }
}

/// The profile of `trace`, locations by debug lines.
pub(crate) fn line_profile(
    symbolizer: &Symbolizer,
    ranges: &[FallThrough],
    code: &Code,
    branches: &[Branch],
    discriminators: Discriminators,
) -> Profile {
    let lines = Lines { symbolizer, code, discriminators };
    let functions = symbolizer.subprograms();
    let mut tree = ranges
        .par_chunks(RANGES_PER_TASK)
        .map(|ranges| {
            let mut tree = Tree::default();
            ranges.iter().for_each(|range| lines.body(&mut tree, range));
            tree
        })
        .reduce(Tree::default, |mut all, part| {
            all.merge(part);
            all
        });
    for branch in branches {
        let Some(callee) = branch.to.and_then(|to| entered_at(functions, to)) else { continue };
        let frames = branch.from.map(|from| symbolizer.frames(from)).unwrap_or_default();
        if let Some((id, location)) = tree.leaf(locations(frames, discriminators)) {
            tree.add_calls(id, location, callee, branch.count);
        }
        let entered = tree.node(None, callee);
        tree.add_head(entered, branch.count);
    }
    let mut profiles = tree.assemble(|id| profile_name(functions, id));
    profiles.values_mut().for_each(raise_to_calls);
    Profile { functions: profiles, ..Profile::default() }
}

/// A call that was seen more often than its line: the line ran as often as that.
pub(crate) fn raise_to_calls(function: &mut FunctionProfile) {
    for samples in function.body.values_mut() {
        let calls = samples.targets.values().fold(0u64, |sum, &count| sum.saturating_add(count));
        samples.count = samples.count.max(calls);
    }
}

/// A name as profiles have it: without the suffixes of copies that the compiler made.
pub(crate) fn canonical(name: &str) -> &str {
    canonical_name(name, SuffixElision::Selected, true)
}

/// All ranges of the functions that cover `executed` addresses, with zero: code of an executed
/// function that has no samples is cold, not unknown.
pub(crate) fn unexecuted(
    functions: &Subprograms,
    executed: impl Iterator<Item = ImageAddress>,
) -> impl Iterator<Item = FallThrough> {
    let executed: BTreeSet<NameId> = executed
        .filter_map(|address| functions.covering(address))
        .map(|range| range.name)
        .collect();
    executed.into_iter().flat_map(|name| functions.of(name)).map(|range| FallThrough {
        first: range.addresses.start,
        last: ImageAddress(range.addresses.end.0.saturating_sub(1)),
        count: 0,
    })
}

struct Lines<'a> {
    symbolizer: &'a Symbolizer,
    code: &'a Code,
    discriminators: Discriminators,
}

/// The locations that an inline stack stands for, the outermost function first.
pub(crate) fn locations(
    frames: &[Frame],
    discriminators: Discriminators,
) -> impl Iterator<Item = (NameId, LineLocation)> {
    frames.iter().map(move |frame| {
        let discriminator = discriminators.path(frame.discriminator);
        let offset = frame.line_offset as u32 & 0xffff;
        (frame.function, LineLocation { offset, discriminator })
    })
}

impl Lines<'_> {
    /// Counts the instructions of `range` into `tree`.
    fn body(&self, tree: &mut Tree<NameId>, range: &FallThrough) {
        // Neighbours mostly share one stack: it is looked up once, and its bytes are
        // counted together.
        let mut run: Option<(&[Frame], u64)> = None;
        for placed in self.code.within(range.first, range.last) {
            let frames = self.symbolizer.frames(placed.address);
            let size = u64::from(placed.size);
            run = match run {
                Some((same, bytes)) if std::ptr::eq(same, frames) => Some((same, bytes + size)),
                other => {
                    self.count(tree, other, range.count);
                    Some((frames, size))
                }
            };
        }
        self.count(tree, run, range.count);
    }

    fn count(&self, tree: &mut Tree<NameId>, run: Option<(&[Frame], u64)>, count: u64) {
        let Some((frames, bytes)) = run else { return };
        let (Some(innermost), Some((id, location))) =
            (frames.last(), tree.leaf(locations(frames, self.discriminators)))
        else {
            return;
        };
        tree.add_total(id, count.saturating_mul(bytes));
        let copies = self.discriminators.copies(innermost.discriminator);
        tree.raise(id, location, count.saturating_mul(copies));
    }
}
