use mepof_address::ImageAddress;
use mepof_binary::{Probes, Symbolizer, SymbolizerOptions};
use mepof_profile::{Merger, Profile};

use crate::ConvertError;
use crate::autofdo::{line_profile, unexecuted};
use crate::check::{Checked, check};
use crate::code::Code;
use crate::coverage::{Coverage, coverage};
use crate::disjoint::disjoint;
use crate::patched::Patched;
use crate::probes::probe_profile;
use crate::recording::{Image, Recording};
use crate::smooth::smooth;
use crate::verdict::{self, BinaryVerdict, InputVerdict, Quality, Verdict};

/// What a profile's places are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
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
    /// Where only single branches were recorded (Arm's SPE), which say nothing of the code
    /// between them. Branch stacks do say, and are taken as they are.
    #[default]
    SingleBranches,
    /// Everywhere.
    Always,
}

/// How a profile is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileOptions {
    /// What its places are.
    pub places: Places,
    /// Where counts are inferred.
    pub inference: Inference,
}

/// A profile, and whether it is worth building with.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The profile of all binaries together.
    pub profile: Profile,
    /// What it rests on.
    pub verdict: Verdict,
}

/// The AutoFDO profile of `recording`. A poor one is an error unless `allow_poor`.
pub fn autofdo(
    recording: &Recording,
    options: ProfileOptions,
    allow_poor: bool,
) -> Result<Converted, ConvertError> {
    let mut profiles = Vec::new();
    let mut binaries = Vec::new();
    for image in &recording.images {
        let (profile, verdict) = of_image(image, options)?;
        profiles.push(profile);
        binaries.push(verdict);
    }
    let profile = join(profiles, recording)?;
    let inputs = recording.inputs.iter();
    let inputs = inputs.map(|input| InputVerdict::new(input.path.clone(), &input.facts)).collect();
    let samples = recording.samples();
    let totals = profile.functions.values().map(|function| function.total);
    let overlap = samples.map(|samples| verdict::expected_overlap(totals, samples));
    let reasons = verdict::reasons(
        &binaries,
        recording.other_build.clone(),
        overlap,
        samples.unwrap_or_default(),
    );
    if !reasons.is_empty() && !allow_poor {
        return Err(ConvertError::Poor(reasons));
    }
    let verdict = Verdict {
        quality: if reasons.is_empty() { Quality::Good } else { Quality::Poor },
        reasons,
        inputs,
        binaries,
        expected_overlap_percent: 100.0 * overlap.unwrap_or(1.0),
    };
    Ok(Converted { profile, verdict })
}

/// The profiles of all images as one.
fn join(mut profiles: Vec<Profile>, recording: &Recording) -> Result<Profile, ConvertError> {
    if profiles.len() == 1 {
        return Ok(profiles.remove(0));
    }
    let mut merger = Merger::new();
    for (profile, image) in profiles.iter().zip(&recording.images) {
        merger.add(profile, &image.binary.path().to_string_lossy(), None, 1)?;
    }
    Ok(merger.finish().profile)
}

fn of_image(
    image: &Image,
    options: ProfileOptions,
) -> Result<(Profile, BinaryVerdict), ConvertError> {
    let binary = &image.binary;
    let addresses = addresses(image);
    let code = Code::new(binary, &addresses);
    let trace = check(&image.trace, &code, &Patched::read(binary)?);
    // Functions of the same name are one, wherever they are.
    let all = SymbolizerOptions { all_subprograms: true, ..SymbolizerOptions::default() };
    let symbolizer = Symbolizer::with_options(binary, &addresses, all)?;
    binary.release();
    let functions = symbolizer.subprograms();
    let recorded = disjoint(trace.ranges.iter().copied());
    let ranges = match options.inference {
        Inference::Never => recorded,
        Inference::SingleBranches if !recorded.is_empty() => recorded,
        _ => smooth(binary, &code, &trace, &recorded),
    };
    let executed = ranges.iter().filter(|range| range.count > 0).map(|range| range.first);
    let ranges = disjoint(ranges.iter().copied().chain(unexecuted(functions, executed)));
    let probes = if options.places == Places::Best { Probes::read(binary)? } else { None };
    let profile = match probes {
        Some(probes) => probe_profile(&probes, functions, &ranges, &code, &trace.branches),
        None => {
            let flow_sensitive = binary.symbol("__llvm_fs_discriminator__").is_some();
            let branches = &trace.branches;
            line_profile(&symbolizer, &ranges, &code, branches, flow_sensitive)
        }
    };
    let mapped = |address| !symbolizer.frames(address).is_empty();
    let coverage = coverage(&code, &ranges, mapped);
    let verdict = binary_verdict(image, &trace, &profile, &coverage);
    Ok((profile, verdict))
}

/// All addresses of a trace; those of branches that leave the binary on one side, too.
fn addresses(image: &Image) -> Vec<ImageAddress> {
    let branches = image.trace.branches.iter().flat_map(|branch| [branch.from, branch.to]);
    let ranges = image.trace.ranges.iter().flat_map(|range| [range.first, range.last]);
    let mut addresses: Vec<_> = branches.flatten().chain(ranges).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn binary_verdict(
    image: &Image,
    trace: &Checked,
    profile: &Profile,
    coverage: &Coverage,
) -> BinaryVerdict {
    let binary = &image.binary;
    let mut branches = image.trace.placed.clone();
    branches.used = 0; // counted anew by the check
    branches.merge(&trace.branch_tally);
    let share = trace.asynchronous as f64 / trace.branch_tally.used.max(1) as f64;
    let functions = binary.functions().iter().filter(|function| function.is_entry).count();
    BinaryVerdict {
        path: binary.path().to_owned(),
        build_id: binary.build_id().map(ToString::to_string),
        build_id_match: image.build_id_match,
        branches: (&branches).into(),
        ranges: (&trace.range_tally).into(),
        asynchronous_percent: 100.0 * share,
        fused: trace.fused,
        functions: functions as u64,
        functions_executed: profile.functions.values().filter(|f| f.total > 0).count() as u64,
        text_bytes: binary.text_size(),
        text_bytes_executed: coverage.executed,
        text_bytes_hot: coverage.hot,
        mapped_percent: 100.0 * coverage.mapped,
    }
}
