//! Branch stacks of names, held against the same stacks of addresses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::{ImageAddress, Machine, RuntimeAddress};
use mepof_binary::{Binary, Flow, Instruction, instructions};
use mepof_convert::{BuildIdMatch, ConvertError, Recording, Request};
use mepof_trace::output::perf_data::{
    Compression, RecordedEvent, RecordedMapping, RecordedSample, Recording as Recorded, Writer,
};
use mepof_trace::{BranchEntry, Cause, Space};
use rustc_hash::FxHashMap;

const DEPTH: usize = 16;

/// A directory that is removed with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("mepof-brstacksym-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    fn compile(&self, name: &str, source: &Path, flags: &[&str]) -> PathBuf {
        let output = self.0.join(name);
        let mut clang = Command::new("clang-22");
        let done = clang.args(flags).arg("-o").arg(&output).arg(source).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        output
    }

    fn program(&self) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
        self.compile("program", &source, &["-O2", "-nostdlib", "-static", "-fno-pie"])
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The newest branch first.
type Stack = Vec<(u64, u64)>;

/// Branch stacks of a random walk through the program.
fn walk(binary: &Binary) -> Vec<Stack> {
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
    let (mut address, mut calls, mut stack) = (entries[0], Vec::new(), Stack::new());
    let mut stacks = Vec::new();
    for step in 0..60_000 {
        if step % 1500 == 0 {
            // Out of loops without an end.
            (address, calls, stack) = (entries[random(entries.len())], Vec::new(), Stack::new());
        }
        let instruction = code[&address];
        let next = address + u64::from(instruction.size);
        let target = match instruction.flow {
            Flow::Next | Flow::System | Flow::Stop => None,
            Flow::Conditional(target) => (random(3) == 0).then_some(target.0),
            Flow::Jump(target) => Some(target.0),
            Flow::Call(_) | Flow::IndirectCall | Flow::IndirectJump => {
                calls.push(next);
                match instruction.flow {
                    Flow::Call(target) => Some(target.0),
                    _ => Some(entries[random(entries.len())]),
                }
            }
            Flow::Return => Some(calls.pop().unwrap_or(entries[0])),
        };
        let Some(target) = target else {
            address = next;
            continue;
        };
        stack.insert(0, (address, target));
        stack.truncate(DEPTH);
        address = target;
        if calls.len() > 40 {
            calls.clear();
        }
        if stack.len() == DEPTH && random(9) == 0 {
            stacks.push(stack.clone());
        }
    }
    assert!(stacks.len() > 200, "hardly a walk");
    stacks
}

fn read(
    program: &Path,
    modules: &[PathBuf],
    input: PathBuf,
    space: Space,
) -> Result<Recording, ConvertError> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    Recording::read(&Request {
        binary: program,
        modules,
        inputs: &[input],
        format: None,
        space,
        events: &[],
        kallsyms: None,
        cancelled: &cancelled,
        progress: &progress,
    })
}

/// Each stack as a line: `before`, entries, which `place` prints both sides of.
fn text(stacks: &[Stack], before: impl Fn(u64) -> String, place: impl Fn(u64) -> String) -> String {
    let mut text = String::new();
    for stack in stacks {
        text += &before(stack[0].1);
        for &(from, to) in stack {
            write!(text, "{}/{}/P/-/-/0//- ", place(from), place(to)).unwrap();
        }
        text.push('\n');
    }
    text
}

/// The symbol at `address`, as perf prints it.
fn symbol(binary: &Binary, address: u64) -> (String, u64) {
    let function = binary.function_at(ImageAddress(address)).unwrap();
    (function.name.clone(), address - function.addresses.start.0)
}

fn named(binary: &Binary, address: u64) -> String {
    let (name, offset) = symbol(binary, address);
    format!("{name}+{offset:#x}")
}

#[test]
fn names_tell_as_much_as_addresses() {
    let directory = Directory::new("walk");
    let program = directory.program();
    let binary = Binary::open(&program).unwrap();
    let stacks = walk(&binary);
    let addresses = text(&stacks, |ip| format!(" {ip:16x} "), |at| format!("{at:#x}"));
    let input = directory.write("addresses", addresses);
    let expected = read(&program, &[], input, Space::User).unwrap();
    assert!(expected.images[0].trace.placed.used > 1000);

    let name = |at| named(&binary, at);
    let sample = |at| symbol(&binary, at).0;
    let old_file = |at| format!("{}(/tmp/a (b) c/program)", named(&binary, at));
    let new_file = |at| format!("{} (/tmp/a (b) c/program)", named(&binary, at));
    // What perf prints for -F brstacksym, and with ip, sym, symoff and dso before it: nothing
    // sets the first name off.
    let texts = [
        text(&stacks, |_| String::new(), name),
        text(&stacks, |ip| format!(" {ip:16x}"), name),
        text(&stacks, |ip| format!("program     1 1.5: cycles:u:  {ip:16x}"), name),
        text(&stacks, |ip| format!(" {ip:16x} {}", sample(ip)), name),
        text(&stacks, |ip| format!(" {ip:16x} {}", name(ip)), name),
        text(&stacks, |ip| format!(" {ip:16x} {} (/tmp/a/program)", sample(ip)), old_file),
        text(&stacks, |ip| format!(" {ip:16x} {} (/tmp/a/program)", name(ip)), new_file),
        text(&stacks, |ip| format!("\n\t{ip:16x} {} (/tmp/a/program)\n", name(ip)), name),
    ];
    for (index, text) in texts.into_iter().enumerate() {
        let first = text.lines().next().unwrap_or_default().to_owned();
        let input = directory.write(&format!("names-{index}"), text);
        let found = read(&program, &[], input, Space::User);
        let found = found.unwrap_or_else(|error| panic!("{error}: {first}"));
        assert_eq!(found.images[0].trace, expected.images[0].trace, "{first}");
        assert_eq!(found.images[0].build_id_match, BuildIdMatch::Unknown);
        assert_eq!(found.inputs[0].facts.samples, expected.inputs[0].facts.samples, "{first}");
        assert_eq!(found.inputs[0].facts.entries, expected.inputs[0].facts.entries, "{first}");
    }
}

#[test]
fn what_perf_prints_is_read() {
    let version = Command::new("perf").arg("--version").output();
    if !version.is_ok_and(|run| run.status.success()) {
        eprintln!("perf is not installed: not checked");
        return;
    }
    let directory = Directory::new("perf");
    let program = directory.program();
    let binary = Binary::open(&program).unwrap();
    let section = binary.sections().iter().find(|section| section.name == ".text").unwrap();
    let events = vec![RecordedEvent {
        name: "cycles:u".to_owned(),
        excludes_kernel: true,
        excludes_user: false,
        ..RecordedEvent::kernel_branches(1)
    }];
    let recorded = Recorded { machine: Some(Machine::X86_64), events, ..Recorded::default() };
    let file = fs::File::create(directory.0.join("perf.data")).unwrap();
    let mut writer = Writer::file(file, recorded, Compression::None).unwrap();
    let start = section.addresses.start.0 & !0xfff;
    let name = program.to_string_lossy();
    writer
        .mapping(&RecordedMapping {
            space: Space::User,
            name: &name,
            start: RuntimeAddress(start),
            size: (section.addresses.end.0 - start).next_multiple_of(0x1000),
            offset: section.file_offset & !0xfff,
            build_id: None,
        })
        .unwrap();
    for stack in walk(&binary) {
        let entry = |&(from, to): &(u64, u64)| BranchEntry {
            from: RuntimeAddress(from),
            to: RuntimeAddress(to),
            mispredicted: Some(false),
            ..BranchEntry::default()
        };
        let branches: Vec<BranchEntry> = stack.iter().map(entry).collect();
        let address = branches[0].to;
        let (time, process, cpu, space) = (1, (0, 0), 0, Space::User);
        let branches = &branches;
        writer
            .sample(&RecordedSample { event: 0, address, space, time, process, cpu, branches })
            .unwrap();
    }
    writer.finish().unwrap();
    let printed = |fields: &str| {
        let mut perf = Command::new("perf");
        perf.arg("script").arg("-F").arg(fields).arg("-i").arg(directory.0.join("perf.data"));
        let run = perf.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let input = directory.write(fields, run.stdout);
        read(&program, &[], input, Space::User).unwrap()
    };
    let expected = printed("ip,brstack");
    for fields in [
        "brstacksym",
        "ip,brstacksym",
        "ip,sym,brstacksym",
        "ip,sym,symoff,dso,brstacksym",
        "comm,tid,time,event,ip,sym,brstacksym",
    ] {
        let found = printed(fields);
        assert_eq!(found.images[0].trace, expected.images[0].trace, "{fields}");
        let entries = &found.inputs[0].facts.entries;
        assert_eq!(entries, &expected.inputs[0].facts.entries, "{fields}");
    }
}

#[test]
fn a_module_is_known_by_the_names_that_only_it_has() {
    let directory = Directory::new("modules");
    let program = directory.program();
    let module = |name: &str, source: &str| {
        let source = directory.write(&format!("{name}.c"), source);
        directory.compile(&format!("{name}.ko"), &source, &["-O2", "-c", "-ffreestanding"])
    };
    let loops = "{ while (n--) __asm__ volatile(\"\"); return n; }";
    let first = module("first", &format!("int only_first(int n) {loops}\nint both(int n) {loops}"));
    let second =
        module("second", &format!("int both(int n) {loops}\nint only_second(int n) {loops}"));
    let line = " only_first+0x4/only_first+0x2/P/-/-/0//- only_second+0x6/only_first+0x0/P/-/-/0//- \
                both+0x4/both+0x2/P/-/-/0//- nowhere+0x1/[unknown]/P/-/-/0//- \n";
    let input = directory.write("names", line.repeat(3));
    let found = read(&program, &[first, second], input, Space::Kernel).unwrap();
    let entries = &found.inputs[0].facts.entries;
    assert_eq!(entries.used, 6);
    assert_eq!(entries.dropped_for(Cause::Ambiguous), 3);
    assert_eq!(entries.dropped_for(Cause::OutsideBinary), 3);
    let branches: Vec<Vec<_>> = found
        .images
        .iter()
        .map(|image| {
            let known = |branch: &mepof_trace::Branch| {
                let name = |at: Option<ImageAddress>| {
                    at.map(|at| symbol(&image.binary, at.0).0).unwrap_or_default()
                };
                (name(branch.from), name(branch.to), branch.count)
            };
            image.trace.branches.iter().map(known).collect()
        })
        .collect();
    let branch = |from: &str, to: &str| (from.to_owned(), to.to_owned(), 3);
    assert_eq!(branches[0], []);
    assert_eq!(branches[1], [branch("", "only_first"), branch("only_first", "only_first")]);
    assert_eq!(branches[2], [branch("only_second", "")]);
}

#[test]
fn names_of_another_program_are_refused() {
    let directory = Directory::new("other");
    let program = directory.program();
    let input = directory.write("names", " f+0x10/g+0x20/P/-/-/0//- \n");
    let error = read(&program, &[], input, Space::User).unwrap_err().to_string();
    assert!(error.contains("brstacksym") && error.contains("-F ip,brstack"), "{error}");
}
