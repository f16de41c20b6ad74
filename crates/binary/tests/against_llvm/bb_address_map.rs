//! Basic-block address maps of Clang 19 and 22 against `llvm-readobj`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mepof_binary::{Binary, BinaryError, Block, FunctionBlocks, read_bb_address_maps};

use crate::llvm;

const CODE: &str = r#"
extern int one(int), two(int);
extern int (*pointer)(int);
__attribute__((noinline)) static int local(int x) { return x * 3 + one(x); }
int loop(int x, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (x > i) sum += one(x + i); else sum -= local(i);
        if (__builtin_expect(sum == 12345, 0)) { one(1); two(2); }
    }
    return sum;
}
int choose(int x) {
    switch (x) {
    case 1: return one(1);
    case 2: return two(3);
    case 3: return pointer(4);
    case 4: return one(9) + pointer(1) + two(2);
    case 5: return 77;
    case 6: return pointer(2) + 1;
    }
    return 0;
}
int main(void) { return loop(3, 4) + choose(2); }
"#;

/// What `llvm-readobj` prints of a block, and the same of ours.
#[derive(Debug, PartialEq, Eq, Default, Clone)]
struct Printed {
    fields: BTreeMap<String, String>,
}

/// Function address (in a relocatable file: in its section), then ranges of blocks.
type Maps = Vec<(u64, Vec<(u64, Vec<Printed>)>)>;

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// Reads what `llvm-readobj --bb-addr-map` prints.
fn printed(directory: &Path, file: &str) -> Maps {
    let text = llvm::run(directory, "llvm-readobj-22", &["--bb-addr-map", file]);
    let mut maps: Maps = Vec::new();
    let mut in_analysis = false;
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else {
            in_analysis |= line.trim().starts_with("PGO analyses");
            continue;
        };
        if key == "At" {
            maps.push((hexadecimal(value), Vec::new()));
            in_analysis = false;
        }
        let Some((_, ranges)) = maps.last_mut().filter(|_| !in_analysis) else { continue };
        match key {
            "Base Address" => ranges.push((hexadecimal(value), Vec::new())),
            "At" | "Name" => {}
            _ => {
                let blocks = &mut ranges.last_mut().expect("a range").1;
                if key == "ID" {
                    blocks.push(Printed::default());
                }
                let block = blocks.last_mut().expect("a block");
                block.fields.insert(key.to_owned(), value.to_owned());
            }
        }
    }
    maps
}

/// Ours in `llvm-readobj`'s words. `base` is what a range's address counts from.
fn ours(functions: &[FunctionBlocks], base: impl Fn(u64) -> u64) -> Maps {
    let map = |function: &FunctionBlocks| {
        let ranges = function.ranges.iter().map(|range| {
            let block = |block: &Block| described(block, block.address.0 - range.address.0);
            (base(range.address.0), range.blocks.iter().map(block).collect())
        });
        (base(function.address.0), ranges.collect())
    };
    functions.iter().map(map).collect()
}

fn described(block: &Block, offset: u64) -> Printed {
    let yes = |flag: bool| if flag { "Yes" } else { "No" }.to_owned();
    let mut fields = BTreeMap::from([
        ("ID".to_owned(), block.id.to_string()),
        ("Offset".to_owned(), format!("0x{offset:X}")),
        ("Size".to_owned(), format!("0x{:X}", block.size)),
        ("HasReturn".to_owned(), yes(block.has_return)),
        ("HasTailCall".to_owned(), yes(block.has_tail_call)),
        ("IsEHPad".to_owned(), yes(block.is_landing_pad)),
        ("CanFallThrough".to_owned(), yes(block.can_fall_through)),
        ("HasIndirectBranch".to_owned(), yes(block.has_indirect_branch)),
    ]);
    if !block.call_ends.is_empty() {
        let ends = format!("{:?}", block.call_ends);
        fields.insert("Callsite End Offsets".to_owned(), ends);
    }
    if let Some(hash) = block.hash.filter(|hash| *hash != 0) {
        fields.insert("Hash".to_owned(), format!("0x{hash:X}"));
    }
    Printed { fields }
}

fn compile(directory: &Path, compiler: &str, target: &str, object: &str, flags: &[&str]) {
    fs::write(directory.join("code.c"), CODE).expect("a file");
    let target = format!("--target={target}");
    let fixed = [&target, "-O2", "-c", "code.c", "-o", object, "-fbasic-block-address-map"];
    llvm::run(directory, compiler, &[&fixed, flags].concat());
}

fn link(directory: &Path, object: &str, file: &str) {
    let arguments = ["--unresolved-symbols=ignore-all", "-e", "main", "-o", file, object];
    llvm::run(directory, "ld.lld-22", &arguments);
}

fn sorted(mut maps: Maps) -> Maps {
    maps.sort_by_key(|(address, _)| *address);
    maps
}

/// Compiles, and compares both the object and what it is linked to.
fn compare(test: &str, compiler: &str, target: &str, flags: &[&str]) -> Maps {
    let directory = llvm::directory(test);
    compile(&directory, compiler, target, "code.o", flags);
    link(&directory, "code.o", "code");

    let binary = Binary::open(&directory.join("code")).expect("an ELF file");
    let linked = ours(&read_bb_address_maps(&binary).expect("maps"), |address| address);
    assert_eq!(linked, sorted(printed(&directory, "code")));
    assert_eq!(linked.len(), 4, "{flags:?}");

    // In the object, llvm-readobj counts from the beginning of each section.
    let object = Binary::open(&directory.join("code.o")).expect("an ELF file");
    let in_section = |address: u64| {
        let start = |section: &&mepof_binary::Section| section.addresses.start.0 <= address;
        let section = object.sections().iter().rfind(start).expect("a section");
        address - section.addresses.start.0
    };
    let relocated = read_bb_address_maps(&object).expect("maps");
    let (mut relocated, mut expected) =
        (ours(&relocated, in_section), printed(&directory, "code.o"));
    // Sections have no common order.
    let key = |(_, ranges): &(u64, Vec<(u64, Vec<Printed>)>)| format!("{ranges:?}");
    relocated.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(relocated, expected);
    linked
}

#[test]
fn plain_maps_agree_with_readobj() {
    compare("bbaddr-19", "clang-19", "x86_64-linux-gnu", &[]);
    let new = compare("bbaddr-22", "clang-22", "x86_64-linux-gnu", &[]);
    let calls = |maps: &Maps| format!("{maps:?}").contains("Callsite End Offsets");
    assert!(calls(&new), "LLVM 22 says where calls end");
    compare("bbaddr-a64", "clang-22", "aarch64-linux-gnu", &[]);
    compare("bbaddr-a64-19", "clang-19", "aarch64-linux-gnu", &["-ffunction-sections"]);
}

#[test]
fn analysis_data_is_passed_over() {
    let analysis = "-pgo-analysis-map=func-entry-count,bb-freq,br-prob";
    let flags = ["-mllvm", analysis];
    compare("bbaddr-pgo-19", "clang-19", "x86_64-linux-gnu", &flags);
    compare("bbaddr-pgo-22", "clang-22", "x86_64-linux-gnu", &flags);
    let hash = ["-mllvm", analysis, "-mllvm", "-emit-bb-hash", "-ffunction-sections"];
    let maps = compare("bbaddr-hash", "clang-22", "x86_64-linux-gnu", &hash);
    assert!(format!("{maps:?}").contains("Hash"));
    let count = "-pgo-analysis-map=func-entry-count";
    let skip = ["-mllvm", count, "-mllvm", "-basic-block-address-map-skip-bb-entries"];
    let maps = compare("bbaddr-skip", "clang-22", "x86_64-linux-gnu", &skip);
    assert!(maps.iter().all(|(_, ranges)| ranges.iter().all(|(_, blocks)| blocks.is_empty())));
}

#[test]
fn functions_in_several_sections_have_several_ranges() {
    for compiler in ["clang-19", "clang-22"] {
        let test = format!("bbaddr-sections-{compiler}");
        let flags = ["-fbasic-block-sections=all", "-mllvm", "-pgo-analysis-map=br-prob"];
        let maps = compare(&test, compiler, "x86_64-linux-gnu", &flags);
        assert!(maps.iter().any(|(_, ranges)| ranges.len() > 1));
    }
}

#[test]
fn a_function_that_was_split_has_its_cold_part_as_a_range() {
    let test = "bbaddr-split";
    let directory = llvm::directory(test);
    // Some of the blocks of `loop` form a cluster; the profile also has counts of theirs.
    let profile = "v1\nf loop\nc 0 1 2 3\ng 0:10,1:8,2:2 1:8,3:8 2:300,3:299\n";
    fs::write(directory.join("clusters.txt"), profile).expect("a file");
    let list = "-fbasic-block-sections=list=clusters.txt";
    let analysis = "-pgo-analysis-map=func-entry-count,bb-freq,br-prob";
    let counts = "-pgo-analysis-map-emit-bb-sections-cfg";
    for flags in [&[list][..], &[list, "-mllvm", analysis, "-mllvm", counts]] {
        compile(&directory, "clang-22", "x86_64-linux-gnu", "code.o", flags);
        link(&directory, "code.o", "code");
        let binary = Binary::open(&directory.join("code")).expect("an ELF file");
        let maps = ours(&read_bb_address_maps(&binary).expect("maps"), |address| address);
        assert_eq!(maps, sorted(printed(&directory, "code")));
        assert!(maps.iter().any(|(_, ranges)| ranges.len() > 1));
    }
}

#[test]
fn a_binary_without_a_map_says_how_to_get_one() {
    let directory = llvm::directory("bbaddr-none");
    fs::write(directory.join("code.c"), CODE).expect("a file");
    llvm::run(&directory, "clang-22", &["-c", "code.c", "-o", "code.o"]);
    let binary = Binary::open(&directory.join("code.o")).expect("an ELF file");
    let error = read_bb_address_maps(&binary).expect_err("no map");
    assert!(matches!(error, BinaryError::Missing { .. }));
    assert!(error.to_string().contains("-fbasic-block-address-map"));
}
