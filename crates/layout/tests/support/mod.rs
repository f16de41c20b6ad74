//! A program built by a real Clang, and a random walk through its code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mepof_address::{ImageAddress, RuntimeAddress};
use mepof_binary::{Binary, Block, BlockRange, FunctionBlocks, instructions};
use mepof_machine::Flow;
use mepof_trace::{Branch, BranchEntry, FallThrough, ImageTrace, Sample};

pub const FILES: [&str; 2] = ["main.c", "work.c"];

/// A directory for one test.
pub fn scratch(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a program that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    output
}

/// Builds the program in `tests/program` with Clang `version`; what the tools said.
pub fn build(version: u32, out: &Path, flags: &[&str]) -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program");
    let mut clang = Command::new(format!("clang-{version}"));
    clang.current_dir(sources).args(["-O2", "-g1", "-fno-jump-tables", "-no-pie"]);
    clang.args(["-fbasic-block-address-map", "-fuse-ld=lld"]).args(flags);
    clang.args(FILES).arg("-o").arg(out);
    String::from_utf8_lossy(&run(&mut clang).stderr).into_owned()
}

/// What the program prints.
pub fn checksum(program: &Path) -> String {
    String::from_utf8_lossy(&run(&mut Command::new(program)).stdout).into_owned()
}

/// The basic-block address maps as `llvm-readobj` of LLVM `version` shows them.
pub fn blocks(version: u32, binary: &Path) -> Vec<FunctionBlocks> {
    let mut readobj = Command::new(format!("llvm-readobj-{version}"));
    let text = run(readobj.arg("--bb-addr-map").arg(binary)).stdout;
    parse_readobj(&String::from_utf8_lossy(&text))
}

fn parse_readobj(text: &str) -> Vec<FunctionBlocks> {
    let mut functions: Vec<FunctionBlocks> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else { continue };
        let number = || {
            value.strip_prefix("0x").map_or_else(
                || value.parse().unwrap(),
                |digits| u64::from_str_radix(digits, 16).unwrap(),
            )
        };
        let yes = value == "Yes";
        if key == "At" {
            let address = ImageAddress(number());
            functions.push(FunctionBlocks { address, ranges: Vec::new() });
            continue;
        }
        let Some(function) = functions.last_mut() else { continue };
        if key == "Base Address" {
            let address = ImageAddress(number());
            function.ranges.push(BlockRange { address, blocks: Vec::new() });
            continue;
        }
        let Some(range) = function.ranges.last_mut() else { continue };
        if key == "ID" {
            range.blocks.push(Block {
                id: number() as u32,
                address: range.address,
                size: 0,
                has_return: false,
                has_tail_call: false,
                is_landing_pad: false,
                can_fall_through: false,
                has_indirect_branch: false,
                call_ends: Vec::new(),
                hash: None,
            });
            continue;
        }
        let Some(block) = range.blocks.last_mut() else { continue };
        match key {
            "Offset" => block.address.0 += number(),
            "Size" => block.size = number(),
            "HasReturn" => block.has_return = yes,
            "HasTailCall" => block.has_tail_call = yes,
            "IsEHPad" => block.is_landing_pad = yes,
            "CanFallThrough" => block.can_fall_through = yes,
            "HasIndirectBranch" => block.has_indirect_branch = yes,
            _ => {}
        }
    }
    functions
}

/// What a walk leaves behind.
pub struct Walk {
    pub trace: ImageTrace,
    /// How often each instruction ran, by address.
    pub executed: BTreeMap<u64, u64>,
}

/// A walk of `steps` branches from the function at `start`, which takes conditional branches
/// with a probability that hangs on the branch alone, and returns to the start when it is done.
/// Calls out of the mapped code return at once. `stack` sees the last branches, as a branch
/// stack holds them, whenever 16 more were taken.
pub fn walk(
    binary: &Binary,
    mapped: &[FunctionBlocks],
    start: ImageAddress,
    steps: usize,
    mut stack: impl FnMut(&Sample<'_>),
) -> Walk {
    let mut code: BTreeMap<u64, (u8, Flow)> = BTreeMap::new();
    for block in mapped.iter().flat_map(|function| &function.ranges).flat_map(|r| &r.blocks) {
        let end = ImageAddress(block.address.0 + block.size);
        for (address, instruction) in instructions(binary, block.address..end) {
            code.insert(address.0, (instruction.size, instruction.flow));
        }
    }
    let mut random = 0x1234_5678_9abc_def0_u64;
    let mut branches: BTreeMap<(Option<u64>, Option<u64>), u64> = BTreeMap::new();
    let mut ranges: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut executed: BTreeMap<u64, u64> = BTreeMap::new();
    let mut calls: Vec<u64> = Vec::new();
    let mut recent: Vec<BranchEntry> = Vec::new();
    let (mut first, mut at) = (start.0, start.0);
    let mut taken = 0;
    while taken < steps {
        // Between blocks there may be padding, which belongs to none.
        let (&here, &(size, flow)) = code.range(at..).next().unwrap();
        at = here;
        *executed.entry(at).or_default() += 1;
        let next = at + u64::from(size);
        let mut to = None;
        match flow {
            Flow::Next | Flow::IndirectCall | Flow::System => {}
            Flow::Conditional(target) => {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let bias = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57; // of 128
                let bias = if bias < 24 { 0 } else { bias }; // some are never taken
                if (random >> 57) < bias {
                    to = Some(target.0);
                }
            }
            Flow::Jump(target) => to = Some(target.0),
            Flow::Call(target) => {
                calls.push(next);
                to = Some(target.0);
            }
            Flow::Return | Flow::Stop | Flow::IndirectJump => {
                to = Some(calls.pop().unwrap_or(start.0));
            }
        }
        let Some(mut target) = to else {
            at = next;
            continue;
        };
        let mut source = at;
        *ranges.entry((first, source)).or_default() += 1;
        if !code.contains_key(&target) || calls.len() > 64 {
            // Somewhere else, which comes back at once.
            *branches.entry((Some(source), Some(target))).or_default() += 1;
            recent.push(entry(source, target));
            source = 1;
            target = calls.pop().unwrap_or(start.0);
            *branches.entry((None, Some(target))).or_default() += 1;
        } else {
            *branches.entry((Some(source), Some(target))).or_default() += 1;
        }
        recent.push(entry(source, target));
        if recent.len() >= 32 {
            let newest_first: Vec<BranchEntry> = recent.iter().rev().copied().collect();
            let branches = &newest_first[..];
            stack(&Sample { time: None, address: None, branches, consecutive: true, count: 1 });
            recent.drain(..16);
        }
        (first, at) = (target, target);
        taken += 1;
    }
    let address = |address: u64| ImageAddress(address);
    let trace = ImageTrace {
        branches: branches
            .into_iter()
            .map(|((from, to), count)| Branch {
                from: from.map(address),
                to: to.map(address),
                count,
                single: 0,
            })
            .collect(),
        ranges: ranges
            .into_iter()
            .map(|((first, last), count)| FallThrough {
                first: address(first),
                last: address(last),
                count,
            })
            .collect(),
        ..ImageTrace::default()
    };
    Walk { trace, executed }
}

fn entry(from: u64, to: u64) -> BranchEntry {
    let (from, to) = (RuntimeAddress(from), RuntimeAddress(to));
    BranchEntry { from, to, ..BranchEntry::default() }
}
