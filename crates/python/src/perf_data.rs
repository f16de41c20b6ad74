//! Samples as perf would have recorded them, for the tools that read perf.data.

use std::io::{self, Write};
use std::path::Path;

use mepof_address::{Region, RuntimeAddress};
use mepof_convert::Image;
use mepof_trace::output::perf_data::{
    Compression, RecordedEvent, RecordedMapping, RecordedSample, Recording, Writer,
};
use mepof_trace::{Addressing, BranchEntry, Sample, Sink, Space};

use crate::fault::Fault;
use crate::output::Files;
use crate::recording::{Reading, written};

/// Entries of a stack that a record has room for.
const DEEPEST: usize = 2000;

/// Writes the samples of all inputs to `path`, with where the binaries ran.
pub(crate) fn write(reading: &Reading<'_>, path: &Path, files: &mut Files) -> Result<(), Fault> {
    let [input] = &reading.recording.inputs[..] else {
        return Err(Fault::input("a perf.data has one input: each ran at addresses of its own"));
    };
    if input.facts.addressing != Addressing::Runtime {
        let what = "it has counts of branches, not samples; a perf.data needs samples";
        return Err(Fault::unreadable(&input.path, what));
    }
    let space = reading.request.space;
    let branches = RecordedEvent::kernel_branches(1);
    let event = RecordedEvent {
        excludes_kernel: space == Space::User,
        excludes_user: space != Space::User,
        ..branches
    };
    let description = Recording {
        machine: input.facts.machine.or(Some(binary_machine(reading))),
        cpu: input.facts.cpu.clone().unwrap_or_default(),
        kernel_release: input.facts.kernel_release.clone().unwrap_or_default(),
        command: vec!["mepof".to_owned(), "profile".to_owned(), "convert".to_owned()],
        events: vec![event],
        ..Recording::default()
    };
    files.write(path, |out| {
        let mut writer = Writer::file(out, description, Compression::First).map_err(Fault::work)?;
        for (image, placement) in reading.recording.images.iter().zip(&input.placements) {
            written(write_mappings(&mut writer, space, image, placement.regions()))?;
        }
        let mut samples = Samples { writer: Some(&mut writer), space, written: 0, failed: None };
        reading.recording.feed(reading.request, input, 1, &mut samples)?;
        let (count, failed) = (samples.written, samples.failed);
        if let Some(error) = failed {
            return Err(Fault::work(error));
        }
        if count == 0 {
            let what = "it has counts of branches, not samples; a perf.data needs samples";
            return Err(Fault::unreadable(&input.path, what));
        }
        writer.finish().map(drop).map_err(Fault::work)
    })
}

fn binary_machine(reading: &Reading<'_>) -> mepof_address::Machine {
    let image = reading.recording.images.first();
    image.map_or(mepof_address::Machine::X86_64, |image| image.binary.machine())
}

/// A kernel is one mapping from its first byte to its last; what else there is has one for each
/// of its sections.
fn write_mappings<W: Write>(
    writer: &mut Writer<W>,
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

/// Writes samples as they come; in order, so on one thread.
struct Samples<'a, W> {
    writer: Option<&'a mut Writer<W>>,
    space: Space,
    written: u64,
    failed: Option<io::Error>,
}

impl<W: Write> Samples<'_, W> {
    fn write(&mut self, sample: &Sample<'_>, branches: &[BranchEntry]) {
        let Some(newest) = branches.first() else { return };
        let Some(writer) = self.writer.as_mut().filter(|_| self.failed.is_none()) else { return };
        let recorded = RecordedSample {
            event: 0,
            address: sample.address.unwrap_or(newest.to),
            space: self.space,
            time: sample.time.unwrap_or_default(),
            process: (1, 1),
            cpu: 0,
            branches: branches.get(..DEEPEST).unwrap_or(branches),
        };
        match writer.sample(&recorded) {
            Ok(()) => self.written += 1,
            Err(error) => self.failed = Some(error),
        }
    }
}

impl<W: Write + Send> Sink for Samples<'_, W> {
    fn sample(&mut self, sample: &Sample<'_>) {
        if sample.consecutive {
            self.write(sample, sample.branches);
        } else {
            // Single branches: as one stack they would tell of code between them.
            sample.branches.chunks(1).for_each(|branch| self.write(sample, branch));
        }
    }

    fn branch(&mut self, _from: RuntimeAddress, _to: RuntimeAddress, _count: u64) {}

    fn range(&mut self, _first: RuntimeAddress, _last: RuntimeAddress, _count: u64) {}

    fn fork(&self) -> Self {
        Self { writer: None, space: self.space, written: 0, failed: None }
    }

    fn merge(&mut self, other: Self) {
        self.failed = self.failed.take().or(other.failed);
    }
}
