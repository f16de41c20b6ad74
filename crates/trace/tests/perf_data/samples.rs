//! Samples of other inputs, written as perf.data.

use std::io::{self, Cursor};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_machine::Machine;
use mepof_trace::input::{Options, recorder};
use mepof_trace::output::perf_data::Samples;
use mepof_trace::output::perf_data::{Compression, PerfHeader, RecordedEvent, Writer};
use mepof_trace::output::recorder::{Counted, Header, Sampling, Writer as TraceWriter};
use mepof_trace::{Aggregate, BranchEntry, Sample, Sink, Space};

use crate::recordings::*;
use crate::with_perf::has_perf;

/// What `fill` puts into a perf.data, and how many samples that was.
fn written(fill: impl FnOnce(&mut Samples<'_, Cursor<Vec<u8>>>)) -> io::Result<(Vec<u8>, u64)> {
    let file = Cursor::new(Vec::new());
    let mut writer = Writer::file(file, recording(), Compression::First)?;
    writer.mapping(&kernel_mapping())?;
    let mut samples = Samples::new(&mut writer, 0, Space::Kernel);
    fill(&mut samples);
    let count = samples.finish()?;
    Ok((writer.finish()?.into_inner(), count))
}

fn stack(branches: &[BranchEntry]) -> Sample<'_> {
    Sample { time: Some(5), address: None, branches, consecutive: true, count: 1 }
}

#[test]
fn a_stack_is_written_as_often_as_it_was_seen() {
    let branches = [entry(TEXT + 0x30, TEXT + 0x50), entry(TEXT + 0x10, TEXT + 0x18)];
    let (bytes, count) =
        written(|samples| samples.sample(&Sample { count: 7, ..stack(&branches) })).unwrap();
    let (facts, aggregate) = read(&bytes);
    assert_eq!((count, facts.samples.used), (7, 7));
    assert_eq!(ranges(&aggregate), [(TEXT + 0x18, TEXT + 0x30, 7)]);
    let often = written(|samples| samples.sample(&Sample { count: 1 << 40, ..stack(&branches) }));
    assert_eq!(often.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn single_branches_and_the_sides_of_a_gap_are_samples_of_their_own() {
    let gap = BranchEntry::default();
    let entries = [entry(TEXT + 0x30, TEXT + 0x50), gap, entry(TEXT + 0x10, TEXT + 0x18), gap];
    let (bytes, count) = written(|samples| samples.sample(&stack(&entries))).unwrap();
    assert_eq!(count, 2);
    assert_eq!(ranges(&read(&bytes).1), []);
    let (one, other) = (entries[0], entries[2]);
    let singles = [one, other];
    let (bytes, count) =
        written(|samples| samples.sample(&Sample { consecutive: false, ..stack(&singles) }))
            .unwrap();
    assert_eq!(count, 2);
    assert_eq!(ranges(&read(&bytes).1), []);
    assert_eq!(branches(&read(&bytes).1).len(), 2);
}

fn recorded_trace() -> Vec<u8> {
    let sampling = Sampling { period: 10_007, counted: Counted::TakenBranches, depth: 4 };
    let header = Header {
        machine: Machine::X86_64,
        sampling: Some(sampling),
        kernel_only: true,
        vcpus: 1,
        kernel_base: None,
        build_id: None,
    };
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    for number in 0..500 {
        let at = TEXT + 0x100 * (number % 50);
        let branches =
            [(at + 0x30, at + 0x50), (at + 0x10, at + 0x18), (0, 0), (at + 0x90, at + 0x70)];
        writer.sample(1000 * number, at + 0x50, 0, &branches).unwrap();
    }
    writer.finish().unwrap()
}

fn feed<S: Sink>(trace: &[u8], sink: &mut S) -> mepof_trace::Facts {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: 1 << 20,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: &cancelled,
        progress: &progress,
    };
    recorder::parse(trace, Path::new("trace"), &options, sink).unwrap()
}

#[test]
fn a_sampled_trace_is_the_same_read_by_perf_and_by_us() {
    let trace = recorded_trace();
    let mut direct = Aggregate::default();
    let facts = feed(&trace, &mut direct);
    assert_eq!(facts.branch_depth, Some(4));
    let description = PerfHeader {
        branch_depth: facts.branch_depth,
        events: vec![RecordedEvent {
            name: "branches:k".to_owned(),
            config: 4,
            period: 10_007,
            ..RecordedEvent::kernel_branches(1)
        }],
        ..recording()
    };
    let file = Cursor::new(Vec::new());
    let mut writer = Writer::file(file, description, Compression::First).unwrap();
    writer.mapping(&kernel_mapping()).unwrap();
    let mut samples = Samples::new(&mut writer, 0, Space::Kernel);
    feed(&trace, &mut samples);
    assert_eq!(samples.finish().unwrap(), 1000);
    let bytes = writer.finish().unwrap().into_inner();

    let (facts, aggregate) = read(&bytes);
    assert_eq!(facts.events[0].period, Some(10_007));
    assert_eq!(branches(&aggregate), branches(&direct));
    assert_eq!(ranges(&aggregate), ranges(&direct));

    if !has_perf() {
        return;
    }
    let file = TemporaryFile::new(&bytes);
    let run = Command::new("perf")
        .args(["script", "-F", "ip,period,brstack", "-i"])
        .arg(&file.0)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1000, "{}", String::from_utf8_lossy(&run.stderr));
    assert!(lines.iter().all(|line| line.contains(" 10007 ")));
    let seen = |line: &str| -> Vec<(u64, u64)> {
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let entries = line.split_whitespace().filter(|word| word.contains('/'));
        entries
            .map(|word| {
                let mut sides = word.split('/');
                (number(sides.next().unwrap()), number(sides.next().unwrap()))
            })
            .collect()
    };
    assert_eq!(seen(lines[0]), [(TEXT + 0x30, TEXT + 0x50), (TEXT + 0x10, TEXT + 0x18)]);
    assert_eq!(seen(lines[1]), [(TEXT + 0x90, TEXT + 0x70)]);
}
