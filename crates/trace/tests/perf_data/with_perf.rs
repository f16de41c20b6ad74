//! perf itself, where it is installed: it reads what is written, and what it writes is read.

use std::process::Command;

use mepof_trace::output::perf_data::Compression;
use mepof_trace::{BranchEntry, Cause};

use crate::recordings::*;

/// Whether perf is installed. Where `tools/setup` has just installed what tests need, it must be.
pub(crate) fn has_perf() -> bool {
    let there =
        Command::new("perf").arg("--version").output().is_ok_and(|run| run.status.success());
    if !there {
        assert!(
            std::env::var_os("MEPOF_SETUP_TESTS").is_none(),
            "perf is not installed, though MEPOF_SETUP_TESTS is set: run tools/setup"
        );
        eprintln!("skipped: perf is not installed");
    }
    there
}

#[test]
fn perf_script_prints_the_stacks_that_were_written() {
    if !has_perf() {
        return;
    }
    let stack = [
        entry(TEXT + 0x30, TEXT + 0x50),
        BranchEntry { mispredicted: Some(true), ..entry(TEXT + 0x10, TEXT + 0x18) },
    ];
    // Releases of perf differ in what follows the cycles.
    let expected = [
        format!("{:#x}/{:#x}/P/-/-/0", TEXT + 0x30, TEXT + 0x50),
        format!("{:#x}/{:#x}/M/-/-/0", TEXT + 0x10, TEXT + 0x18),
    ];
    // perf of this age does not know the second form.
    for compression in [Compression::None, Compression::First] {
        let bytes = packed_file(recording(), compression, |writer| {
            (0..3000).for_each(|_| writer.sample(&sample(&stack)).unwrap());
        });
        let file = TemporaryFile::new(&bytes);
        let run = Command::new("perf")
            .args(["script", "-F", "ip,brstack", "-i"])
            .arg(&file.0)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{errors}");
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|words: &Vec<&str>| !words.is_empty())
            .collect();
        assert_eq!(lines.len(), 3000, "{errors}");
        for words in lines {
            assert_eq!(words[0], format!("{:x}", TEXT + 0x50));
            assert_eq!(words.len(), 3);
            for (word, expected) in words[1..].iter().zip(&expected) {
                assert!(word.starts_with(expected), "{word}, not {expected}");
            }
        }
    }
}

#[test]
fn perf_report_believes_the_header() {
    if !has_perf() {
        return;
    }
    let file = TemporaryFile::new(&file(recording(), |writer| {
        writer.sample(&sample(&[entry(TEXT + 0x30, TEXT + 0x50)])).unwrap();
    }));
    let run =
        Command::new("perf").args(["report", "--header-only", "-i"]).arg(&file.0).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    for line in [
        "os release : 6.12.1-test",
        "arch : x86_64",
        "cpudesc : Intel(R) Xeon(R) Test",
        "cpuid : GenuineIntel,6,143,8",
        "event : name = cycles:k",
        "branches=32",
        "contains samples with branch stack",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let run = Command::new("perf").args(["buildid-list", "-i"]).arg(&file.0).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains(&format!("{} [kernel.kallsyms]", build_id(0xab))), "{text}");
}

#[test]
fn a_recording_without_branch_stacks_is_read_and_diagnosed() {
    if !has_perf() {
        return;
    }
    for more in [&[][..], &["-z"][..], &["-e", "task-clock"][..]] {
        let file = TemporaryFile::new(&[]);
        let run = Command::new("perf")
            .args(["record", "-q", "-F", "1000", "-e", "cpu-clock"])
            .args(more)
            .arg("-o")
            .arg(&file.0)
            .args(["--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
            .output()
            .unwrap();
        if !run.status.success() {
            eprintln!("skipped: perf record is not allowed here");
            return;
        }
        let bytes = std::fs::read(&file.0).unwrap();
        let (facts, aggregate) = read(&bytes);
        assert!(aggregate.is_empty());
        assert!(facts.events.iter().any(|event| event.name.starts_with("cpu-clock")));
        assert!(!facts.has_kernel_branches());
        assert!(facts.samples.dropped_for(Cause::NoBranches) > 20, "{:?}", facts.samples);
        assert_eq!(facts.samples.read(), facts.samples.dropped_for(Cause::NoBranches));
        assert!(facts.kernel_release.is_some() && facts.machine.is_some());
    }
}
