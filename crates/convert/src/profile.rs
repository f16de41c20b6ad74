use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use mepof_address::ImageAddress;
use mepof_binary::{
    Binary, BinaryError, Function, Probes, Symbolizer, SymbolizerOptions, whole_function,
};
use mepof_profile::{Merger, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ConvertError;
use crate::autofdo::{canonical, line_profile, unexecuted};
use crate::branch_trace::BranchTrace;
use crate::check::check;
use crate::code::Code;
use crate::coverage::coverage;
use crate::discriminator::{Discriminators, is_flow_sensitive};
use crate::disjoint::disjoint;
use crate::image::Image;
use crate::judge::{addresses, binary_verdict, conclude, judge_image};
use crate::patched::Patched;
use crate::probes::probe_profile;
use crate::smooth::smooth;
use crate::verdict::{BinaryVerdict, Verdict};

/// Functions that a note names.
const MAX_NAMED: usize = 8;

/// What a profile's locations are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locations {
    /// Pseudo probes where the binary has them, debug lines where not.
    #[default]
    Best,
    /// Debug lines.
    Lines,
}

/// Where counts are inferred from the control flow of the code, rather than taken as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inference {
    /// Nowhere: what was not recorded has not run.
    Never,
    /// From single branches (Arm's SPE), which say nothing of the code between them. Branch
    /// stacks do say, and are taken as they are, beside single branches too.
    #[default]
    SingleBranches,
    /// Everywhere.
    Always,
}

/// How a profile is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileOptions {
    /// What its locations are.
    pub locations: Locations,
    /// Where counts are inferred.
    pub inference: Inference,
    /// Whether to list all functions of the binaries that it covers, so that those without samples
    /// are cold.
    pub symbol_list: bool,
}

/// A profile, and whether it is worth building with.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The profile of all binaries together.
    pub profile: Profile,
    /// What it rests on.
    pub verdict: Verdict,
}

/// The AutoFDO profile of `branch_trace`, and whether it is worth building with. Whether a poor one
/// will do is for the caller to say.
pub fn autofdo(
    branch_trace: &BranchTrace,
    options: ProfileOptions,
) -> Result<Converted, ConvertError> {
    let mut options = options;
    let mut profiles = Vec::new();
    let mut binaries = Vec::new();
    let mut notes = Vec::new();
    let mut left_out = Vec::new();
    for (index, image) in branch_trace.images.iter().enumerate() {
        if !branch_trace.has_located(index) {
            left_out.push(index);
        }
        let has_probes = options.locations == Locations::Best && has_probes(&image.binary);
        if profiles.is_empty() && !has_probes {
            // Locations of two kinds do not go together: the first binary says which.
            options.locations = Locations::Lines;
        } else if options.locations == Locations::Best && !has_probes {
            let (verdict, ..) = judge_image(image)?;
            if verdict.branches.used > 0 {
                notes.push(format!(
                    "{} is left out: it has no pseudo probes, unlike the first binary; build it \
                     with -fpseudo-probe-for-profiling, or use debug lines (--lines)",
                    image.binary.path().display()
                ));
            }
            binaries.push(verdict);
            left_out.push(index);
            continue;
        }
        let (profile, verdict) = of_image(image, options)?;
        profiles.push((profile, image.binary.path()));
        binaries.push(verdict);
    }
    let mut profile = join(profiles, &mut notes)?;
    if options.symbol_list {
        profile.symbols = symbols(branch_trace, &left_out);
    }
    let totals = profile.functions.values().map(|function| function.total);
    let verdict = Verdict { notes, ..conclude(branch_trace, binaries, totals) };
    Ok(Converted { profile, verdict })
}

/// The names of the functions of all binaries, as profiles have them, except those that binaries
/// have that were left out: nothing says that these are cold.
fn symbols(branch_trace: &BranchTrace, left_out: &[usize]) -> Vec<Arc<str>> {
    let (mut covered, mut unknown) = (BTreeSet::new(), FxHashSet::default());
    for (index, image) in branch_trace.images.iter().enumerate() {
        let entries = image.binary.functions().iter().filter(|function| function.is_entry);
        let names = entries.map(|function| canonical(&function.name));
        if left_out.contains(&index) { unknown.extend(names) } else { covered.extend(names) }
    }
    covered.into_iter().filter(|name| !unknown.contains(name)).map(Arc::from).collect()
}

fn has_probes(binary: &Binary) -> bool {
    binary.section_headers().iter().any(|header| header.name == ".pseudo_probe")
}

/// The profiles of all binaries as one. What does not go together is left out, and noted.
fn join(
    mut profiles: Vec<(Profile, &Path)>,
    notes: &mut Vec<String>,
) -> Result<Profile, ConvertError> {
    if profiles.len() == 1 {
        return Ok(profiles.remove(0).0);
    }
    let mut merger = Merger::new();
    for (profile, path) in &profiles {
        merger.add(profile, &path.to_string_lossy(), None, 1)?;
    }
    let merged = merger.finish();
    for of_one in merged.conflicts.chunk_by(|one, another| one.input == another.input) {
        let Some(first) = of_one.first() else { continue };
        let names = of_one.iter().take(MAX_NAMED).map(|conflict| conflict.function.as_str());
        let names: Vec<&str> = names.collect();
        let more = if of_one.len() > names.len() { ", …" } else { "" };
        notes.push(format!(
            "{} functions of {} are left out: their control flow differs from that of the \
             functions of the same names in another binary: {}{more}",
            of_one.len(),
            first.input,
            names.join(", ")
        ));
    }
    for name in &merged.saturated {
        notes.push(format!(
            "counts reached their maximum when those of {name} were added, and stay there"
        ));
    }
    Ok(merged.profile)
}

fn of_image(
    image: &Image,
    options: ProfileOptions,
) -> Result<(Profile, BinaryVerdict), ConvertError> {
    let binary = &image.binary;
    let addresses = with_parts(binary.functions(), addresses(image));
    let code = Code::new(binary, &addresses);
    let trace = check(&image.trace, &code, &Patched::read(binary)?);
    // Functions of the same name are one, wherever they are.
    let all = SymbolizerOptions { all_subprograms: true, ..SymbolizerOptions::default() };
    let probes = if options.locations == Locations::Best { Probes::read(binary)? } else { None };
    let symbolizer = match Symbolizer::with_options(binary, &addresses, all) {
        // Probes name the functions that they are of.
        Err(BinaryError::Missing { .. }) if probes.is_some() => Symbolizer::of_symbols(binary),
        symbolizer => symbolizer?,
    };
    binary.release();
    let functions = symbolizer.subprograms();
    let recorded = disjoint(trace.ranges.iter().copied());
    let mut ranges = match options.inference {
        Inference::Always if !recorded.is_empty() => {
            smooth(binary, &code, trace.of_stacks(), &trace.ranges, &recorded)
        }
        _ => recorded,
    };
    if options.inference != Inference::Never {
        ranges.extend(smooth(binary, &code, trace.single(), &[], &[]));
    }
    let executed = ranges.iter().filter(|range| range.count > 0).map(|range| range.first);
    let ranges = disjoint(ranges.iter().copied().chain(unexecuted(functions, executed)));
    let profile = match &probes {
        Some(probes) => probe_profile(probes, functions, &ranges, &code, &trace.branches),
        None => {
            let flow_sensitive = is_flow_sensitive(binary);
            let discriminators = Discriminators::of(&symbolizer, flow_sensitive);
            let made = line_profile(&symbolizer, &ranges, &code, &trace.branches, discriminators);
            Profile { flow_sensitive, ..made }
        }
    };
    let mapped = |address| match &probes {
        Some(probes) => functions.covering(address).is_some_and(|function| {
            let first = probes.probes.partition_point(|p| p.address < function.addresses.start);
            probes.probes.get(first).is_some_and(|p| p.address < function.addresses.end)
        }),
        None => !symbolizer.frames(address).is_empty(),
    };
    let coverage = coverage(&code, &ranges, mapped);
    let executed = profile.functions.values().filter(|function| function.total > 0).count();
    let mapped = Some(coverage.mapped);
    let verdict = binary_verdict(image, &trace, executed as u64, &coverage, mapped);
    Ok((profile, BinaryVerdict { by_probes: probes.is_some(), ..verdict }))
}

/// `executed` and the parts that were split off the functions there: a cold part that did not run
/// has its zeros only if it is decoded. Where several functions have the same name, nothing says
/// whose part it is, and it stays out. In the order of addresses.
fn with_parts(functions: &[Function], mut executed: Vec<ImageAddress>) -> Vec<ImageAddress> {
    let mut entries: FxHashMap<&str, usize> = FxHashMap::default();
    for function in functions.iter().filter(|function| function.is_entry) {
        *entries.entry(whole_function(&function.name)).or_default() += 1;
    }
    let ran: FxHashSet<&str> = executed
        .iter()
        .filter_map(|&address| {
            let after = functions.partition_point(|f| f.addresses.start <= address);
            let function = functions.get(after.checked_sub(1)?)?;
            let name = whole_function(&function.name);
            (function.addresses.contains(&address) && entries.get(name) == Some(&1)).then_some(name)
        })
        .collect();
    let parts = functions
        .iter()
        .filter(|function| !function.is_entry && ran.contains(whole_function(&function.name)))
        .map(|function| function.addresses.start);
    executed.extend(parts);
    executed.sort_unstable();
    executed.dedup();
    executed
}

#[cfg(test)]
mod tests {
    use mepof_profile::text;

    use super::*;

    fn profile(text: &str) -> Profile {
        text::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_does_not_go_together_is_noted() {
        let of_checksum = |checksum| {
            (0..9).map(|n| format!("f{n}:5:1\n 1: 5\n !CFGChecksum: {checksum}\n")).collect()
        };
        let (one, another): (String, String) = (of_checksum(1), of_checksum(2));
        let (kernel, module) = (Path::new("vmlinux"), Path::new("a.ko"));
        let mut notes = Vec::new();
        let profiles = vec![(profile(&one), kernel), (profile(&another), module)];
        let joined = join(profiles, &mut notes).unwrap();
        assert_eq!(joined.functions["f1"].total, 5);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("9 functions of a.ko are left out"), "{notes:?}");
        assert!(notes[0].ends_with("f7, …"), "{notes:?}");
    }

    #[test]
    fn counts_that_stop_growing_are_noted() {
        let most = profile(&format!("f:{0}:1\n 1: {0}\n", u64::MAX));
        let (kernel, module) = (Path::new("vmlinux"), Path::new("a.ko"));
        let mut notes = Vec::new();
        join(vec![(most.clone(), kernel), (most, module)], &mut notes).unwrap();
        assert!(notes.len() == 1 && notes[0].contains("a.ko"), "{notes:?}");
    }

    #[test]
    fn parts_of_functions_that_ran_are_decoded_too() {
        let function = |name: &str, start: u64, is_entry| Function {
            name: name.to_owned(),
            addresses: ImageAddress(start)..ImageAddress(start + 8),
            is_entry,
        };
        let functions = [
            function("f.cold", 0, false),
            function("idle.cold", 8, false),
            function("same.cold", 16, false),
            function("f.__part.1", 24, false),
            function("f", 32, true),
            function("idle", 40, true),
            function("same", 48, true),
            function("same", 56, true),
        ];
        let parts = |executed: &[u64]| -> Vec<u64> {
            let executed = executed.iter().copied().map(ImageAddress).collect();
            with_parts(&functions, executed).iter().map(|address| address.0).collect()
        };
        assert_eq!(parts(&[36]), [0, 24, 36]);
        // From a part to the function's other parts.
        assert_eq!(parts(&[26]), [0, 24, 26]);
        // Nothing says which of both `same.cold` is a part of, and nothing is at 100.
        assert_eq!(parts(&[50, 100]), [50, 100]);
        assert!(parts(&[]).is_empty());
    }
}
