//! Branch lists of a walk through a compiled program, and of a kernel that had moved.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::{ImageAddress, RuntimeAddress};
use mepof_binary::{Binary, instructions};
use mepof_convert::{BranchTrace, ConvertError, Request};
use mepof_machine::{Flow, Instruction};
use mepof_trace::{Cause, Sample, Sink, Space};
use rustc_hash::FxHashMap;

const ISB: [u8; 4] = 0xd503_3fdf_u32.to_le_bytes();
const SLIDE: u64 = 0x1_2340_0000;

/// A directory that is removed with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("mepof-branch-list-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// For 64-bit Arm, with a barrier among the code, and with the symbol of a kernel.
    fn program(&self) -> PathBuf {
        let output = self.0.join("program");
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let source = self.0.join("source.c");
        let barrier = "__attribute__((noinline)) int with_barrier(int n)\n\
                       { while (n-- > 3) __asm__ volatile(\"isb\"); return n; }\n";
        let text = fs::read_to_string(tests.join("program.c")).unwrap() + barrier;
        fs::write(&source, text).unwrap();
        let mut clang = Command::new("clang-22");
        clang.args(["--target=aarch64-linux-gnu", "-O2", "-nostdlib", "-static", "-fno-pie"]);
        clang.args(["-fuse-ld=lld", "-Wl,--build-id=0xabababababababab"]);
        clang.arg("-Wl,--defsym=_stext=_start");
        let done = clang.arg("-o").arg(&output).arg(&source).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        output
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a walk did: lists of bits by first address, branches to known targets, and ranges.
#[derive(Default)]
struct Walk {
    lists: Vec<(u64, Vec<bool>)>,
    branches: FxHashMap<(u64, u64), u64>,
    ranges: FxHashMap<(u64, u64), u64>,
}

fn walk(binary: &Binary) -> Walk {
    let code: FxHashMap<u64, Instruction> = binary
        .sections()
        .iter()
        .flat_map(|section| instructions(binary, section.addresses.clone()))
        .map(|(address, instruction)| (address.0, instruction))
        .collect();
    let entries: Vec<u64> = binary.functions().iter().map(|f| f.addresses.start.0).collect();
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut done = Walk::default();
    for _ in 0..400 {
        let mut address = entries[random(entries.len())];
        let (start, mut first, mut bits) = (address, address, Vec::new());
        while bits.len() < 60 {
            let Some(instruction) = code.get(&address) else { break };
            let next = address + 4;
            let word = binary.code(ImageAddress(address)..ImageAddress(next));
            let target = match instruction.flow {
                Flow::Conditional(target) => {
                    bits.push(random(3) == 0);
                    bits.last().copied().unwrap_or_default().then_some(target.0)
                }
                Flow::Jump(target) | Flow::Call(target) => {
                    bits.push(true);
                    Some(target.0)
                }
                Flow::IndirectJump | Flow::IndirectCall | Flow::Return => {
                    bits.push(true);
                    *done.ranges.entry((first, address)).or_default() += 1;
                    first = u64::MAX;
                    break;
                }
                _ => {
                    if word == ISB {
                        bits.push(random(2) == 0);
                    }
                    None
                }
            };
            let last = bits.len() == 60;
            if target.is_some() || (last && !bits.is_empty()) {
                *done.ranges.entry((first, address)).or_default() += 1;
            }
            if let Some(target) = target {
                *done.branches.entry((address, target)).or_default() += 1;
                first = target;
            }
            address = target.unwrap_or(next);
        }
        if first == u64::MAX || bits.len() == 60 {
            done.lists.push((start, bits));
        } else {
            panic!("a walk left the code at {address:#x}");
        }
    }
    assert!(done.branches.len() > 30, "hardly a walk");
    done
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// The file, as `simpleperf inject --output branch-list` writes it; see the reader for the format.
fn file(walk: &Walk, path: &str, build_id: &str, kernel_start: Option<u64>, slide: u64) -> Vec<u8> {
    let mut binary = [bytes(1, path.as_bytes()), bytes(2, build_id.as_bytes())].concat();
    for (address, taken) in &walk.lists {
        let mut bits = vec![0_u8; taken.len().div_ceil(8)];
        for (position, _) in taken.iter().enumerate().filter(|(_, taken)| **taken) {
            bits[position / 8] |= 1 << (position % 8);
        }
        let branch = [bytes(1, &bits), number(2, taken.len() as u64), number(3, 1)].concat();
        binary.extend(bytes(3, &[number(1, address + slide), bytes(2, &branch)].concat()));
    }
    if let Some(start) = kernel_start {
        binary.extend([number(4, KERNEL), bytes(5, &number(1, start))].concat());
    }
    let message = bytes(2, &binary);
    let mut all = b"simpleperf:EtmBranchList\x01\0\0\0\0".to_vec();
    all.extend((message.len() as u32).to_le_bytes());
    all.extend(message);
    all
}

const KERNEL: u64 = 1;

fn read(program: &Path, input: PathBuf) -> Result<BranchTrace, ConvertError> {
    with_request(program, input, BranchTrace::read)
}

fn with_request<T>(program: &Path, input: PathBuf, what: impl FnOnce(&Request<'_>) -> T) -> T {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    what(&Request {
        binary: program,
        modules: &[],
        inputs: &[input],
        format: None,
        space: Space::Kernel,
        events: &[],
        kallsyms: None,
        cancelled: &cancelled,
        progress: &progress,
    })
}

#[test]
fn a_walk_is_found_again_whether_the_kernel_had_moved_or_not() {
    let directory = Directory::new("walk");
    let program = directory.program();
    let binary = Binary::open(&program).unwrap();
    let id = binary.build_id().unwrap().to_string();
    let walk = walk(&binary);
    let stext = binary.symbol("_stext").unwrap().0;
    let kernel = "[kernel.kallsyms]";
    for (name, contents) in [
        ("program", file(&walk, "/data/program", "", None, 0)),
        ("by-build-id", file(&walk, "/data/other", &id, None, 0)),
        ("moved", file(&walk, kernel, &id, Some(stext + SLIDE), SLIDE)),
        ("moved-without-id", file(&walk, kernel, "", Some(stext + SLIDE), SLIDE)),
    ] {
        let input = directory.0.join(format!("list-{name}"));
        fs::write(&input, contents).unwrap();
        let found = read(&program, input).unwrap_or_else(|error| panic!("{name}: {error}"));
        let trace = &found.images[0].trace;
        let branch = |branch: &mepof_trace::Branch| {
            ((branch.from.unwrap().0, branch.to.unwrap().0), branch.count)
        };
        let branches: FxHashMap<_, _> = trace.branches.iter().map(branch).collect();
        assert_eq!(branches, walk.branches, "{name}");
        let range = |range: &mepof_trace::FallThrough| ((range.first.0, range.last.0), range.count);
        let ranges: FxHashMap<_, _> = trace.ranges.iter().map(range).collect();
        assert_eq!(ranges, walk.ranges, "{name}");
        let samples = &found.inputs[0].facts.samples;
        assert_eq!((samples.used, samples.dropped_for(Cause::OutsideBinary)), (400, 0));
    }
}

/// The branches of stacks, and how many stacks they came in.
#[derive(Default)]
struct Stacks {
    count: usize,
    branches: FxHashMap<(u64, u64), u64>,
}

impl Sink for Stacks {
    fn sample(&mut self, sample: &Sample<'_>) {
        assert!(sample.consecutive);
        self.count += 1;
        for entry in sample.branches {
            *self.branches.entry((entry.from.0, entry.to.0)).or_default() += sample.count;
        }
    }

    fn branch(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {
        panic!("a branch by itself");
    }

    fn range(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {}

    fn fork(&self) -> Self {
        Self::default()
    }

    fn merge(&mut self, _: Self) {}
}

#[test]
fn a_list_is_a_stack_when_it_is_read_again() {
    let directory = Directory::new("again");
    let program = directory.program();
    let walk = walk(&Binary::open(&program).unwrap());
    let input = directory.0.join("list");
    fs::write(&input, file(&walk, "/data/program", "", None, 0)).unwrap();
    let stacks = with_request(&program, input, |request| {
        let trace = BranchTrace::read(request).unwrap();
        let mut stacks = Stacks::default();
        trace.feed(request, &trace.inputs[0], 0, &mut stacks).unwrap();
        stacks
    });
    assert_eq!(stacks.branches, walk.branches);
    assert!(stacks.count <= walk.lists.len(), "{}", stacks.count);
}

#[test]
fn a_list_of_another_build_is_refused() {
    let directory = Directory::new("other");
    let program = directory.program();
    let walk = walk(&Binary::open(&program).unwrap());
    let input = directory.0.join("list");
    fs::write(&input, file(&walk, "[kernel.kallsyms]", "cdcdcdcd", Some(0), 0)).unwrap();
    let error = read(&program, input).unwrap_err().to_string();
    assert!(error.contains("cdcdcdcd") && error.contains("the exact build"), "{error}");
}
