//! What inference makes of single branches, held against the whole branch stacks of the same run.

// Outside of functions that are tests, Clippy does not see that this is one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod walk;

use std::fs;
use std::path::Path;

use mepof_binary::Binary;
use mepof_convert::{BranchTrace, Inference, ProfileOptions, Reason, autofdo, judge};
use mepof_profile::{Profile, compare};
use mepof_trace::Event;
use mepof_trace::output::unsymbolized;
use walk::{Directory, Stack, compile, perf_script, recording, recordings, walk};

fn profile(program: &Path, input: &Path, inference: Inference) -> Profile {
    let recording = recording(program, input);
    let options = ProfileOptions { inference, ..ProfileOptions::default() };
    autofdo(&recording, options).unwrap().profile
}

fn overlap(a: &Profile, b: &Profile) -> f64 {
    compare(a, b, 0).unwrap().flow_overlap
}

#[test]
fn single_branches_are_enough_for_most_of_a_profile() {
    let directory = Directory::new("single");
    let program = compile(&directory.0, &[]);
    let stacks = walk(&Binary::open(&program).unwrap(), 1);
    let (whole, single) = (directory.0.join("whole"), directory.0.join("single"));
    fs::write(&whole, perf_script(&stacks)).unwrap();
    let newest: Vec<Stack> = stacks.iter().map(|stack| vec![stack[0]]).collect();
    fs::write(&single, perf_script(&newest)).unwrap();
    let truth = profile(&program, &whole, Inference::Never);
    let plain = overlap(&truth, &profile(&program, &single, Inference::Never));
    let inferred = overlap(&truth, &profile(&program, &single, Inference::default()));
    assert!(plain < 0.2, "{plain}: branches alone say nothing of the code between them");
    assert!(inferred > 0.75, "{inferred}");
}

#[test]
fn single_branches_count_beside_the_stacks_of_another_input() {
    let directory = Directory::new("mixed");
    let program = compile(&directory.0, &[]);
    let stacks = walk(&Binary::open(&program).unwrap(), 1);
    let [whole, one, single] = ["whole", "one", "single"].map(|name| directory.0.join(name));
    fs::write(&whole, perf_script(&stacks)).unwrap();
    fs::write(&one, perf_script(&stacks[..1])).unwrap();
    let newest: Vec<Stack> = stacks.iter().map(|stack| vec![stack[0]]).collect();
    fs::write(&single, perf_script(&newest)).unwrap();
    let truth = profile(&program, &whole, Inference::Never);
    let mixed = recordings(&program, &[one.clone(), single.clone()]);
    for inference in [Inference::SingleBranches, Inference::Always] {
        let options = ProfileOptions { inference, ..ProfileOptions::default() };
        let overlap = overlap(&truth, &autofdo(&mixed, options).unwrap().profile);
        assert!(overlap > 0.75, "{inference:?}: {overlap}");
    }
    // Judged without debug information, what only single branches reached ran as well.
    let executed =
        |recording: &BranchTrace| judge(recording).unwrap().verdict.binaries[0].functions_executed;
    let of_singles = executed(&recording(&program, &single));
    assert!(executed(&recording(&program, &one)) < of_singles);
    assert!(executed(&mixed) >= of_singles);
}

#[test]
fn branches_that_a_filter_left_over_make_a_poor_profile() {
    let directory = Directory::new("filtered");
    let program = compile(&directory.0, &[]);
    let stacks = walk(&Binary::open(&program).unwrap(), 3);
    let input = directory.0.join("single");
    let newest: Vec<Stack> = stacks.iter().map(|stack| vec![stack[0]]).collect();
    fs::write(&input, perf_script(&newest)).unwrap();
    let mut recording = recording(&program, &input);
    let reasons = |recording: &BranchTrace| judge(recording).unwrap().verdict.reasons;
    assert!(!reasons(&recording).contains(&Reason::FilteredBranches));
    let filtered = Event { branch_stack_has_gaps: true, ..Event::default() };
    recording.inputs[0].facts.events.push(filtered);
    assert!(reasons(&recording).contains(&Reason::FilteredBranches));
}

#[test]
fn the_verdict_stays_with_an_aggregated_trace() {
    let directory = Directory::new("aggregated");
    let program = compile(&directory.0, &[]);
    let stacks = walk(&Binary::open(&program).unwrap(), 4);
    let (stacks, mut overlaps) = (&stacks[..63], Vec::new());
    let (samples, text) = (directory.0.join("samples"), directory.0.join("aggregated"));
    fs::write(&samples, perf_script(stacks)).unwrap();
    for input in [&samples, &text] {
        let recording = recording(&program, input);
        overlaps.push(judge(&recording).unwrap().verdict.expected_overlap_percent);
        let base = recording.images[0].binary.executable_base();
        let mut out = Vec::new();
        unsymbolized::write(&recording.images[0].trace, base, &mut out).unwrap();
        fs::write(&text, out).unwrap();
    }
    assert!(overlaps[0] < 90.0 && overlaps[0] == overlaps[1], "{overlaps:?}");
}

#[test]
fn counts_that_agree_already_stay_as_they_are() {
    let directory = Directory::new("agree");
    let program = compile(&directory.0, &[]);
    let stacks = walk(&Binary::open(&program).unwrap(), 2);
    let input = directory.0.join("whole");
    fs::write(&input, perf_script(&stacks)).unwrap();
    let taken = profile(&program, &input, Inference::Never);
    let inferred = profile(&program, &input, Inference::Always);
    let overlap = overlap(&taken, &inferred);
    assert!(overlap > 0.95, "{overlap}");
}
