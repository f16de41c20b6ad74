//! Compilers take our profiles and act on them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test throughout

mod tool;

use std::fs;
use std::path::Path;

use mepof_profile::{Profile, ext_binary, gcov, read, text};
use tempfile::TempDir;
use tool::{as_ext_binary, as_text, printed, run};

/// A loop whose first branch is nearly always taken, and an indirect call.
const SOURCE: &str = "\
extern int sink(int);
extern int cold_path(int);
static int (*volatile pick)(int);
int helper(int x)
{
	return sink(x) + 1;
}
int work(int n)
{
	int total = 0;
	for (int i = 0; i < n; i++) {
		if (i & 7)
			total += helper(i);
		else
			total += cold_path(i);
	}
	total += pick(total);
	return total;
}
";

const PROFILE: &str = "\
work:20000:20
 2: 20
 3: 1000
 4: 1000
 5: 990 helper:990
 7: 10 cold_path:10
 9: 20 helper:18 sink:2
 10: 20
helper:990:990
 2: 990 sink:990
";

fn source() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("hot.c"), SOURCE).unwrap();
    directory
}

/// The metadata that a profile leaves in the code that `clang` makes of the source.
fn weights(clang: &str, directory: &Path, profile: &[u8], more: &[&str]) -> Vec<String> {
    fs::write(directory.join("profile"), profile).unwrap();
    let mut command = vec![clang, "-O2", "-g", "-fprofile-sample-use=profile"];
    command.extend(more);
    command.extend(["-S", "-emit-llvm", "hot.c", "-o", "-"]);
    let code = printed(directory, &command);
    let marks = ["!\"function_entry_count\"", "!\"branch_weights\"", "!\"VP\""];
    let values = code.lines().filter(|line| marks.iter().any(|mark| line.contains(mark)));
    values.filter_map(|line| Some(line.split_once(" = ")?.1.to_owned())).collect()
}

fn has(weights: &[String], value: &str) {
    assert!(weights.iter().any(|line| line.contains(value)), "no {value} in {weights:#?}");
}

#[test]
fn clang_weighs_branches_by_every_form() {
    let directory = source();
    let profile = text::read(PROFILE.as_bytes()).unwrap();
    for (clang, entry, taken) in
        [("clang-22", "i64 20}", "i32 10, i32 990}"), ("clang-19", "i64 21}", "i32 11, i32 991}")]
    {
        let by_text = weights(clang, directory.path(), as_text(&profile).as_bytes(), &[]);
        has(&by_text, &format!("!\"function_entry_count\", {entry}"));
        has(&by_text, &format!("!\"branch_weights\", {taken}"));
        has(&by_text, "!\"branch_weights\", i32 18, i32 2}");
        for (md5_names, compress) in [(false, false), (true, false), (false, true)] {
            let options = ext_binary::Options { md5_names, compress, ..Default::default() };
            let binary = as_ext_binary(&profile, options);
            assert_eq!(weights(clang, directory.path(), &binary, &[]), by_text, "{options:?}");
        }
    }
}

#[test]
fn clang_takes_functions_of_the_symbol_list_without_samples_as_cold() {
    let directory = source();
    // A function that the profile names anywhere counts as hot to a degree.
    let mut profile = text::read(b"work:90:20\n 2: 20\n 3: 50\n 10: 20\n").unwrap();
    let unlisted = as_ext_binary(&profile, Default::default());
    let entries = |weights: Vec<String>| {
        weights.into_iter().filter(|line| line.contains("entry_count")).collect::<Vec<_>>()
    };
    // -1 stands for unknown, 0 for cold.
    let before = entries(weights("clang-22", directory.path(), &unlisted, &[]));
    assert!(before.iter().any(|line| line.contains("i64 -1")), "{before:?}");
    profile.symbols = ["helper".into(), "work".into()].into();
    for compress_symbols in [false, true] {
        let options = ext_binary::Options { compress_symbols, ..Default::default() };
        let listed = as_ext_binary(&profile, options);
        let after = entries(weights("clang-22", directory.path(), &listed, &[]));
        assert!(after.iter().any(|line| line.contains("i64 0}")), "{after:?}");
    }
}

#[test]
fn clang_matches_probes_by_their_checksums() {
    let directory = source();
    let probes = "-fpseudo-probe-for-profiling";
    let command = ["clang-22", "-O2", "-g", probes, "-S", "-emit-llvm", "hot.c", "-o", "-"];
    let code = printed(directory.path(), &command);
    // `!{i64 GUID, i64 CHECKSUM, !"name"}` of `llvm.pseudo_probe_desc`.
    let checksum = |name: &str| {
        let end = format!(", !\"{name}\"}}");
        let line = code.lines().find(|line| line.contains("= !{i64 ") && line.ends_with(&end));
        let numbers = line.unwrap().trim_end_matches(&end);
        numbers.rsplit("i64 ").next().unwrap().parse::<i64>().unwrap() as u64
    };
    let profile = |difference| {
        let (work, helper) = (checksum("work") + difference, checksum("helper") + difference);
        format!(
            "work:4000:20\n 1: 20\n 2: 1020\n 3: 20\n 4: 1000\n 5: 990\n 6: 10\n \
             !CFGChecksum: {work}\nhelper:990:990\n 1: 990\n !CFGChecksum: {helper}\n"
        )
    };
    let of = |text: String| {
        let profile = text::read(text.as_bytes()).unwrap();
        assert!(profile.probe_based);
        let binary = as_ext_binary(&profile, Default::default());
        // Otherwise Clang guesses what belongs where in a function that has changed.
        let flags = [probes, "-mllvm", "-salvage-stale-profile=0"];
        weights("clang-22", directory.path(), &binary, &flags)
    };
    let matching = of(profile(0));
    has(&matching, "!\"function_entry_count\", i64 20}");
    let stale = of(profile(1));
    assert_ne!(stale, matching, "a checksum that differs changes nothing");
}

#[test]
fn gcc_counts_blocks_and_promotes_calls_by_our_data() {
    let directory = source();
    let profile = text::read(PROFILE.as_bytes()).unwrap();
    let mut data = Vec::new();
    gcov::write(&profile, gcov::Version::Gcc12, &mut data).unwrap();
    fs::write(directory.path().join("hot.afdo"), &data).unwrap();
    let mut command = vec!["gcc", "-O2", "-g", "-fauto-profile=hot.afdo", "-c", "hot.c"];
    command.extend([
        "-o",
        "hot.o",
        "-fdump-ipa-afdo-all=afdo",
        "-fdump-tree-optimized-blocks-details=ssa",
    ]);
    run(directory.path(), &command);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let (promotion, blocks) = (read("afdo"), read("ssa"));
    assert!(promotion.contains("Indirect call -> direct call"), "{promotion}");
    assert!(promotion.contains("hist->count 18 hist->all 20"), "{promotion}");
    for count in [1000, 990, 10] {
        // GCC 14 adds the frequency.
        let forms = [")", ", freq "].map(|end| format!("count {count} (auto FDO{end}"));
        assert!(forms.iter().any(|form| blocks.contains(form)), "no {count} in {blocks}");
    }
}

#[test]
fn llvm_reads_our_gcov_data_as_we_do() {
    let directory = source();
    let nested = "work:0:20\n 1: 20\n 2.3: 5 a:2 b:3\n 4: helper:0\n  1: 7\n  2: leaf:0\n   9: 4\n";
    let profile = text::read(nested.as_bytes()).unwrap();
    let mut data = Vec::new();
    gcov::write(&profile, gcov::Version::Gcc5, &mut data).unwrap();
    // LLVM takes only the version that create_gcov writes by default; its layout is that of 1.
    data[4..8].copy_from_slice(b"*704");
    fs::write(directory.path().join("data"), &data).unwrap();
    run(
        directory.path(),
        &["llvm-profdata-22", "merge", "--sample", "--text", "data", "-o", "theirs"],
    );
    let theirs = fs::read_to_string(directory.path().join("theirs")).unwrap();
    let ours: Profile = read(&data).unwrap().0;
    assert_eq!(as_text(&ours), theirs);
}
