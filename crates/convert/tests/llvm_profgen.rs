//! Profiles, held against those that llvm-profgen makes of the same branch stacks.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::ImageAddress;
use mepof_binary::{Binary, Flow, Instruction, instructions};
use mepof_convert::{Converted, Places, Recording, Request, autofdo};
use mepof_trace::Space;
use rustc_hash::FxHashMap;

const DEPTH: usize = 16;

fn run(command: &mut Command) {
    let output = command.output().expect("the tool is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that is removed with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("mepof-convert-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn compile(directory: &Path, flags: &[&str]) -> PathBuf {
    let output = directory.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
    let common = ["-O2", "-g", "-fdebug-info-for-profiling", "-nostdlib", "-static", "-fno-pie"];
    run(Command::new("clang-22").args(common).args(flags).arg("-o").arg(&output).arg(source));
    output
}

/// Walks through the program at random and prints the branch stacks that a CPU would record, as
/// perf script does.
fn walk(binary: &Binary, seed: u64) -> String {
    let code: FxHashMap<u64, Instruction> = binary
        .sections()
        .iter()
        .flat_map(|section| instructions(binary, section.addresses.clone()))
        .map(|(address, instruction)| (address.0, instruction))
        .collect();
    let functions: Vec<u64> =
        binary.functions().iter().map(|function| function.addresses.start.0).collect();
    let mut seed = seed;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let start = binary.symbol("_start").unwrap().0;
    let (mut address, mut calls, mut stack, mut text) =
        (start, Vec::new(), Vec::new(), String::new());
    for step in 0..200_000 {
        let Some(instruction) = code.get(&address) else { panic!("no code at {address:#x}") };
        let next = address + u64::from(instruction.size);
        let target = match instruction.flow {
            Flow::Next | Flow::System | Flow::Stop => None,
            Flow::Conditional(target) => (random(3) == 0).then_some(target.0),
            Flow::Jump(target) => Some(target.0),
            Flow::Call(ImageAddress(target)) => {
                calls.push(next);
                Some(target)
            }
            Flow::IndirectCall => {
                calls.push(next);
                Some(functions[random(functions.len())])
            }
            // Through a switch's table: somewhere in the same function.
            Flow::IndirectJump => {
                let inside = binary.function_at(ImageAddress(address)).unwrap().addresses.clone();
                let places: Vec<u64> =
                    instructions(binary, inside).map(|(address, _)| address.0).collect();
                Some(places[random(places.len())])
            }
            Flow::Return => Some(calls.pop().unwrap_or(start)),
        };
        let Some(target) = target else {
            address = next;
            continue;
        };
        stack.insert(0, (address, target));
        stack.truncate(DEPTH);
        address = target;
        if calls.len() > 40 {
            (address, calls) = (start, Vec::new());
            stack.clear();
        }
        if step % 23 == 0 && stack.len() == DEPTH {
            write!(text, " {address:x}").unwrap();
            for (from, to) in &stack {
                write!(text, " {from:#x}/{to:#x}/P/-/-/0//-").unwrap();
            }
            text.push('\n');
        }
    }
    text
}

/// Both profiles as text: llvm-profgen's, and ours with its verdict.
fn both(name: &str, flags: &[&str], places: Places) -> (String, String, Converted) {
    let directory = Directory::new(name);
    let program = compile(&directory.0, flags);
    let (script, theirs) = (directory.0.join("script"), directory.0.join("theirs"));
    fs::write(&script, walk(&Binary::open(&program).unwrap(), 1)).unwrap();
    let mut profgen = Command::new("llvm-profgen-22");
    profgen.arg("--format=text").arg("--binary").arg(&program).arg("--perfscript").arg(&script);
    run(profgen.arg("--output").arg(&theirs));
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let recording = Recording::read(&Request {
        binary: &program,
        modules: &[],
        inputs: &[script],
        format: None,
        space: Space::User,
        events: &[],
        kallsyms: None,
        cancelled: &cancelled,
        progress: &progress,
    })
    .unwrap();
    let converted = autofdo(&recording, places, true).unwrap();
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
        let (theirs, ours, converted) = both(name, flags, Places::Best);
        assert!(ours.lines().count() > 40, "{name}: hardly a profile: {ours}");
        assert_eq!(theirs, ours, "{name}");
        assert_eq!(converted.profile.flow_sensitive, name == "flow-sensitive");
    }
}

#[test]
fn profiles_by_probe_are_equal_to_the_letter() {
    let (theirs, ours, converted) = both("probes", &["-fpseudo-probe-for-profiling"], Places::Best);
    assert!(converted.profile.probe_based);
    assert_eq!(theirs, ours);
}

#[test]
fn all_of_a_walk_can_have_happened() {
    let (_, _, converted) = both("checked", &[], Places::Lines);
    let [binary] = &converted.verdict.binaries[..] else { panic!() };
    assert_eq!((binary.asynchronous_percent, binary.fused), (0.0, 0));
    assert!(binary.ranges.dropped.is_empty() && binary.branches.dropped.is_empty());
    assert!(binary.mapped_percent > 99.0, "{binary:?}");
}
