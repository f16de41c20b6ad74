//! Files that lie, or end early.

use mepof_trace::output::perf_data::{Compression, Writer};
use mepof_trace::{Cause, TraceError};

use crate::recordings::*;

/// A file with a bit of everything.
fn small(compression: Compression) -> Vec<u8> {
    let bytes = packed_file(recording(), compression, |writer| {
        let stack = [entry(TEXT + 0x30, TEXT + 0x50), wrong_path(TEXT + 0x10, TEXT + 0x18)];
        writer.sample(&sample(&stack)).unwrap();
        writer.lost(0, 1).unwrap();
        writer.sample(&sample(&stack[..1])).unwrap();
    });
    assert_eq!(read(&bytes).0.samples.used, 2);
    bytes
}

fn pipe(compression: Compression) -> Vec<u8> {
    let mut writer = Writer::pipe(Vec::new(), recording(), compression).unwrap();
    writer.mapping(&kernel_mapping()).unwrap();
    writer.sample(&sample(&[entry(TEXT + 0x30, TEXT + 0x50)])).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_file_cut_off_anywhere_is_an_error_or_told() {
    for whole in [
        small(Compression::None),
        small(Compression::First),
        pipe(Compression::None),
        pipe(Compression::Second),
    ] {
        for length in 0..whole.len() {
            match read_with(&whole[..length], &Settings::default()) {
                Ok((facts, _)) => {
                    let told = facts.samples.dropped_for(Cause::Truncated) > 0;
                    // A pipe may end after any record, and only its end is missing.
                    let pipe = whole[8] == 16;
                    assert!(told || pipe, "{length} of {}: {facts:?}", whole.len());
                }
                Err(
                    TraceError::Corrupt { .. }
                    | TraceError::UnknownFormat { .. }
                    | TraceError::Unsupported { .. },
                ) => {}
                Err(other) => panic!("{length}: {other}"),
            }
        }
    }
}

#[test]
fn no_byte_makes_it_panic() {
    let whole = [small(Compression::None), small(Compression::First), pipe(Compression::None)];
    for whole in whole {
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read_with(&bytes, &Settings::default());
            }
        }
    }
}

#[test]
fn records_shorter_than_their_header_are_an_error_that_says_where() {
    let mut bytes = pipe(Compression::None);
    let at = bytes.len();
    bytes.extend([9, 0, 0, 0, 0, 0, 7, 0]);
    match read_with(&bytes, &Settings::default()) {
        Err(TraceError::Corrupt { offset, what, .. }) => {
            assert_eq!(offset, at as u64);
            assert!(what.contains("7 bytes"), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stack_deeper_than_its_record_is_malformed() {
    let stack = [entry(TEXT + 0x30, TEXT + 0x50)];
    let mut bytes = file(recording(), |writer| writer.sample(&sample(&stack)).unwrap());
    let needle = [1_u64.to_le_bytes(), (TEXT + 0x30).to_le_bytes()].concat();
    let at = bytes.windows(16).position(|window| window == needle).unwrap();
    for count in [2_u64, 1 << 20, u64::MAX / 24 + 1, u64::MAX] {
        bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
        let (facts, aggregate) = read(&bytes);
        assert_eq!(facts.samples.dropped_for(Cause::Malformed), 1);
        assert!(aggregate.is_empty());
    }
}

#[test]
fn sections_beyond_the_file_are_an_error_and_no_allocation() {
    for field in [32, 24] {
        // Size, offset of the table of events.
        let mut bytes = small(Compression::None);
        bytes[field..field + 8].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
        let error = read_with(&bytes, &Settings::default()).unwrap_err();
        assert!(matches!(error, TraceError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn a_recording_that_was_killed_is_read_to_its_end() {
    let mut bytes = file(recording(), |writer| {
        writer.sample(&sample(&[entry(TEXT + 0x30, TEXT + 0x50)])).unwrap();
    });
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let end = word(40) + word(48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    let (facts, aggregate) = read(&bytes);
    assert_eq!(branches(&aggregate).len(), 1);
    assert!(has_note(&facts, &["did not end properly"]), "{:?}", facts.notes);
}

#[test]
fn other_files_are_told_what_they_are_not() {
    for bytes in [&b""[..], b"PERF", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        let error = read_with(bytes, &Settings::default()).unwrap_err();
        assert!(matches!(error, TraceError::UnknownFormat { .. }), "{error}");
    }
    let error = read_with(b"PERFFILE\x68\0\0\0\0\0\0\0", &Settings::default()).unwrap_err();
    assert!(matches!(error, TraceError::Unsupported { .. }), "{error}");
}

#[test]
fn a_compressed_record_may_not_expand_without_end() {
    // A long row of small records of a kind that nobody knows.
    let flat = [99, 0, 0, 0, 0, 0, 8, 0].repeat(9 << 20);
    let mut packed = Vec::with_capacity(1 << 20);
    zstd::zstd_safe::CCtx::create().compress(&mut packed, &flat, 1).unwrap();
    assert!(packed.len() < 60_000, "{}", packed.len());
    let mut writer = Writer::pipe(Vec::new(), recording(), Compression::None).unwrap();
    writer.record(81, 0, &packed).unwrap();
    match read_with(&writer.finish().unwrap(), &Settings::default()) {
        Err(TraceError::Corrupt { what, .. }) => assert!(what.contains("expands"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_distinct_branches_than_allowed_are_an_error() {
    let bytes = file(recording(), |writer| {
        for number in 0..5000 {
            let at = TEXT + number * 64;
            writer.sample(&sample(&[entry(at, at + 32)])).unwrap();
        }
    });
    for threads in [1, 2] {
        let settings = Settings { max_distinct: 1000, threads, ..Settings::default() };
        let error = read_with(&bytes, &settings).unwrap_err();
        assert!(matches!(error, TraceError::TooManyBranches { limit: 1000, .. }), "{error}");
    }
}

#[test]
fn a_trace_that_must_be_decoded_first_is_told_with_its_cure() {
    let info = |kind: u8| [kind, 0, 0, 0, 0, 0, 0, 0];
    // PERF_RECORD_AUXTRACE: size, offset, reference, index, thread, CPU, and padding.
    let trace: Vec<u8> = [16_u64, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    for (kind, remedy) in [(3, "simpleperf inject"), (1, "perf inject"), (2, "-b")] {
        let mut event = recording();
        event.events[0].branches = None;
        let mut writer = Writer::pipe(Vec::new(), event, Compression::None).unwrap();
        writer.record(70, 0, &info(kind)).unwrap();
        writer.record(71, 0, &trace).unwrap();
        let mut bytes = writer.finish().unwrap();
        bytes.extend([0xff; 16]);
        let error = read_with(&bytes, &Settings::default()).unwrap_err();
        assert!(matches!(error, TraceError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn cancelling_ends_it() {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    let file = TemporaryFile::new(&small(Compression::None));
    let (cancelled, progress) = (AtomicBool::new(true), AtomicU64::new(0));
    let options = mepof_trace::input::Options {
        space: mepof_trace::Space::Kernel,
        events: &[],
        max_distinct: 1 << 20,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: &cancelled,
        progress: &progress,
    };
    let mut sink = mepof_trace::Aggregate::default();
    let outcome = mepof_trace::input::perf_data::read(&file.0, &options, &mut sink);
    assert!(matches!(outcome, Err(TraceError::Cancelled)));
}
