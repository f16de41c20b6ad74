//! llvm-profgen's unsymbolized text, as it is and damaged.

#![allow(clippy::unwrap_used)]

mod reading;

use std::path::Path;

use mepof_trace::input::unsymbolized;
use mepof_trace::{Addressing, Cause, Facts, TraceError};
use reading::{Collected, Inputs};

const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn read(text: &str) -> Result<(Facts, Collected), TraceError> {
    let mut found = Collected::default();
    let facts = Inputs::default().with(|options| {
        unsymbolized::parse(text.as_bytes(), Path::new("test"), options, &mut found)
    })?;
    Ok((facts, found))
}

#[test]
fn ranges_and_branches_are_read() {
    for text in
        ["2\n10-2F:3\n40-4a:1\n1\n2f->40:7\n", "2\r\n0x10-0x2F:3\r\n40-4a:1\r\n1\r\n2f->0x40:7"]
    {
        let (facts, found) = read(text).unwrap();
        assert_eq!(found.samples, ["10..2f x3", "40..4a x1", "2f>40 x7"]);
        assert_eq!((facts.samples.used, facts.samples.read()), (3, 3));
        let (lowest, highest) = (0x10, 0x4a);
        assert_eq!(facts.addressing, Addressing::ImageOrTextOffset { lowest, highest });
        assert!(facts.notes.is_empty());
    }
}

#[test]
fn ranges_say_what_the_addresses_are_and_targets_if_there_are_none() {
    for (text, lowest, highest) in [
        // A source outside of the binary wraps around.
        ("1\n10-20:3\n1\nFFFFFFFFFFDFF001->8:7\n", 0x10, 0x20),
        ("0\n2\n1->FFFFFFFF81000010:7\n1->FFFFFFFF81000000:7\n", KERNEL, KERNEL + 0x10),
    ] {
        let addressing = Addressing::ImageOrTextOffset { lowest, highest };
        assert_eq!(read(text).unwrap().0.addressing, addressing);
    }
}

#[test]
fn contexts_are_added_up() {
    let (facts, found) =
        read("[main:1 @ f]\n  1\n  10-20:3\n  0\n[main:2 @ f]\n  1\n  10-20:4\n  0\n").unwrap();
    assert_eq!(found.samples, ["10..20 x3", "10..20 x4"]);
    assert!(facts.notes.iter().any(|note| note.contains("2 calling contexts")));
}

#[test]
fn damage_is_counted() {
    for (text, cause) in [
        ("2\n10-20:3\nx\n0\n", Cause::Malformed),
        ("2\n10-20:3\n10-20:99999999999999999999\n0\n", Cause::Malformed),
        ("2\n10-20:3\n10-20\n0\n", Cause::Malformed),
        ("2\n10-20:3\n12345678901234567-20:1\n0\n", Cause::Malformed),
        ("2\n10-20:3\n20-10:1\n0\n", Cause::InvertedRange),
        ("1\n10-20:3\n1\n", Cause::Truncated),
    ] {
        let (facts, found) = read(text).unwrap();
        assert_eq!(found.samples, ["10..20 x3"], "{text}");
        assert_eq!(facts.samples.dropped_for(cause), 1, "{text}");
    }
    let (facts, _) = read("5\n10-20:3\n0\n").unwrap();
    assert!(facts.notes.iter().any(|note| note.contains("another number of lines")));
}

#[test]
fn nothing_is_an_error() {
    assert!(matches!(read(""), Err(TraceError::Unsupported { .. })));
    assert!(matches!(read("0\n0\n"), Err(TraceError::Unsupported { .. })));
    assert!(matches!(read("\nx\n"), Err(TraceError::Corrupt { offset: 1, .. })));
}
