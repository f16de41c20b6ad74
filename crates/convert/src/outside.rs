//! What the branches belong to that are in none of the given binaries.

use mepof_address::{Placement, RuntimeAddress};
use mepof_trace::{Addressing, Aggregate, Facts, Space};
use rustc_hash::FxHashMap;

/// From this share of branches on, those outside are worth a note.
const MIN_SHARE: f64 = 0.10;
const MAX_NAMED: usize = 3;

/// The branches that are in none of the binaries.
#[derive(Debug)]
pub(crate) struct Outside {
    all: u64, // branches of the input
    count: u64,
    /// Those that are in something that the input names.
    named: u64,
    names: String, // what has most of these
    hint: &'static str,
}

impl Outside {
    /// For the verdict, if they are many.
    pub fn note(&self) -> Option<String> {
        let Self { all, count, names, hint, .. } = self;
        ((*count as f64) >= MIN_SHARE * *all as f64).then(|| {
            format!(
                "{count} of {all} branches are in none of the given binaries, most of them in \
                 {names}{hint}"
            )
        })
    }

    /// Where all branches are outside: what most of them are in, if that is known of most.
    pub fn instead(&self) -> Option<String> {
        let Self { count, named, names, hint, .. } = self;
        let hint = if hint.is_empty() { "; give that instead (--binary)" } else { hint };
        (*named > *count / 2).then(|| format!("most of them are in {names}{hint}"))
    }
}

/// Finds what has the branches that are in none of the binaries, if the input names something.
pub(crate) fn outside(
    facts: &Facts,
    aggregate: &Aggregate,
    placements: &[Placement],
    space: Space,
) -> Option<Outside> {
    if facts.addressing != Addressing::Runtime {
        return None;
    }
    // By its name, text takes the code of a BPF program for a process's; its addresses are not.
    let is_ours = |of: Space| of == space || of == Space::User;
    let ours = facts.images.iter().filter(|image| is_ours(image.space));
    // The kernel's mapping may go around those of its modules.
    let others = ours.filter(|image| !image.name.contains("kernel.kallsyms"));
    let mut mapped: Vec<_> = others
        .flat_map(|image| image.mappings.iter().map(|at| (&at.addresses, image.name.as_str())))
        .collect();
    mapped.sort_unstable_by_key(|(addresses, _)| addresses.start);
    let name_at = |address: RuntimeAddress| {
        let after = mapped.partition_point(|(addresses, _)| addresses.start <= address);
        let &(addresses, name) = mapped.get(after.checked_sub(1)?)?;
        addresses.contains(&address).then_some(name)
    };
    let is_known = |address| placements.iter().any(|at| at.to_image(address).is_some());
    let (mut all, mut count_outside) = (0_u64, 0_u64);
    let mut by_name: FxHashMap<&str, u64> = FxHashMap::default();
    for (from, to, count) in aggregate.branches() {
        all = all.saturating_add(count);
        if is_known(from) || is_known(to) {
            continue;
        }
        count_outside = count_outside.saturating_add(count);
        if let Some(name) = name_at(from) {
            let total = by_name.entry(name).or_default();
            *total = total.saturating_add(count);
        }
    }
    if by_name.is_empty() {
        return None;
    }
    let of_names = by_name.values().fold(0_u64, |sum, &count| sum.saturating_add(count));
    let mut named: Vec<_> = by_name.into_iter().collect();
    named.sort_unstable_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let named: Vec<_> = named
        .into_iter()
        .take(MAX_NAMED)
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    let names = named.join(", ");
    let hint = if space == Space::User { "" } else { "; give the modules that matter (--module)" };
    Some(Outside { all, count: count_outside, named: of_names, names, hint })
}

#[cfg(test)]
mod tests {
    use mepof_address::{ImageAddress, Region};
    use mepof_trace::{Mapping, Sink, TracedImage};

    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const MODULE: u64 = 0xffff_ffff_c000_0000;
    const BPF: u64 = 0xffff_ffff_c100_0000;

    fn image(name: &str, start: u64, size: u64) -> TracedImage {
        let addresses = RuntimeAddress(start)..RuntimeAddress(start + size);
        let mappings = vec![Mapping { addresses, offset: 0, section: None }];
        TracedImage { name: name.to_owned(), space: Space::Kernel, build_id: None, mappings }
    }

    fn found(inside: u64) -> Option<Outside> {
        let images = vec![
            image("[kernel.kallsyms]_text", KERNEL, 0x4100_0000),
            image("[nf_tables]", MODULE, 0x1000),
            TracedImage { space: Space::User, ..image("bpf_prog_1", BPF, 0x1000) },
        ];
        let facts = Facts { images, ..Facts::default() };
        let mut aggregate = Aggregate::default();
        for (at, count) in [(KERNEL, inside), (MODULE, 20), (BPF, 70), (BPF + 0x2000, 10)] {
            aggregate.branch(RuntimeAddress(at), RuntimeAddress(at + 8), count);
        }
        let (runtime, image) = (RuntimeAddress(KERNEL), ImageAddress(0));
        let placements = [Placement::new(vec![Region { runtime, image, size: 0x1000 }])];
        outside(&facts, &aggregate, &placements, Space::Kernel)
    }

    #[test]
    fn what_has_most_of_the_branches_outside_is_named() {
        let noted = |inside| found(inside).and_then(|outside| outside.note());
        let said = noted(100).unwrap_or_default();
        let named = "100 of 200 branches are in none of the given binaries, most of them in \
                     bpf_prog_1 (70), [nf_tables] (20); give the modules that matter (--module)";
        assert_eq!(said, named);
        assert_eq!(noted(10_000), None);
    }
}
