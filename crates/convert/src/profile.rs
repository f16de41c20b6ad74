use mepof_binary::{Probes, Symbolizer, SymbolizerOptions};
use mepof_profile::{Merger, Profile};

use crate::ConvertError;
use crate::autofdo::{line_profile, unexecuted};
use crate::check::check;
use crate::code::Code;
use crate::coverage::coverage;
use crate::disjoint::disjoint;
use crate::judge::{addresses, binary_verdict, conclude};
use crate::patched::Patched;
use crate::probes::probe_profile;
use crate::recording::{Image, Recording};
use crate::smooth::smooth;
use crate::verdict::{BinaryVerdict, Verdict};

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

/// The AutoFDO profile of `recording`, and whether it is worth building with. Whether a poor one will
/// do is for the caller to say.
pub fn autofdo(recording: &Recording, options: ProfileOptions) -> Result<Converted, ConvertError> {
    let mut profiles = Vec::new();
    let mut binaries = Vec::new();
    for image in &recording.images {
        let (profile, verdict) = of_image(image, options)?;
        profiles.push(profile);
        binaries.push(verdict);
    }
    let profile = join(profiles, recording)?;
    let totals = profile.functions.values().map(|function| function.total);
    let verdict = conclude(recording, binaries, totals);
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
    let executed = profile.functions.values().filter(|function| function.total > 0).count();
    let mapped = Some(coverage.mapped);
    let verdict = binary_verdict(image, &trace, executed as u64, &coverage, mapped);
    Ok((profile, verdict))
}
