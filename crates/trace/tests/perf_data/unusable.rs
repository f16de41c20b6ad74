//! Branch traces that have nothing of what was asked for: each error says why, and the remedy.

use mepof_trace::input::{Format, Options, read};
use mepof_trace::output::perf_data::{PerfHeader, RecordedEvent};
use mepof_trace::{Aggregate, BranchEntry, Space, TraceError};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::recordings::*;

fn error(bytes: &[u8], space: Space) -> TraceError {
    let file = TemporaryFile::new(bytes);
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space,
        events: &[],
        max_distinct: 1000,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: &cancelled,
        progress: &progress,
    };
    read(&file.0, Some(Format::PerfData), &options, &mut Aggregate::default()).unwrap_err()
}

/// A recording of `event`, each sample of which has `stack`.
fn recorded(event: RecordedEvent, stack: &[BranchEntry]) -> Vec<u8> {
    file(PerfHeader { events: vec![event], ..recording() }, |writer| {
        for _ in 0..3 {
            writer.sample(&sample(stack)).unwrap();
        }
    })
}

/// An event that leaves neither side out.
fn both_sides() -> RecordedEvent {
    RecordedEvent { excludes_user: false, ..RecordedEvent::kernel_branches(11) }
}

#[test]
fn nothing_recorded_is_no_samples() {
    let none = file(recording(), |_| {});
    assert!(matches!(error(&none, Space::Kernel), TraceError::NoSamples { .. }));
}

#[test]
fn a_file_that_is_cut_off_before_its_samples_says_so() {
    let whole = recorded(both_sides(), &[entry(TEXT, TEXT + 8)]);
    // The header and the attributes, and a part of the first record.
    let told = error(&whole[..300], Space::Kernel).to_string();
    assert!(told.contains("cut off"), "{told}");
}

#[test]
fn samples_without_branches_are_told_how_to_have_some() {
    let event = RecordedEvent { branches: None, ..both_sides() };
    let told = error(&recorded(event, &[]), Space::Kernel);
    assert!(matches!(told, TraceError::NoBranchStacks { samples: 3, .. }), "{told:?}");
}

#[test]
fn the_other_side_of_the_system_call_is_the_wrong_filter() {
    let user = recorded(both_sides(), &[entry(USER, USER + 8)]);
    let told = error(&user, Space::Kernel);
    let expected = (Space::Kernel, Space::User);
    match &told {
        TraceError::OtherSpace { wanted, found, .. } => assert_eq!((*wanted, *found), expected),
        other => panic!("{other:?}"),
    }
    assert!(told.to_string().contains("--space user"), "{told}");
    let kernel = recorded(both_sides(), &[entry(TEXT, TEXT + 8)]);
    let told = error(&kernel, Space::User).to_string();
    assert!(told.contains("cycles:u") && told.contains("--space kernel"), "{told}");
}

#[test]
fn an_event_that_leaves_out_what_is_wanted_is_named() {
    let kernel = recorded(RecordedEvent::kernel_branches(11), &[entry(TEXT, TEXT + 8)]);
    let told = error(&kernel, Space::User);
    assert!(matches!(told, TraceError::LeftOut { wanted: Space::User, .. }), "{told:?}");
    let told = told.to_string();
    assert!(told.contains("only the kernel was recorded"), "{told}");
    assert!(told.contains("--space kernel"), "{told}");
}

#[test]
fn a_host_is_no_guest() {
    let host = recorded(both_sides(), &[entry(TEXT, TEXT + 8)]);
    let told = error(&host, Space::GuestKernel);
    let expected = (Space::GuestKernel, Space::Kernel);
    match &told {
        TraceError::OtherSpace { wanted, found, .. } => assert_eq!((*wanted, *found), expected),
        other => panic!("{other:?}"),
    }
    assert!(told.to_string().contains("perf kvm"), "{told}");
}

#[test]
fn counts_are_no_samples() {
    // A pipe with one PERF_RECORD_STAT: id, CPU, thread, value, enabled, running.
    let mut counts = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    counts.extend(76_u32.to_le_bytes());
    counts.extend([0, 0, 48, 0]);
    counts.extend([0; 40]);
    let told = error(&counts, Space::Kernel).to_string();
    assert!(told.contains("`perf stat record`"), "{told}");
}

#[test]
fn an_empty_file_is_called_empty() {
    let told = error(b"", Space::Kernel).to_string();
    assert!(told.contains("is empty"), "{told}");
}
