//! Runs LLVM's tools on sources that a test brings along. A tool that is missing fails the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the directory of `test` is.
pub fn path(test: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(test)
}

/// A directory of this test's own, empty.
pub fn directory(test: &str) -> PathBuf {
    let path = path(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory for the test");
    path
}

/// Runs `tool` in `directory` and gives its standard output.
pub fn run(directory: &Path, tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{tool}: {error}; it comes with LLVM"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}
