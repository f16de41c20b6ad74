//! What an ELF file is made of, as kernels, modules and programs have it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // it is a test throughout

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, BinaryError};
use mepof_machine::Machine;
use mepof_machine::{CodeKind, Flow};

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("elf_{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Compiles `source`, a file of that name with `text` in it; says where the outcome is.
fn compile(name: &str, source: &str, text: &str, options: &str) -> PathBuf {
    let directory = directory(name);
    fs::write(directory.join(source), text).unwrap();
    let output = Command::new("clang-22")
        .args(["-o", "out", source])
        .args(options.split_whitespace())
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join("out")
}

fn assembled(name: &str, text: &str) -> Binary {
    Binary::open(&compile(name, "code.s", text, "-c --target=x86_64-linux-gnu")).unwrap()
}

/// Functions as (name, offset in the section, size, is an entry).
fn functions(binary: &Binary) -> Vec<(&str, u64, u64, bool)> {
    let functions = binary.functions().iter();
    functions
        .map(|function| {
            let (start, end) = (function.addresses.start.0, function.addresses.end.0);
            (function.name.as_str(), start - 0x1000, end - start, function.is_entry)
        })
        .collect()
}

#[test]
fn of_several_names_the_global_one_counts_and_then_the_first_by_name() {
    let binary = assembled(
        "aliases",
        ".globl beta, alpha\n.weak aaa\n\
         .type aaa,@function\n.type alpha,@function\n.type beta,@function\n\
         .type local,@function\n aaa: alpha: beta: local: nop\nret\n\
         .size aaa,2\n.size alpha,2\n.size beta,2\n.size local,2\n",
    );
    assert_eq!(functions(&binary), [("alpha", 0, 2, true)]);
}

#[test]
fn a_function_without_a_size_reaches_to_the_next_or_to_the_end() {
    let binary = assembled(
        "unsized",
        ".type a,@function\n.type b,@function\na: nop\nnop\nnop\nb: ret\nnop\n",
    );
    assert_eq!(functions(&binary), [("a", 0, 3, true), ("b", 3, 2, true)]);
}

#[test]
fn untyped_code_counts_where_no_function_is() {
    let binary = assembled(
        "untyped",
        ".type f,@function\nf: nop\nlabel: nop\n.size f,2\n\
         .globl entry\nentry: nop\nret\n.size entry,2\n\
         .globl __code_end\n__code_end: int3\n",
    );
    // `label` lies in `f`, and `__code_end` is a mark.
    assert_eq!(functions(&binary), [("f", 0, 2, true), ("entry", 2, 2, true)]);
}

#[test]
fn a_function_within_another_is_cut_out_of_it() {
    let binary = assembled(
        "nested",
        ".type outer,@function\n.type inner,@function\n\
         outer: nop\nnop\ninner: nop\nnop\n.size inner,2\nnop\nret\n.size outer,6\n",
    );
    let expected = [("outer", 0, 2, true), ("inner", 2, 2, true), ("outer", 4, 2, false)];
    assert_eq!(functions(&binary), expected);
    let at =
        |offset: u64| binary.function_at(ImageAddress(0x1000 + offset)).map(|f| f.name.as_str());
    let names: Vec<_> = (0..7).map(at).collect();
    let (outer, inner) = (Some("outer"), Some("inner"));
    assert_eq!(names, [outer, outer, inner, inner, outer, outer, None]);
    assert!(binary.function_at(ImageAddress(0xfff)).is_none());
}

#[test]
fn parts_that_were_split_off_are_no_entries() {
    let names = ["f", "f.cold", "f.__part.1", "f.part.0", "f.llvm.77", "__pfx_f", "__cfi_f"];
    let text: String = names
        .iter()
        .map(|name| format!(".type {name},@function\n{name}: nop\n.size {name},1\n"))
        .collect();
    let binary = assembled("parts", &text);
    let entries: Vec<_> =
        functions(&binary).into_iter().filter(|function| function.3).map(|f| f.0).collect();
    assert_eq!(entries, ["f", "f.part.0", "f.llvm.77"]);
}

#[test]
fn sections_of_a_module_are_laid_out_one_after_the_other() {
    let binary = assembled(
        "layout",
        ".section .text.b,\"ax\"\nb: ret\n.data\n.quad 1\n\
         .section .text.a,\"ax\"\n.p2align 8\na: nop\nret\n\
         .section .empty,\"ax\"\n.section .noload,\"x\"\nret\n",
    );
    let sections: Vec<_> = binary
        .sections()
        .iter()
        .map(|section| (section.name.as_str(), section.addresses.start.0, section.addresses.end.0))
        .collect();
    assert_eq!(sections, [(".text.b", 0x1000, 0x1001), (".text.a", 0x1100, 0x1102)]);
    assert_eq!(binary.text_size(), 3);
    assert_eq!(binary.symbol("a"), Some(ImageAddress(0x1100)));
    assert_eq!(binary.symbol("c"), None);
    assert_eq!(binary.executable_base(), None);
    assert!(binary.is_relocatable());
    let code = |from, to| binary.code(ImageAddress(from)..ImageAddress(to));
    assert_eq!(code(0x1100, 0x1102), [0x90, 0xc3]);
    assert_eq!(code(0x1101, u64::MAX), [0xc3]);
    assert_eq!(code(0x1000, 0x1102), [0xc3]); // only as much as lies in one section
    for (from, to) in [(0, 0x1001), (0x1001, 0x1100), (0x1102, 0x1103), (0x1101, 0x1100)] {
        assert_eq!(code(from, to), [0; 0]);
    }
}

#[test]
fn calls_within_a_module_lead_where_they_should() {
    let text = "void outside(void);\n\
        __attribute__((noinline, section(\".text.far\"))) void far(int *p) { ++*p; }\n\
        __attribute__((noinline)) static void near(int *p) { *p += 2; outside(); *p = 3; }\n\
        void calls(int *p) { near(p); far(p); outside(); *p = 1; }\n";
    for (machine, options, thumb) in [
        (Machine::X86_64, "--target=x86_64-linux-gnu", false),
        (Machine::AARCH64, "--target=aarch64-linux-gnu", false),
        (Machine::ARM, "--target=arm-linux-gnueabi -marm -march=armv7-a", false),
        (Machine::ARM, "--target=arm-linux-gnueabi -mthumb -march=armv7-a", true),
    ] {
        let name = format!("calls_{machine}_{thumb}");
        let options = format!("-O2 -c -fno-inline -ffreestanding {options}");
        let binary = Binary::open(&compile(&name, "code.c", text, &options)).unwrap();
        assert_eq!(binary.machine(), machine);
        let function = |name: &str| {
            let all = binary.functions().iter();
            all.clone().find(|function| function.name == name).unwrap().addresses.clone()
        };
        let range = function("calls");
        assert_eq!(
            binary.code_kind(range.start),
            match thumb {
                _ if machine == Machine::X86_64 => None,
                true => Some(CodeKind::Thumb),
                false => Some(CodeKind::Arm),
            }
        );
        let (mut address, mut targets) = (range.start, Vec::new());
        while address < range.end {
            let code = binary.code(address..range.end);
            let Some(instruction) = machine.decode(thumb, address, code) else { break };
            match instruction.flow {
                Flow::Call(target) | Flow::Jump(target) => targets.push(target),
                _ => {}
            }
            address.0 += u64::from(instruction.size);
        }
        let expected = [function("near").start, function("far").start, ImageAddress(0)];
        assert_eq!(targets, expected, "{name}");
    }
}

#[test]
fn a_program_has_a_build_id_and_a_base() {
    let text = "void helper(void) {} void _start(void) { helper(); }";
    let options = "-O0 -nostdlib -static -fuse-ld=lld -Wl,--build-id=0xfeedc0de";
    let path = compile("program", "code.c", text, options);
    let binary = Binary::open(&path).unwrap();
    assert_eq!(binary.build_id().unwrap().to_string(), "feedc0de");
    assert_eq!(binary.path(), path);
    assert!(!binary.is_relocatable());
    let output = Command::new("llvm-readelf-22").args(["-lW"]).arg(&path).output().unwrap().stdout;
    let base = String::from_utf8(output).unwrap();
    let base = base
        .lines()
        .find(|line| line.contains("LOAD") && line.contains("R E"))
        .and_then(|line| line.split_whitespace().nth(2))
        .unwrap()
        .to_owned();
    let page = number(&base) & !0xfff;
    assert_eq!(binary.executable_base().unwrap().to_string(), format!("{page:#x}"));
    assert_ne!(number(&base), page, "lld begins segments within pages");
    let names: Vec<_> = functions(&binary).iter().map(|function| function.0).collect();
    assert_eq!(names, ["helper", "_start"]);

    // Once stripped, it still is a program, and knows its code.
    let status = Command::new("llvm-strip-22").arg(&path).status().unwrap();
    assert!(status.success());
    let stripped = Binary::open(&path).unwrap();
    assert_eq!(stripped.text_size(), binary.text_size());
    assert!(stripped.functions().is_empty());
}

fn number(hexadecimal: &str) -> u64 {
    u64::from_str_radix(hexadecimal.trim_start_matches("0x"), 16).unwrap()
}

/// A program with two sections of code at one address: two bytes, and `second`.
fn overlaid(name: &str, second: &str) -> Result<Binary, BinaryError> {
    let script = directory(&format!("{name}_script")).join("overlay.lds");
    // Loaded at different addresses, or the linker would write both to one place of the file.
    let text = "SECTIONS { .first 0x2000 : AT(0x2000) { *(.first) } \
                .second 0x2000 : AT(0x3000) { *(.second) } }";
    fs::write(&script, text).unwrap();
    let flags = "\"ax\",@progbits";
    let code = format!(
        ".section .first,{flags}\n.globl one\n.type one,@function\none: nop\nret\n.size one,2\n\
         .section .second,{flags}\n.globl two\n.type two,@function\ntwo: {second}\n"
    );
    let options = "--target=x86_64-linux-gnu -nostdlib -static -fuse-ld=lld -Wl,-e,0x2000 \
                   -Wl,--no-check-sections";
    Binary::open(&compile(name, "code.s", &code, &format!("{options} -Wl,-T,{}", script.display())))
}

#[test]
fn of_sections_that_take_turns_in_one_place_the_first_counts() {
    let binary = overlaid("turns", "int3\nret").unwrap();
    assert_eq!(binary.text_size(), 2);
    let code = binary.code(ImageAddress(0x2000)..ImageAddress(0x2002));
    assert_eq!(code, [0x90, 0xc3]);

    let error = overlaid("partly", "nop\nnop\nret").err().unwrap();
    assert!(error.to_string().contains("it overlaps .first in memory"), "{error}");
}

#[test]
fn sections_of_the_same_name_are_told_apart_by_their_links() {
    let path = compile(
        "maps",
        "code.c",
        "int f(int a) { return a * 2; } int g(int a) { return a ? f(a) : 3; }",
        "-O1 -c -ffunction-sections -fbasic-block-address-map",
    );
    let binary = Binary::open(&path).unwrap();
    let headers = binary.section_headers().iter();
    let maps: Vec<_> = headers.filter(|header| header.name == ".llvm_bb_addr_map").collect();
    assert_eq!(maps.len(), 2);
    for (map, function) in maps.iter().zip([".text.f", ".text.g"]) {
        let code = &binary.section_headers()[map.link as usize];
        assert_eq!(code.name, function);
        // Version, features, then the function's address, which a relocation gives.
        let data = binary.contents_of(map).unwrap();
        let at = data.windows(8).any(|bytes| bytes == code.address.to_le_bytes());
        assert!(at, "{data:x?} has no {:#x}", code.address);
    }
    assert!(binary.section_data(".no_such_section").unwrap().is_none());
}

#[test]
fn what_is_not_a_vmlinux_is_called_by_its_name() {
    let file = |at: usize, magic: &[u8]| {
        let mut bytes = vec![0; at];
        bytes.extend(magic);
        bytes.resize(bytes.len().max(0x400), 0);
        bytes
    };
    for (bytes, expected) in [
        (file(0x202, b"HdrS"), "vmlinux"),
        (file(0x38, b"ARM\x64"), "vmlinux"),
        (file(0x24, &[0x18, 0x28, 0x6f, 0x01]), "vmlinux"),
        (file(0, b"MZ\0\0zimg"), "vmlinux"),
        (file(0, b"ANDROID!"), "vmlinux"),
        (file(0, b"\x1f\x8b\x08"), "gzip -dk"),
        (file(0, b"\x02\x21\x4c\x18"), "lz4; give the vmlinux at the top of the same build, or"),
        (file(0, b"\x5d\0\0"), "unlzma -k file"),
        (file(0, b"\x89LZO\0\r\n\x1a\n"), "lzop -d file"),
        (file(0, b"\x28\xb5\x2f\xfd"), "zstd -dk"),
        (file(0, b"\xfd7zXZ\0"), "xz -dk"),
        (file(0, b"BC\xc0\xde"), "bitcode"),
        (file(0, b"!<arch>\n"), "archive"),
        (file(0, b"\x7fELF"), "damaged"),
        (file(0, b"#!/bin/sh"), "not an ELF file"),
        (Vec::new(), "empty"),
    ] {
        let error = Binary::parse("file", bytes).unwrap_err();
        assert!(matches!(error, BinaryError::NotABinary { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error} does not say {expected}");
    }
    let error = Binary::open(Path::new("/no/such/vmlinux")).unwrap_err();
    assert!(matches!(error, BinaryError::Io { .. }), "{error}");
    let error = Binary::open(Path::new("/dev/null")).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[test]
fn debug_information_that_was_split_off_is_not_taken_for_a_binary() {
    let text = "void helper(void) {} void _start(void) { helper(); }";
    for (name, options) in [("vmlinux", "-nostdlib -static -fuse-ld=lld"), ("module", "-c")] {
        let path = compile(&format!("split_{name}"), "code.c", text, &format!("-g {options}"));
        for tool in ["llvm-objcopy-22", "objcopy"] {
            let split = path.with_extension("debug");
            let mut command = Command::new(tool);
            let status = command.arg("--only-keep-debug").args([&path, &split]).status().unwrap();
            assert!(status.success());
            let error = Binary::open(&split).unwrap_err();
            assert!(matches!(error, BinaryError::NotABinary { .. }), "{name}: {error}");
            let join = format!("eu-unstrip -o JOINED STRIPPED {}", split.display());
            assert!(error.to_string().contains(&join), "{name}: {error}");
        }
    }
    // What has neither code nor room for it is no such file: a package of debug information.
    let data = compile("split_data", "code.c", "int data = 1;", "-c -g");
    assert_eq!(Binary::open(&data).unwrap().text_size(), 0);
}

#[test]
fn another_machine_is_said_to_be_one() {
    for (target, machine) in [("riscv64-linux-gnu", "243"), ("i386-linux-gnu", "machine 3")] {
        let options = format!("-c --target={target}");
        let path = compile(&format!("machine_{target}"), "code.c", "int f;", &options);
        let error = Binary::open(&path).unwrap_err();
        assert!(error.to_string().contains(machine), "{error}");
    }
}
