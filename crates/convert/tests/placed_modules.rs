//! Where the code of modules ran.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod walk;

use std::fs;
use std::path::Path;
use std::process::Command;

use mepof_address::RuntimeAddress;
use mepof_binary::Binary;
use mepof_convert::{BranchSources, place};
use mepof_trace::{Facts, LocateError, Mapping, Space, TracedImage};
use walk::{Directory, run};

const MODULE_AT: u64 = 0xffff_ffff_c000_0000;

/// Assembles a module called `extra`.
fn assemble(directory: &Path, target: &str, text: &str) -> Binary {
    build(directory, &[&format!("--target={target}-linux-gnu"), "-c"], text)
}

/// Assembles a module called `extra`, and links it as the `script` says.
fn link(directory: &Path, target: &str, script: &str, text: &str) -> Binary {
    let path = directory.join("module.lds");
    fs::write(&path, format!("SECTIONS {{ {script} }}")).unwrap();
    let (target, script) = (format!("--target={target}"), format!("-Wl,-T,{}", path.display()));
    build(directory, &[&target, "-r", "-nostdlib", "-fuse-ld=lld", &script], text)
}

fn build(directory: &Path, flags: &[&str], text: &str) -> Binary {
    let (source, output) = (directory.join("extra.s"), directory.join("extra.ko"));
    fs::write(&source, text).unwrap();
    run(Command::new("clang-22").args(flags).arg("-o").arg(&output).arg(&source));
    Binary::open(&output).unwrap()
}

/// What perf says of that module: where it begins, and how long it is with all of its data.
fn facts() -> Facts {
    let addresses = RuntimeAddress(MODULE_AT)..RuntimeAddress(MODULE_AT + 0x10_0000);
    let mappings = vec![Mapping { addresses, offset: 0, section: None }];
    let (name, space) = ("[extra]".to_owned(), Space::Kernel);
    let images = vec![TracedImage { name, space, build_id: None, mappings }];
    Facts { images, ..Facts::default() }
}

/// The sections that ran, and how far behind the module's beginning.
fn placed(binary: &Binary, kallsyms: Option<&str>) -> Result<Vec<(String, u64)>, LocateError> {
    let placement =
        place(&facts(), binary, Space::Kernel, kallsyms, &BranchSources::default())?.placement;
    let regions = placement.regions().iter().map(|region| {
        let mut sections = binary.sections().iter();
        let section = sections.find(|section| section.addresses.start == region.image).unwrap();
        (section.name.clone(), region.runtime.0 - MODULE_AT)
    });
    Ok(regions.collect())
}

fn expected(sections: &[(&str, u64)]) -> Vec<(String, u64)> {
    sections.iter().map(|&(name, offset)| (name.to_owned(), offset)).collect()
}

#[test]
fn sections_are_loaded_one_after_the_other_as_each_is_aligned() {
    let directory = Directory::new("aligned");
    let binary = assemble(
        &directory.0,
        "x86_64",
        ".section .init.text,\"ax\"\n.p2align 5\n.skip 0x41, 0x90\n\
         .section .noinstr.text,\"ax\"\n.skip 5, 0x90\n\
         .text\n.p2align 4\n.skip 0x11, 0x90\n\
         .section .exit.text,\"ax\"\n.skip 3, 0x90\n\
         .section .text.unlikely,\"ax\"\n.p2align 6\nret\n\
         .section .text.empty,\"ax\"\n.p2align 8\n\
         .section .text.last,\"ax\"\nret\n.data\n.quad 1\n",
    );
    // Clang has .text first, and .init.text is loaded elsewhere.
    let sections = [
        (".text", 0),
        (".noinstr.text", 0x11),
        (".exit.text", 0x16),
        (".text.unlikely", 0x40),
        (".text.last", 0x100),
    ];
    assert_eq!(placed(&binary, None).unwrap(), expected(&sections));
}

#[test]
fn a_kernel_that_unloads_no_module_frees_its_exit_sections() {
    let directory = Directory::new("exit");
    let mut found = Vec::new();
    for unload in ["mod_unload ", ""] {
        let vermagic = format!("vermagic=6.12.7 SMP preempt {unload}modversions ");
        let text = format!(
            ".text\n.p2align 4\nret\n.section .exit.text,\"ax\"\nret\n\
             .section .text.last,\"ax\"\nret\n\
             .section .modinfo,\"a\"\n.asciz \"license=GPL\"\n.asciz \"{vermagic}\"\n"
        );
        found.push(placed(&assemble(&directory.0, "x86_64", &text), None).unwrap());
    }
    let kept = expected(&[(".text", 0), (".exit.text", 1), (".text.last", 2)]);
    assert_eq!(found, [kept, expected(&[(".text", 0), (".text.last", 1)])]);
}

/// What arm64's loader enlarges, as `arch/arm64/include/asm/module.lds.h` has it.
const TABLES: &str = ".plt 0 : { BYTE(0) } .init.plt 0 : { BYTE(0) } \
                      .text.ftrace_trampoline 0 : { BYTE(0) } \
                      .init.text.ftrace_trampoline 0 : { BYTE(0) }";

/// Code of arm64 that calls out of its sections, of a kernel of that release.
fn calls(release: &str) -> String {
    format!(
        ".text\n.p2align 4\n.globl f, g\n.type f,@function\n.type g,@function\n\
         f: bl printk\nbl printk\nbl kfree\nb printk\nbl g\n.size f, . - f\n\
         g: ret\n.size g, . - g\n\
         .section .text.unlikely,\"ax\"\n.type h,@function\n\
         h: bl f\nbl g\nbl f\n.size h, . - h\nk: ret\n\
         .section .exit.text,\"ax\"\nbl printk + 4\nbl printk + 4\n\
         .section .init.text,\"ax\"\nbl printk\nbl kfree\nbl f\n\
         .section .modinfo,\"a\"\n.asciz \"vermagic={release} SMP mod_unload aarch64\"\n"
    )
}

#[test]
fn the_code_of_arm64_follows_the_tables_that_its_loader_makes_room_for() {
    let directory = Directory::new("tables");
    // Of .text, three entries; of .text.unlikely three, since the loader does not sort the last of
    // its branches; of .exit.text two; one to spare; and one of the trampoline.
    let text = (3 + 3 + 2 + 1 + 1) * 12_u64;
    let binary = link(&directory.0, "aarch64-linux-gnu", TABLES, &calls("6.5.0-rc1+"));
    let text = text.next_multiple_of(16);
    let sections = [(".text", text), (".text.unlikely", text + 24), (".exit.text", text + 24 + 16)];
    assert_eq!(placed(&binary, None).unwrap(), expected(&sections));
}

#[test]
fn tables_of_unknown_size_do_not_matter_behind_the_code() {
    let directory = Directory::new("behind");
    let script = format!(".text 0 : {{ *(.text .text.* .exit.text) }} {TABLES}");
    let binary = link(&directory.0, "aarch64-linux-gnu", &script, &calls("6.1.0"));
    assert_eq!(placed(&binary, None).unwrap(), expected(&[(".text", 0)]));
}

#[test]
fn where_the_tables_size_is_not_known_the_machines_symbols_say_where_the_code_was() {
    let directory = Directory::new("symbols");
    let binary = link(&directory.0, "aarch64-linux-gnu", TABLES, &calls("6.4.16"));
    // Two of its symbols are called g.
    run(Command::new("llvm-objcopy-22").arg("--redefine-sym=k=g").arg(binary.path()));
    let binary = Binary::open(binary.path()).unwrap();
    let error = placed(&binary, None).unwrap_err();
    assert_eq!(error, LocateError::UnknownLayout { name: "extra".to_owned() });
    assert!(error.to_string().contains("(--kallsyms)"), "{error}");
    let line = |address, name, module| format!("{address:016x} t {name}\t[{module}]\n");
    let hidden = line(0, "f", "extra") + &line(MODULE_AT, "f", "other");
    assert_eq!(placed(&binary, Some(&hidden)).unwrap_err(), error);
    let kallsyms = line(MODULE_AT + 0x2000, "h", "other")
        + &line(MODULE_AT + 0x180c, "g", "extra")
        + &line(MODULE_AT + 0x1000, "f", "extra")
        + &line(MODULE_AT + 0x1800, "h", "extra");
    let sections = [(".text", 0x1000), (".text.unlikely", 0x1800)];
    assert_eq!(placed(&binary, Some(&kallsyms)).unwrap(), expected(&sections));
}

#[test]
fn the_tables_of_32_bit_arm_have_no_known_size() {
    let directory = Directory::new("arm");
    let script = ".plt : { BYTE(0) } .init.plt : { BYTE(0) }";
    let text = ".type f,%function\nf: bl printk\n.size f, . - f\n";
    let binary = link(&directory.0, "arm-linux-gnueabi", script, text);
    let error = placed(&binary, None).unwrap_err();
    assert_eq!(error, LocateError::UnknownLayout { name: "extra".to_owned() });
}
