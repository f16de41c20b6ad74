//! Propeller's files.

use std::path::Path;

use mepof_binary::{BinaryError, SourceFiles, read_bb_address_maps};
use mepof_layout::{BlockMap, BlockPath, Layout, LayoutOptions, Paths, Symbols, count, propeller};

use super::format::{ImageJob, OutputFormat, Writer};
use crate::fault::{Fault, written};
use crate::output::{Files, beside};

/// Distinct paths through blocks that are kept for each thread: about 64 MiB of them.
const MAX_PATHS: usize = 1 << 20;

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "propeller",
    options: &["--path-cloning"],
    writer: Writer::Image { several: true, write },
};

/// Writes the layout of one binary to two files whose names begin with `path`.
fn write(job: &ImageJob<'_>, path: &Path, files: &mut Files) -> Result<(), Fault> {
    let binary = &job.image.binary;
    let functions = read_bb_address_maps(binary)?;
    let map = BlockMap::new(&functions);
    let graph = count(&map, job.trace);
    let paths = if job.path_cloning { paths(job, &map)? } else { Vec::new() };
    job.reading.go_on()?;
    let regions = binary.sections().iter().map(|section| section.addresses.clone()).collect();
    let layout =
        Layout::new(&map, &graph, &paths, &LayoutOptions { regions, ..LayoutOptions::default() });
    job.reading.go_on()?;
    let sources = match SourceFiles::read(binary) {
        // Functions whose names others have too are then left out.
        Err(BinaryError::Missing { .. }) => SourceFiles::default(),
        sources => sources?,
    };
    let symbols = Symbols::read(binary, |address| sources.at(address).map(str::to_owned))?;
    let profile = propeller::Profile::new(&layout, &symbols, propeller::ProfileOptions::default());
    files.write(&beside(path, "cc_profile"), |out| written(profile.write_cc_profile(out)))?;
    files.write(&beside(path, "ld_profile"), |out| written(profile.write_ld_profile(out)))
}

/// The paths through blocks that the inputs have, from a second reading: where the binary ran is
/// known after the first.
fn paths(job: &ImageJob<'_>, map: &BlockMap<'_>) -> Result<Vec<(BlockPath, u64)>, Fault> {
    let mut all = Vec::new();
    for input in &job.all().inputs {
        let Some(placement) = input.placements.get(job.index) else { continue };
        let mut paths = Paths::new(map, placement, MAX_PATHS);
        job.all().feed(job.reading.request, input, 0, &mut paths)?;
        all.extend(paths.counts());
    }
    Ok(all)
}
