//! Writes perf-script text with branch stacks, as much as asked for, for benchmarks and tests
//! that need more than a recording gives:
//!
//! ```text
//! walk_kernel VMLINUX MIB SEED [SLIDE] > FILE
//! ```
//!
//! The text is what `perf script --show-mmap-events -F ip,brstack` prints (Linux 6.12,
//! tools/perf/builtin-script.c): a line for the kernel's mapping, and a line of 32 entries per
//! sample, the newest first. Same kernel, size, seed and slide: same bytes.
//!
//! The branches come from a random walk over the disassembled `.text`. It goes where the code
//! can go: a call comes back, each conditional branch has its own bias, an indirect call goes
//! to a few functions. Some functions are hot (Zipf), as in a real load. `SLIDE` is added to
//! every address, as KASLR does.

#![allow(clippy::indexing_slicing, clippy::expect_used, reason = "it makes test data")]

use std::collections::{HashMap, VecDeque};
use std::env;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::{Command, ExitCode, Stdio};

const DEPTH: usize = 32;
/// Branches from one sample to the next, on average.
const PERIOD: u64 = 150;
/// Functions that indirect calls and the load's beginnings lead to.
const HOT: usize = 1500;
/// A walk that is longer, or deeper, is given up: it may never end.
const MAX_STEPS: u32 = 20_000;
const MAX_DEPTH: usize = 48;
/// From this depth of calls on, and below, the walk takes the shortest way to a return.
const HURRIED: u64 = 20;
/// No way leads to a return.
const NEVER: u32 = 1 << 24;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Conditional,
    Jump,
    Call,
    IndirectCall,
    IndirectJump,
    Return,
    /// Control ends here: a trap, or a return from the kernel.
    Dead,
}

#[derive(Clone, Copy)]
struct Instruction {
    address: u64,
    kind: Kind,
    /// Of a direct branch: index of the instruction that it leads to.
    target: u32,
    /// Index of the first instruction from here on that is not plain.
    transfer: u32,
    /// Branches that are executed from here to the function's return, at least.
    way_out: u32,
}

struct Code {
    instructions: Vec<Instruction>,
    functions: Vec<u32>,
    first: u64,
    size: u64,
}

fn target_of(operands: &str) -> Option<u64> {
    let digits = operands.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

/// What an instruction does, from its text in AT&T syntax, and where a direct branch leads.
fn classify(mnemonic: &str, operands: &str) -> (Kind, Option<u64>) {
    let direct = target_of(operands);
    // Retpolines: at run time these are an indirect call or jump, and a return.
    let thunk = operands.contains("<__x86_indirect_thunk_");
    let kind = match mnemonic {
        "callq" | "call" if thunk || direct.is_none() => Kind::IndirectCall,
        "callq" | "call" => Kind::Call,
        "jmp" | "jmpq" if operands.contains("<__x86_return_thunk>") => Kind::Return,
        "jmp" | "jmpq" if thunk || direct.is_none() => Kind::IndirectJump,
        "jmp" | "jmpq" => Kind::Jump,
        "retq" | "ret" => Kind::Return,
        "int3" | "ud2" | "ud1l" | "hlt" | "iretq" | "sysretq" | "sysretl" | "ljmpl" | "lretq" => {
            Kind::Dead
        }
        _ if mnemonic.starts_with('j') => Kind::Conditional,
        _ => Kind::Plain,
    };
    (kind, direct)
}

fn disassemble(vmlinux: &str) -> io::Result<Code> {
    let tool = env::var("LLVM_OBJDUMP").unwrap_or_else(|_| "llvm-objdump-22".to_owned());
    let mut child = Command::new(tool)
        .args(["-d", "--no-show-raw-insn", "-j", ".text", vmlinux])
        .stdout(Stdio::piped())
        .spawn()?;
    let listing = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut instructions: Vec<Instruction> = Vec::new();
    let mut targets: Vec<Option<u64>> = Vec::new();
    let mut functions = Vec::new();
    let mut is_thunk = false;
    for line in listing.lines() {
        let line = line?;
        if line.ends_with(">:") {
            is_thunk = line.contains("_thunk");
            if !is_thunk {
                functions.push(instructions.len() as u32);
            }
            continue;
        }
        let mut fields = line.splitn(3, '\t');
        let Some(address) = fields
            .next()
            .and_then(|field| u64::from_str_radix(field.trim().trim_end_matches(':'), 16).ok())
        else {
            continue;
        };
        let mnemonic = fields.next().unwrap_or_default().trim();
        // `rep retq`, `lock cmpxchg`, `cs callq`: the prefix is a word before it.
        let mnemonic = mnemonic.rsplit(' ').next().unwrap_or_default();
        let (kind, target) = classify(mnemonic, fields.next().unwrap_or_default());
        let kind = if is_thunk { Kind::Dead } else { kind };
        instructions.push(Instruction {
            address,
            kind,
            target: u32::MAX,
            transfer: u32::MAX,
            way_out: NEVER,
        });
        targets.push(target);
    }
    if !child.wait()?.success() || instructions.is_empty() {
        return Err(io::Error::other(format!("{vmlinux} cannot be disassembled")));
    }
    let at: HashMap<u64, u32> = instructions
        .iter()
        .zip(0..)
        .map(|(instruction, index)| (instruction.address, index))
        .collect();
    let mut transfer = instructions.len() as u32 - 1;
    for index in (0..instructions.len()).rev() {
        let instruction = &mut instructions[index];
        if let Some(target) = targets[index].and_then(|address| at.get(&address)) {
            instruction.target = *target;
        } else if matches!(instruction.kind, Kind::Conditional | Kind::Jump) {
            instruction.kind = Kind::Dead;
        }
        if instruction.kind != Kind::Plain {
            transfer = index as u32;
        }
        instruction.transfer = transfer;
    }
    let last = instructions.len() - 1;
    instructions[last].kind = Kind::Dead;
    measure_ways_out(&mut instructions);
    // What never returns ends a walk, and padding is not a function.
    functions.retain(|&entry| {
        instructions[instructions[entry as usize].transfer as usize].kind != Kind::Dead
    });
    let first = instructions[0].address;
    let size = instructions[last].address + 1 - first;
    Ok(Code { instructions, functions, first, size })
}

/// Fills in `way_out`: from the end to the beginning, again and again, until nothing changes.
fn measure_ways_out(instructions: &mut [Instruction]) {
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..instructions.len()).rev() {
            let Instruction { kind, target, way_out, .. } = instructions[index];
            let next = instructions.get(index + 1).map_or(NEVER, |next| next.way_out);
            let there = instructions.get(target as usize).map_or(NEVER, |there| there.way_out);
            let shortest = match kind {
                Kind::Plain => next,
                Kind::Conditional => 1 + next.min(there),
                Kind::Jump => 1 + there,
                Kind::Call => 1 + next + there,
                // To something that is not known now.
                Kind::IndirectCall => 10 + next,
                Kind::IndirectJump => 10,
                Kind::Return => 1,
                Kind::Dead => NEVER,
            };
            if shortest < way_out {
                instructions[index].way_out = shortest;
                changed = true;
            }
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same everywhere, and good enough.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    from: u64,
    to: u64,
}

/// A load: which functions are hot, and the state of the walk.
struct Walk<'a> {
    code: &'a Code,
    seed: u64,
    random: Random,
    hot: Vec<u32>,
    /// Indirect calls: where the load enters.
    gates: Vec<u32>,
    /// Upper ends of each hot function's share of 2^32.
    shares: Vec<u64>,
    at: u32,
    calls: Vec<u32>,
    steps: u32,
    hurried: usize,
    stack: VecDeque<Entry>,
}

impl<'a> Walk<'a> {
    fn new(code: &'a Code, seed: u64) -> Self {
        let mut ranked = code.functions.clone();
        ranked.sort_by_key(|&entry| mix(seed ^ code.instructions[entry as usize].address));
        ranked.truncate(HOT);
        let mut gates: Vec<u32> = (0..code.instructions.len() as u32)
            .filter(|&index| code.instructions[index as usize].kind == Kind::IndirectCall)
            .collect();
        gates.sort_by_key(|&index| mix(!seed ^ code.instructions[index as usize].address));
        let weights: Vec<u64> = (1..=ranked.len() as u64).map(|rank| (1 << 32) / rank).collect();
        let total: u64 = weights.iter().sum();
        let mut sum = 0;
        let shares = weights
            .iter()
            .map(|weight| {
                sum += weight;
                (sum << 20) / total
            })
            .collect();
        let random = Random(mix(seed));
        let (calls, stack) = (Vec::new(), VecDeque::new());
        let mut walk = Self {
            code,
            seed,
            random,
            hot: ranked,
            gates,
            shares,
            at: 0,
            calls,
            steps: 0,
            hurried: 0,
            stack,
        };
        walk.begin();
        walk
    }

    /// One of the hot functions, by Zipf's law; `number` is random.
    fn pick(&self, number: u64) -> u32 {
        let position = number % (1 << 20);
        self.hot[self.shares.partition_point(|&end| end <= position).min(self.hot.len() - 1)]
    }

    /// A new walk, from an indirect call. Nothing is known of what ran before.
    fn begin(&mut self) {
        let position = self.random.next() % (1 << 20);
        let rank = self.shares.partition_point(|&end| end <= position);
        self.at = self.gates[rank % self.gates.len()];
        self.hurried = (2 + self.random.below(HURRIED)) as usize;
        self.calls.clear();
        self.stack.clear();
        self.steps = 0;
    }

    /// How far it is from an instruction to a return.
    fn way_out(&self, index: u32) -> u32 {
        self.code.instructions.get(index as usize).map_or(NEVER, |there| there.way_out)
    }

    fn takes(&mut self, index: u32, branch: Instruction) -> bool {
        let (there, next) = (self.way_out(branch.target), self.way_out(index + 1));
        if there >= NEVER || next >= NEVER || self.calls.len() >= self.hurried {
            return there < next;
        }
        let character = mix(self.seed ^ branch.address);
        let within = (character >> 32) % 100;
        let percent = match character % 100 {
            _ if branch.target <= index => 40 + within / 2,
            0..45 => 1 + within / 25,
            45..80 => 95 + within / 25,
            _ => 10 + within * 4 / 5,
        };
        self.random.below(100) < percent
    }

    fn branch(&mut self, from: Instruction, to: u32) {
        if self.stack.len() == DEPTH {
            self.stack.pop_back();
        }
        let to_address = self.code.instructions[to as usize].address;
        self.stack.push_front(Entry { from: from.address, to: to_address });
        self.at = to;
    }

    /// Goes on to the next branch that is taken.
    fn step(&mut self) {
        let index = self.code.instructions[self.at as usize].transfer;
        let transfer = self.code.instructions[index as usize];
        self.steps += 1;
        if self.steps > MAX_STEPS || self.calls.len() > MAX_DEPTH {
            return self.begin();
        }
        match transfer.kind {
            Kind::Conditional if !self.takes(index, transfer) => self.at = index + 1,
            Kind::Conditional | Kind::Jump => self.branch(transfer, transfer.target),
            Kind::Call | Kind::IndirectCall | Kind::IndirectJump => {
                let callee = if transfer.kind == Kind::Call {
                    transfer.target
                } else {
                    // One of four, and mostly the last of them.
                    let position = self.random.below(8).min(3);
                    self.pick(mix(self.seed ^ transfer.address.wrapping_add(position)))
                };
                if self.way_out(callee) >= NEVER {
                    return self.begin();
                }
                if transfer.kind != Kind::IndirectJump {
                    self.calls.push(index + 1);
                }
                self.branch(transfer, callee);
            }
            Kind::Return => match self.calls.pop() {
                Some(caller) => self.branch(transfer, caller),
                None => self.begin(),
            },
            Kind::Dead | Kind::Plain => self.begin(),
        }
    }

    /// The branch stack some time later.
    fn sample(&mut self) -> &VecDeque<Entry> {
        for _ in 0..PERIOD / 2 + self.random.below(PERIOD) {
            self.step();
        }
        while self.stack.len() < DEPTH {
            self.step();
        }
        &self.stack
    }
}

fn write_sample(line: &mut Vec<u8>, walk: &mut Walk<'_>, slide: u64) -> io::Result<()> {
    let mut noise = walk.random.next();
    let stack = walk.sample();
    line.clear();
    write!(line, " {:16x}", stack[0].to.wrapping_add(slide))?;
    for entry in stack {
        noise = noise.rotate_left(5) ^ entry.from;
        let prediction = if noise % 29 == 0 { 'M' } else { 'P' };
        let (from, to) = (entry.from.wrapping_add(slide), entry.to.wrapping_add(slide));
        write!(line, " 0x{from:x}/0x{to:x}/{prediction}/-/-/{}//- ", 1 + noise % 24)?;
    }
    line.push(b'\n');
    Ok(())
}

fn run(vmlinux: &str, mib: u64, seed: u64, slide: u64) -> io::Result<()> {
    let code = disassemble(vmlinux)?;
    let mut walk = Walk::new(&code, seed);
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let first = code.first.wrapping_add(slide);
    let mapping = format!(
        "PERF_RECORD_MMAP -1/0: [{first:#x}({:#x}) @ {first:#x}]: x [kernel.kallsyms]_text\n",
        code.size
    );
    out.write_all(mapping.as_bytes())?;
    let mut written = mapping.len() as u64;
    let mut line = Vec::new();
    while written < mib << 20 {
        write_sample(&mut line, &mut walk, slide)?;
        out.write_all(&line)?;
        written += line.len() as u64;
    }
    out.flush()?;

    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| match arguments.get(index) {
        None => Some(0),
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
    };
    let (Some(vmlinux), 3..=4, Some(mib), Some(seed), Some(slide)) =
        (arguments.first(), arguments.len(), number(1), number(2), number(3))
    else {
        eprintln!("usage: walk_kernel VMLINUX MIB SEED [SLIDE] > FILE");
        return ExitCode::from(2);
    };
    match run(vmlinux, mib, seed, slide) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("walk_kernel: {error}");
            ExitCode::FAILURE
        }
    }
}
