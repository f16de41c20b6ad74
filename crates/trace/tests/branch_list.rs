//! Branch lists, written here as simpleperf writes them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::RuntimeAddress;
use mepof_trace::input::Options;
use mepof_trace::input::branch_list::{
    BranchList, Step, TakenBits, TracedBinary, TracedKind, Walk, parse,
};
use mepof_trace::{Aggregate, Cause, Space, Tally, TraceError};

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn list(address: u64, bits: u8, length: u64, count: u64) -> Vec<u8> {
    let branch = [bytes(1, &[bits]), number(2, length), number(3, count)].concat();
    bytes(3, &[number(1, address), bytes(2, &branch)].concat())
}

const ID: &str = "abababababababababababababababababababab";

fn kernel(lists: &[Vec<u8>]) -> Vec<u8> {
    let start = bytes(5, &number(1, 0xffff_ffc0_0800_0000));
    let head = [bytes(1, b"[kernel.kallsyms]"), bytes(2, ID.as_bytes())].concat();
    bytes(2, &[head, lists.concat(), number(4, 1), start].concat())
}

fn file(messages: &[Vec<u8>], compressed: bool) -> Vec<u8> {
    let mut all = b"simpleperf:EtmBranchList\x01\0\0\0".to_vec();
    all.push(u8::from(compressed));
    for message in messages {
        let mut message = message.clone();
        if compressed {
            let mut packed = Vec::with_capacity(message.len() + 1000);
            zstd::zstd_safe::CCtx::create().compress(&mut packed, &message, 3).unwrap();
            message = packed;
        }
        all.extend((message.len() as u32).to_le_bytes());
        all.extend(message);
    }
    all
}

fn with_options<T>(cancelled: bool, work: impl FnOnce(&Options<'_>) -> T) -> T {
    let (cancelled, progress) = (AtomicBool::new(cancelled), AtomicU64::new(0));
    work(&Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: 1 << 20,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: &cancelled,
        progress: &progress,
    })
}

fn read(bytes: &[u8]) -> Result<BranchList, TraceError> {
    with_options(false, |options| parse(bytes, Path::new("list"), options))
}

fn follow(
    binary: &TracedBinary,
    slide: u64,
    decode: impl FnMut(u64) -> Option<(Step, u64)>,
    aggregate: &mut Aggregate,
) -> Tally {
    with_options(false, |options| {
        Walk::new(Path::new("list"), options).follow(binary, slide, decode, aggregate).unwrap()
    })
}

#[test]
fn every_form_of_the_file_says_the_same() {
    let message = kernel(&[list(0x1000, 0b101, 3, 7)]);
    let old = [bytes(1, b"simpleperf:EtmBranchList"), message.clone()].concat();
    let expected = TakenBits { address: 0x1000, bits: vec![0b101], length: 3, count: 7 };
    let one = std::slice::from_ref(&message);
    for form in [old, file(one, false), file(one, true)] {
        let list = read(&form).unwrap();
        let binary = &list.binaries[0];
        assert_eq!(binary.path, "[kernel.kallsyms]");
        assert_eq!(binary.build_id.as_ref().map(ToString::to_string).as_deref(), Some(ID));
        assert_eq!(binary.kind, TracedKind::Kernel);
        assert_eq!(binary.kernel_start, Some(RuntimeAddress(0xffff_ffc0_0800_0000)));
        assert_eq!(binary.lists, std::slice::from_ref(&expected));
        assert_eq!(list.facts().samples.used, 7);
    }
}

/// Code of four bytes an instruction: branches at 0x1008 (to 0x2000), 0x1010 (to 0x3000) and
/// 0x2004 (by register), and a marker at 0x2000.
fn decode(address: u64) -> Option<(Step, u64)> {
    let step = match address {
        0x1008 => Step::Branch(0x2000),
        0x1010 => Step::Branch(0x3000),
        0x2000 => Step::Marker,
        0x2004 => Step::Indirect,
        0x1000..0x1020 | 0x2000..0x2020 => Step::Next,
        _ => return None,
    };
    Some((step, 4))
}

type Counts = Vec<(u64, u64, u64)>;

fn walk(bits: u8, length: u64) -> (Counts, Counts, u64) {
    let list = read(&file(&[kernel(&[list(0x1000, bits, length, 5)])], false)).unwrap();
    let mut aggregate = Aggregate::default();
    let tally = follow(&list.binaries[0], 0, decode, &mut aggregate);
    let mut branches: Counts =
        aggregate.branches().map(|(from, to, count)| (from.0, to.0, count)).collect();
    let mut ranges: Counts =
        aggregate.ranges().map(|(first, last, count)| (first.0, last.0, count)).collect();
    branches.sort_unstable();
    ranges.sort_unstable();
    (branches, ranges, tally.dropped_for(Cause::OutsideBinary))
}

#[test]
fn a_walk_goes_where_the_bits_say() {
    // Taken; the marker's bit; taken by register: the list ends there.
    let (branches, ranges, lost) = walk(0b111, 3);
    assert_eq!(branches, [(0x1008, 0x2000, 5)]);
    assert_eq!(ranges, [(0x1000, 0x1008, 5), (0x2000, 0x2004, 5)]);
    assert_eq!(lost, 0);
    // Not taken, taken: straight on to the second branch.
    let (branches, ranges, _) = walk(0b10, 2);
    assert_eq!(branches, [(0x1010, 0x3000, 5)]);
    assert_eq!(ranges, [(0x1000, 0x1010, 5)]);
    // Not taken, and that is all that is known.
    assert_eq!(walk(0, 1), (vec![], vec![(0x1000, 0x1008, 5)], 0));
}

#[test]
fn a_walk_out_of_the_code_is_told() {
    let (branches, _, lost) = walk(0b110, 3); // there is no code at 0x3000
    assert_eq!((branches, lost), (vec![(0x1010, 0x3000, 5)], 5));
}

#[test]
fn a_kernels_addresses_may_be_moved() {
    let list = read(&file(&[kernel(&[list(0x1000, 0b1, 1, 5)])], false)).unwrap();
    let mut aggregate = Aggregate::default();
    let moved = |address: u64| {
        let (step, size) = decode(address.checked_sub(0x100)?)?;
        let step = if let Step::Branch(to) = step { Step::Branch(to + 0x100) } else { step };
        Some((step, size))
    };
    assert_eq!(follow(&list.binaries[0], 0x100, moved, &mut aggregate).used, 5);
    let branch = aggregate.branches().next().unwrap();
    assert_eq!((branch.0.0, branch.1.0), (0x1108, 0x2100));
}

/// Lists that all lead through code of which every `spacing`-th instruction is a branch.
fn long_ways(lists: usize, spacing: u64) -> (Tally, u64) {
    let ways = vec![TakenBits { address: 0, bits: vec![0; 8], length: 64, count: 1 }; lists];
    let binary = TracedBinary { lists: ways, ..TracedBinary::default() };
    let mut decoded = 0;
    let decode = |address: u64| {
        decoded += 1;
        let is_branch = address / 4 % spacing == spacing - 1;
        Some((if is_branch { Step::Branch(0) } else { Step::Next }, 4))
    };
    let tally = follow(&binary, 0, decode, &mut Aggregate::default());
    (tally, decoded)
}

#[test]
fn following_ends_where_code_has_hardly_a_branch() {
    let (tally, _) = long_ways(100, 20);
    assert_eq!(tally.used, 100);
    let (tally, decoded) = long_ways(100, 60_000);
    assert!(tally.dropped_for(Cause::LongRange) > 90, "{tally:?}");
    assert_eq!(tally.read(), 100);
    assert!(decoded < 20_000_000, "{decoded}");
    let (tally, _) = long_ways(1, 70_000);
    assert_eq!(tally.dropped_for(Cause::LongRange), 1, "longer than any function");
}

#[test]
fn cancelling_ends_a_walk_and_stacks() {
    let walked = read(&file(&[kernel(&[list(0x1000, 0b1, 1, 5)])], false)).unwrap();
    with_options(true, |options| {
        let mut sink = Aggregate::default();
        let walk =
            Walk::new(Path::new("list"), options).follow(&walked.binaries[0], 0, decode, &mut sink);
        assert!(matches!(walk, Err(TraceError::Cancelled)));
        let stacks = walked.give_stacks(|_| true, Path::new("list"), options, &mut sink);
        assert!(matches!(stacks, Err(TraceError::Cancelled)));
    });
}

#[test]
fn branch_stacks_are_given_by_binary() {
    let branch = |from: (u64, u64), to: (u64, u64)| {
        let fields = [number(1, from.0), number(2, to.0), number(3, from.1), number(4, to.1)];
        bytes(3, &fields.concat())
    };
    let stack =
        [branch((1, 0x30), (1, 0x50)), branch((2, 9), (2, 8)), branch((1, 0x10), (1, 0x18))];
    let binaries = [bytes(2, &bytes(1, b"vmlinux")), bytes(2, &bytes(1, b"other.ko"))];
    let data = bytes(3, &[bytes(1, &stack.concat()), binaries.concat()].concat());
    let list = read(&file(&[data], false)).unwrap();
    assert_eq!(list.lbr.binaries[1].0, "other.ko");
    let mut aggregate = Aggregate::default();
    let give = |ours: &[usize], aggregate: &mut Aggregate| {
        with_options(false, |options| {
            let is_ours = |index| ours.contains(&index);
            list.give_stacks(is_ours, Path::new("list"), options, aggregate).unwrap()
        })
    };
    assert_eq!(give(&[0], &mut aggregate), 1);
    assert_eq!(aggregate.branches().count(), 2);
    assert_eq!(aggregate.entries().used, 2);
    assert_eq!(give(&[], &mut aggregate), 0);
    let mut both = Aggregate::default();
    assert_eq!(give(&[0, 1], &mut both), 1);
    assert_eq!(both.entries().used, 3, "each branch once");
}

#[test]
fn damage_is_an_error_at_every_byte() {
    for compressed in [false, true] {
        let whole = file(&[kernel(&[list(0x1000, 5, 3, 7)])], compressed);
        for length in 0..whole.len() {
            // After the header, an end is where a message ends.
            assert_eq!(read(&whole[..length]).is_ok(), length == 29, "{length}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&bytes);
            }
        }
    }
    assert!(matches!(read(b"PERFILE2"), Err(TraceError::UnknownFormat { .. })));
    let lying = file(&[kernel(&[list(0x1000, 5, 9, 7)])], false);
    assert!(matches!(read(&lying), Err(TraceError::Corrupt { .. })));
}
