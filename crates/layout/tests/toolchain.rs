//! The files are read by real compilers, linkers and BOLT, and do what they say.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // it is a test throughout

mod support;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::{Binary, FunctionBlocks};
use mepof_layout::propeller::{Modules, Profile, ProfileOptions, Version};
use mepof_layout::{
    BlockMap, BlockRef, CloneOptions, Layout, LayoutOptions, Paths, Symbols, bolt, count,
};
use mepof_trace::{ImageTrace, Sink};
use support::{blocks, build, checksum, run, scratch, walk};

/// The symbols of the program, whose two functions `shuffle` are in different files.
fn symbols(binary: &Binary) -> Symbols {
    // The files were linked one after the other; Clang emits a static function where it is
    // first used.
    let first_of_work = binary.symbol("mix").unwrap();
    Symbols::read(binary, move |address| {
        Some(if address < first_of_work { "main.c" } else { "work.c" }.to_owned())
    })
    .unwrap()
}

fn traced(binary: &Binary, functions: &[FunctionBlocks]) -> ImageTrace {
    walk(binary, functions, binary.symbol("main").unwrap(), 200_000, |_| {}).trace
}

fn write(path: &Path, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    std::fs::write(path, out).unwrap();
}

/// The functions of a binary in the order of addresses, with the ids of their ranges' blocks.
fn placed(binary: &Binary, functions: &[FunctionBlocks]) -> Vec<(String, Vec<Vec<u32>>)> {
    let mut sorted: Vec<&FunctionBlocks> = functions.iter().collect();
    sorted.sort_by_key(|function| function.address);
    let name = |address: ImageAddress| binary.function_at(address).unwrap().name.clone();
    sorted
        .iter()
        .map(|function| {
            let ids = function.ranges.iter().map(|range| range.blocks.iter().map(|b| b.id));
            (name(function.address), ids.map(Iterator::collect).collect())
        })
        .collect()
}

fn blocks_lie_in_the_order_of_the_profile(clang: u32, version: Version) {
    let directory = scratch(&format!("propeller-{clang}-{version:?}"));
    let (before, after) = (directory.join("before"), directory.join("after"));
    build(clang, &before, &[]);
    let binary = Binary::open(&before).unwrap();
    let functions = blocks(clang, &before);
    let map = BlockMap::new(&functions);
    assert_eq!(map.tally().used, functions.len() as u64);
    let graph = count(&map, &traced(&binary, &functions));
    assert!(graph.tally.contradictory() < 1e-9, "{:?}", graph.tally);
    let layout = Layout::new(&map, &graph, &[], &LayoutOptions::default());
    let (score_before, score_after) = layout.scores();
    assert!(score_after > score_before * 1.05, "{score_before} {score_after}");

    let symbols = symbols(&binary);
    let options = ProfileOptions { version, ..ProfileOptions::default() };
    let profile = Profile::new(&layout, &symbols, options);
    assert_eq!(profile.tally().written, layout.functions.len() as u64, "{:?}", profile.tally());
    let (cc, ld) = (directory.join("cc_profile"), directory.join("ld_profile"));
    write(&cc, |out| profile.write_cc_profile(out));
    write(&ld, |out| profile.write_ld_profile(out));
    let list = format!("-fbasic-block-sections=list={}", cc.display());
    let order = format!("-Wl,--symbol-ordering-file={}", ld.display());
    let said = build(clang, &after, &[&list, &order, "-Wl,--no-warn-symbol-ordering", "-Werror"]);
    assert_eq!(said, "");
    assert_eq!(checksum(&after), checksum(&before));

    let rebuilt = blocks(clang, &after);
    let placed = placed(&Binary::open(&after).unwrap(), &rebuilt);
    let mut names_in_order = Vec::new();
    for section in &layout.order {
        let function = &layout.functions[section.function as usize];
        let name = &symbols.at(function.address).unwrap().names[0];
        let nodes = &function.clusters[0];
        let ids: Vec<u32> =
            nodes.iter().map(|&node| function.graph.nodes[node as usize].id).collect();
        let found: Vec<_> = placed.iter().filter(|(found, _)| found == name).collect();
        assert!(found.iter().any(|(_, ranges)| ranges[0] == ids), "{name}: {ids:?} {found:?}");
        assert!(found.iter().any(|(_, ranges)| ranges.len() == 1 + usize::from(function.has_cold)));
        names_in_order.push(name.as_str());
    }
    // Names that are there twice are put together: the linker cannot tell them apart.
    names_in_order.retain(|&name| name != "shuffle");
    let hot: Vec<&str> = placed
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| names_in_order.contains(name))
        .collect();
    assert_eq!(hot, names_in_order);
}

#[test]
fn an_exact_trace_gives_exact_counts() {
    let directory = scratch("counts");
    let program = directory.join("program");
    build(22, &program, &[]);
    let binary = Binary::open(&program).unwrap();
    let functions = blocks(22, &program);
    let walk = walk(&binary, &functions, binary.symbol("main").unwrap(), 100_000, |_| {});
    let map = BlockMap::new(&functions);
    let graph = count(&map, &walk.trace);
    let mut ran = 0;
    for function in &graph.functions {
        for (block, node) in (0..).zip(&function.nodes) {
            let at = BlockRef { function: function.function, block };
            let block = map.block(at).unwrap();
            let truth = walk.executed.get(&block.address.0).copied().unwrap_or(0);
            // The walk begins and ends somewhere.
            assert!(node.count.abs_diff(truth) <= 1, "{at:?}: {} not {truth}", node.count);
            ran += u64::from(truth > 0);
        }
    }
    assert!(ran > 50);
    let hot: u64 =
        graph.functions.iter().flat_map(|f| &f.nodes).filter(|n| n.count > 0).count() as u64;
    assert_eq!(hot, ran);
}

#[test]
fn clang_22_puts_blocks_where_version_1_says() {
    blocks_lie_in_the_order_of_the_profile(22, Version::V1);
}

#[test]
fn clang_22_puts_blocks_where_version_0_says() {
    blocks_lie_in_the_order_of_the_profile(22, Version::V0);
}

#[test]
#[ignore = "needs clang-19, lld-19 and llvm-19"]
fn clang_19_puts_blocks_where_either_version_says() {
    blocks_lie_in_the_order_of_the_profile(19, Version::V1);
    blocks_lie_in_the_order_of_the_profile(19, Version::V0);
}

#[test]
fn clang_22_reads_counts_and_hashes() {
    let directory = scratch("propeller-counts");
    let (before, after) = (directory.join("before"), directory.join("after"));
    build(22, &before, &[]);
    let binary = Binary::open(&before).unwrap();
    let mut functions = blocks(22, &before);
    let all = functions.iter_mut().flat_map(|function| &mut function.ranges);
    for block in all.flat_map(|range| &mut range.blocks) {
        block.hash = Some(u64::MAX - u64::from(block.id));
    }
    let map = BlockMap::new(&functions);
    let graph = count(&map, &traced(&binary, &functions));
    let layout = Layout::new(&map, &graph, &[], &LayoutOptions::default());
    let symbols = symbols(&binary);
    let options = ProfileOptions {
        counts: true,
        hashes: true,
        modules: Modules::Always,
        ..ProfileOptions::default()
    };
    let profile = Profile::new(&layout, &symbols, options);
    let cc = directory.join("cc_profile");
    write(&cc, |out| profile.write_cc_profile(out));
    let text = std::fs::read_to_string(&cc).unwrap();
    assert!(text.contains("\ng 0:") && text.contains("\nh 0:FFFFFFFFFFFFFFFF "), "{text}");
    let list = format!("-fbasic-block-sections=list={}", cc.display());
    assert_eq!(build(22, &after, &[&list, "-Werror"]), "");
    assert_eq!(checksum(&after), checksum(&before));
}

#[test]
fn warm_blocks_become_a_part_that_lies_behind_the_hot_ones() {
    let directory = scratch("propeller-parts");
    let (before, after) = (directory.join("before"), directory.join("after"));
    build(22, &before, &[]);
    let binary = Binary::open(&before).unwrap();
    let functions = blocks(22, &before);
    let map = BlockMap::new(&functions);
    let graph = count(&map, &traced(&binary, &functions));
    let options = LayoutOptions { warm_density: Some(0.5), ..LayoutOptions::default() };
    let layout = Layout::new(&map, &graph, &[], &options);
    let symbols = symbols(&binary);
    let profile = Profile::new(&layout, &symbols, ProfileOptions::default());
    let (cc, ld) = (directory.join("cc_profile"), directory.join("ld_profile"));
    write(&cc, |out| profile.write_cc_profile(out));
    write(&ld, |out| profile.write_ld_profile(out));
    let list = format!("-fbasic-block-sections=list={}", cc.display());
    let order = format!("-Wl,--symbol-ordering-file={}", ld.display());
    // Without --no-warn-symbol-ordering: each symbol that the file names must be there.
    assert_eq!(build(22, &after, &[&list, &order, "-Wl,--warn-symbol-ordering"]), "");
    assert_eq!(checksum(&after), checksum(&before));
    let nm = run(Command::new("llvm-nm-22").arg("-n").arg(&after)).stdout;
    let nm = String::from_utf8_lossy(&nm);
    let address_of: HashMap<&str, &str> = nm
        .lines()
        .filter_map(|line| line.rsplit_once(' ').zip(line.split(' ').next()))
        .map(|((_, name), address)| (name, address))
        .collect();
    let ordered = std::fs::read_to_string(&ld).unwrap();
    assert!(ordered.contains(".__part.1\n"), "{ordered}");
    let hot: Vec<&str> = ordered.lines().filter(|name| !name.contains("shuffle")).collect();
    // What is cold goes to `.text.split.`, which the linker may put elsewhere.
    let addresses: Vec<&str> =
        hot.iter().filter(|name| !name.ends_with(".cold")).map(|name| address_of[name]).collect();
    assert!(addresses.is_sorted(), "{hot:?} {addresses:?}");
}

fn bolt_applies(
    name: &str,
    flags: &[&str],
    write_profile: fn(&mut Vec<u8>, &Built) -> std::io::Result<()>,
) {
    let directory = scratch(&format!("bolt-{name}"));
    let (before, after) = (directory.join("before"), directory.join("after"));
    build(22, &before, &["-Wl,-q"]);
    let binary = Binary::open(&before).unwrap();
    let functions = blocks(22, &before);
    let trace = traced(&binary, &functions);
    let built = Built { symbols: symbols(&binary), binary, trace };
    let profile = directory.join("profile");
    write(&profile, |out| write_profile(out, &built));
    let mut bolt = Command::new("llvm-bolt-22");
    bolt.arg(&before).arg("-o").arg(&after).args(flags).arg(&profile);
    bolt.args(["-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions"]);
    let output = run(&mut bolt);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    let profiled = said
        .lines()
        .find_map(|line| line.split_once("BOLT-INFO: ")?.1.split_once(" out of "))
        .map(|(count, _)| count.parse::<u64>().unwrap());
    assert!(profiled >= Some(10), "{said}");
    assert!(!said.contains("invalid (possibly stale) profile"), "{said}");
    // The one that may be is "[unknown]".
    assert!(!said.contains("objects were ignored"), "{said}");
    let reordered = said
        .split_once("basic block reordering modified layout of ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(reordered >= Some(5), "{said}");
    assert_eq!(checksum(&after), checksum(&before));
}

fn blocks_are_copied_along_hot_paths(clang: u32) {
    let directory = scratch(&format!("propeller-clones-{clang}"));
    let (before, after) = (directory.join("before"), directory.join("after"));
    build(clang, &before, &[]);
    let binary = Binary::open(&before).unwrap();
    let functions = blocks(clang, &before);
    let map = BlockMap::new(&functions);
    let (runtime, image) = (RuntimeAddress(0), ImageAddress(0));
    let placement = Placement::new(vec![Region { runtime, image, size: u64::MAX }]);
    let mut paths = Paths::new(&map, &placement, 1 << 20);
    let main = binary.symbol("main").unwrap();
    let trace = walk(&binary, &functions, main, 200_000, |stack| paths.sample(stack)).trace;
    let graph = count(&map, &trace);
    let clones = CloneOptions { min_gain: 0.001, byte_worth: 0.1, ..CloneOptions::default() };
    let options = LayoutOptions { clones, ..LayoutOptions::default() };
    let layout = Layout::new(&map, &graph, &paths.counts(), &options);
    let plain = Layout::new(&map, &graph, &[], &options);
    assert!(layout.scores().1 > plain.scores().1);

    let symbols = symbols(&binary);
    let profile = Profile::new(&layout, &symbols, ProfileOptions::default());
    let (cc, ld) = (directory.join("cc_profile"), directory.join("ld_profile"));
    write(&cc, |out| profile.write_cc_profile(out));
    write(&ld, |out| profile.write_ld_profile(out));
    let list = format!("-fbasic-block-sections=list={}", cc.display());
    let order = format!("-Wl,--symbol-ordering-file={}", ld.display());
    assert_eq!(build(clang, &after, &[&list, &order, "-Werror"]), "");
    assert_eq!(checksum(&after), checksum(&before));

    let placed = placed(&Binary::open(&after).unwrap(), &blocks(clang, &after));
    let copied = layout.functions.iter().filter(|function| !function.cloned.is_empty());
    let mut checked = 0;
    for function in copied {
        let name = &symbols.at(function.address).unwrap().names[0];
        let ids: Vec<u32> = function.clusters[0]
            .iter()
            .map(|&node| function.graph.nodes[node as usize].id)
            .collect();
        let found: Vec<_> = placed.iter().filter(|(found, _)| found == name).collect();
        assert!(found.iter().any(|(_, ranges)| ranges[0] == ids), "{name}: {ids:?} {found:?}");
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn clang_22_copies_blocks_along_hot_paths() {
    blocks_are_copied_along_hot_paths(22);
}

#[test]
#[ignore = "needs clang-19, lld-19 and llvm-19"]
fn clang_19_copies_blocks_along_hot_paths() {
    blocks_are_copied_along_hot_paths(19);
}

struct Built {
    binary: Binary,
    symbols: Symbols,
    trace: ImageTrace,
}

#[test]
#[ignore = "needs bolt-22"]
fn bolt_applies_fdata() {
    bolt_applies("fdata", &["-data"], |out, built| {
        bolt::write_fdata(out, &built.binary, &built.symbols, &built.trace)
    });
}

#[test]
#[ignore = "needs bolt-22"]
fn bolt_applies_branches_and_ranges() {
    bolt_applies("branches", &["--pa", "-p"], |out, built| bolt::write_branches(out, &built.trace));
}

#[test]
#[ignore = "needs bolt-22"]
fn bolt_applies_traces() {
    bolt_applies("traces", &["--pa", "-p"], |out, built| bolt::write_traces(out, &built.trace));
}

#[test]
#[ignore = "needs bolt-22"]
fn fdata_is_what_perf2bolt_makes_of_the_same_trace() {
    let directory = scratch("bolt-perf2bolt");
    let program = directory.join("program");
    build(22, &program, &["-Wl,-q"]);
    let binary = Binary::open(&program).unwrap();
    let trace = traced(&binary, &blocks(22, &program));
    let symbols = symbols(&binary);
    let (aggregated, theirs) = (directory.join("aggregated"), directory.join("theirs"));
    write(&aggregated, |out| bolt::write_branches(out, &trace));
    let mut perf2bolt = Command::new("perf2bolt-22");
    run(perf2bolt.arg(&program).args(["--pa", "-p"]).arg(&aggregated).arg("-o").arg(&theirs));
    let mut ours = Vec::new();
    bolt::write_fdata(&mut ours, &binary, &symbols, &trace).unwrap();
    let sorted = |text: &str| {
        // BOLT makes up names for the procedure linkage table, which no kernel has.
        let outside = |line: &&str| line.contains("@PLT ") || line.contains(" 0 [unknown] ");
        let mut lines: Vec<String> =
            text.lines().filter(|line| !outside(line)).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let theirs = sorted(&std::fs::read_to_string(&theirs).unwrap());
    let ours = sorted(&String::from_utf8(ours).unwrap());
    let missing: Vec<_> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    let extra: Vec<_> = ours.iter().filter(|line| !theirs.contains(line)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:#?}\nextra {extra:#?}");
}
