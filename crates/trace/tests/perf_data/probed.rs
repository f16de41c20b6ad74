//! As much is read of a branch trace as tells what it is.

use std::sync::atomic::AtomicBool;

use mepof_trace::input::Format;
use mepof_trace::output::perf_data::{PerfHeader, RecordedEvent};
use mepof_trace::{TraceError, probe};

use crate::recordings::*;

#[test]
fn a_trace_is_known_by_its_first_branch() {
    let bytes = file(recording(), |writer| {
        for _ in 0..3 {
            writer.sample(&sample(&[entry(TEXT, TEXT + 8)])).unwrap();
        }
    });
    let given = TemporaryFile::new(&bytes);
    let stop = AtomicBool::new(false);
    assert_eq!(probe(&given.0, &stop).unwrap(), Format::PerfData);
    assert!(stop.into_inner());
}

#[test]
fn samples_without_branches_are_no_branch_trace() {
    let event = RecordedEvent { branches: None, ..RecordedEvent::kernel_branches(11) };
    let bytes = file(PerfHeader { events: vec![event], ..recording() }, |writer| {
        writer.sample(&sample(&[])).unwrap();
    });
    let told = probe(&TemporaryFile::new(&bytes).0, &AtomicBool::new(false));
    assert!(matches!(told, Err(TraceError::NoBranchStacks { samples: 1, .. })), "{told:?}");
}
