//! Where the code of modules ran.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod walk;

use std::fs;
use std::path::Path;
use std::process::Command;

use mepof_address::RuntimeAddress;
use mepof_binary::Binary;
use mepof_convert::place;
use mepof_trace::{Facts, LocateError, Mapping, Space, TracedImage};
use walk::{Directory, run};

const MODULE_AT: u64 = 0xffff_ffff_c000_0000;

/// Assembles a module called `extra`.
fn assemble(directory: &Path, target: &str, text: &str) -> Binary {
    let (source, output) = (directory.join("extra.s"), directory.join("extra.ko"));
    fs::write(&source, text).unwrap();
    let target = format!("--target={target}-linux-gnu");
    run(Command::new("clang-22").args([&target, "-c", "-o"]).arg(&output).arg(&source));
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
    let placement = place(&facts(), binary, Space::Kernel, kallsyms)?.placement;
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
