//! What converters do to a profile at the end, against `llvm-profgen` on its own program.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test throughout

mod tool;

use std::fs;

use mepof_profile::{Density, Profile, Summary, text, trim_cold};
use tempfile::TempDir;
use tool::{as_text, printed, run};

const SOURCE: &str = "\
static int sum;
__attribute__((noinline)) int alpha(int v)
{
	sum += v;
	return sum * 3;
}
__attribute__((noinline)) int rare(int v)
{
	sum -= v;
	return sum;
}
int _start(int v)
{
	v += alpha(v);
	return v + rare(v);
}
";

/// The profile that `llvm-profgen` makes of the program with `options`, and what it prints.
fn profile(directory: &TempDir, options: &[&str]) -> (Profile, String) {
    let mut command = vec!["llvm-profgen-22", "--binary=program", "--use-offset=0"];
    command.extend(["--unsymbolized-profile=branches", "--format=text", "--show-density"]);
    command.extend(options);
    command.extend(["-o", "profile"]);
    let said = printed(directory.path(), &command);
    (text::read(&fs::read(directory.path().join("profile")).unwrap()).unwrap(), said)
}

/// A program that ran `alpha` often and `rare` once.
fn program() -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    fs::write(path.join("program.c"), SOURCE).unwrap();
    let command = ["clang-22", "--target=x86_64-linux-gnu", "-O2", "-g", "-c", "program.c"];
    run(path, &[&command[..], &["-o", "program.o"]].concat());
    run(path, &["ld.lld-22", "program.o", "-o", "program"]);
    let code = printed(path, &["llvm-objdump-22", "-d", "--no-show-raw-insn", "program"]);
    // From its first instruction to its return.
    let range = |name: &str| {
        let code = code.split(&format!("<{name}>:\n")).nth(1).unwrap();
        let address = |line: &str| line.split(':').next().unwrap().trim().to_owned();
        let last = code.lines().find(|line| line.contains("ret")).unwrap();
        (address(code.lines().next().unwrap()), address(last))
    };
    let mut branches = String::from("3\n");
    for (name, count) in [("alpha", 20_000_000_000_u64), ("rare", 1), ("_start", 300_000_000)] {
        let (first, last) = range(name);
        branches.push_str(&format!("{first}-{last}:{count}\n"));
    }
    branches.push_str("0\n");
    fs::write(path.join("branches"), branches).unwrap();
    directory
}

#[test]
fn density_is_llvms() {
    let directory = program();
    for cutoff in ["990000", "500000", "999999"] {
        let option = format!("--profile-density-cutoff-hot={cutoff}");
        let (profile, said) = profile(&directory, &[&option]);
        let share_percent = cutoff.parse::<f64>().unwrap() / 10_000.0;
        let ours = Density::of(&profile, share_percent).samples_per_line;
        let expected = format!("Functions with density >= {ours:.1} account for");
        assert!(said.contains(&expected), "{said}, not {ours:.1}");
    }
}

#[test]
fn totals_are_updated_as_in_llvm() {
    let directory = program();
    let (mut ours, _) = profile(&directory, &[]);
    let (theirs, _) = profile(&directory, &["--update-total-samples"]);
    assert_ne!(ours, theirs);
    for function in ours.functions.values_mut() {
        function.update_call_counts();
        function.update_total();
    }
    assert_eq!(as_text(&ours), as_text(&theirs));
}

#[test]
fn cold_functions_are_trimmed_as_in_llvm() {
    let directory = program();
    let (mut ours, _) = profile(&directory, &[]);
    let (theirs, _) = profile(&directory, &["--trim-cold-profile"]);
    let threshold = Summary::of(&ours).cold_threshold();
    assert_eq!(trim_cold(&mut ours, threshold), 1);
    assert_eq!(as_text(&ours), as_text(&theirs));
    assert!(!theirs.functions.contains_key("rare"));
}
