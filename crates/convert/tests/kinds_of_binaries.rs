//! Kernels, modules and programs, with pseudo probes and without, and records that belong to none
//! of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod walk;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use mepof_address::ImageAddress;
use mepof_binary::Binary;
use mepof_convert::{
    BranchTrace, BuildIdMatch, ConvertError, Converted, Locations, ProfileOptions, autofdo, judge,
};
use mepof_trace::output::unsymbolized;
use mepof_trace::{Cause, Space, TraceError};
use walk::{Directory, Stack, compile, perf_script, run, walk};

const PROBES: &str = "-fpseudo-probe-for-profiling";
/// A program that is linked as a kernel is.
const KERNEL: [&str; 3] =
    ["-mcmodel=kernel", "-Wl,-Ttext=0xffffffff81000000", "-Wl,--defsym=_stext=_start"];
const KERNEL_AT: u64 = 0xffff_ffff_8100_0000;
const MODULE_AT: u64 = 0xffff_ffff_c000_0000;

fn read(
    binary: &Path,
    modules: &[PathBuf],
    text: &str,
    space: Space,
) -> Result<BranchTrace, ConvertError> {
    let input = binary.with_extension("txt");
    fs::write(&input, text).unwrap();
    walk::read(binary, modules, &[input], space)
}

fn converted(recording: &BranchTrace) -> (String, Converted) {
    let converted = autofdo(recording, ProfileOptions::default()).unwrap();
    let mut text = Vec::new();
    mepof_profile::text::write(&converted.profile, &mut text).unwrap();
    (String::from_utf8(text).unwrap(), converted)
}

fn walked(binary: &Path) -> String {
    perf_script(&walk(&Binary::open(binary).unwrap(), 1))
}

#[test]
fn probes_are_enough_without_debug_information() {
    let directory = Directory::new("probes-only");
    let program = compile(&directory.0, &[PROBES]);
    let text = walked(&program);
    let (expected, _) = converted(&read(&program, &[], &text, Space::User).unwrap());
    run(Command::new("llvm-objcopy-22").arg("--strip-debug").arg(&program));
    let recording = read(&program, &[], &text, Space::User).unwrap();
    let (found, converted) = converted(&recording);
    assert_eq!(found, expected);
    let mapped = converted.verdict.binaries[0].mapped_percent;
    assert!(mapped > Some(99.0), "{mapped:?}");
}

#[test]
fn neither_probes_nor_debug_information_is_an_error() {
    let directory = Directory::new("nothing");
    let program = compile(&directory.0, &["-g0"]);
    let recording = read(&program, &[], &walked(&program), Space::User).unwrap();
    let error = autofdo(&recording, ProfileOptions::default()).unwrap_err().to_string();
    assert!(error.contains("debug information"), "{error}");
    for flag in ["CONFIG_DEBUG_INFO_DWARF5=y", "-g -fdebug-info-for-profiling"] {
        assert!(error.contains(flag), "{error}");
    }
}

/// A file of one function, called `twin`, as a module is built.
fn module(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = directory.join(format!("{name}.c"));
    let code = "int twin(int n) { int sum = 0; while (n-- > 0) sum ^= n * sum; return sum; }\n";
    fs::write(&source, code).unwrap();
    let output = directory.join(format!("{name}.ko"));
    let common = ["-O1", "-g", "-c", "-fno-vectorize", "-fno-unroll-loops"];
    run(Command::new("clang-22").args(common).args(flags).arg("-o").arg(&output).arg(&source));
    output
}

/// Where a kernel and a module called `name` were, and samples of both.
fn with_module(kernel: &Path, module: &Path, name: &str) -> String {
    let start = Binary::open(kernel).unwrap().symbol("_stext").unwrap().0;
    let mapped = format!(
        "PERF_RECORD_MMAP -1/0: [{start:#x}(0x100000) @ {start:#x}]: x [kernel.kallsyms]_stext\n"
    );
    mapped + &of_module(module, name, start) + &walked(kernel)
}

/// Where a module called `name` was, and samples of calls of it from `start`.
fn of_module(module: &Path, name: &str, start: u64) -> String {
    let binary = Binary::open(module).unwrap();
    let text = binary.sections().iter().find(|section| section.name == ".text").unwrap();
    let function = binary.functions().iter().find(|function| function.name == "twin").unwrap();
    let at = MODULE_AT + (function.addresses.start.0 - text.addresses.start.0);
    let last = MODULE_AT + (function.addresses.end.0 - text.addresses.start.0) - 1;
    let stack: Stack = vec![(last, start), (start + 1, at)];
    let mapped = format!("PERF_RECORD_MMAP -1/0: [{MODULE_AT:#x}(0x1000) @ 0]: x [{name}]\n");
    mapped + &perf_script(&vec![stack; 50])
}

#[test]
fn a_module_without_probes_is_left_out_beside_a_kernel_with_some() {
    let directory = Directory::new("mixed");
    let kernel = compile(&directory.0, &[&[PROBES][..], &KERNEL].concat());
    let module = module(&directory.0, "extra", &[]);
    let text = with_module(&kernel, &module, "extra");
    let recording = read(&kernel, &[module], &text, Space::Kernel).unwrap();
    assert!(!recording.images[1].trace.branches.is_empty());
    let (profile, converted) = converted(&recording);
    assert!(converted.profile.probe_based && !profile.contains("twin"));
    let notes = &converted.verdict.notes;
    assert!(notes.len() == 1 && notes[0].contains("extra.ko"), "{notes:?}");
    assert!(notes[0].contains("pseudo probes"), "{notes:?}");
    assert_eq!(converted.verdict.binaries.len(), 2);
}

#[test]
fn a_module_goes_by_lines_beside_a_kernel_that_does() {
    let directory = Directory::new("lines");
    let kernel = compile(&directory.0, &KERNEL);
    let module = module(&directory.0, "extra", &[PROBES]);
    let text = with_module(&kernel, &module, "extra");
    let recording = read(&kernel, &[module], &text, Space::Kernel).unwrap();
    let (profile, converted) = converted(&recording);
    assert!(!converted.profile.probe_based && profile.contains("twin"));
    assert!(converted.verdict.notes.is_empty(), "{:?}", converted.verdict.notes);
}

/// The records of a binary as `llvm-profgen --use-offset=0` prints them, or as offsets from `base`.
fn unsymbolized(recording: &BranchTrace, base: Option<ImageAddress>) -> String {
    let mut text = Vec::new();
    unsymbolized::write(&recording.images[0].trace, base, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn text_of_one_binary_leaves_modules_out() {
    let directory = Directory::new("text");
    let kernel = compile(&directory.0, &KERNEL);
    let extra = module(&directory.0, "extra", &[]);
    let recording = read(&kernel, &[], &walked(&kernel), Space::Kernel).unwrap();
    for base in [None, recording.images[0].binary.executable_base()] {
        // What is no offset or address of the kernel may be one of a module.
        let elsewhere = "1\nffffffffc0000010-ffffffffc0000020:3\n0\n";
        let text = unsymbolized(&recording, base) + elsewhere;
        let found = read(&kernel, slice::from_ref(&extra), &text, Space::Kernel).unwrap();
        assert_eq!(found.images[0].trace.branches, recording.images[0].trace.branches);
        let dropped = found.images[0].trace.mapped_ranges.dropped_for(Cause::OutsideBinary);
        assert_eq!((dropped, &found.images[1].trace.branches[..]), (3, &[][..]));
        let notes = &found.inputs[0].facts.notes;
        let said = notes.iter().filter(|note| note.contains("extra.ko is left out")).count();
        assert_eq!(said, 1, "{notes:?}");
    }
}

#[test]
fn text_of_a_module_alone_is_read() {
    let directory = Directory::new("module-text");
    let extra = module(&directory.0, "extra", &[]);
    let recording =
        read(&extra, &[], &of_module(&extra, "extra", KERNEL_AT), Space::Kernel).unwrap();
    let expected = &recording.images[0].trace.branches;
    let text = unsymbolized(&recording, None);
    let found = read(&extra, &[], &text, Space::Kernel).unwrap();
    // Branches out of the binary are left out there.
    assert_eq!(found.images[0].trace.branches, expected[..1]);
    assert_eq!(expected[0].to, found.images[0].binary.symbol("twin"));
}

#[test]
fn addresses_of_a_kernel_in_the_lower_half_are_no_offsets() {
    let directory = Directory::new("lower-half");
    let kernel = compile(&directory.0, &["-Wl,-Ttext=0x60001000", "-Wl,--defsym=_stext=_start"]);
    let recording = read(&kernel, &[], &walked(&kernel), Space::Kernel).unwrap();
    let expected = &recording.images[0].trace.branches;
    for base in [None, recording.images[0].binary.executable_base()] {
        let text = unsymbolized(&recording, base);
        let found = read(&kernel, &[], &text, Space::Kernel).unwrap();
        assert_eq!(&found.images[0].trace.branches, expected, "{base:?}");
        let notes = &found.inputs[0].facts.notes;
        assert_eq!(notes.iter().any(|note| note.contains("offsets")), base.is_some(), "{notes:?}");
    }
}

/// The records of a binary as `simpleperf inject --output autofdo` writes them, by an offset of
/// each address.
fn autofdo_text(recording: &BranchTrace, offset: impl Fn(ImageAddress) -> u64) -> String {
    let image = &recording.images[0];
    let at = |address: Option<ImageAddress>| address.map_or(0, &offset);
    let mut text = format!("{}\n", image.trace.ranges.len());
    for range in &image.trace.ranges {
        let (first, last) = (offset(range.first), offset(range.last));
        writeln!(text, "{first:x}-{last:x}:{}", range.count).unwrap();
    }
    let branches = image.trace.branches.iter().filter(|branch| branch.from.is_some());
    let branches: Vec<_> = branches.collect();
    writeln!(text, "0\n{}", branches.len()).unwrap();
    for branch in branches {
        writeln!(text, "{:x}->{:x}:{}", at(branch.from), at(branch.to), branch.count).unwrap();
    }
    let id = image.binary.build_id().unwrap();
    text + &format!("// build_id: 0x{id}\n// [kernel.kallsyms]\n\n")
}

#[test]
fn offsets_of_autofdo_text_are_those_at_which_the_branches_are() {
    let directory = Directory::new("autofdo-text");
    let kernel = compile(&directory.0, &[&["-Wl,--build-id"][..], &KERNEL].concat());
    let recording = read(&kernel, &[], &walked(&kernel), Space::Kernel).unwrap();
    let image = &recording.images[0];
    let base = image.binary.load_base().unwrap();
    let in_file = |at: ImageAddress| {
        let mut sections = image.binary.sections().iter();
        let section = sections.find(|section| section.addresses.contains(&at)).unwrap();
        section.file_offset + (at.0 - section.addresses.start.0)
    };
    let from_segment = |at: ImageAddress| at.0 - base.0;
    let first = image.trace.ranges[0].first;
    assert_ne!(in_file(first), from_segment(first));
    for text in [autofdo_text(&recording, in_file), autofdo_text(&recording, from_segment)] {
        let found = read(&kernel, &[], &text, Space::Kernel).unwrap();
        assert_eq!(found.images[0].trace.ranges, image.trace.ranges);
        assert_eq!(found.images[0].trace.branches.len(), image.trace.branches.len());
        assert_eq!(found.images[0].build_id_match, BuildIdMatch::Same);
    }
    let elsewhere = Directory::new("autofdo-other");
    let other = compile(&elsewhere.0, &[&["-Wl,--build-id", "-O1"][..], &KERNEL].concat());
    let text = autofdo_text(&recording, in_file);
    let error = read(&other, &[], &text, Space::Kernel).unwrap_err().to_string();
    assert!(error.contains("only of [kernel.kallsyms]"), "{error}");
}

#[test]
fn functions_of_a_module_that_was_left_out_are_not_listed() {
    let directory = Directory::new("listed");
    let kernel = compile(&directory.0, &[&[PROBES][..], &KERNEL].concat());
    let extra = module(&directory.0, "extra", &[]);
    let text = with_module(&kernel, &extra, "extra");
    let listed = |modules: &[PathBuf], text: &str, locations| {
        let options = ProfileOptions { locations, symbol_list: true, ..ProfileOptions::default() };
        let recording = read(&kernel, modules, text, Space::Kernel).unwrap();
        autofdo(&recording, options).unwrap().profile.symbols
    };
    let alone = listed(&[], &text, Locations::Best);
    assert!(alone.iter().any(|name| &**name == "_start"), "{alone:?}");
    let module = slice::from_ref(&extra);
    // It has no probes, or was not loaded.
    assert_eq!(listed(module, &text, Locations::Best), alone);
    assert_eq!(listed(module, &walked(&kernel), Locations::Lines), alone);
    let both = listed(module, &text, Locations::Lines);
    assert_eq!(both.len(), alone.len() + 1);
    assert!(both.iter().any(|name| &**name == "twin"), "{both:?}");
}

#[test]
fn a_binary_is_given_once_and_a_module_is_one() {
    let directory = Directory::new("twice");
    let kernel = compile(&directory.0, &KERNEL);
    let extra = module(&directory.0, "extra", &[]);
    let text = with_module(&kernel, &extra, "extra");
    let told = |modules: &[&PathBuf]| {
        let modules: Vec<PathBuf> = modules.iter().copied().cloned().collect();
        read(&kernel, &modules, &text, Space::Kernel).unwrap_err().to_string()
    };
    // The same file by another name, and a copy, which has the same build-id.
    let (link, copy) = (directory.0.join("link.ko"), directory.0.join("copy"));
    std::os::unix::fs::symlink(&extra, &link).unwrap();
    let with_id = compile(&directory.0, &[&KERNEL[..], &["-Wl,--build-id=0xabab"]].concat());
    fs::copy(&with_id, &copy).unwrap();
    for twice in [&[&kernel][..], &[&extra, &extra], &[&extra, &link], &[&copy]] {
        let said = told(twice);
        assert!(said.contains("give it once"), "{twice:?}: {said}");
    }
    let other = directory.0.join("other");
    fs::create_dir(&other).unwrap();
    let program = compile(&other, &[]);
    let said = told(&[&program]);
    assert!(said.contains("is not a kernel module") && said.contains(".ko"), "{said}");
}

/// A KASLR kernel's branches without its mapping, as perf records them with kptr_restrict.
#[test]
fn a_kernel_that_no_input_locates_is_found_by_its_branches() {
    let directory = Directory::new("slide");
    let kernel = compile(&directory.0, &KERNEL);
    let stacks = walk(&Binary::open(&kernel).unwrap(), 1);
    let moved = |by: u64| {
        let stack = |stack: &Stack| stack.iter().map(|(from, to)| (from + by, to + by)).collect();
        perf_script(&stacks.iter().map(stack).collect::<Vec<_>>())
    };
    let expected = read(&kernel, &[], &moved(0), Space::Kernel).unwrap();
    let found = read(&kernel, &[], &moved(0x1220_0000), Space::Kernel).unwrap();
    assert_eq!(found.images[0].trace.branches, expected.images[0].trace.branches);
    let notes = &found.inputs[0].facts.notes;
    assert!(notes.iter().any(|note| note.contains("fit the branches")), "{notes:?}");
    // No kernel is loaded there.
    let told = read(&kernel, &[], &moved(0x1220_1230), Space::Kernel).unwrap_err();
    assert!(told.to_string().contains("--kallsyms"), "{told}");
}

#[test]
fn branches_of_the_other_side_are_told_as_such() {
    let directory = Directory::new("sides");
    let kernel = compile(&directory.0, &KERNEL);
    let user = perf_script(&vec![vec![(0x40_1000, 0x40_2000), (0x40_2010, 0x40_0ff0)]; 9]);
    let told = read(&kernel, &[], &user, Space::Kernel).unwrap_err();
    let ConvertError::Trace(TraceError::OtherSpace { wanted, found, .. }) = told else {
        panic!("{told:?}")
    };
    assert_eq!((wanted, found), (Space::Kernel, Space::User));
    let of_kernel = walked(&kernel);
    let told = read(&kernel, &[], &of_kernel, Space::User).unwrap_err();
    assert!(matches!(told, ConvertError::KernelForUserCode { .. }), "{told:?}");
    let program = compile(&directory.0, &[]);
    let told = read(&program, &[], &of_kernel, Space::User).unwrap_err();
    let ConvertError::Trace(TraceError::OtherSpace { wanted, found, .. }) = told else {
        panic!("{told:?}")
    };
    assert_eq!((wanted, found), (Space::User, Space::Kernel));
}

#[test]
fn what_has_all_branches_is_named_where_none_is_in_the_binary() {
    let directory = Directory::new("elsewhere");
    let kernel = compile(&directory.0, &KERNEL);
    let extra = module(&directory.0, "extra", &[]);
    let of_module = perf_script(&vec![vec![(MODULE_AT + 0x10, MODULE_AT + 0x20)]; 9]);
    let text = with_module(&kernel, &extra, "extra");
    let mapped = text.lines().take(2).fold(String::new(), |all, line| all + line + "\n");
    let said = read(&kernel, &[], &(mapped + &of_module), Space::Kernel).unwrap_err().to_string();
    let end = "program; most of them are in [extra] (9); give the modules that matter (--module)";
    assert!(said.contains("none of its 9 branches is in") && said.ends_with(end), "{said}");
}

#[test]
fn a_program_gets_no_cure_for_kernels() {
    let directory = Directory::new("remedies");
    let program = compile(&directory.0, &[]);
    let elsewhere = perf_script(&vec![vec![(0x7000_1000, 0x7000_2000)]; 9]);
    let mapped = format!(
        "PERF_RECORD_MMAP2 7/7: [0x400000(0x100000) @ 0 08:04 1 2]: r-xp {}\n",
        program.display()
    );
    let told = read(&program, &[], &(mapped + &elsewhere), Space::User).unwrap_err().to_string();
    assert!(told.contains("give the program"), "{told}");
    assert!(!told.contains("vmlinux") && !told.contains("KASLR"), "{told}");
}

/// A function and the part that was split off it, as the symbol table has them.
const PARTS: &str = "\
asm(\".text\\n.globl _start\\n.type _start,@function\\n_start: nop\\n jmp split.cold\\n\"
    \".size _start, . - _start\\n\"
    \".type split,@function\\nsplit: nop\\n ret\\n.size split, . - split\\n\"
    \".type split.cold,@function\\nsplit.cold: nop\\n jmp split\\n\"
    \".size split.cold, . - split.cold\\n\");\n";

#[test]
fn a_part_of_a_function_is_no_function_that_ran_besides() {
    let directory = Directory::new("parts");
    let (source, program) = (directory.0.join("parts.c"), directory.0.join("parts"));
    fs::write(&source, PARTS).unwrap();
    let flags = ["-nostdlib", "-static", "-fno-pie", "-o"];
    run(Command::new("clang-22").args(flags).arg(&program).arg(&source));
    let binary = Binary::open(&program).unwrap();
    let at = |name: &str| binary.symbol(name).unwrap().0;
    let (start, split, cold) = (at("_start"), at("split"), at("split.cold"));
    let mut text = String::new();
    for _ in 0..50 {
        // From the start to the part, to the function, and back: the newest first.
        let (one, two, three) = (start + 1, cold + 1, split + 1);
        writeln!(
            text,
            " {start:x} {three:#x}/{start:#x}/P/-/-/0//- {two:#x}/{split:#x}/P/-/-/0//- \
             {one:#x}/{cold:#x}/P/-/-/0//- {three:#x}/{start:#x}/P/-/-/0//-"
        )
        .unwrap();
    }
    let recording = read(&program, &[], &text, Space::User).unwrap();
    let verdict = judge(&recording).unwrap().verdict;
    let binary = &verdict.binaries[0];
    assert_eq!((binary.functions, binary.functions_executed), (2, 2), "{binary:?}");
}
