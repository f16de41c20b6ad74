//! Propeller's files.

use std::path::Path;

use mepof_binary::{BinaryError, SourceFiles, read_bb_address_maps};
use mepof_layout::{BlockMap, BlockPath, Layout, LayoutOptions, Paths, Symbols, count, propeller};
use mepof_trace::ImageTrace;

use crate::fault::Fault;
use crate::output::{Files, beside};
use crate::recording::{Reading, written};

/// Distinct paths through blocks that are kept for each thread: some 64 MiB of them.
const MOST_PATHS: usize = 1 << 20;

/// Writes the layout of the `index`-th image, whose trace is `trace`, to files whose names begin
/// with `path`.
pub(crate) fn write_propeller(
    reading: &Reading<'_>,
    index: usize,
    trace: &ImageTrace,
    path_cloning: bool,
    path: &Path,
    files: &mut Files,
) -> Result<(), Fault> {
    let Some(image) = reading.recording.images.get(index) else { return Ok(()) };
    let binary = &image.binary;
    let functions = read_bb_address_maps(binary)?;
    let map = BlockMap::new(&functions);
    let graph = count(&map, trace);
    let paths = if path_cloning { paths(reading, index, &map)? } else { Vec::new() };
    reading.go_on()?;
    let regions = binary.sections().iter().map(|section| section.addresses.clone()).collect();
    let layout =
        Layout::new(&map, &graph, &paths, &LayoutOptions { regions, ..LayoutOptions::default() });
    reading.go_on()?;
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
fn paths(
    reading: &Reading<'_>,
    index: usize,
    map: &BlockMap<'_>,
) -> Result<Vec<(BlockPath, u64)>, Fault> {
    let mut all = Vec::new();
    for input in &reading.recording.inputs {
        let Some(placement) = input.placements.get(index) else { continue };
        let mut paths = Paths::new(map, placement, MOST_PATHS);
        reading.recording.feed(reading.request, input, 0, &mut paths)?;
        all.extend(paths.counts());
    }
    Ok(all)
}
