//! Code of modules that the kernel rewrites when it loads them, or while they run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod walk;

use std::fs;
use std::process::Command;

use mepof_binary::Binary;
use mepof_convert::{BinaryVerdict, judge};
use mepof_trace::Space;
use walk::{Directory, Stack, perf_script, read, run};

const KERNEL_AT: u64 = 0xffff_ffff_8100_0000;
const MODULE_AT: u64 = 0xffff_ffff_c000_0000;
const STACKS: u64 = 50;

/// A kernel of one instruction.
const KERNEL: &str = ".globl _start, _stext\n.type _start,@function\n_start: _stext: nop\n";

/// What is said of a module in which code ran from `first` to `last`, a branch back to it, again
/// and again. `site` is the code that is rewritten, `table` the entry that says so; there are two
/// of both, since a table whose entries are taken to have another size makes no sense then.
fn verdict(name: &str, target: &str, site: &str, table: &str) -> BinaryVerdict {
    let directory = Directory::new(&format!("patched-{name}"));
    let build = |name: &str, text: &str, flags: &[&str]| {
        let (source, output) = (directory.0.join(format!("{name}.s")), directory.0.join(name));
        fs::write(&source, text).unwrap();
        let target = format!("--target={target}-linux-gnu");
        run(Command::new("clang-22").arg(target).args(flags).arg("-o").arg(&output).arg(&source));
        output
    };
    let text = format!("-Wl,-Ttext={KERNEL_AT:#x}");
    let kernel = build("vmlinux", KERNEL, &["-nostdlib", "-static", "-fuse-ld=lld", &text]);
    let entries = table.replace("SITE", "site") + &table.replace("SITE", "other");
    let module = format!(
        ".globl first, last\n\
         .type f,@function\nf:\nnop\nnop\nsite:\n{site}\nover: last: ret\n.size f, . - f\n\
         .type g,@function\ng:\nother:\n{other}\nret\n.size g, . - g\n{entries}",
        other = site.replace("over", "f").replace("first:", ""),
    );
    let module = build("extra.ko", &module, &["-c"]);
    let binary = Binary::open(&module).unwrap();
    let text = binary.sections().iter().find(|section| section.name == ".text").unwrap();
    let at = |name: &str| MODULE_AT + (binary.symbol(name).unwrap().0 - text.addresses.start.0);
    let stack: Stack = vec![(at("last"), at("first")); 2];
    let input = directory.0.join("input");
    let mapped = format!(
        "PERF_RECORD_MMAP -1/0: [{KERNEL_AT:#x}(0x1000) @ {KERNEL_AT:#x}]: x \
         [kernel.kallsyms]_stext\n\
         PERF_RECORD_MMAP -1/0: [{MODULE_AT:#x}(0x1000) @ 0]: x [extra]\n"
    );
    fs::write(&input, mapped + &perf_script(&vec![stack; STACKS as usize])).unwrap();
    let trace = read(&kernel, &[module], &[input], Space::Kernel);
    judge(&trace.unwrap()).unwrap().verdict.binaries.remove(1)
}

/// Asserts that all that ran is used.
fn assert_used(name: &str, target: &str, site: &str, table: &str) {
    let unlisted = verdict(&format!("{name}-unlisted"), target, site, "");
    assert!(unlisted.ranges.used == 0, "{name}: nothing is rewritten: {unlisted:?}");
    let verdict = verdict(name, target, site, table);
    assert_eq!(verdict.branches.used, 2 * STACKS, "{name}: {verdict:?}");
    assert_eq!(verdict.ranges.used, STACKS, "{name}: {verdict:?}");
}

/// A jump that was a nop when the code ran, straight through it.
const X86_JUMP: &str = "first: nop\n.byte 0xe9\n.long over - . - 4\nint3";

#[test]
fn a_static_key_of_a_module_is_a_nop_at_times() {
    let table = ".section __jump_table,\"aw\"\n.long SITE + 1 - ., over - .\n.quad key - .\n";
    assert_used("key", "x86_64", X86_JUMP, table);
    let table = table.replace("SITE + 1", "SITE + 4");
    assert_used("key-arm64", "aarch64", "first: nop\nb over\nnop", &table);
}

#[test]
fn a_static_call_of_a_module_may_call_nothing() {
    let table = ".section .static_call_sites,\"aw\"\n.long SITE + 1 - ., key - .\n";
    assert_used("static-call", "x86_64", "first: nop\ncall trampoline", table);
}

#[test]
fn a_retpoline_of_a_module_becomes_a_shorter_call() {
    let table = ".section .retpoline_sites,\"a\"\n.long SITE - .\n";
    assert_used("retpoline", "x86_64", "call thunk\n.set first, site + 2", table);
}

#[test]
fn an_alternative_of_a_module_replaces_a_jump() {
    let replacement = ".section .altinstr_replacement,\"ax\"\n661: .skip 5, 0x90\n\
                       .section .altinstructions,\"a\"\n.long SITE + 1 - ., 661b - .\n";
    for (release, rest) in [
        ("6.3", ".long 0x10203\n.byte 5, 5\n"),
        ("5.14", ".word 0x203\n.byte 5, 5\n"),
        ("5.13", ".word 0x203\n.byte 5, 5, 0\n"),
    ] {
        assert_used(
            &format!("alternative-{release}"),
            "x86_64",
            X86_JUMP,
            &format!("{replacement}{rest}"),
        );
    }
    let table = ".section .altinstructions,\"a\"\n.long SITE + 4 - ., f - .\n\
                 .short 3\n.byte 4, 4\n";
    assert_used("alternative-arm64", "aarch64", "first: nop\nb over\nnop", table);
}

#[test]
fn an_indirect_call_of_a_hypervisors_operation_becomes_direct() {
    // 5 of 6 bytes, and a nop.
    let site = "call *operation(%rip)\n.set first, site + 5";
    let table = ".section .parainstructions,\"a\"\n.p2align 3\n.quad SITE\n.byte 1, 6\n\
                 .short 0\n.p2align 3\n";
    assert_used("paravirt", "x86_64", site, table);
}
