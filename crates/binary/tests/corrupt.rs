//! Files that are damaged, cut off or made to harm are refused or read as far as they go: no
//! panic, no endless loop, and no memory beyond what the file's size justifies.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // it is a test throughout

use std::fs;
use std::path::Path;
use std::process::Command;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, BinaryError, Symbolizer, SymbolizerOptions};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/symbolizer");

/// A program or object with debug information.
fn healthy(name: &str, options: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corrupt_{name}"));
    let output = Command::new("clang-22")
        .args(["-O2", "-g", "-ffreestanding", "-fno-stack-protector", "-o"])
        .arg(&path)
        .args(options.split_whitespace())
        .arg(format!("{SOURCES}/one.c"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(path).unwrap()
}

/// Reads all there is to read; says how many functions and how many known addresses there were.
fn read(bytes: Vec<u8>) -> Result<(usize, usize), BinaryError> {
    let binary = Binary::parse("damaged", bytes)?;
    for header in binary.section_headers() {
        let _ = binary.contents_of(header);
    }
    let mut addresses = Vec::new();
    let _ = binary.loaded_code();
    for function in binary.functions() {
        let _ = binary.code(function.addresses.clone());
        let _ = binary.code_kind(function.addresses.start);
        addresses.push(function.addresses.start);
        addresses.push(ImageAddress(function.addresses.end.0 - 1));
    }
    let options = SymbolizerOptions { all_subprograms: true, ..SymbolizerOptions::default() };
    let symbolizer = Symbolizer::with_options(&binary, &addresses, options)?;
    let known = addresses.iter().filter(|address| !symbolizer.frames(**address).is_empty());
    Ok((binary.functions().len(), known.count()))
}

/// The files that are damaged below.
fn specimens() -> Vec<Vec<u8>> {
    vec![
        healthy("object5", "-c -gdwarf-5"),
        healthy("object4", "-c -gdwarf-4 -ffunction-sections"),
        healthy("arm", "-c --target=arm-linux-gnueabi"),
        healthy("zlib", "-c -gz=zlib"),
        healthy("zstd", "-c -gz=zstd"),
    ]
}

#[test]
fn a_file_that_is_cut_off_anywhere() {
    for bytes in specimens() {
        assert!(read(bytes.clone()).unwrap().1 > 3);
        for length in (0..bytes.len()).step_by(37) {
            // Section headers stand at the end: without them there is nothing to read.
            if let Ok((functions, _)) = read(bytes[..length].to_vec()) {
                assert_eq!(functions, 0);
            }
        }
    }
}

/// A small generator of numbers that look random: xorshift64*.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

#[test]
fn bytes_that_are_something_else() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for bytes in specimens() {
        for _ in 0..400 {
            let mut bytes = bytes.clone();
            for _ in 0..=numbers.next(12) {
                let at = numbers.next(bytes.len());
                bytes[at] = match numbers.next(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => 0x7f,
                    _ => numbers.next(256) as u8,
                };
            }
            let _ = read(bytes);
        }
    }
}

/// Where a section's bytes are in an ELF file with 64 bits, little endian.
fn section(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let binary = Binary::parse("healthy", bytes.to_vec()).unwrap();
    let header = binary.section_headers().iter().find(|header| header.name == name).unwrap();
    header.file_offset as usize..(header.file_offset + header.size) as usize
}

#[test]
fn every_byte_of_debug_information_set_to_all_ones() {
    // A program rather than an object: relocations would write over the damage.
    let bytes =
        healthy("program", "-nostdlib -static -fuse-ld=lld -Wl,--unresolved-symbols=ignore-all");
    for name in [".debug_abbrev", ".debug_info", ".debug_line", ".debug_rnglists", ".debug_addr"] {
        for at in section(&bytes, name).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[at] = 0xff;
            let _ = read(bytes);
        }
    }
}

/// An object whose debug information is what `text`, assembly for it, says.
fn assembled(name: &str, text: &str) -> Binary {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = directory.join(format!("corrupt_{name}.s"));
    let object = directory.join(format!("corrupt_{name}.o"));
    fs::write(&source, text).unwrap();
    let output = Command::new("clang-22")
        .args(["--target=x86_64-linux-gnu", "-c", "-o"])
        .args([&object, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Binary::open(&object).unwrap()
}

/// Code of 64 bytes at 0x1000, and a DWARF 4 unit over all of it whose entries are `entries`.
/// Abbreviations: 1 the unit, 2 a function with a name, a line, and addresses; 3 one that refers
/// to an origin, with addresses; 4 an inlined call with the same; 5 an entry that only refers;
/// 6 a function with a list of ranges.
fn unit(entries: &str, ranges: &str) -> String {
    let abbreviation = |code: u32, tag: u32, children: u32, attributes: &[(u32, u32)]| {
        let attributes: String =
            attributes.iter().map(|(name, form)| format!(".uleb128 {name}, {form}\n")).collect();
        format!(".uleb128 {code}, {tag}\n.byte {children}\n{attributes}.byte 0, 0\n")
    };
    let (low, high, origin, name, line, list) = (0x11, 0x12, 0x31, 0x03, 0x3b, 0x55);
    let (address, data4, reference, string, data1, offset) = (0x01, 0x06, 0x13, 0x08, 0x0b, 0x17);
    let abbreviations = [
        abbreviation(1, 0x11, 1, &[(low, address), (high, data4)]),
        abbreviation(2, 0x2e, 1, &[(name, string), (line, data1), (low, address), (high, data4)]),
        abbreviation(3, 0x2e, 1, &[(origin, reference), (low, address), (high, data4)]),
        abbreviation(4, 0x1d, 1, &[(origin, reference), (low, address), (high, data4)]),
        abbreviation(5, 0x2e, 0, &[(origin, reference)]),
        abbreviation(6, 0x2e, 0, &[(name, string), (list, offset)]),
    ]
    .concat();
    format!(
        ".text\ncode: .zero 64, 0x90\n.section .debug_abbrev,\"\",@progbits\n{abbreviations}.byte 0\n\
         .section .debug_info,\"\",@progbits\nunit: .long end - version\nversion: .short 4\n\
         .long 0\n.byte 8\n.uleb128 1\n.quad code\n.long 64\n{entries}\n.byte 0\nend:\n\
         .section .debug_ranges,\"\",@progbits\n{ranges}\n"
    )
}

fn names(symbolizer: &Symbolizer, address: u64) -> Vec<String> {
    let frames = symbolizer.frames(ImageAddress(address)).iter();
    frames.map(|frame| symbolizer.names().get(frame.function).unwrap().to_string()).collect()
}

fn every_address() -> Vec<ImageAddress> {
    (0x1000..0x1040).map(ImageAddress).collect()
}

#[test]
fn origins_that_go_round_in_a_ring_give_no_name() {
    let entries = "a: .uleb128 5\n.long b - unit\nb: .uleb128 5\n.long a - unit\n\
        .uleb128 3\n.long a - unit\n.quad code\n.long 16\n.byte 0\n\
        .uleb128 2\n.asciz \"sound\"\n.byte 7\n.quad code + 16\n.long 16\n.byte 0\n";
    let binary = assembled("ring", &unit(entries, ""));
    let symbolizer = Symbolizer::new(&binary, &every_address()).unwrap();
    assert_eq!(names(&symbolizer, 0x1000), [""; 0]);
    assert_eq!(names(&symbolizer, 0x1010), ["sound"]);
}

#[test]
fn a_long_chain_of_origins_comes_to_an_end() {
    let links: String = (0..100_000)
        .map(|link| format!("l{link}: .uleb128 5\n.long l{} - unit\n", link + 1))
        .collect();
    let entries = format!(
        "{links}l100000: .uleb128 2\n.asciz \"far\"\n.byte 7\n.quad code\n.long 0\n.byte 0\n\
         .uleb128 3\n.long l0 - unit\n.quad code\n.long 16\n.byte 0\n"
    );
    let binary = assembled("chain", &unit(&entries, ""));
    let symbolizer = Symbolizer::new(&binary, &every_address()).unwrap();
    assert_eq!(names(&symbolizer, 0x1000), [""; 0]);
}

#[test]
fn calls_that_are_nested_very_deeply() {
    let depth = 2_000;
    let open = ".uleb128 4\n.long f - unit\n.quad code\n.long 16\n".repeat(depth);
    let entries = format!(
        "f: .uleb128 2\n.asciz \"f\"\n.byte 7\n.quad code\n.long 16\n{open}.zero {}\n",
        depth + 1
    );
    let binary = assembled("deep", &unit(&entries, ""));
    let symbolizer = Symbolizer::new(&binary, &every_address()).unwrap();
    assert_eq!(names(&symbolizer, 0x1000).len(), depth + 1);
}

#[test]
fn functions_that_overlap_share_the_code_out() {
    let entries = ".uleb128 2\n.asciz \"a\"\n.byte 1\n.quad code\n.long 32\n.byte 0\n\
        .uleb128 2\n.asciz \"b\"\n.byte 1\n.quad code + 16\n.long 32\n.byte 0\n\
        .uleb128 2\n.asciz \"beyond\"\n.byte 1\n.quad code + 48\n.long 0xffffffff\n.byte 0\n";
    let binary = assembled("overlap", &unit(entries, ""));
    let symbolizer = Symbolizer::new(&binary, &every_address()).unwrap();
    assert_eq!(names(&symbolizer, 0x100f), ["a"]);
    assert_eq!(names(&symbolizer, 0x1010), ["b"]);
    assert_eq!(names(&symbolizer, 0x102f), ["b"]);
    // What claims more than the section has is not believed.
    assert_eq!(names(&symbolizer, 0x1030), [""; 0]);
}

#[test]
fn one_long_list_of_ranges_that_many_functions_claim() {
    // 4000 functions of 4000 ranges each would be 16 million.
    let entries = ".uleb128 6\n.asciz \"f\"\n.long 0\n".repeat(4_000);
    let ranges = ".quad 1, 2\n".repeat(4_000) + ".quad 0, 0\n";
    let binary = assembled("lists", &unit(&entries, &ranges));
    let symbolizer = Symbolizer::new(&binary, &every_address());
    assert!(symbolizer.is_err() || symbolizer.is_ok_and(|found| found.damaged_units() == 1));
}

#[test]
fn a_damaged_unit_does_not_spoil_the_others() {
    let sound = unit(".uleb128 2\n.asciz \"sound\"\n.byte 7\n.quad code\n.long 16\n.byte 0\n", "");
    // A second unit with an abbreviation that there is none of.
    let text = format!(
        "{sound}.section .debug_info,\"\",@progbits\n.long end2 - version2\nversion2: .short 4\n\
         .long 0\n.byte 8\n.uleb128 77\n.byte 0\nend2:\n"
    );
    let binary = assembled("spoilt", &text);
    let symbolizer = Symbolizer::new(&binary, &every_address()).unwrap();
    assert_eq!(symbolizer.damaged_units(), 1);
    assert_eq!(names(&symbolizer, 0x1000), ["sound"]);
}

#[test]
fn a_section_that_claims_to_be_huge_once_unpacked() {
    let mut bytes = healthy("bomb", "-c -gz=zlib");
    let header = section(&bytes, ".debug_info").start;
    // Elf64_Chdr: kind, reserved, size, alignment.
    bytes[header + 8..header + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    let binary = Binary::parse("bomb", bytes).unwrap();
    let Err(error) = Symbolizer::new(&binary, &every_address()) else { panic!("it is a lie") };
    assert!(matches!(error, BinaryError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains(".debug_info"), "{error}");
}

#[test]
fn calls_nested_without_end_take_no_memory_without_end() {
    // Each call is a byte shorter than the one around it: as many stacks as frames in the
    // longest. A unit of 9 MB would have 500,000 squared frames, halved.
    let depth = 40_000;
    let open: String = (0..depth)
        .map(|call| {
            format!(".uleb128 4\n.long f - unit\n.quad code + {call}\n.long {}\n", depth - call)
        })
        .collect();
    let entries = format!(
        "f: .uleb128 2\n.asciz \"f\"\n.byte 7\n.quad code\n.long {depth}\n{open}.zero {}\n",
        depth + 1
    );
    let text = unit(&entries, "").replace(".zero 64, 0x90", &format!(".zero {depth}, 0x90"));
    let text = text.replace(".quad code\n.long 64", &format!(".quad code\n.long {depth}"));
    let binary = assembled("endless", &text);
    let symbolizer = Symbolizer::new(&binary, &every_address());
    assert!(symbolizer.is_err() || symbolizer.is_ok_and(|found| found.damaged_units() == 1));
}
