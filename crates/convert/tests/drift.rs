//! Profiles with and without flow-sensitive discriminators against binaries of both kinds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod walk;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use mepof_binary::Binary;
use mepof_convert::{Change, ProfileOptions, autofdo, drift};
use mepof_profile::Profile;
use walk::{Directory, compile, perf_script, recording, run, walk};

/// What GCC calls copies and parts of functions.
const RENAMED: [&str; 4] = [".isra.0", ".constprop.0.isra.0", ".part.0.cold", ".lto_priv.0"];
const UNROLLED: [&str; 3] = ["-O3", "-funroll-loops", "-march=x86-64-v3"];
const FLOW_SENSITIVE: [&str; 4] =
    ["-mllvm", "-enable-fs-discriminator=true", "-mllvm", "-improved-fs-discriminator=true"];

struct Build {
    _directory: Directory,
    program: PathBuf,
    profile: Profile,
}

/// A program, and a profile of a walk through it.
fn build(name: &str, flags: &[&str]) -> Build {
    let directory = Directory::new(name);
    let program = compile(&directory.0, &[&UNROLLED, flags].concat());
    let script = directory.0.join("script");
    fs::write(&script, perf_script(&walk(&Binary::open(&program).unwrap(), 1))).unwrap();
    let trace = recording(&program, &script);
    let profile = autofdo(&trace, ProfileOptions::default()).unwrap().profile;
    Build { _directory: directory, program, profile }
}

fn matched(profile: &Profile, build: &Build) -> f64 {
    drift(profile, None, &Binary::open(&build.program).unwrap()).unwrap().matched_percent
}

#[test]
fn flow_sensitive_discriminators_match_by_their_base() {
    for probes in [&[][..], &["-fpseudo-probe-for-profiling"]] {
        let plain = build("plain", probes);
        let sensitive = build("sensitive", &[&FLOW_SENSITIVE, probes].concat());
        let flag = |of: &Profile, flow_sensitive| Profile { flow_sensitive, ..of.clone() };
        let found = [
            matched(&plain.profile, &plain),
            matched(&flag(&plain.profile, true), &plain),
            matched(&plain.profile, &sensitive),
            matched(&flag(&sensitive.profile, true), &sensitive),
            // As text, which does not have the flag.
            matched(&flag(&sensitive.profile, false), &sensitive),
            matched(&flag(&sensitive.profile, true), &plain),
        ];
        assert!(found.iter().all(|&percent| percent > 99.9), "{probes:?}: {found:?}");
    }
}

#[test]
fn copies_and_parts_of_functions_are_the_functions_that_they_are_of() {
    let plain = build("renamed", &[]);
    let binary = Binary::open(&plain.program).unwrap();
    let mut objcopy = Command::new("llvm-objcopy-22");
    for (function, suffix) in binary.functions().iter().zip(RENAMED.iter().cycle()) {
        let name = &function.name;
        objcopy.arg(format!("--redefine-sym={name}={name}{suffix}"));
    }
    run(objcopy.arg(&plain.program));
    let names: Vec<_> = plain.profile.functions.keys().cloned().collect();
    let renamed = Profile {
        functions: (plain.profile.functions.iter())
            .map(|(name, function)| (format!("{name}.isra.3").into(), function.clone()))
            .collect(),
        ..plain.profile.clone()
    };
    for profile in [&plain.profile, &renamed] {
        let drift = drift(profile, None, &Binary::open(&plain.program).unwrap()).unwrap();
        let kinds: Vec<_> = drift.changes.keys().collect();
        assert_eq!((kinds, drift.matched_percent), (vec![&Change::Unchanged], 100.0), "{names:?}");
    }
}
