//! Arm's SPE, simpleperf's flavour, and directories.

use std::fs;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_machine::Machine;
use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedMapping, Writer,
};
use mepof_trace::{Cause, OTHER_SIDE, Space, map_to_image};

use crate::recordings::*;

const ARM_TEXT: u64 = 0xffff_8000_0800_0000;

/// An instruction's address, non-secure, in EL1 or EL0.
fn address(index: u8, address: u64) -> Vec<u8> {
    let level = address >> 63;
    let payload = address & ((1 << 56) - 1) | 1 << 63 | level << 61;
    [vec![0xb0 | index], payload.to_le_bytes().to_vec()].concat()
}

/// One SPE record: source, target, target of the branch before, events, subclass of branch.
fn record(from: u64, to: u64, before: Option<u64>, events: u8, branch: Option<u8>) -> Vec<u8> {
    let mut bytes = address(0, from);
    bytes.extend([0x65, 0, 0, 0, 0]); // context
    bytes.extend([0x42, events]);
    bytes.extend(match branch {
        Some(subclass) => [0x4a, subclass],
        None => [0x49, 0], // a load
    });
    bytes.extend([0x99, 7, 0]); // a counter
    bytes.extend(address(1, to));
    bytes.extend(before.map(|before| address(4, before)).unwrap_or_default());
    bytes.extend([0x71, 1, 2, 3, 4, 5, 6, 7, 8]); // time, which ends the record
    bytes.extend([0; 5]); // padding
    bytes
}

fn spe(trace: &[u8]) -> Vec<u8> {
    let event = RecordedEvent {
        name: "arm_spe_0/branch_filter=1/".to_owned(),
        kind: 12,
        branches: None,
        excludes_user: true,
        ..RecordedEvent::kernel_branches(11)
    };
    let recording =
        PerfHeader { machine: Some(Machine::AARCH64), events: vec![event], ..recording() };
    let mut writer = Writer::pipe(Vec::new(), recording, Compression::None).unwrap();
    writer.record(70, 0, &[4, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let head = [trace.len() as u64, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    writer.record(71, 0, &head).unwrap();
    let mut bytes = writer.finish().unwrap();
    bytes.extend(trace);
    // A record after the trace: it must be found again.
    bytes.extend([2, 0, 0, 0, 0, 0, 24, 0, 11, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

const RETIRED: u8 = 2;
const NOT_TAKEN: u8 = 1 << 6;

#[test]
fn spe_gives_single_branches() {
    let at = |offset: u64| ARM_TEXT + offset;
    let trace = [
        record(at(0x10), at(0x40), None, RETIRED, Some(1)),
        record(at(0x20), at(0x24), None, RETIRED | NOT_TAKEN, Some(1)),
        record(at(0x50), at(0x80), Some(at(0x40)), RETIRED, Some(0)),
        record(at(0x60), at(0x70), None, 0, Some(0)), // not retired
        record(at(0x64), 0, None, RETIRED, None),
    ];
    let (facts, aggregate) = read(&spe(&trace.concat()));
    assert_eq!(branches(&aggregate), [(at(0x10), at(0x40), 1), (at(0x50), at(0x80), 1)]);
    assert_eq!(ranges(&aggregate), [(at(0x40), at(0x50), 1)], "as the branch before tells");
    let (runtime, image) = (RuntimeAddress(ARM_TEXT), ImageAddress(0));
    let placement = Placement::new(vec![Region { runtime, image, size: 0x1000 }]);
    let traced = map_to_image(&aggregate, &placement, &[]).branches;
    let alone: Vec<_> = traced.iter().map(|one| (one.from, one.count, one.single)).collect();
    let from = |offset| Some(ImageAddress(offset));
    assert_eq!(alone, [(from(0x10), 1, 1), (from(0x50), 1, 0)]);
    assert_eq!((facts.samples.used, facts.samples.dropped_for(Cause::NoBranches)), (2, 3));
    assert_eq!(facts.samples.dropped_for(Cause::Lost), 3, "the record after the trace");
    assert!(facts.has_kernel_branches());
}

#[test]
fn spe_knows_the_two_sides_of_a_system_call() {
    let at = |offset: u64| ARM_TEXT + offset;
    let trace = [
        record(at(0x10), at(0x40), None, RETIRED, Some(1)),
        record(at(0x50), USER, None, RETIRED, Some(0)),
        record(USER, USER + 8, None, RETIRED, Some(0)),
        record(USER + 8, USER + 16, None, RETIRED, Some(0)),
    ];
    let trace = spe(&trace.concat());
    let other = OTHER_SIDE.0;
    let (facts, aggregate) = read(&trace);
    assert_eq!(branches(&aggregate), [(at(0x10), at(0x40), 1), (at(0x50), other, 1)]);
    assert_eq!(facts.samples.dropped_for(Cause::UserSpace), 2);
    assert_eq!(facts.entries.dropped_for(Cause::UserSpace), 2);
    let user = Settings { space: Space::User, ..Settings::default() };
    let (facts, aggregate) = read_with(&trace, &user).unwrap();
    let expected = [(other, USER, 1), (USER, USER + 8, 1), (USER + 8, USER + 16, 1)];
    assert_eq!(branches(&aggregate), expected);
    assert_eq!(facts.samples.dropped_for(Cause::OtherSpace), 1);
    assert_eq!(facts.samples.dropped_for(Cause::UserSpace), 0);
}

#[test]
fn a_long_spe_trace_is_read_across_blocks_and_with_damage() {
    let at = |offset: u64| ARM_TEXT + offset;
    let one = record(at(0x10), at(0x40), None, RETIRED, Some(1));
    let mut trace = one.repeat(50_000);
    let (facts, _) = read(&spe(&trace));
    assert_eq!((facts.samples.used, facts.samples.read()), (50_000, 50_003));
    trace[one.len() * 10] = 0xff; // no packet begins so
    let (facts, _) = read(&spe(&trace));
    assert!(facts.samples.used >= 49_998, "{:?}", facts.samples);
}

#[test]
fn an_spe_trace_cut_off_anywhere_is_no_panic() {
    let at = |offset: u64| ARM_TEXT + offset;
    let whole = spe(&record(at(0x10), at(0x40), Some(at(0)), RETIRED, Some(1)));
    for length in 16..whole.len() {
        let _ = read_with(&whole[..length], &Settings::default());
    }
}

#[test]
fn simpleperf_says_where_the_kernel_ran_in_its_own_way() {
    let mut writer = Writer::pipe(
        Vec::new(),
        PerfHeader { kernel_release: String::new(), ..recording() },
        Compression::None,
    )
    .unwrap();
    let mut info = 129_u64.to_le_bytes().to_vec();
    info.extend(b"kernel_version\x006.1.75-android14\0event_type_info\0cpu-cycles:k,0,0\0");
    info.extend([0; 3]);
    writer.record(80, 0, &info).unwrap();
    let mapping = RecordedMapping {
        space: Space::Kernel,
        name: "[kernel.kallsyms]",
        start: RuntimeAddress(ARM_TEXT),
        size: u64::MAX - ARM_TEXT,
        offset: 0,
        build_id: None,
    };
    writer.mapping(&mapping).unwrap();
    writer.sample(&sample(&[entry(ARM_TEXT, ARM_TEXT + 8)])).unwrap();
    let (facts, aggregate) = read(&writer.finish().unwrap());
    assert_eq!(branches(&aggregate).len(), 1);
    assert_eq!(facts.kernel_release.as_deref(), Some("6.1.75-android14"));
    assert_eq!(facts.kernel_base, Some(("_stext".to_owned(), RuntimeAddress(ARM_TEXT))));
    assert_eq!(facts.events[0].name, "cpu-cycles:k");
}

#[test]
fn a_directory_is_read_with_all_its_parts() {
    let stack = [entry(TEXT + 0x30, TEXT + 0x50)];
    for compression in [Compression::None, Compression::First] {
        let bytes = packed_file(recording(), compression, |writer| {
            writer.sample(&sample(&stack)).unwrap();
        });
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let records = &bytes[word(40)..word(40) + word(48)];
        let directory = TemporaryFile::new(&[]);
        fs::remove_file(&directory.0).unwrap();
        fs::create_dir(&directory.0).unwrap();
        for (name, content) in [("data", &bytes[..]), ("data.0", records), ("data.1", records)] {
            fs::write(directory.0.join(name), content).unwrap();
        }
        let (facts, aggregate) = read_path(&directory.0, &Settings::default()).unwrap();
        fs::remove_dir_all(&directory.0).unwrap();
        assert_eq!(branches(&aggregate), [(TEXT + 0x30, TEXT + 0x50, 3)]);
        assert_eq!(facts.samples.read(), 3);
    }
}
