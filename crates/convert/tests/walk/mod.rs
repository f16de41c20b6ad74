//! A compiled program, and a random walk through it: what a CPU would record of a run.

// Outside of functions that are tests, Clippy does not see that this is one. Each test uses its
// own part of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(dead_code)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::ImageAddress;
use mepof_binary::{Binary, instructions};
use mepof_convert::{BranchTrace, ConvertError, Request};
use mepof_machine::{Flow, Instruction};
use mepof_trace::Space;
use rustc_hash::FxHashMap;

pub const DEPTH: usize = 16;

pub fn run(command: &mut Command) {
    let output = command.output().expect("the tool is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that is removed with the test.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
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

pub fn compile(directory: &Path, flags: &[&str]) -> PathBuf {
    let output = directory.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
    let common = ["-O2", "-g", "-fdebug-info-for-profiling", "-nostdlib", "-static", "-fno-pie"];
    run(Command::new("clang-22").args(common).args(flags).arg("-o").arg(&output).arg(source));
    output
}

/// Taken branches, the newest first.
pub type Stack = Vec<(u64, u64)>;

/// Branch stacks as perf script prints them.
pub fn perf_script(stacks: &[Stack]) -> String {
    let mut text = String::new();
    for stack in stacks {
        write!(text, " {:x}", stack.first().map_or(0, |(_, to)| *to)).unwrap();
        for (from, to) in stack {
            write!(text, " {from:#x}/{to:#x}/P/-/-/0//-").unwrap();
        }
        text.push('\n');
    }
    text
}

/// Branch stacks of a program, as perf script printed them.
pub fn recording(program: &Path, input: &Path) -> BranchTrace {
    recordings(program, &[input.to_owned()])
}

/// Branch stacks of several runs of a program, as perf script printed them.
pub fn recordings(program: &Path, inputs: &[PathBuf]) -> BranchTrace {
    read(program, &[], inputs, Space::User).unwrap()
}

/// What was recorded of a binary and its modules, in any format that tells itself.
pub fn read(
    binary: &Path,
    modules: &[PathBuf],
    inputs: &[PathBuf],
    space: Space,
) -> Result<BranchTrace, ConvertError> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    BranchTrace::read(&Request {
        binary,
        modules,
        inputs,
        format: None,
        space,
        events: &[],
        kallsyms: None,
        cancelled: &cancelled,
        progress: &progress,
    })
}

/// Walks through the program at random; the branch stacks that a CPU would record.
pub fn walk(binary: &Binary, seed: u64) -> Vec<Stack> {
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
    let (mut address, mut calls, mut stack, mut stacks) =
        (start, Vec::new(), Stack::new(), Vec::new());
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
                let locations: Vec<u64> =
                    instructions(binary, inside).map(|(address, _)| address.0).collect();
                Some(locations[random(locations.len())])
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
            stacks.push(stack.clone());
        }
    }
    stacks
}
