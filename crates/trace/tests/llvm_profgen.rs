//! On the same text of perf script, our branches and ranges are those of llvm-profgen.

#![allow(clippy::unwrap_used, clippy::panic)]

mod reading;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_trace::input::{Format, Options, read};
use mepof_trace::output::unsymbolized;
use mepof_trace::{Addressing, Aggregate, Facts, ImageTrace, map_to_image};
use reading::{Collected, Inputs};

const TEXT: u64 = 0x20_0000;
const BLOCKS: u64 = 1000;

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A program of one function, of blocks of 16 bytes, each with a conditional jump at its second
/// byte: so any range from the start of a block to a later jump is a possible one.
fn program(directory: &Path) -> PathBuf {
    let source = directory.join("blocks.s");
    let mut text = ".globl _start\n.type _start, @function\n_start:\n".to_owned();
    for _ in 0..BLOCKS {
        text += "nop\nnop\n.byte 0x0f, 0x84, 8, 0, 0, 0\n.rept 8\nnop\n.endr\n";
    }
    text += "ret\n.size _start, .-_start\n";
    fs::write(&source, text).unwrap();
    let program = directory.join("blocks");
    run(Command::new("clang-22")
        .args(["-g", "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,--image-base=0x100000"])
        .arg(format!("-Wl,-Ttext={TEXT:#x}"))
        .arg("-o")
        .args([&program, &source]));
    program
}

/// Stacks of a walk through the program, which leaves it now and then.
fn script(program: &Path) -> String {
    let mut state = 3_u64;
    let mut below = |limit: u64| {
        // Knuth's MMIX generator.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit
    };
    let name = program.file_name().unwrap().to_str().unwrap();
    let mut text = format!(
        " a 1 PERF_RECORD_MMAP2 1/1: [{TEXT:#x}(0x5000) @ 0x1000 08:04 1 2]: r-xp /bin/{name}\n"
    );
    for _ in 0..5000 {
        write!(text, " {:16x} ", TEXT + below(BLOCKS) * 16).unwrap();
        let mut source_block = below(40);
        for _ in 0..32 {
            // Backwards in time: the block that the range to this source began with.
            let target_block = source_block.saturating_sub(below(4));
            let (source, target) = (TEXT + source_block * 16 + 2, TEXT + target_block * 16);
            let outside = 0x7f00_0000_1000 + below(8);
            match below(20) {
                0 => write!(text, " {source:#x}/{outside:#x}/P/-/-/0 "),
                1 => write!(text, " {outside:#x}/{target:#x}/M/-/-/3 "),
                _ => write!(text, " {source:#x}/{target:#x}/P/-/-/0 "),
            }
            .unwrap();
            source_block = target_block + below(3);
        }
        text.push('\n');
    }
    text
}

fn read_aggregate(path: &Path, format: Format) -> (Facts, Aggregate) {
    let mut found = Aggregate::default();
    let facts = Inputs { threads: 2, ..Inputs::default() }
        .with(|options: &Options<'_>| read(path, None, options, &mut found))
        .unwrap();
    // The same when it is told.
    let told = Inputs::default()
        .with(|options| read(path, Some(format), options, &mut Collected::default()))
        .unwrap();
    assert_eq!(told.samples, facts.samples);
    (facts, found)
}

fn placed(found: &Aggregate, runtime: u64, image: u64) -> ImageTrace {
    let (runtime, image) = (RuntimeAddress(runtime), ImageAddress(image));
    let mut trace = map_to_image(
        found,
        &Placement::new(vec![Region { runtime, image, size: BLOCKS * 16 + 1 }]),
        &[],
    );
    // llvm-profgen has no ranges that end before they begin.
    trace.ranges.retain(|range| range.first <= range.last);
    trace
}

fn written(trace: &ImageTrace, base: Option<ImageAddress>) -> String {
    let mut text = Vec::new();
    unsymbolized::write(trace, base, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn perf_script_gives_the_branches_and_ranges_of_llvm_profgen() {
    let directory = scratch("llvm_profgen");
    let program = program(&directory);
    let (script_path, theirs) = (directory.join("script.txt"), directory.join("theirs.txt"));
    fs::write(&script_path, script(&program)).unwrap();
    let (facts, found) = read_aggregate(&script_path, Format::PerfScript);
    assert_eq!(facts.samples.used, 5000);
    let trace = placed(&found, TEXT, TEXT);
    assert!(trace.branches.len() > 100 && trace.ranges.len() > 100);
    for (offset, base) in [(false, None), (true, Some(ImageAddress(TEXT)))] {
        run(Command::new("llvm-profgen-22")
            .arg("--skip-symbolization")
            .arg(format!("--use-offset={offset}"))
            .arg(format!("--perfscript={}", script_path.display()))
            .arg(format!("--binary={}", program.display()))
            .arg(format!("--output={}", theirs.display())));
        let ours = written(&trace, base);
        let expected = fs::read_to_string(&theirs).unwrap();
        let differing: Vec<_> =
            ours.lines().zip(expected.lines()).filter(|(one, another)| one != another).collect();
        assert!(ours == expected, "ours, theirs: {differing:?}");
        // What they wrote is read, and it reads what we write.
        let (facts, again) = read_aggregate(&theirs, Format::Unsymbolized);
        let Addressing::ImageOrTextOffset { lowest, .. } = facts.addressing else {
            panic!("{:?}", facts.addressing)
        };
        assert_eq!(lowest < TEXT, offset);
        let again = placed(&again, if offset { 0 } else { TEXT }, TEXT);
        assert_eq!((again.branches, again.ranges), (inwards(&trace), trace.ranges.clone()));
        let (text, profile) = (directory.join("ours.txt"), directory.join("profile.txt"));
        fs::write(&text, ours).unwrap();
        run(Command::new("llvm-profgen-22")
            .arg(format!("--use-offset={offset}"))
            .arg(format!("--unsymbolized-profile={}", text.display()))
            .arg(format!("--binary={}", program.display()))
            .arg("--format=text")
            .arg(format!("--output={}", profile.display())));
    }
}

/// Branches into the binary: no others are in their text.
fn inwards(trace: &ImageTrace) -> Vec<mepof_trace::Branch> {
    trace.branches.iter().copied().filter(|branch| branch.to.is_some()).collect()
}
