//! BOLT's pre-aggregated text, as it is and damaged.

#![allow(clippy::unwrap_used)]

mod reading;

use std::path::Path;

use mepof_address::BuildId;
use mepof_trace::input::{Options, Wanted, preaggregated};
use mepof_trace::{Addressing, Cause, Facts, TraceError};
use reading::{Collected, Inputs};

const OURS: &str = "0123456789abcdef";

fn read(text: &str) -> Result<(Facts, Collected), TraceError> {
    let mut found = Collected::default();
    let build_id: BuildId = OURS.parse().unwrap();
    let facts = Inputs::default().with(|options| {
        let binary = Some(Wanted { program: None, build_id: Some(&build_id) });
        let options = Options { binary, ..*options };
        preaggregated::parse(text.as_bytes(), Path::new("test"), &options, &mut found)
    })?;
    Ok((facts, found))
}

#[test]
fn branches_and_ranges_are_read() {
    for (text, expected) in [
        ("B 4b196f 4b19e0 2 1\n", &["4b196f>4b19e0 x2"][..]),
        ("F 41be50 41be90 3", &["41be50..41be90 x3"]),
        ("f 41be50 41BE50 3\r\nr 10 20 4\n", &["41be50..41be50 x3", "10..20 x4"]),
        ("T 10 20 2f 7\n\n", &["10>20 x7", "20..2f x7"]),
        ("  R  10  20  2f  7 \n", &["10>20 x7", "20..2f x7"]),
        ("T 10 20 ffffffffffffffff 7\n", &["10>20 x7"]),
        ("T ffffffffffffffff 20 2f 7\nT fffffffffffffffd 20 2f 1", &["20..2f x7", "20..2f x1"]),
    ] {
        let (facts, found) = read(text).unwrap();
        assert_eq!(found.samples, expected, "{text}");
        assert_eq!(facts.addressing, Addressing::Image);
        assert_eq!(facts.samples.used, facts.samples.read(), "{text}");
    }
}

#[test]
fn other_binaries_are_outside() {
    const OUTSIDE: &str = "ffffffffffffffff";
    for from in ["X:0", "X:10", "aabb:10", "0", "X:R0", "0123456789abcdee:10"] {
        let read = read(&format!("B {from} 20 7 0\nB {OURS}:10 {OURS}:20 1 0\n")).unwrap();
        let found = read.1.samples;
        match from {
            "X:R0" => assert_eq!(found, ["10>20 x1"]),
            _ => assert_eq!(found, [&format!("{OUTSIDE}>20 x7"), "10>20 x1"], "{from}"),
        }
    }
}

#[test]
fn samples_and_events_are_counted() {
    let (facts, found) =
        read("E cycles:k\nS 41be50 3\nE br inst\nB 10 20 1 0\nE br inst\n").unwrap();
    assert_eq!(found.samples, ["10>20 x1"]);
    let events: Vec<_> = facts.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["cycles:k", "br inst"]);
    assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 3);
    assert_eq!(facts.samples.used, 1);
}

#[test]
fn damage_is_counted() {
    for (line, cause) in [
        ("B 10 20 1", Cause::Malformed),
        ("B 10 20 1 0 0", Cause::Malformed),
        ("B 10 20 -1 0", Cause::Malformed),
        ("B 10 2g 1 0", Cause::Malformed),
        ("F 10 20", Cause::Malformed),
        ("T 10 20 30", Cause::Malformed),
        ("Q 10 20 30", Cause::Malformed),
        ("B 10 20 99999999999999999999 0", Cause::Malformed),
        ("F 20 10 1", Cause::InvertedRange),
    ] {
        let (facts, found) = read(&format!("{line}\nB 1 2 3 0\n")).unwrap();
        assert_eq!(found.samples, ["1>2 x3"], "{line}");
        assert_eq!((facts.samples.dropped_for(cause), facts.samples.used), (1, 1), "{line}");
    }
}
