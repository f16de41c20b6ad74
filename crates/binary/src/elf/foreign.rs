//! Tells what a file is that is not an ELF file of a known machine.

use std::path::Path;

use mepof_address::Machine;
use object::elf;
use object::read::elf::{ElfFile, FileHeader};

use super::with_elf;
use crate::BinaryError;

fn not_a_binary(path: &Path, what: impl Into<String>) -> BinaryError {
    BinaryError::NotABinary { path: path.to_owned(), what: what.into() }
}

/// What a file that is no ELF file is, and what is wanted instead.
pub fn describe(path: &Path, bytes: &[u8]) -> BinaryError {
    let at = |offset: usize, magic: &[u8]| {
        bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    let boot_image = |kind: &str| {
        format!(
            "this is {kind}, which a boot loader starts; \
             wanted is the vmlinux at the top of the same build"
        )
    };
    let packed = |by: &str, tool: &str| {
        format!("this is compressed with {by}; unpack it first: {tool} {}", path.display())
    };
    let what = if bytes.is_empty() {
        "the file is empty".to_owned()
    } else if at(0x202, b"HdrS") {
        boot_image("an x86 kernel image (bzImage, vmlinuz)")
    } else if at(0x38, b"ARM\x64") {
        boot_image("an arm64 kernel image (Image)")
    } else if at(0, b"MZ") && at(4, b"zimg") {
        boot_image("a compressed EFI kernel image (vmlinuz.efi)")
    } else if at(0x24, &0x016f_2818_u32.to_le_bytes()) {
        boot_image("an Arm kernel image (zImage)")
    } else if at(0, b"ANDROID!") || at(0, b"VNDRBOOT") {
        boot_image("an Android boot image")
    } else if at(0, &0x2705_1956_u32.to_be_bytes()) {
        boot_image("a U-Boot image")
    } else if at(0, b"\x1f\x8b") {
        packed("gzip", "gzip -dk")
    } else if at(0, b"\xfd7zXZ\0") {
        packed("xz", "xz -dk")
    } else if at(0, b"\x28\xb5\x2f\xfd") {
        packed("zstd", "zstd -dk")
    } else if at(0, b"\x02\x21\x4c\x18") || at(0, b"\x04\x22\x4d\x18") {
        packed("lz4", "lz4 -dk")
    } else if at(0, b"BZh") {
        packed("bzip2", "bzip2 -dk")
    } else if at(0, b"BC\xc0\xde") {
        "this is LLVM bitcode, not machine code; \
         with link-time optimisation use the vmlinux, or a module's .ko"
            .to_owned()
    } else if at(0, b"!<arch>\n") || at(0, b"!<thin>\n") {
        "this is an archive of objects; wanted is the vmlinux that was linked from it".to_owned()
    } else if at(0, b"\x7fELF") {
        "this begins like an ELF file, and its header is damaged or cut off".to_owned()
    } else {
        "this is no ELF file; wanted is a vmlinux or a module (.ko)".to_owned()
    };
    not_a_binary(path, what)
}

/// The instruction set, if it is one that is known and the file is not for another purpose.
pub fn machine(path: &Path, contents: &[u8]) -> Result<Machine, BinaryError> {
    with_elf!(path, contents, |file| machine_of(path, &file))
}

fn machine_of<Elf: FileHeader<Endian = object::Endianness>>(
    path: &Path,
    file: &ElfFile<'_, Elf>,
) -> Result<Machine, BinaryError> {
    let (endian, header) = (file.endian(), file.elf_header());
    if header.e_type(endian) == elf::ET_CORE {
        return Err(not_a_binary(
            path,
            "this is a memory dump; wanted is the vmlinux of the kernel that was dumped",
        ));
    }
    match (header.e_machine(endian), header.is_class_64()) {
        (elf::EM_X86_64, true) => Ok(Machine::X86_64),
        (elf::EM_AARCH64, true) => Ok(Machine::Aarch64),
        (elf::EM_ARM, false) => Ok(Machine::Arm),
        (machine, wide) => Err(not_a_binary(
            path,
            format!(
                "this is a {}-bit ELF file for machine {}; known are x86-64 (62) and arm64 (183) \
                 with 64 bits and arm (40) with 32",
                if wide { 64 } else { 32 },
                machine.0
            ),
        )),
    }
}
