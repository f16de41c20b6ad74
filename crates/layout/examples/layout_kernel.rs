//! Lays out a kernel by a trace, and says how long each step took.
//!
//!     layout_kernel VMLINUX UNSYMBOLIZED DIRECTORY [MODULES]
//!
//! `UNSYMBOLIZED` is what `llvm-profgen --skip-symbolization --use-offset=0` writes. The
//! directory gets `cc_profile`, `ld_profile`, `fdata` and `aggregated`. `MODULES` has lines of
//! an address and a source file, for functions of the same name.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, read_bb_address_maps};
use mepof_layout::propeller::{Profile, ProfileOptions};
use mepof_layout::{BlockMap, Layout, LayoutOptions, Symbols, bolt, count};
use mepof_trace::{Branch, FallThrough, ImageTrace};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [binary, trace, directory, modules @ ..] = &arguments[..] else {
        return Err("usage: layout_kernel VMLINUX UNSYMBOLIZED DIRECTORY [MODULES]".into());
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
    let trace = unsymbolized(&fs::read_to_string(trace)?).ok_or("not unsymbolized text")?;
    lap("read the trace");
    let modules: HashMap<ImageAddress, String> = match modules.first() {
        Some(path) => read_modules(&fs::read_to_string(path)?),
        None => HashMap::new(),
    };
    let symbols = Symbols::read(&binary, |address| modules.get(&address).cloned())?;
    lap("read the symbols");

    let map = BlockMap::new(&functions);
    lap("index the blocks");
    let graph = count(&map, &trace);
    lap("count");
    let layout = Layout::new(&map, &graph, &[], &LayoutOptions::default());
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
    eprintln!("score:    {before:.0} -> {after:.0} ({:+.2} %)", 100.0 * (after / before - 1.0));
    Ok(())
}

/// Ranges, then branches: each a line with their number, then that many lines.
fn unsymbolized(text: &str) -> Option<ImageTrace> {
    let address = |text| u64::from_str_radix(text, 16).ok().map(ImageAddress);
    let mut trace = ImageTrace::default();
    for line in text.lines() {
        let Some((pair, count)) = line.rsplit_once(':') else { continue };
        let count = count.parse().ok()?;
        if let Some((from, to)) = pair.split_once("->") {
            let (from, to) = (Some(address(from)?), Some(address(to)?));
            trace.branches.push(Branch { from, to, count });
        } else {
            let (first, last) = pair.split_once('-')?;
            trace.ranges.push(FallThrough { first: address(first)?, last: address(last)?, count });
        }
    }
    Some(trace)
}

fn read_modules(text: &str) -> HashMap<ImageAddress, String> {
    text.lines()
        .filter_map(|line| {
            let (address, module) = line.split_once(' ')?;
            Some((ImageAddress(u64::from_str_radix(address, 16).ok()?), module.to_owned()))
        })
        .collect()
}
