//! Every address of small programs, built in every way that debug information comes in, has the
//! inline stack that `llvm-symbolizer` of LLVM 22 gives it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // it is a test throughout

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mepof_address::ImageAddress;
use mepof_binary::{Binary, BinaryError, Symbolizer, SymbolizerOptions};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/symbolizer");

/// A frame as the two sides are compared: name, line offset, discriminator.
type Stack = Vec<(String, i32, u32)>;

/// An empty directory for one test.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn run<A: AsRef<OsStr>>(directory: &Path, program: &str, arguments: &[A]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} failed: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds `sources` (blank-separated) with `options` into `directory`.
fn build(directory: &Path, compiler: &str, options: &str, sources: &str) -> PathBuf {
    let mut arguments: Vec<String> = ["-O2", "-ffreestanding", "-fno-stack-protector", "-o", "out"]
        .into_iter()
        .chain(options.split_whitespace())
        .map(str::to_owned)
        .collect();
    if !arguments.iter().any(|argument| argument == "-c") {
        arguments.extend(["-nostdlib", "-static"].map(str::to_owned));
    }
    arguments.extend(sources.split_whitespace().map(|source| format!("{SOURCES}/{source}")));
    run(directory, compiler, &arguments);
    directory.join("out")
}

/// All addresses in functions.
fn code_addresses(binary: &Binary) -> Vec<ImageAddress> {
    binary
        .functions()
        .iter()
        .flat_map(|function| function.addresses.start.0..function.addresses.end.0)
        .map(ImageAddress)
        .collect()
}

/// What `llvm-symbolizer` says of `addresses`, which are `base` more than it counts them.
fn reference(path: &Path, options: &[&str], addresses: &[ImageAddress], base: u64) -> Vec<Stack> {
    let mut child = Command::new("llvm-symbolizer-22")
        .arg(format!("--obj={}", path.display()))
        .args(["--inlines", "--functions=linkage", "--no-demangle", "--verbose"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String =
        addresses.iter().map(|address| format!("{:#x}\n", address.0 - base)).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let stacks: Vec<Stack> =
        text.split("\n\n").filter(|block| !block.trim().is_empty()).map(stack).collect();
    assert_eq!(stacks.len(), addresses.len());
    stacks
}

/// Reads one answer: frames with a name each and lines of facts, the innermost first.
fn stack(block: &str) -> Stack {
    let mut frames: Vec<(String, i64, i64, u32)> = Vec::new();
    for line in block.lines() {
        let Some(fact) = line.strip_prefix("  ") else {
            frames.push((line.to_owned(), 0, 0, 0));
            continue;
        };
        let frame = frames.last_mut().unwrap();
        if let Some(line) = fact.strip_prefix("Function start line: ") {
            frame.1 = line.parse().unwrap();
        } else if let Some(line) = fact.strip_prefix("Line: ") {
            frame.2 = line.parse().unwrap();
        } else if let Some(discriminator) = fact.strip_prefix("Discriminator: ") {
            frame.3 = discriminator.parse().unwrap();
        }
    }
    let frame = |(name, start, line, discriminator): (String, i64, i64, u32)| {
        (name, (line - start) as i32, discriminator)
    };
    frames.into_iter().rev().map(frame).take_while(|frame| frame.0 != "??").collect()
}

fn stack_of(symbolizer: &Symbolizer, address: ImageAddress) -> Stack {
    let frames = symbolizer.frames(address).iter();
    frames
        .map(|frame| {
            let name = symbolizer.names().get(frame.function).unwrap();
            (name.to_string(), frame.line_offset, frame.discriminator)
        })
        .collect()
}

/// The symbolizer takes the outermost name from the symbol table, where it has these suffixes.
fn without_suffix(mut stack: Stack) -> Stack {
    if let Some(outermost) = stack.first_mut() {
        outermost.0 = outermost.0.split('.').next().unwrap().to_owned();
    }
    stack
}

/// Compares every address; says how many distinct stacks and how deep a stack there were.
fn compare(path: &Path, options: &[&str], base: u64) -> (usize, usize) {
    let binary = Binary::open(path).unwrap();
    let addresses = code_addresses(&binary);
    assert!(addresses.len() > 100, "only {} addresses", addresses.len());
    let symbolizer = Symbolizer::new(&binary, &addresses).unwrap();
    assert_eq!(symbolizer.damaged_units(), 0);
    assert_eq!(symbolizer.missing_split_units(), 0);
    let expected = reference(path, options, &addresses, base);
    let mut distinct = BTreeSet::new();
    for (address, expected) in addresses.iter().zip(expected) {
        let found = stack_of(&symbolizer, *address);
        assert_eq!(found, without_suffix(expected), "at {address} of {}", path.display());
        distinct.insert(found);
    }
    let depth = distinct.iter().map(Vec::len).max().unwrap();
    (distinct.len(), depth)
}

/// Builds the C program and compares it.
fn check(name: &str, compiler: &str, options: &str) {
    let directory = directory(name);
    let path = build(&directory, compiler, options, "one.c two.c");
    let (distinct, depth) = compare(&path, &[], 0);
    assert!(distinct > 40 && depth >= 3, "{distinct} stacks of up to {depth} frames prove little");
    let binary = Binary::open(&path).unwrap();
    let symbolizer = Symbolizer::new(&binary, &code_addresses(&binary)).unwrap();
    assert_eq!(symbolizer.is_by_gcc(), compiler == "gcc");
}

#[test]
fn clang_dwarf_4() {
    check("clang4", "clang-22", "-g -gdwarf-4");
}

#[test]
fn clang_dwarf_5() {
    check("clang5", "clang-22", "-g -gdwarf-5");
}

#[test]
fn clang_dwarf_2_and_3() {
    check("clang2", "clang-22", "-g -gdwarf-2");
    check("clang3", "clang-22", "-g -gdwarf-3");
}

#[test]
fn clang_64_bit_dwarf() {
    check("clang64", "clang-22", "-g -gdwarf-5 -gdwarf64");
}

#[test]
fn discriminators() {
    check("profiling4", "clang-22", "-g -gdwarf-4 -fdebug-info-for-profiling");
    check("profiling5", "clang-22", "-g -gdwarf-5 -fdebug-info-for-profiling");
    check("unique", "clang-22", "-g -fdebug-info-for-profiling -gmlt");
}

#[test]
fn compressed_sections() {
    check("zlib", "clang-22", "-g -gdwarf-5 -gz=zlib -fuse-ld=lld");
    check("zstd", "clang-22", "-g -gdwarf-5 -gz=zstd -fuse-ld=lld");
}

#[test]
fn compressed_sections_of_old() {
    let directory = directory("zdebug");
    let path = build(&directory, "clang-22", "-g -gdwarf-4", "one.c two.c");
    run(&directory, "objcopy", &["--compress-debug-sections=zlib-gnu", "out"]);
    let binary = Binary::open(&path).unwrap();
    assert!(binary.section_headers().iter().any(|header| header.name == ".zdebug_info"));
    let plain = self::directory("zdebug_plain");
    let plain = Binary::open(&build(&plain, "clang-22", "-g -gdwarf-4", "one.c two.c")).unwrap();
    let addresses = code_addresses(&binary);
    let [ours, expected] =
        [&binary, &plain].map(|binary| Symbolizer::new(binary, &addresses).unwrap());
    for address in addresses {
        assert_eq!(stack_of(&ours, address), stack_of(&expected, address));
    }
}

#[test]
fn accelerator_tables_and_address_ranges() {
    check("pubnames", "clang-22", "-g -gdwarf-5 -gpubnames -gdwarf-aranges");
}

#[test]
fn sections_of_their_own() {
    let options = "-g -gdwarf-5 -ffunction-sections -Wl,--gc-sections -fuse-ld=lld";
    check("function_sections", "clang-22", options);
    check("function_sections4", "clang-22", &options.replace("dwarf-5", "dwarf-4"));
}

#[test]
fn functions_in_many_parts() {
    let options = "-g -gdwarf-5 -fbasic-block-sections=all -fuse-ld=lld";
    check("block_sections", "clang-22", options);
    check("block_sections4", "clang-22", &options.replace("dwarf-5", "dwarf-4"));
}

#[test]
fn link_time_optimisation() {
    // Functions of one unit inlined into another: references from unit to unit.
    check("lto5", "clang-22", "-g -gdwarf-5 -flto -fuse-ld=lld -Wl,-e,_start");
    check("lto4", "clang-22", "-g -gdwarf-4 -flto=thin -fuse-ld=lld -Wl,-e,_start");
}

#[test]
fn gcc_dwarf_4_and_5() {
    check("gcc4", "gcc", "-g -gdwarf-4");
    check("gcc5", "gcc", "-g -gdwarf-5");
    check("gcc_sections", "gcc", "-g -gdwarf-5 -ffunction-sections");
}

#[test]
fn gcc_splits_cold_parts_off() {
    let options = "-g -freorder-blocks-and-partition -fno-inline-small-functions";
    let path = build(&directory("gcc_cold"), "gcc", options, "one.c two.c");
    compare(&path, &[], 0);
    let binary = Binary::open(&path).unwrap();
    let part = binary.functions().iter().find(|function| function.name.contains(".cold")).unwrap();
    assert!(!part.is_entry);
}

#[test]
fn split_in_dwo_files() {
    check("dwo5", "clang-22", "-g -gdwarf-5 -gsplit-dwarf");
    check("dwo4", "clang-22", "-g -gdwarf-4 -gsplit-dwarf");
    check("dwo_profiling", "clang-22", "-g -gsplit-dwarf -fdebug-info-for-profiling");
    check("dwo_gcc", "gcc", "-g -gdwarf-5 -gsplit-dwarf");
}

#[test]
fn split_in_a_package() {
    for dwarf in ["-gdwarf-4", "-gdwarf-5"] {
        let directory = directory(&format!("package{dwarf}"));
        let options = format!("-g {dwarf} -gsplit-dwarf -fdebug-info-for-profiling");
        let path = build(&directory, "clang-22", &options, "one.c two.c");
        run(&directory, "llvm-dwp-22", &["-e", "out", "-o", "out.dwp"]);
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension() == Some(OsStr::new("dwo")) {
                fs::remove_file(path).unwrap();
            }
        }
        compare(&path, &[], 0);

        // The same under another name has to be pointed to.
        let package = directory.join("elsewhere");
        fs::rename(directory.join("out.dwp"), &package).unwrap();
        let binary = Binary::open(&path).unwrap();
        let addresses = code_addresses(&binary);
        let lost = Symbolizer::new(&binary, &addresses).unwrap();
        assert_eq!(lost.missing_split_units(), 2);
        let options = SymbolizerOptions { package: Some(&package), ..SymbolizerOptions::default() };
        let found = Symbolizer::with_options(&binary, &addresses, options).unwrap();
        assert_eq!(found.missing_split_units(), 0);
        assert!(addresses.iter().any(|address| found.frames(*address).len() > 2));
    }
}

#[test]
fn linkage_names() {
    for (name, compiler, options) in [
        ("names5", "clang-22", "-g -gdwarf-5"),
        ("names4", "clang-22", "-g -gdwarf-4 -fdebug-info-for-profiling"),
        ("names_gcc", "gcc", "-g"),
    ] {
        let directory = directory(name);
        let path = build(&directory, compiler, options, "names.cpp");
        compare(&path, &[], 0);
        let binary = Binary::open(&path).unwrap();
        let symbolizer = Symbolizer::new(&binary, &code_addresses(&binary)).unwrap();
        assert!(symbolizer.names().find("_ZN6kernel5Queue4pushEi").is_some());
        assert!(symbolizer.names().find("push").is_none());
    }
}

#[test]
fn relocatable_files_of_every_machine() {
    for (name, compiler, options) in [
        ("object_x86", "clang-22", ""),
        ("object_x86_4", "clang-22", "-gdwarf-4"),
        ("object_gcc", "gcc", ""),
        ("object_zstd", "clang-22", "-gz=zstd"),
        ("object_arm64", "clang-22", "--target=aarch64-linux-gnu"),
        ("object_arm64_4", "clang-22", "--target=aarch64-linux-gnu -gdwarf-4"),
        ("object_arm", "clang-22", "--target=arm-linux-gnueabi -marm"),
        ("object_thumb", "clang-22", "--target=arm-linux-gnueabi -mthumb -march=armv7-a"),
        ("object_arm64_be", "clang-22", "--target=aarch64_be-linux-gnu"),
    ] {
        let directory = directory(name);
        let options = format!("-g {options} -c -fdebug-info-for-profiling");
        let options = match compiler {
            "gcc" => options.replace("-fdebug-info-for-profiling", ""),
            _ => options,
        };
        let path = build(&directory, compiler, &options, "two.c");
        let binary = Binary::open(&path).unwrap();
        assert!(binary.is_relocatable());
        // One section with code: the symbolizer counts from its start.
        let code: Vec<_> = binary.sections().iter().map(|section| &section.name).collect();
        assert_eq!(code, [".text"]);
        let base = binary.sections()[0].addresses.start.0;
        assert_eq!(base, 0x1000);
        compare(&path, &[], base);
    }
}

#[test]
fn sections_of_a_relocatable_file_are_told_apart() {
    for target in ["x86_64-linux-gnu", "aarch64-linux-gnu"] {
        let directory = directory(&format!("apart_{target}"));
        let options = format!("--target={target} -g -c");
        let together = build(&directory, "clang-22", &options, "one.c");
        let one = directory.join("together");
        fs::rename(together, &one).unwrap();
        let options = format!("{options} -ffunction-sections");
        let apart = build(&directory, "clang-22", &options, "one.c");
        let [one, apart] = [one, apart].map(|path| Binary::open(&path).unwrap());
        assert!(apart.sections().len() > one.sections().len());
        let [of_one, of_apart] =
            [&one, &apart].map(|binary| Symbolizer::new(binary, &code_addresses(binary)).unwrap());
        for function in one.functions() {
            let twin = apart.functions().iter().find(|twin| twin.name == function.name).unwrap();
            let (start, twin) = (function.addresses.start.0, twin.addresses.start.0);
            for offset in 0..function.addresses.end.0 - start {
                assert_eq!(
                    stack_of(&of_one, ImageAddress(start + offset)),
                    stack_of(&of_apart, ImageAddress(twin + offset)),
                    "{} + {offset:#x}",
                    function.name
                );
            }
        }
    }
}

#[test]
fn only_functions_that_are_asked_for_are_read() {
    let path = build(&directory("asked"), "clang-22", "-g", "one.c two.c");
    let binary = Binary::open(&path).unwrap();
    let start = |name| binary.functions().iter().find(|function| function.name == name).unwrap();
    let asked = start("other").addresses.clone();
    let symbolizer = Symbolizer::new(&binary, &[ImageAddress(asked.end.0 - 1)]).unwrap();
    for address in asked.start.0..asked.end.0 {
        assert!(!symbolizer.frames(ImageAddress(address)).is_empty());
    }
    assert!(symbolizer.frames(start("choose").addresses.start).is_empty());
    assert!(symbolizer.frames(start("deeper").addresses.start).is_empty());
    for outside in [0, 1, u64::MAX] {
        assert!(symbolizer.frames(ImageAddress(outside)).is_empty());
    }
}

#[test]
fn subprograms_are_a_table_of_functions() {
    let options = "-g -fbasic-block-sections=all -fuse-ld=lld";
    let path = build(&directory("subprograms"), "clang-22", options, "one.c two.c");
    let binary = Binary::open(&path).unwrap();
    let options = SymbolizerOptions { all_subprograms: true, ..SymbolizerOptions::default() };
    let symbolizer = Symbolizer::with_options(&binary, &[], options).unwrap();
    let subprograms = symbolizer.subprograms();
    let name = subprograms.names().find("choose").unwrap();
    let ranges: Vec<_> = subprograms.of(name).collect();
    assert!(ranges.len() > 3);
    let entries: Vec<_> = ranges.iter().filter(|range| range.is_entry).collect();
    assert_eq!(entries.len(), 1);
    let entry = entries[0].addresses.start;
    assert_eq!(binary.symbol("choose"), Some(entry));
    assert_eq!(subprograms.starting_at(entry).unwrap().name, name);
    assert_eq!(subprograms.starting_at(ImageAddress(entry.0 + 1)), None);
    assert_eq!(subprograms.covering(ImageAddress(entry.0 + 1)).unwrap().name, name);
    assert_eq!(subprograms.covering(ImageAddress(0)), None);
    // A part is not an entry in the symbol table's view either.
    for range in ranges.iter().filter(|range| !range.is_entry) {
        assert!(!binary.function_at(range.addresses.start).unwrap().is_entry);
    }

    // Without being asked for, no unit is read.
    let none = Symbolizer::new(&binary, &[]).unwrap();
    assert!(none.subprograms().ranges().is_empty());
}

#[test]
fn a_binary_without_debug_information_says_what_to_do() {
    let path = build(&directory("stripped"), "clang-22", "-g0", "one.c two.c");
    let binary = Binary::open(&path).unwrap();
    let Err(error) = Symbolizer::new(&binary, &[]) else { panic!("there is none") };
    assert!(matches!(error, BinaryError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("CONFIG_DEBUG_INFO"), "{error}");
}
