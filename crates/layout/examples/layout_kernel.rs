//! Lays out a kernel by a trace, and says how long each step took.
//!
//!     layout_kernel VMLINUX TRACE DIRECTORY [MODULES]
//!
//! The kernel ran where it was linked for. The directory gets `cc_profile`, `ld_profile`, `fdata`
//! and `aggregated`. `MODULES` has lines of an address and a source file, for functions of the same
//! name.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::{Binary, read_bb_address_maps};
use mepof_layout::propeller::{Profile, ProfileOptions};
use mepof_layout::{BlockMap, Layout, LayoutOptions, Paths, Symbols, bolt, count};
use mepof_trace::input::{self, Options};
use mepof_trace::{Aggregate, Sample, Sink, Space, map_to_image};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [binary, trace, directory, modules @ ..] = &arguments[..] else {
        return Err("usage: layout_kernel VMLINUX TRACE DIRECTORY [MODULES]".into());
    };
    let directory = Path::new(directory);
    let mut clock = Instant::now();
    let mut lap = |what: &str| {
        eprintln!("{:8.1} ms  {what}", clock.elapsed().as_secs_f64() * 1e3);
        clock = Instant::now();
    };
    let binary = Binary::open(Path::new(binary))?;
    lap("open the binary");
    let functions = read_bb_address_maps(&binary)?;
    lap("read the basic-block address maps");
    let map = BlockMap::new(&functions);
    lap("index the blocks");
    let region = Region { runtime: RuntimeAddress(0), image: ImageAddress(0), size: u64::MAX };
    let placement = Placement::new(vec![region]);
    let mut sink = Both(Aggregate::default(), Paths::new(&map, &placement, 1 << 20));
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: usize::MAX,
        symbols: None,
        binary: None,
        threads: 0,
        progress: &progress,
        cancelled: &cancelled,
    };
    input::read(Path::new(trace), None, &options, &mut sink)?;
    let paths = sink.1.counts();
    let trace = map_to_image(&sink.0, &placement, &[]);
    lap("read the trace");
    let modules: HashMap<ImageAddress, String> = match modules.first() {
        Some(path) => read_modules(&fs::read_to_string(path)?),
        None => HashMap::new(),
    };
    let symbols = Symbols::read(&binary, |address| modules.get(&address).cloned())?;
    lap("read the symbols");

    let graph = count(&map, &trace);
    lap("count");
    let regions = binary.sections().iter().map(|section| section.addresses.clone()).collect();
    let options = LayoutOptions { regions, ..LayoutOptions::default() };
    let layout = Layout::new(&map, &graph, &paths, &options);
    lap("lay out");
    let profile = Profile::new(&layout, &symbols, ProfileOptions::default());
    let (mut cc, mut ld) = (Vec::new(), Vec::new());
    profile.write_cc_profile(&mut cc)?;
    profile.write_ld_profile(&mut ld)?;
    lap("write for Propeller");
    let (mut fdata, mut aggregated) = (Vec::new(), Vec::new());
    bolt::write_fdata(&mut fdata, &binary, &symbols, &trace)?;
    bolt::write_branches(&mut aggregated, &trace)?;
    lap("write for BOLT");
    for (name, text) in
        [("cc_profile", cc), ("ld_profile", ld), ("fdata", fdata), ("aggregated", aggregated)]
    {
        fs::write(directory.join(name), text)?;
    }
    eprintln!("map:      {:?}", map.tally());
    eprintln!("trace:    {:?}", graph.tally);
    eprintln!("contrary: {:.4}", graph.tally.contradictory());
    eprintln!("profile:  {:?}", profile.tally());
    let (before, after) = layout.scores();
    let cloned = layout.functions.iter().map(|function| function.cloned.len()).sum::<usize>();
    eprintln!("paths:    {} seen, {cloned} copied", paths.len());
    eprintln!("score:    {before:.0} -> {after:.0} ({:+.2} %)", 100.0 * (after / before - 1.0));
    Ok(())
}

/// Branches and paths in one reading.
struct Both<'a>(Aggregate, Paths<'a>);

impl Sink for Both<'_> {
    fn sample(&mut self, sample: &Sample<'_>) {
        self.0.sample(sample);
        self.1.sample(sample);
    }
    fn branch(&mut self, from: RuntimeAddress, to: RuntimeAddress, count: u64) {
        self.0.branch(from, to, count);
    }
    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) {
        self.0.range(first, last, count);
    }
    fn fork(&self) -> Self {
        Self(self.0.fork(), self.1.fork())
    }
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

fn read_modules(text: &str) -> HashMap<ImageAddress, String> {
    text.lines()
        .filter_map(|line| {
            let (address, module) = line.split_once(' ')?;
            Some((ImageAddress(u64::from_str_radix(address, 16).ok()?), module.to_owned()))
        })
        .collect()
}
