//! Branch stacks of names, held against the same stacks of addresses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod walk;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use mepof_address::{ImageAddress, RuntimeAddress};
use mepof_binary::Binary;
use mepof_convert::BuildIdMatch;
use mepof_machine::Machine;
use mepof_trace::output::perf_data::{
    Compression, PerfHeader as Recorded, RecordedEvent, RecordedMapping, RecordedSample, Writer,
};
use mepof_trace::{BranchEntry, Cause, Space};
use walk::{Directory, Stack, compile, read, run, walk};

fn write(directory: &Directory, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.0.join(name);
    fs::write(&path, contents).unwrap();
    path
}

fn stacks_of(binary: &Binary) -> Vec<Stack> {
    let stacks = walk(binary, 1);
    assert!(stacks.len() > 200, "hardly a walk");
    stacks
}

/// Each stack as a line: `before`, entries, which `location` prints both sides of.
fn text(
    stacks: &[Stack],
    before: impl Fn(u64) -> String,
    location: impl Fn(u64) -> String,
) -> String {
    let mut text = String::new();
    for stack in stacks {
        text += &before(stack[0].1);
        for &(from, to) in stack {
            write!(text, "{}/{}/P/-/-/0//- ", location(from), location(to)).unwrap();
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
    let directory = Directory::new("names-walk");
    let program = compile(&directory.0, &[]);
    let binary = Binary::open(&program).unwrap();
    let stacks = stacks_of(&binary);
    let addresses = text(&stacks, |ip| format!(" {ip:16x} "), |at| format!("{at:#x}"));
    let input = write(&directory, "addresses", addresses);
    let expected = read(&program, &[], &[input], Space::User).unwrap();
    assert!(expected.images[0].trace.mapped.used > 1000);

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
        let input = write(&directory, &format!("names-{index}"), text);
        let found = read(&program, &[], &[input], Space::User);
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
        assert!(
            std::env::var_os("MEPOF_SETUP_TESTS").is_none(),
            "perf is not installed, though MEPOF_SETUP_TESTS is set: run tools/setup"
        );
        eprintln!("skipped: perf is not installed");
        return;
    }
    let directory = Directory::new("names-perf");
    let program = compile(&directory.0, &[]);
    let binary = Binary::open(&program).unwrap();
    let section = binary.sections().iter().find(|section| section.name == ".text").unwrap();
    let events = vec![RecordedEvent::user_branches(1)];
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
    for stack in stacks_of(&binary) {
        let entry = |&(from, to): &(u64, u64)| BranchEntry {
            from: RuntimeAddress(from),
            to: RuntimeAddress(to),
            mispredicted: Some(false),
            ..BranchEntry::default()
        };
        let branches: Vec<BranchEntry> = stack.iter().map(entry).collect();
        let address = branches[0].to;
        let (time, process, cpu, space) = (1, (1, 1), 0, Space::User);
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
        let input = write(&directory, fields, run.stdout);
        read(&program, &[], &[input], Space::User).unwrap()
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
    let directory = Directory::new("names-modules");
    let program = compile(&directory.0, &[]);
    let module = |name: &str, source: &str| {
        let source = write(&directory, &format!("{name}.c"), source);
        let output = directory.0.join(format!("{name}.ko"));
        let mut clang = Command::new("clang-22");
        run(clang.args(["-O2", "-c", "-ffreestanding", "-o"]).arg(&output).arg(source));
        output
    };
    let loops = "{ while (n--) __asm__ volatile(\"\"); return n; }";
    let first = module("first", &format!("int only_first(int n) {loops}\nint both(int n) {loops}"));
    let second =
        module("second", &format!("int both(int n) {loops}\nint only_second(int n) {loops}"));
    let line = " only_first+0x4/only_first+0x2/P/-/-/0//- only_second+0x6/only_first+0x0/P/-/-/0//- \
                both+0x4/both+0x2/P/-/-/0//- nowhere+0x1/[unknown]/P/-/-/0//- \n";
    let input = write(&directory, "names", line.repeat(3));
    let found = read(&program, &[first, second], &[input], Space::Kernel).unwrap();
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
    let directory = Directory::new("names-other");
    let program = compile(&directory.0, &[]);
    let input = write(&directory, "names", " f+0x10/g+0x20/P/-/-/0//- \n");
    let error = read(&program, &[], &[input], Space::User).unwrap_err().to_string();
    assert!(error.contains("brstacksym") && error.contains("-F ip,brstack"), "{error}");
}
