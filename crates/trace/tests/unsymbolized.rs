//! llvm-profgen's unsymbolized text and AutoFDO's, as they are and damaged.

#![allow(clippy::unwrap_used)]

mod reading;

use std::path::Path;

use mepof_address::BuildId;
use mepof_trace::input::{Options, Wanted, unsymbolized};
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

/// What `simpleperf inject --output autofdo` writes of a kernel and a program.
const TWO_BINARIES: &str = "// Please split this file. AutoFDO only accepts profile for one binary.
1\n10010-10020:3\n1\n10020:5\n2\n10020->10010:3\n10020->0:1
// build_id: 0xaa01000000000000000000000000000000000000\n// /system/lib64/libc.so\n
1\n20010-20020:4\n0\n0
// build_id: 0x0000000000000000000000000000000000000000\n// [kernel.kallsyms]\n\n";

fn read_for(
    program: Option<&str>,
    build_id: Option<&str>,
    text: &str,
) -> Result<(Facts, Collected), TraceError> {
    let mut found = Collected::default();
    let build_id: Option<BuildId> = build_id.map(|id| id.parse().unwrap());
    let facts = Inputs::default().with(|options| {
        let binary = Wanted { program: program.map(Path::new), build_id: build_id.as_ref() };
        let options = Options { binary: Some(binary), ..*options };
        unsymbolized::parse(text.as_bytes(), Path::new("test"), &options, &mut found)
    })?;
    Ok((facts, found))
}

#[test]
fn of_several_binaries_the_one_that_is_asked_for_is_read() {
    let library = &["10010..10020 x3", "10020>10010 x3", "10020>ffffffffffffffff x1"][..];
    let kernel = &["20010..20020 x4"][..];
    for (program, build_id, expected, outside) in [
        (None, None, kernel, 3),
        (None, Some("bb01"), kernel, 3), // the text has no build-id of it
        (Some("/build/libc.so"), None, library, 1),
        (Some("/build/other.so"), Some("aa01"), library, 1),
    ] {
        let (facts, found) = read_for(program, build_id, TWO_BINARIES).unwrap();
        assert_eq!(found.samples, expected);
        assert_eq!(facts.addressing, Addressing::Offset);
        assert_eq!(facts.format, "AutoFDO's text");
        assert_eq!(facts.images.len(), 1);
        assert_eq!(facts.samples.used, expected.len() as u64);
        assert_eq!(facts.samples.dropped_for(Cause::OutsideBinary), outside);
        assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 1);
        assert!(facts.notes.is_empty(), "{:?}", facts.notes);
    }
    let error = read_for(Some("/build/libc.so"), Some("bb01"), TWO_BINARIES).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("only of /system/lib64/libc.so (aa01), [kernel.kallsyms]"), "{error}");
}

#[test]
fn text_of_one_binary_need_not_name_it() {
    let (facts, found) = read_for(None, Some("bb01"), "0\n0\n1\n20->0:7\n").unwrap();
    assert_eq!(found.samples, ["20>ffffffffffffffff x7"]);
    assert_eq!((facts.addressing, facts.images.len()), (Addressing::Offset, 0));
}
