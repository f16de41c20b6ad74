//! Whether a branch trace is worth converting. It does not depend on debug information, which
//! formats of addresses do not need.

use mepof_address::ImageAddress;
use mepof_binary::{Binary, Function, whole_function};
use mepof_trace::{FallThrough, ImageTrace};
use rustc_hash::FxHashMap;

use crate::branch_trace::{BranchTrace, Input};
use crate::check::{Checked, check};
use crate::code::Code;
use crate::coverage::{Coverage, coverage};
use crate::disjoint::disjoint;
use crate::image::Image;
use crate::patched::Patched;
use crate::verdict::{self, BinaryVerdict, InputVerdict, Quality, Verdict};
use crate::{ConvertError, Subject};

/// A branch trace that was checked against the code of its binaries.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Whether it is worth converting.
    pub verdict: Verdict,
    /// What can have happened, image by image: branches of fused instructions are moved to the
    /// branch, impossible ones are left out.
    pub traces: Vec<ImageTrace>,
}

/// Judges `branch_trace` without debug information. Whether a poor one is good enough is for the
/// caller to say.
pub fn judge(branch_trace: &BranchTrace) -> Result<Judged, ConvertError> {
    let (mut binaries, mut traces, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for image in &branch_trace.images {
        let (verdict, of_functions, trace) = judge_image(image)?;
        binaries.push(verdict);
        weights.extend(of_functions);
        traces.push(trace);
    }
    let verdict = conclude(branch_trace, binaries, weights.into_iter());
    Ok(Judged { verdict, traces })
}

/// The verdict on `image`, how much each of its functions ran, and what of its trace can be true.
pub(crate) fn judge_image(
    image: &Image,
) -> Result<(BinaryVerdict, Vec<u64>, ImageTrace), ConvertError> {
    let binary = &image.binary;
    let code = Code::new(binary, &addresses(image));
    let trace = check(&image.trace, &code, &Patched::read(binary)?);
    binary.release();
    let ranges = disjoint(trace.ranges.iter().copied());
    let weights = function_weights(binary, &code, &trace, &ranges);
    let coverage = coverage(&code, &ranges, |_| true);
    let verdict = binary_verdict(image, &trace, weights.len() as u64, &coverage, None);
    Ok((verdict, weights, image_trace(image, trace)))
}

/// The verdict on all binaries together. `weights` are those of the functions that ran.
pub(crate) fn conclude(
    branch_trace: &BranchTrace,
    binaries: Vec<BinaryVerdict>,
    weights: impl Iterator<Item = u64> + Clone,
) -> Verdict {
    let inputs = branch_trace.inputs.iter();
    let inputs = inputs.map(input_verdict).collect();
    let samples = branch_trace.samples();
    let overlap = samples.map(|samples| verdict::expected_overlap(weights, samples));
    let other_build = branch_trace.other_build.clone();
    let mut events = branch_trace.inputs.iter().flat_map(|input| &input.facts.events);
    let has_gaps = events.any(|event| event.branch_stack_has_gaps);
    let samples = samples.unwrap_or_default();
    let reasons = verdict::reasons(&binaries, other_build, has_gaps, overlap, samples);
    Verdict {
        quality: if reasons.is_empty() { Quality::Good } else { Quality::Poor },
        reasons,
        inputs,
        binaries,
        notes: Vec::new(),
        expected_overlap_percent: 100.0 * overlap.unwrap_or(1.0),
    }
}

/// What is said of `input`.
fn input_verdict(input: &Input) -> InputVerdict {
    let facts = &input.facts;
    // What the reader dropped, and of what it passed on, what became of that.
    let mut entries = input.entries.clone();
    facts.entries.dropped().for_each(|(cause, count)| entries.drop(cause, count));
    InputVerdict {
        path: input.path.clone(),
        format: facts.format.clone(),
        cpu: facts.cpu.clone(),
        kernel_release: facts.kernel_release.clone(),
        events: facts.events.iter().map(|event| event.name.clone()).collect(),
        samples: (&facts.samples).into(),
        entries: (&entries).into(),
        notes: facts.notes.clone(),
    }
}

/// The verdict on one binary. `mapped`: the share of executions that debug information knows, if
/// it was asked.
pub(crate) fn binary_verdict(
    image: &Image,
    trace: &Checked,
    functions_executed: u64,
    coverage: &Coverage,
    mapped: Option<f64>,
) -> BinaryVerdict {
    let binary = &image.binary;
    let mut branches = image.trace.mapped.clone();
    branches.used = 0; // the check recounts them
    branches.merge(&trace.branch_tally);
    let mut ranges = image.trace.mapped_ranges.clone();
    ranges.used = 0;
    ranges.merge(&trace.range_tally);
    let share = trace.asynchronous as f64 / trace.branch_tally.used.max(1) as f64;
    let functions = binary.functions().iter().filter(|function| function.is_entry).count();
    BinaryVerdict {
        path: binary.path().to_owned(),
        build_id: binary.build_id().map(ToString::to_string),
        build_id_match: image.build_id_match,
        branches: (&branches).into(),
        ranges: (&ranges).into(),
        asynchronous_percent: 100.0 * share,
        fused: trace.fused,
        functions: functions as u64,
        functions_executed,
        text_bytes: binary.text_size(),
        text_bytes_executed: coverage.executed,
        text_bytes_hot: coverage.hot,
        mapped_percent: mapped.map(|share| 100.0 * share),
        subject: Subject::of(binary),
        by_probes: false,
    }
}

/// All addresses of a trace; those of branches that leave the binary on one side, too.
pub(crate) fn addresses(image: &Image) -> Vec<ImageAddress> {
    let branches = image.trace.branches.iter().flat_map(|branch| [branch.from, branch.to]);
    let ranges = image.trace.ranges.iter().flat_map(|range| [range.first, range.last]);
    let mut addresses: Vec<_> = branches.flatten().chain(ranges).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// `trace` in the form that it was read in.
fn image_trace(image: &Image, trace: Checked) -> ImageTrace {
    let mut all = ImageTrace::default();
    let (branches, ranges) = (trace.branches, trace.ranges);
    // Merging sorts: what was moved to another instruction may be there twice now.
    let (mapped, mapped_ranges) = (image.trace.mapped.clone(), image.trace.mapped_ranges.clone());
    all.merge(ImageTrace { branches, ranges, mapped, mapped_ranges });
    all
}

/// How much each function ran, of those that ran: its bytes times how often, those of the parts
/// that were split off it included. A single branch counts as much as a range has bytes, on
/// average; where there are no ranges, as 1.
fn function_weights(
    binary: &Binary,
    code: &Code,
    trace: &Checked,
    ranges: &[FallThrough],
) -> Vec<u64> {
    let functions = binary.functions();
    let mut weights = vec![0_u64; functions.len()];
    let mut add = |address: ImageAddress, weight: u64| {
        let location = index_of(functions, address).and_then(|index| weights.get_mut(index));
        if let Some(total) = location {
            *total = total.saturating_add(weight);
        }
    };
    let mut executed = 0_u64;
    for range in ranges {
        for placed in code.within(range.first, range.last) {
            let weight = range.count.saturating_mul(u64::from(placed.size));
            executed = executed.saturating_add(weight);
            add(placed.address, weight);
        }
    }
    let runs = trace.ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.count));
    let usual = executed.checked_div(runs).unwrap_or(1);
    for branch in trace.single() {
        let Some(from) = branch.from else { continue };
        add(from, branch.count.saturating_mul(usual));
    }
    let mut of_whole: FxHashMap<&str, u64> = FxHashMap::default();
    let mut entries = Vec::new();
    for (function, weight) in functions.iter().zip(weights).filter(|&(_, weight)| weight > 0) {
        if function.is_entry {
            entries.push((function.name.as_str(), weight));
        } else {
            let total = of_whole.entry(whole_function(&function.name)).or_default();
            *total = total.saturating_add(weight);
        }
    }
    // A part that ran shows that its function ran, even if the trace has no samples of it.
    let mut weights: Vec<u64> = entries
        .into_iter()
        .map(|(name, weight)| weight.saturating_add(of_whole.remove(name).unwrap_or_default()))
        .collect();
    let mut rest: Vec<_> = of_whole.into_iter().collect();
    rest.sort_unstable();
    weights.extend(rest.into_iter().map(|(_, weight)| weight));
    weights
}

/// Which of `functions`, by address, covers `address`.
fn index_of(functions: &[Function], address: ImageAddress) -> Option<usize> {
    let after = functions.partition_point(|function| function.addresses.start <= address);
    let index = after.checked_sub(1)?;
    functions.get(index)?.addresses.contains(&address).then_some(index)
}
