//! Everything against `llvm-profdata`, of the newest and the oldest LLVM that kernels are built
//! with here.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test throughout

mod generate;
mod tool;

use std::fs;
use std::path::Path;

use generate::{Kind, profiles};
use mepof_profile::{Format, LineLocation, Merger, Profile, ext_binary, guid, read, text};
use tempfile::TempDir;
use tool::{as_ext_binary, as_text, printed, run};

const NEW: &str = "llvm-profdata-22";
const OLD: &str = "llvm-profdata-19";
const KINDS: [Kind; 3] = [Kind::Lines, Kind::Probes, Kind::Preinlined];

/// Converts `input` by `tool`, with `options`.
fn convert(tool: &str, directory: &Path, input: &str, options: &[&str]) -> Vec<u8> {
    let mut command = vec![tool, "merge", "--sample", input, "-o", "converted"];
    command.extend(options);
    run(directory, &command);
    fs::read(directory.join("converted")).unwrap()
}

fn as_llvm_text(tool: &str, directory: &Path, input: &str) -> String {
    String::from_utf8(convert(tool, directory, input, &["--text"])).unwrap()
}

/// Profiles that are not empty, which the tools do not take.
fn some(kind: Kind, count: usize) -> Vec<Profile> {
    profiles(kind, count).into_iter().filter(|profile| !profile.functions.is_empty()).collect()
}

#[test]
fn our_text_is_what_llvm_writes_for_it() {
    let directory = TempDir::new().unwrap();
    for profile in KINDS.into_iter().flat_map(|kind| some(kind, 12)) {
        let ours = as_text(&profile);
        fs::write(directory.path().join("ours"), &ours).unwrap();
        assert_eq!(as_llvm_text(NEW, directory.path(), "ours"), ours);
        assert_eq!(text::read(ours.as_bytes()).unwrap(), profile);
    }
}

#[test]
fn both_llvms_read_our_extensible_binary() {
    let directory = TempDir::new().unwrap();
    for profile in KINDS.into_iter().flat_map(|kind| some(kind, 8)) {
        for compress in [false, true] {
            let options = ext_binary::Options { compress, ..Default::default() };
            let ours = as_ext_binary(&profile, options);
            assert_eq!(ext_binary::read(&ours).unwrap(), profile);
            fs::write(directory.path().join("ours"), ours).unwrap();
            for tool in [NEW, OLD] {
                assert_eq!(as_llvm_text(tool, directory.path(), "ours"), as_text(&profile));
            }
        }
    }
}

#[test]
fn our_extensible_binary_is_llvms_to_the_byte() {
    let directory = TempDir::new().unwrap();
    for mut profile in some(Kind::Lines, 12) {
        profile.symbols = ["zeta", "alpha", "main"].map(Into::into).to_vec();
        fs::write(directory.path().join("ours"), as_text(&profile)).unwrap();
        fs::write(directory.path().join("symbols"), "zeta\nalpha\nmain\n").unwrap();
        for (md5_names, partial) in [(false, false), (true, false), (false, true)] {
            let mut flags = vec!["--extbinary", "--prof-sym-list=symbols"];
            flags.extend(md5_names.then_some("--use-md5"));
            flags.extend(partial.then_some("--gen-partial-profile"));
            let options = ext_binary::Options { md5_names, ..Default::default() };
            let ours = as_ext_binary(&Profile { partial, ..profile.clone() }, options);
            assert_eq!(ours, convert(NEW, directory.path(), "ours", &flags), "{flags:?}");
        }
    }
}

#[test]
fn every_binary_form_of_llvm_is_read() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("symbols"), "one\ntwo\n").unwrap();
    let forms: [&[&str]; 7] = [
        &["--extbinary"],
        &["--extbinary", "--use-md5"],
        &["--extbinary", "--compress-all-sections"],
        &["--extbinary", "--compress-all-sections", "--use-md5", "--prof-sym-list=symbols"],
        &["--extbinary", "--gen-partial-profile"],
        &["--extbinary", "--split-layout"],
        &["--extbinary", "--prof-sym-list=symbols"],
    ];
    for profile in KINDS.into_iter().flat_map(|kind| some(kind, 4)) {
        fs::write(directory.path().join("ours"), as_text(&profile)).unwrap();
        for (tool, flags) in [NEW, OLD].into_iter().flat_map(|tool| forms.map(|f| (tool, f))) {
            if tool == OLD && flags.contains(&"--split-layout") {
                continue;
            }
            let theirs = convert(tool, directory.path(), "ours", flags);
            let (read, format) = read(&theirs).unwrap();
            assert_eq!(format, Format::ExtBinary);
            assert_eq!(read.partial, flags.contains(&"--gen-partial-profile"));
            assert_eq!(read.md5_names, flags.contains(&"--use-md5"));
            let symbols: Vec<&str> = read.symbols.iter().map(AsRef::as_ref).collect();
            let with_symbols = flags.contains(&"--prof-sym-list=symbols");
            assert_eq!(symbols, if with_symbols { vec!["one", "two"] } else { vec![] });
            fs::write(directory.path().join("theirs"), theirs).unwrap();
            assert_eq!(as_text(&read), as_llvm_text(tool, directory.path(), "theirs"));
        }
        if !profile.probe_based {
            let theirs = convert(NEW, directory.path(), "ours", &["--binary"]);
            assert_eq!(read(&theirs).unwrap(), (profile, Format::Binary));
        }
    }
}

#[test]
fn virtual_tables_are_left_out() {
    let directory = TempDir::new().unwrap();
    let (before, tables, after) =
        ("main:9:0\n 4: 5\n", " 10: vtables _ZTV1a:14 _ZTV1b:6\n", " 10: f:4\n  1: 4\n");
    let with_tables = format!("{before}{tables}{after}");
    let without = text::read(format!("{before}{after}").as_bytes()).unwrap();
    assert_eq!(text::read(with_tables.as_bytes()).unwrap(), without);
    fs::write(directory.path().join("ours"), with_tables).unwrap();
    let flags = ["--extbinary", "--extbinary-write-vtable-type-prof"];
    let theirs = convert(NEW, directory.path(), "ours", &flags);
    assert_eq!(ext_binary::read(&theirs).unwrap(), without);
}

#[test]
fn context_sensitive_profiles_are_named() {
    let directory = TempDir::new().unwrap();
    let contexts = "[main]:5:1\n 1: 5\n[main:1 @ f]:4:1\n 1: 4\n";
    let error = text::read(contexts.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("context-sensitive"), "{error}");
    fs::write(directory.path().join("ours"), contexts).unwrap();
    let theirs = convert(NEW, directory.path(), "ours", &["--extbinary"]);
    let error = ext_binary::read(&theirs).unwrap_err().to_string();
    assert!(error.contains("--convert-sample-profile-layout=nest"), "{error}");
}

#[test]
fn hashed_names_stay_hashes() {
    let profile = text::read(b"main:9:1\n 1: 9 f:4\n 2: f:3\n  1: 3\n").unwrap();
    let options = ext_binary::Options { md5_names: true, ..Default::default() };
    let hashed = ext_binary::read(&as_ext_binary(&profile, options)).unwrap();
    let main = guid("main").to_string();
    let names: Vec<&str> = hashed.functions.keys().map(AsRef::as_ref).collect();
    assert_eq!(names, [main.as_str()]);
    let again = ext_binary::read(&as_ext_binary(&hashed, Default::default())).unwrap();
    assert_eq!(again, hashed);
}

#[test]
fn flow_sensitive_discriminators_are_flagged() {
    let directory = TempDir::new().unwrap();
    let mut profile = text::read(b"main:9:1\n 1.513: 9\n").unwrap();
    profile.flow_sensitive = true;
    let ours = as_ext_binary(&profile, Default::default());
    assert_eq!(ext_binary::read(&ours).unwrap(), profile);
    fs::write(directory.path().join("ours"), ours).unwrap();
    for tool in [NEW, OLD] {
        let command = [tool, "show", "--sample", "--show-sec-info-only", "ours"];
        assert!(printed(directory.path(), &command).contains("{fs-discriminator}"));
    }
}

#[test]
fn merges_are_llvms_to_the_letter() {
    let directory = TempDir::new().unwrap();
    for kind in KINDS {
        for inputs in some(kind, 12).chunks(3) {
            let mut merger = Merger::new();
            let mut command: Vec<String> =
                [NEW, "merge", "--sample", "--text", "-o", "merged"].map(str::to_owned).into();
            for (index, profile) in inputs.iter().enumerate() {
                let weight = [1, 7, 1_u64 << 18][index];
                let name = format!("input{index}");
                fs::write(directory.path().join(&name), as_text(profile)).unwrap();
                command.push(format!("--weighted-input={weight},{name}"));
                merger.add(profile, &name, None, weight).unwrap();
            }
            run(directory.path(), &command.iter().map(String::as_str).collect::<Vec<_>>());
            let theirs = fs::read_to_string(directory.path().join("merged")).unwrap();
            let merged = merger.finish();
            assert_eq!(as_text(&merged.profile), theirs);
            if kind == Kind::Lines {
                assert!(!merged.saturated.is_empty(), "the generator no longer overflows");
            } else {
                assert!(!merged.conflicts.is_empty(), "the generator no longer conflicts");
            }
        }
    }
}

#[test]
fn files_are_added_as_their_profiles_are() {
    for kind in KINDS {
        for inputs in some(kind, 24).chunks(6) {
            let (mut whole, mut of_files) = (Merger::new(), Merger::new());
            for (index, profile) in inputs.iter().enumerate() {
                let weight = [1, 7, 1_u64 << 18][index % 3];
                let name = format!("input{index}");
                // Text among the binaries: the sum changes its form on the way.
                let file = if index == 3 {
                    as_text(profile).into_bytes()
                } else {
                    as_ext_binary(profile, Default::default())
                };
                whole.add(&read(&file).unwrap().0, &name, None, weight).unwrap();
                of_files = of_files.add_file(&file, &name, None, weight).unwrap();
            }
            let (ours, wanted) = (of_files.finish(), whole.finish());
            assert_eq!(ours.profile, wanted.profile);
            assert_eq!(ours.provenance, wanted.provenance);
            assert_eq!(ours.conflicts, wanted.conflicts);
            assert_eq!(ours.saturated.is_empty(), wanted.saturated.is_empty());
        }
    }
}

#[test]
fn comparisons_are_llvms() {
    let directory = TempDir::new().unwrap();
    let mut compared = 0;
    for kind in KINDS {
        for pair in some(kind, 24).chunks_exact(2) {
            let [base, test] = pair else { unreachable!() };
            // As another run of the same program: something of the base, something of its own.
            let mut merger = Merger::new();
            merger.add(base, "base", None, 3).unwrap();
            merger.add(test, "test", None, 1).unwrap();
            let test = &merger.finish().profile;
            fs::write(directory.path().join("base"), as_text(base)).unwrap();
            fs::write(directory.path().join("test"), as_text(test)).unwrap();
            let command = [NEW, "overlap", "--sample", "base", "test"];
            let theirs = printed(directory.path(), &command);
            let ours = match mepof_profile::compare(base, test, 0) {
                Ok(comparison) => as_llvm_prints(&comparison),
                Err(error) => {
                    assert!(theirs.contains("is 0."), "{error}, but {theirs}");
                    continue;
                }
            };
            let theirs: Vec<_> = theirs.lines().skip(2).map(str::trim).collect();
            assert_eq!(ours.lines().collect::<Vec<_>>(), theirs);
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} pairs could be compared");
}

fn as_llvm_prints(c: &mepof_profile::Comparison) -> String {
    let percent = |share: f64| format!("{:.3}%", share * 100.0);
    format!(
        "Whole program profile similarity: {}\nWhole program sample overlap: {}\n\
         percentage of samples unique in base profile: {}\n\
         percentage of samples unique in test profile: {}\n\
         total samples in base profile: {}\ntotal samples in test profile: {}\n\
         Function overlap: {}\noverlap functions: {}\n\
         functions unique in base profile: {}\nfunctions unique in test profile: {}\n\
         Hot-function overlap: {}\noverlap hot functions: {}\n\
         hot functions unique in base profile: {}\nhot functions unique in test profile: {}\n\
         Hot-block overlap: {}\noverlap hot blocks: {}\n\
         hot blocks unique in base profile: {}\nhot blocks unique in test profile: {}\n",
        percent(c.similarity),
        percent(c.sample_overlap),
        percent(c.base_unique_share),
        percent(c.test_unique_share),
        c.base_samples,
        c.test_samples,
        percent(c.functions.overlap),
        c.functions.common,
        c.functions.base_only,
        c.functions.test_only,
        percent(c.hot_functions.overlap),
        c.hot_functions.common,
        c.hot_functions.base_only,
        c.hot_functions.test_only,
        percent(c.hot_lines.overlap),
        c.hot_lines.common,
        c.hot_lines.base_only,
        c.hot_lines.test_only,
    )
}

#[test]
fn lines_above_the_declaration_read_back() {
    let directory = TempDir::new().unwrap();
    let location = LineLocation::from_lines(90, 100, 2);
    assert_eq!(location, LineLocation::new(65526, 2));
    let mut profile = Profile::default();
    profile.function_mut(&"f".into()).add_line(location, 5);
    fs::write(directory.path().join("ours"), as_text(&profile)).unwrap();
    assert_eq!(as_llvm_text(NEW, directory.path(), "ours"), "f:0:0\n 65526.2: 5\n");
    profile.function_mut(&"f".into()).add_line(LineLocation::new(65536, 1), 5);
    assert!(text::write(&profile, &mut Vec::new()).is_err());
}
