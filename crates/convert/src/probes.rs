//! AutoFDO profiles from a checked trace, by pseudo probes. Source of the rules: LLVM 22,
//! `llvm/tools/llvm-profgen/ProfileGenerator.cpp`.

use std::ops::Range;
use std::sync::Arc;

use mepof_address::ImageAddress;
use mepof_binary::{NameId, Probe, ProbeKind, Probes, Subprograms};
use mepof_profile::{FunctionProfile, LineLocation, Profile};
use mepof_trace::{Branch, FallThrough};
use rustc_hash::FxHashMap;

use crate::autofdo::{canonical, entered_at, profile_name, raise_to_calls};
use crate::code::Code;
use crate::tree::Tree;

/// The first probe of a function stands for its entry.
const ENTRY: u32 = 1;

/// A function: its GUID, or one that only debug information knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Guid(u64),
    Line(NameId),
}

/// The profile of `ranges`, which do not overlap, and `branches`, locations by pseudo probes.
pub(crate) fn probe_profile(
    probes: &Probes,
    functions: &Subprograms,
    ranges: &[FallThrough],
    code: &Code,
    branches: &[Branch],
) -> Profile {
    // Functions of the same name share a GUID: the first one's description counts.
    let described: FxHashMap<u64, (u64, Arc<str>)> = probes
        .functions
        .iter()
        .rev()
        .map(|(guid, hash, name)| (*guid, (*hash, canonical(name).into())))
        .collect();
    let mut counts: FxHashMap<usize, u64> = FxHashMap::default(); // by index of the probe
    for range in ranges {
        for placed in code.within(range.first, range.last) {
            for index in at(probes, placed.address) {
                let count = counts.entry(index).or_default();
                *count = count.saturating_add(range.count);
            }
        }
    }
    let mut tree = Tree::default();
    for (index, count) in counts {
        let Some(probe) = probes.probes.get(index) else { continue };
        let Some((id, location)) = tree.leaf(locations(probe)) else { continue };
        tree.add_total(id, count);
        tree.add(id, location, count);
        if probe.index == ENTRY && probe.kind == ProbeKind::Block {
            tree.add_head(id, count);
        }
    }
    for branch in branches {
        let (Some(from), Some(to)) = (branch.from, branch.to) else { continue };
        let Some(callee) = entered_at(functions, to) else { continue };
        let mut calls = at(probes, from).filter_map(|index| probes.probes.get(index));
        let Some(call) = calls.rfind(|probe| probe.kind != ProbeKind::Block) else {
            continue;
        };
        let Some((id, location)) = tree.leaf(locations(call)) else { continue };
        tree.add_calls(id, location, Name::Line(callee), branch.count);
    }
    let name = |name| match name {
        Name::Guid(guid) => match described.get(&guid) {
            Some((_, name)) => name.clone(),
            None => guid.to_string().into(),
        },
        Name::Line(id) => profile_name(functions, id),
    };
    let mut profiles = tree.assemble(name);
    let hashes: FxHashMap<&str, u64> =
        described.values().map(|(hash, name)| (&**name, *hash)).collect();
    for (name, profile) in &mut profiles {
        raise_to_calls(profile);
        set_checksums(name, profile, &hashes);
    }
    Profile { functions: profiles, probe_based: true, ..Profile::default() }
}

fn set_checksums(name: &str, profile: &mut FunctionProfile, hashes: &FxHashMap<&str, u64>) {
    profile.checksum = hashes.get(name).copied();
    for callees in profile.inlined.values_mut() {
        callees.iter_mut().for_each(|(name, callee)| set_checksums(name, callee, hashes));
    }
}

/// The indices of the probes at `address`.
fn at(probes: &Probes, address: ImageAddress) -> Range<usize> {
    let begin = probes.probes.partition_point(|probe| probe.address < address);
    let end = probes.probes.partition_point(|probe| probe.address <= address);
    begin..end
}

/// The inline stack of a probe, the outermost function first.
fn locations(probe: &Probe) -> impl Iterator<Item = (Name, LineLocation)> {
    let callers = probe.inlined_at.iter().map(|&(guid, index)| (guid, index, 0));
    callers.chain([(probe.guid, probe.index, probe.discriminator)]).map(
        |(guid, offset, discriminator)| (Name::Guid(guid), LineLocation { offset, discriminator }),
    )
}
