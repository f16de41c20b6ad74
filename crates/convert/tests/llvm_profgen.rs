//! Profiles, held against those that llvm-profgen makes of the same branch stacks.

// Outside of functions that are tests, Clippy does not see that this is one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod walk;

use std::fs;
use std::process::Command;

use mepof_binary::Binary;
use mepof_convert::{Converted, Locations, ProfileOptions, autofdo};
use walk::{Directory, compile, perf_script, recording, run, walk};

/// Both profiles as text: llvm-profgen's, and ours with its verdict.
fn both(name: &str, flags: &[&str], locations: Locations) -> (String, String, Converted) {
    let directory = Directory::new(name);
    let program = compile(&directory.0, flags);
    let (script, theirs) = (directory.0.join("script"), directory.0.join("theirs"));
    fs::write(&script, perf_script(&walk(&Binary::open(&program).unwrap(), 1))).unwrap();
    let mut profgen = Command::new("llvm-profgen-22");
    profgen.arg("--format=text").arg("--binary").arg(&program).arg("--perfscript").arg(&script);
    run(profgen.arg("--output").arg(&theirs));
    let recording = recording(&program, &script);
    let converted =
        autofdo(&recording, ProfileOptions { locations, ..ProfileOptions::default() }).unwrap();
    let mut ours = Vec::new();
    mepof_profile::text::write(&converted.profile, &mut ours).unwrap();
    (fs::read_to_string(theirs).unwrap(), String::from_utf8(ours).unwrap(), converted)
}

#[test]
fn profiles_by_line_are_equal_to_the_letter() {
    let variants: [(&str, &[&str]); 4] = [
        ("dwarf5", &[]),
        ("dwarf4", &["-gdwarf-4"]),
        ("unrolled", &["-O3", "-funroll-loops", "-march=x86-64-v3"]),
        (
            "flow-sensitive",
            &[
                "-mllvm",
                "-enable-fs-discriminator=true",
                "-mllvm",
                "-improved-fs-discriminator=true",
            ],
        ),
    ];
    for (name, flags) in variants {
        let (theirs, ours, converted) = both(name, flags, Locations::Best);
        assert!(ours.lines().count() > 40, "{name}: hardly a profile: {ours}");
        assert_eq!(theirs, ours, "{name}");
        assert_eq!(converted.profile.flow_sensitive, name == "flow-sensitive");
    }
}

#[test]
fn profiles_by_probe_are_equal_to_the_letter() {
    let (theirs, ours, converted) =
        both("probes", &["-fpseudo-probe-for-profiling"], Locations::Best);
    assert!(converted.profile.probe_based);
    assert_eq!(theirs, ours);
}

#[test]
fn all_of_a_walk_can_have_happened() {
    let (_, _, converted) = both("checked", &[], Locations::Lines);
    let [binary] = &converted.verdict.binaries[..] else { panic!() };
    assert_eq!((binary.asynchronous_percent, binary.fused), (0.0, 0));
    assert!(binary.ranges.dropped.is_empty() && binary.branches.dropped.is_empty());
    assert!(binary.mapped_percent > Some(99.0), "{binary:?}");
}
