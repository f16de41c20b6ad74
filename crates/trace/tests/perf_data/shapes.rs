//! Files, pipes, compressed records, several events, additional fields.

use std::io::Cursor;

use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedSample, Writer,
};
use mepof_trace::{BranchEntry, Cause, TraceError};

use crate::recordings::*;

const COMPRESSED: [Compression; 3] = [Compression::None, Compression::First, Compression::Second];

/// Stacks of all depths from 1 on, enough for many blocks.
fn many(writer: &mut Writer<Cursor<Vec<u8>>>) {
    for number in 0..20_000_u64 {
        let depth = 1 + number % 32;
        let stack: Vec<BranchEntry> = (0..depth)
            .map(|position| {
                let at = TEXT + (number * 7919 + position) % 5000 * 16;
                entry(at + 8, at + 64)
            })
            .collect();
        writer.sample(&sample(&stack)).unwrap();
    }
}

#[test]
fn compressed_records_and_several_threads_make_no_difference() {
    let plain = packed_file(recording(), Compression::None, many);
    let (facts, expected) = read(&plain);
    assert_eq!(facts.samples.used, 20_000);
    for compression in COMPRESSED {
        let bytes = packed_file(recording(), compression, many);
        for threads in [1, 2, 3] {
            let settings = Settings { threads, ..Settings::default() };
            let (again, aggregate) = read_with(&bytes, &settings).unwrap();
            assert_eq!(again.samples, facts.samples, "{compression:?} {threads}");
            assert_eq!(again.entries, facts.entries, "{compression:?} {threads}");
            assert_eq!(branches(&aggregate), branches(&expected), "{compression:?} {threads}");
            assert_eq!(ranges(&aggregate), ranges(&expected), "{compression:?} {threads}");
        }
        assert!(bytes.len() < plain.len() / 2 || compression == Compression::None);
    }
}

#[test]
fn a_pipe_says_the_same_as_a_file() {
    let stack = [entry(TEXT + 0x30, TEXT + 0x50), entry(TEXT + 0x10, TEXT + 0x18)];
    let (from_file, _) = read(&file(recording(), |writer| {
        writer.sample(&sample(&stack)).unwrap();
    }));
    for compression in COMPRESSED {
        let mut writer = Writer::pipe(Vec::new(), recording(), compression).unwrap();
        writer.mapping(&kernel_mapping()).unwrap();
        writer.sample(&sample(&stack)).unwrap();
        let (from_pipe, aggregate) = read(&writer.finish().unwrap());
        assert_eq!(from_pipe, from_file);
        assert_eq!(branches(&aggregate).len(), 2);
    }
}

fn several_events() -> PerfHeader {
    let first = RecordedEvent::kernel_branches(11);
    let second = RecordedEvent {
        name: "instructions:k".to_owned(),
        config: 1,
        id: 12,
        ..RecordedEvent::kernel_branches(12)
    };
    let third = RecordedEvent {
        name: "context-switches".to_owned(),
        kind: 1,
        config: 3,
        branches: None,
        ..RecordedEvent::kernel_branches(13)
    };
    PerfHeader { events: vec![first, second, third], ..recording() }
}

#[test]
fn samples_are_told_apart_by_their_event() {
    let stack = [entry(TEXT + 0x30, TEXT + 0x50)];
    let bytes = file(several_events(), |writer| {
        for event in [0, 1, 1, 2, 2, 2] {
            writer.sample(&RecordedSample { event, ..sample(&stack) }).unwrap();
        }
    });
    let (facts, aggregate) = read(&bytes);
    assert_eq!(branches(&aggregate), [(TEXT + 0x30, TEXT + 0x50, 3)]);
    let counted: Vec<_> = facts
        .events
        .iter()
        .map(|event| (&*event.name, event.samples, event.branch_stack))
        .collect();
    let expected =
        [("cycles:k", 1, true), ("instructions:k", 2, true), ("context-switches", 3, false)];
    assert_eq!(counted, expected);
    assert_eq!((facts.samples.used, facts.samples.dropped_for(Cause::OtherEvent)), (3, 3));

    for (name, used) in [("instructions:k", 2), ("instructions", 2), ("cycles", 1)] {
        let settings = Settings { events: vec![name.to_owned()], ..Settings::default() };
        let (facts, _) = read_with(&bytes, &settings).unwrap();
        assert_eq!(facts.samples.used, used, "{name}");
        assert_eq!(facts.samples.dropped_for(Cause::OtherEvent), 6 - used, "{name}");
    }

    let settings = Settings { events: vec!["context-switches".to_owned()], ..Settings::default() };
    let (facts, _) = read_with(&bytes, &settings).unwrap();
    assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 3);
}

#[test]
fn an_event_that_is_not_there_is_an_error_that_names_those_that_are() {
    let bytes = file(several_events(), |_| {});
    let settings = Settings { events: vec!["branches:u".to_owned()], ..Settings::default() };
    let error = read_with(&bytes, &settings).unwrap_err();
    assert!(matches!(error, TraceError::Unsupported { .. }));
    let text = error.to_string();
    assert!(text.contains("branches:u") && text.contains("instructions:k"), "{text}");
}

#[test]
fn an_id_that_no_event_has_is_another_events() {
    let stack = [entry(TEXT + 0x30, TEXT + 0x50)];
    let mut bytes = file(several_events(), |writer| writer.sample(&sample(&stack)).unwrap());
    // The sample's first word is its id; it comes after the mapping.
    let needle = [11_u64.to_le_bytes(), (TEXT + 0x50).to_le_bytes()].concat();
    let at = bytes.windows(16).position(|window| window == needle).unwrap();
    bytes[at] = 99;
    let (facts, _) = read(&bytes);
    assert_eq!(facts.samples.dropped_for(Cause::OtherEvent), 1);
    bytes[at] = 0; // perf takes this for the first event's
    let (facts, _) = read(&bytes);
    assert_eq!(facts.samples.used, 1);
}

#[test]
fn hardware_indices_and_counters_are_stepped_over() {
    let filter = 1 << 1 | 1 << 3 | 1 << 17 | 1 << 19; // kernel, any, HW_INDEX, COUNTERS
    let event = RecordedEvent { branches: Some(filter), ..RecordedEvent::kernel_branches(11) };
    let bytes = file(PerfHeader { events: vec![event], ..recording() }, |writer| {
        let stack = [entry(TEXT + 0x30, TEXT + 0x50), entry(TEXT + 0x10, TEXT + 0x18)];
        writer.sample(&sample(&stack)).unwrap();
    });
    let (_, aggregate) = read(&bytes);
    let expected = [(TEXT + 0x10, TEXT + 0x18, 1), (TEXT + 0x30, TEXT + 0x50, 1)];
    assert_eq!(branches(&aggregate), expected);
}

#[test]
fn a_filter_on_kinds_of_branches_makes_no_ranges() {
    let calls_only = 1 << 1 | 1 << 4; // kernel, any_call
    let event = RecordedEvent { branches: Some(calls_only), ..RecordedEvent::kernel_branches(11) };
    let bytes = file(PerfHeader { events: vec![event], ..recording() }, |writer| {
        let stack = [entry(TEXT + 0x30, TEXT + 0x50), entry(TEXT + 0x10, TEXT + 0x18)];
        writer.sample(&sample(&stack)).unwrap();
    });
    let (facts, aggregate) = read(&bytes);
    assert_eq!((branches(&aggregate).len(), ranges(&aggregate)), (2, vec![]));
    assert!(has_note(&facts, &["-j any,k"]), "{:?}", facts.notes);
    assert!(facts.events[0].branch_stack_has_gaps);
}

#[test]
fn a_call_stack_is_no_branch_record() {
    let call_stack = 1 | 1 << 4 | 1 << 11;
    let event = RecordedEvent { branches: Some(call_stack), ..RecordedEvent::kernel_branches(11) };
    let bytes = file(PerfHeader { events: vec![event], ..recording() }, |writer| {
        writer.sample(&sample(&[entry(TEXT + 0x30, TEXT + 0x50)])).unwrap();
    });
    let (facts, aggregate) = read(&bytes);
    assert!(aggregate.is_empty() && !facts.has_kernel_branches());
    assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 1);
    assert!(has_note(&facts, &["call stack"]), "{:?}", facts.notes);
}

#[test]
fn filters_that_leave_the_kernel_out_are_told() {
    let user_only = RecordedEvent {
        name: String::new(),
        excludes_kernel: true,
        excludes_user: false,
        branches: Some(1 | 1 << 3), // user, any
        ..RecordedEvent::kernel_branches(11)
    };
    let bytes = file(PerfHeader { events: vec![user_only], ..recording() }, |writer| {
        writer.sample(&sample(&[entry(USER, USER + 8)])).unwrap();
    });
    let (facts, _) = read(&bytes);
    let event = &facts.events[0];
    assert!(event.excludes_kernel && event.branch_stack && event.branch_stack_excludes_kernel);
    assert_eq!(event.name, "cycles:u");
    assert!(!facts.has_kernel_branches());
}

#[test]
fn lost_records_and_throttling_are_counted_and_told() {
    let (facts, _) = read(&file(recording(), |writer| {
        writer.lost(0, 5).unwrap();
        writer.lost(0, 7).unwrap();
        writer.record(5, 0, &[0; 24]).unwrap(); // PERF_RECORD_THROTTLE
        writer.record(13, 0, &[2, 0, 0, 0, 0, 0, 0, 0]).unwrap(); // PERF_RECORD_LOST_SAMPLES
        writer.record(13, 1 << 15, &[9, 0, 0, 0, 0, 0, 0, 0]).unwrap(); // by a filter
    }));
    assert_eq!(facts.samples.dropped_for(Cause::Lost), 14);
    assert!(has_note(&facts, &["lost 14", "-m"]), "{:?}", facts.notes);
    assert!(has_note(&facts, &["throttled", "1 times"]), "{:?}", facts.notes);
}

#[test]
fn losses_of_other_events_are_not_ours() {
    let lost = |id: u64| [1_u64, 0, 0, 0, id].map(u64::to_le_bytes).concat();
    let (facts, _) = read(&file(several_events(), |writer| {
        writer.record(13, 0, &lost(11)).unwrap();
        writer.record(13, 0, &lost(13)).unwrap();
    }));
    assert_eq!(facts.samples.dropped_for(Cause::Lost), 1);
}
