//! What a file is that is not an ELF file.

use std::path::Path;

use mepof_machine::Machine;

use crate::BinaryError;

pub fn not_a_binary(path: &Path, what: impl Into<String>) -> BinaryError {
    BinaryError::NotABinary { path: path.to_owned(), what: what.into() }
}

/// What a file is that is not an ELF file, and what to give instead.
pub fn describe(path: &Path, bytes: &[u8]) -> BinaryError {
    let at = |offset: usize, magic: &[u8]| {
        bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    let boot_image = |kind: &str| {
        format!(
            "this is {kind}, which a boot loader starts; give the vmlinux at the top of the same \
             build"
        )
    };
    let packed = |by: &str, tool: &str| {
        format!(
            "this is compressed with {by}; give the vmlinux at the top of the same build, or unpack \
             this if it is one: {tool} {}",
            path.display()
        )
    };
    let what = if bytes.is_empty() {
        "the file is empty".to_owned()
    } else if let Some(kind) = Machine::ALL.iter().find_map(|machine| machine.boot_image(bytes)) {
        boot_image(kind)
    } else if at(0, b"MZ") && at(4, b"zimg") {
        boot_image("a compressed EFI kernel image (vmlinuz.efi)")
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
    } else if at(0, b"\x5d\0\0") {
        packed("lzma", "unlzma -k")
    } else if at(0, b"\x89LZO\0\r\n\x1a\n") {
        packed("lzo", "lzop -d")
    } else if at(0, b"BC\xc0\xde") {
        "this is LLVM bitcode, not machine code; \
         with link-time optimisation use the vmlinux, or a module's .ko"
            .to_owned()
    } else if at(0, b"!<arch>\n") || at(0, b"!<thin>\n") {
        "this is an archive of objects; give the vmlinux that was linked from it".to_owned()
    } else if at(0, b"\x7fELF") {
        "this begins like an ELF file, but its header is damaged or truncated".to_owned()
    } else {
        "this is not an ELF file; give a vmlinux or a module (.ko)".to_owned()
    };
    not_a_binary(path, what)
}
