//! Samples as perf would have recorded them, for the tools that read perf.data.

use std::io::{self, Write};
use std::path::Path;

use mepof_address::Region;
use mepof_convert::Image;
use mepof_machine::Machine;
use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedMapping, Samples, Writer as PerfWriter,
};
use mepof_trace::{Addressing, Facts, Space};

use super::format::{OutputFormat, Writer};
use crate::fault::{Fault, written};
use crate::output::Files;
use crate::reading::Reading;

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "perf-data", options: &[], writer: Writer::Inputs(write) };

/// Writes the samples of all inputs to `path`, with where the binaries ran.
fn write(reading: &Reading<'_>, path: &Path, files: &mut Files) -> Result<(), Fault> {
    let [input] = &reading.branch_trace.inputs[..] else {
        return Err(Fault::input(
            "a perf.data takes one input: each input ran at its own addresses",
        ));
    };
    if input.facts.addressing != Addressing::Runtime {
        let what = "it has counts of branches, not samples; a perf.data needs samples";
        return Err(Fault::unreadable(&input.path, what));
    }
    let space = reading.request.space;
    let event = recorded_event(&input.facts, space);
    let description = PerfHeader {
        machine: input.facts.machine.or_else(|| binary_machine(reading)),
        cpu: input.facts.cpu.clone().unwrap_or_default(),
        kernel_release: input.facts.kernel_release.clone().unwrap_or_default(),
        command: vec!["mepof".to_owned(), "profile".to_owned(), "convert".to_owned()],
        branch_depth: input.facts.branch_depth,
        events: vec![event],
        ..PerfHeader::default()
    };
    files.write(path, |out| {
        let mut writer =
            PerfWriter::file(out, description, Compression::First).map_err(Fault::work)?;
        for (image, placement) in reading.branch_trace.images.iter().zip(&input.placements) {
            written(write_mappings(&mut writer, space, image, placement.regions()))?;
        }
        let mut samples = Samples::new(&mut writer, 0, space);
        reading.branch_trace.feed(reading.request, input, 1, &mut samples)?;
        let count = samples.finish().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Fault::unreadable(&input.path, error),
            _ => Fault::work(error),
        })?;
        if count == 0 {
            let what = "it has counts of branches, not samples; a perf.data needs samples";
            return Err(Fault::unreadable(&input.path, what));
        }
        writer.finish().map(drop).map_err(Fault::work)
    })
}

/// The event that the samples are of, by perf's name where it has one.
fn recorded_event(facts: &Facts, space: Space) -> RecordedEvent {
    let (all, side) = match space {
        Space::Kernel | Space::GuestKernel => (RecordedEvent::kernel_branches(1), 'k'),
        Space::User => (RecordedEvent::user_branches(1), 'u'),
    };
    let Some(event) = facts.events.iter().find(|event| event.branch_stack) else { return all };
    // PERF_COUNT_HW_BRANCH_INSTRUCTIONS: 4, PERF_COUNT_HW_INSTRUCTIONS: 1, of
    // include/uapi/linux/perf_event.h.
    let (name, config) = match &*event.name {
        "taken branches" => (format!("branches:{side}"), 4),
        "instructions" => (format!("instructions:{side}"), 1),
        name => (name.to_owned(), all.config),
    };
    RecordedEvent { name, config, period: event.period.unwrap_or(all.period), ..all }
}

fn binary_machine(reading: &Reading<'_>) -> Option<Machine> {
    let image = reading.branch_trace.images.first();
    image.map(|image| image.binary.machine())
}

/// A kernel is one mapping from its first byte to its last; what else there is has one for each
/// of its sections.
fn write_mappings<W: Write>(
    writer: &mut PerfWriter<W>,
    space: Space,
    image: &Image,
    regions: &[Region],
) -> io::Result<()> {
    let binary = &image.binary;
    let symbol = ["_text", "_stext"]
        .iter()
        .find_map(|name| Some((*name, binary.symbol(name)?)))
        .filter(|_| space != Space::User);
    let Some((first, last)) = regions.first().zip(regions.last()) else { return Ok(()) };
    if let Some((symbol, address)) = symbol {
        let slide = first.runtime.0.wrapping_sub(first.image.0);
        let dso = match space {
            Space::GuestKernel => "[guest.kernel.kallsyms]",
            Space::Kernel | Space::User => "[kernel.kallsyms]",
        };
        return writer.mapping(&RecordedMapping {
            space,
            name: &format!("{dso}{symbol}"),
            start: first.runtime,
            size: last.runtime.0.wrapping_add(last.size).wrapping_sub(first.runtime.0),
            offset: address.0.wrapping_add(slide),
            build_id: binary.build_id(),
        });
    }
    for region in regions {
        let section = binary.sections().iter().find(|s| s.addresses.contains(&region.image));
        let Some(section) = section else { continue };
        let inside = region.image.0.wrapping_sub(section.addresses.start.0);
        writer.mapping(&RecordedMapping {
            space,
            name: &binary.path().to_string_lossy(),
            start: region.runtime,
            size: region.size,
            offset: section.file_offset.wrapping_add(inside),
            build_id: binary.build_id(),
        })?;
    }
    Ok(())
}
