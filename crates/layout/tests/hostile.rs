//! Whatever maps and traces say, what is written can be read.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // it is a test throughout

use std::collections::HashSet;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::{Block, BlockRange, FunctionBlocks};
use mepof_layout::propeller::{Modules, Profile, ProfileOptions, Version};
use mepof_layout::{
    BlockMap, BlockPath, CloneOptions, FunctionSymbol, Layout, LayoutOptions, Paths, Symbols, count,
};
use mepof_trace::{Branch, BranchEntry, FallThrough, ImageTrace, Sample, Sink};

/// Xorshift: a fixed sequence of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn count(&mut self) -> u64 {
        if self.one_in(8) { u64::MAX - self.below(3) } else { self.below(1000) }
    }

    /// An address near the functions, or anywhere.
    fn address(&mut self) -> ImageAddress {
        ImageAddress(if self.one_in(30) { u64::MAX - self.below(40) } else { self.below(0x900) })
    }
}

fn functions(numbers: &mut Numbers) -> Vec<FunctionBlocks> {
    let mut at = 0x40;
    (0..12)
        .map(|_| {
            if numbers.one_in(12) {
                at = numbers.address().0; // on top of another, or at the end of all addresses
            }
            let address = ImageAddress(at);
            let mut id = 0;
            let ranges = (0..1 + numbers.below(2)).map(|_| {
                let start = ImageAddress(at);
                let blocks = (0..numbers.below(9)).map(|_| {
                    let size = if numbers.one_in(60) { u64::MAX } else { numbers.below(24) };
                    let block = Block {
                        id,
                        address: ImageAddress(at),
                        size,
                        has_return: numbers.one_in(4),
                        has_tail_call: numbers.one_in(4),
                        is_landing_pad: numbers.one_in(9),
                        can_fall_through: !numbers.one_in(4),
                        has_indirect_branch: numbers.one_in(6),
                        call_ends: Vec::new(),
                        hash: Some(numbers.below(u64::MAX)),
                    };
                    at = at.wrapping_add(size);
                    id += 1 - u32::from(numbers.one_in(60)); // some ids are there twice
                    block
                });
                BlockRange { address: start, blocks: blocks.collect() }
            });
            FunctionBlocks { address, ranges: ranges.collect() }
        })
        .collect()
}

fn trace(numbers: &mut Numbers) -> ImageTrace {
    let mut trace = ImageTrace::default();
    for _ in 0..400 {
        let from = (!numbers.one_in(10)).then(|| numbers.address());
        let to = (!numbers.one_in(10)).then(|| numbers.address());
        trace.branches.push(Branch { from, to, count: numbers.count(), single: 0 });
        let first = numbers.address();
        let last = ImageAddress(first.0.wrapping_add(numbers.below(80)));
        trace.ranges.push(FallThrough { first, last, count: numbers.count() });
    }
    trace
}

fn paths(numbers: &mut Numbers, map: &BlockMap<'_>) -> Vec<(BlockPath, u64)> {
    let region = Region { runtime: RuntimeAddress(0), image: ImageAddress(0), size: u64::MAX };
    let placement = Placement::new(vec![region]);
    let mut paths = Paths::new(map, &placement, 200);
    for _ in 0..60 {
        let branches: Vec<BranchEntry> = (0..16)
            .map(|_| BranchEntry {
                from: RuntimeAddress(numbers.address().0),
                to: RuntimeAddress(numbers.address().0),
                ..BranchEntry::default()
            })
            .collect();
        let count = numbers.count();
        let branches = &branches[..];
        paths.sample(&Sample { time: None, address: None, branches, consecutive: true, count });
    }
    let mut paths = paths.counts();
    for _ in 0..100 {
        let blocks = (0..numbers.below(6)).map(|_| numbers.below(10) as u32).collect();
        let function = numbers.below(14) as u32;
        paths.push((BlockPath { function, blocks }, numbers.count()));
    }
    paths
}

fn symbols(numbers: &mut Numbers, functions: &[FunctionBlocks]) -> Symbols {
    const NAMES: [&str; 7] = ["", "two words", "#x", "a/b", "new\nline", "é", "a"];
    let mut name = || match numbers.below(60) as usize {
        strange @ 0..7 => NAMES[strange].to_owned(),
        plain => format!("f{plain}"),
    };
    Symbols::new(functions.iter().map(|function| {
        let names = vec![name(), name()];
        let module = Some(name());
        (function.address, FunctionSymbol { names, module, local_number: None })
    }))
}

/// Checks a version 1 profile as Clang's reader does.
fn check(text: &str) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("v1"));
    let (mut functions, mut ids, mut copies) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut module = String::new();
    for line in lines {
        let (kind, rest) = line.split_once(' ').unwrap();
        let words: Vec<&str> = rest.split(' ').collect();
        assert!(words.iter().all(|word| !word.is_empty()), "{line:?}");
        match kind {
            "m" => {
                assert_eq!(words.len(), 1);
                module = rest.to_owned();
            }
            "f" => {
                assert!(functions.insert((words[0].to_owned(), std::mem::take(&mut module))));
                ids.clear();
                copies.clear();
            }
            "p" => {
                let blocks: Vec<u32> = words.iter().map(|word| word.parse().unwrap()).collect();
                for block in &blocks[1..] {
                    let copy = (1..).find(|copy| !copies.contains(&(*block, *copy))).unwrap();
                    copies.insert((*block, copy));
                }
            }
            "c" => {
                for word in words {
                    let (id, copy) = word.split_once('.').unwrap_or((word, "0"));
                    let position: (u32, u32) = (id.parse().unwrap(), copy.parse().unwrap());
                    assert!(position.1 == 0 || copies.contains(&position), "{text}");
                    assert!(ids.insert(position), "{line:?} twice");
                }
            }
            "g" | "h" => {}
            _ => panic!("{line:?}"),
        }
    }
}

fn written(functions: &[FunctionBlocks], trace: &ImageTrace, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let map = BlockMap::new(functions);
    let graph = count(&map, trace);
    let tally = map.tally();
    assert_eq!(
        tally.used + tally.empty + tally.malformed + tally.overlapping,
        functions.len() as u64
    );
    let clones = CloneOptions { min_gain: 0.0, byte_worth: 0.0, ..CloneOptions::default() };
    let options = LayoutOptions { warm_density: Some(0.5), clones, ..LayoutOptions::default() };
    let layout = Layout::new(&map, &graph, &paths(&mut numbers, &map), &options);
    for function in &layout.functions {
        assert_eq!(function.clusters[0][0], 0, "the entry is first");
    }
    let mut sections: Vec<_> = layout.order.iter().map(|s| (s.function, s.cluster)).collect();
    sections.sort_unstable();
    let clusters = layout.functions.iter().map(|function| function.clusters.len()).sum::<usize>();
    sections.dedup();
    assert_eq!((sections.len(), layout.order.len()), (clusters, clusters));

    let symbols = symbols(&mut numbers, functions);
    let mut all = Vec::new();
    for modules in [Modules::Always, Modules::Never, Modules::WhereAmbiguous] {
        for version in [Version::V0, Version::V1] {
            let options = ProfileOptions { version, modules, counts: true, hashes: true };
            let profile = Profile::new(&layout, &symbols, options);
            let mut cc = Vec::new();
            profile.write_cc_profile(&mut cc).unwrap();
            if version == Version::V1 {
                check(std::str::from_utf8(&cc).unwrap());
            }
            profile.write_ld_profile(&mut all).unwrap();
            all.extend(cc);
        }
    }
    all
}

#[test]
fn hostile_maps_and_traces_make_readable_profiles_whatever_their_order() {
    let mut lines = 0;
    for seed in 1..80 {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let functions = functions(&mut numbers);
        let mut trace = trace(&mut numbers);
        let text = written(&functions, &trace, seed);
        lines += text.iter().filter(|&&byte| byte == b'\n').count();
        trace.branches.reverse();
        trace.ranges.reverse();
        assert_eq!(text, written(&functions, &trace, seed));
    }
    assert!(lines > 4_000, "{lines}");
}
