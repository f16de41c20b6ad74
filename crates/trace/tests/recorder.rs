//! Traces of the emulated recorder, as our writer makes them and damaged.

#![allow(clippy::unwrap_used)]

mod reading;

use std::path::Path;

use mepof_address::RuntimeAddress;
use mepof_machine::Machine;
use mepof_trace::input::recorder;
use mepof_trace::output::recorder::{Counted, Counter, Header, Sampling, Writer};
use mepof_trace::{Cause, Facts, TraceError, TracedImage};
use reading::{Collected, Inputs};

fn read(bytes: &[u8]) -> Result<(Facts, Collected), TraceError> {
    let mut found = Collected::default();
    let facts = Inputs::default()
        .with(|options| recorder::parse(bytes, Path::new("test"), options, &mut found))?;
    Ok((facts, found))
}

fn header(sampling: Option<Sampling>) -> Header {
    Header {
        machine: Machine::X86_64,
        sampling,
        kernel_only: true,
        vcpus: 2,
        kernel_base: Some(("_text".to_owned(), RuntimeAddress(0xffff_ffff_8100_0000))),
        build_id: "0123456789abcdef".parse().ok(),
    }
}

fn exact() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(None)).unwrap();
    writer.branches(&[(0x20, 0x30, 5), (0x40, 0x50, u64::MAX)]).unwrap();
    writer.ranges(&[(0x30, 0x40, 5), (0x9, 0x8, 1)]).unwrap();
    writer.mapping(RuntimeAddress(0xffff_ffff_c000_0000), 16, "[nf]", ".text").unwrap();
    writer.mapping(RuntimeAddress(0xffff_ffff_c000_1000), 16, "[nf]", ".text.hot").unwrap();
    writer.counters(&[(Counter::RepIterations, 40), (Counter::LostBranches, 2)]).unwrap();
    writer.counters(&[(Counter::RepIterations, 2)]).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_trace_without_a_branch_is_an_error() {
    let path = std::env::temp_dir().join(format!("mepof-recorder-{}", std::process::id()));
    std::fs::write(&path, Writer::new(Vec::new(), &header(None)).unwrap().finish().unwrap())
        .unwrap();
    let outcome = Inputs::default()
        .with(|options| mepof_trace::input::read(&path, None, options, &mut Collected::default()));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(outcome, Err(TraceError::NoSamples { .. })), "{outcome:?}");
}

#[test]
fn an_exact_trace_comes_back() {
    let (facts, found) = read(&exact()).unwrap();
    assert_eq!(found.samples, ["20>30 x5", "40>50 x18446744073709551615", "30..40 x5"]);
    assert_eq!(facts.machine, Some(Machine::X86_64));
    assert_eq!(facts.samples.used, 3);
    assert_eq!(facts.samples.dropped_for(Cause::InvertedRange), 1);
    assert_eq!(facts.entries.dropped_for(Cause::Lost), 2);
    assert_eq!(facts.notes, ["42 iterations of REP string instructions were left out"]);
    let kernel = &facts.images[0];
    assert_eq!(kernel.name, "[kernel.kallsyms]_text");
    assert_eq!(kernel.build_id.as_ref().unwrap().to_string(), "0123456789abcdef");
    assert_eq!(facts.images[1].mappings.len(), 2);
    assert_eq!(facts.images[1].mappings[1].section.as_deref(), Some(".text.hot"));
    assert!(facts.events[0].excludes_user && facts.has_kernel_branches());
}

#[test]
fn a_module_that_was_loaded_again_has_all_its_mappings() {
    let mut writer = Writer::new(Vec::new(), &header(None)).unwrap();
    writer.branches(&[(0x20, 0x30, 5)]).unwrap();
    let at = |page: u64| RuntimeAddress(0xffff_ffff_c000_0000 + (page << 12));
    for (start, name) in [(at(0), "[nf]"), (at(1), "[ext4]"), (at(2), "[nf]"), (at(0), "[nf]")] {
        writer.mapping(start, 16, name, ".text").unwrap();
    }
    let (facts, _) = read(&writer.finish().unwrap()).unwrap();
    let starts = |image: &TracedImage| {
        image.mappings.iter().map(|mapping| mapping.addresses.start).collect::<Vec<_>>()
    };
    let found: Vec<_> =
        facts.images.iter().skip(1).map(|image| (&*image.name, starts(image))).collect();
    assert_eq!(found, [("[nf]", vec![at(0), at(2), at(0)]), ("[ext4]", vec![at(1)])]);
}

#[test]
fn a_sampled_trace_comes_back() {
    let sampling = Sampling { period: 1009, counted: Counted::TakenBranches, depth: 32 };
    let mut writer = Writer::new(Vec::new(), &header(Some(sampling))).unwrap();
    writer.sample(77, 0x60, 1, &[(0x40, 0x50), (0x20, 0x30)]).unwrap();
    writer.sample(78, 0, 0, &[]).unwrap();
    writer.sample(79, 0, 0, &[(1, 2); 33]).unwrap();
    let (facts, found) = read(&writer.finish().unwrap()).unwrap();
    assert_eq!(found.samples, ["t77 @60 x1 40>50 20>30"]);
    assert_eq!((&*facts.events[0].name, facts.events[0].period), ("taken branches", Some(1009)));
    assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 1);
    assert_eq!(facts.samples.dropped_for(Cause::Malformed), 1, "deeper than the header says");
}

#[test]
fn the_documented_example_is_read() {
    let doc = include_str!("../../../docs/recorder-trace.md");
    let bytes: Vec<u8> = doc
        .lines()
        .filter_map(|line| line.strip_prefix("000000")?.get(4..44))
        .flat_map(|words| words.split_whitespace().collect::<String>().into_bytes())
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let (facts, found) = read(&bytes).unwrap();
    assert_eq!(found.samples, ["ffffffff81000010>ffffffff81000040 x7"]);
    assert_eq!(
        facts.kernel_base,
        Some(("_text".to_owned(), RuntimeAddress(0xffff_ffff_8100_0000)))
    );
    assert!(facts.notes.is_empty() && facts.samples.read() == 1);
}

#[test]
fn a_truncated_trace_is_used_and_says_so() {
    let whole = exact();
    for length in 128..whole.len() {
        let (facts, _) = read(&whole[..length]).unwrap();
        assert!(facts.notes.iter().any(|note| note.contains("truncated")), "{length}");
    }
    for length in 0..128 {
        assert!(matches!(read(&whole[..length]), Err(TraceError::Corrupt { .. })));
    }
}

#[test]
fn a_wrong_number_of_records_is_noticed() {
    let mut bytes = exact();
    let last = bytes.len() - 8;
    bytes[last] += 3;
    let (facts, _) = read(&bytes).unwrap();
    assert_eq!(facts.samples.dropped_for(Cause::Truncated), 3);
    let (facts, _) = read(&[&exact()[..], b"x"].concat()).unwrap();
    assert!(facts.notes.iter().any(|note| note.contains("after the end")));
}

#[test]
fn damaged_headers_are_refused() {
    for (at, value, what) in [
        (0, b'X', "not a recorder trace"),
        (8, 2, "version 2"),
        (12, 3, "machine"),
        (16, 0x80, "a flag is unknown"),
        (16, 1, "1 to 1024"),
        (48, b'x', "reference symbol"),
        (60, 65, "build-id"),
    ] {
        let mut bytes = exact();
        bytes[at] = value;
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn damaged_records_are_counted_or_refused() {
    let mut bytes = exact();
    bytes[132] = 0xff;
    assert!(read(&bytes).unwrap_err().to_string().contains("at byte 128"));
    let mut bytes = exact();
    bytes[128] = 200;
    let (facts, _) = read(&bytes).unwrap();
    assert!(facts.notes.iter().any(|note| note.contains("1 records of unknown types")));
    let mut bytes = exact();
    bytes[128] = 3; // branches taken for a sample
    let (facts, _) = read(&bytes).unwrap();
    assert_eq!(facts.samples.dropped_for(Cause::Malformed), 1);
}
