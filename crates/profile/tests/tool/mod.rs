//! Runs other people's tools. One that is missing fails the test.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;
use std::process::{Command, Output};

use mepof_profile::{Profile, ext_binary, text};

/// Runs `command` in `directory`; it must succeed.
pub fn run(directory: &Path, command: &[&str]) -> Output {
    let (program, arguments) = command.split_first().unwrap();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}; install its package"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output
}

/// What `command` prints.
pub fn printed(directory: &Path, command: &[&str]) -> String {
    String::from_utf8(run(directory, command).stdout).unwrap()
}

/// `profile` as text.
pub fn as_text(profile: &Profile) -> String {
    let mut out = Vec::new();
    text::write(profile, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// `profile` in the extensible binary form.
pub fn as_ext_binary(profile: &Profile, options: ext_binary::Options) -> Vec<u8> {
    let mut out = Vec::new();
    ext_binary::write(profile, options, &mut out).unwrap();
    out
}
