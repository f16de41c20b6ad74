//! perf.data, as `perf record` and simpleperf write it: files, pipes and directories.
//!
//! How it is read:
//!
//! - Records are read in blocks, in the order of the input, and samples are
//!   decoded where they lie in the block. Nothing is kept but counts, and what was announced:
//!   events, and where binaries were mapped.
//! - Samples are not sorted by time, as perf does before it uses them. Records of several CPUs
//!   come interleaved, but a branch stack is complete in itself, and adding up knows no order.
//!   What would need order is which of two modules was at an address when a sample was taken.
//!   All mappings are collected instead; addresses that several modules claim are left out when
//!   a module is placed. Modules seldom come and go under a load.
//! - A stack may come from a sample taken in user space and still tell of the kernel's
//!   branches just before: the stack decides, not where the event happened. Leaving such samples
//!   out would make code at the way out of the kernel seem cold.
//! - [`Facts::entries`] counts entries that were passed on, and those that were dropped here.
//!   Entries of wrong paths and empty ones are passed on, for the sink to drop and count.
//!
//! The reasons for our own reader are in docs/decisions/0007-perf-data.md. Sources of the format:
//! Linux 6.12, include/uapi/linux/perf_event.h, tools/perf/Documentation/perf.data-file-format.txt
//! and tools/perf/util/{header,session,evsel}.c.

mod attr;
mod branch;
mod compression;
pub(crate) mod cursor;
mod decoder;
mod feature;
mod feeder;
pub(crate) mod format;
mod header;
mod images;
mod notes;
mod sample;
mod session;
mod spe;
mod stream;

pub(crate) use images::module_name;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::input::options::Options;
use crate::{Facts, Sink, TraceError};
use feeder::{Feeder, with_feeder};
use header::{Header, InputFile};
use session::Session;
use stream::Stream;

/// Reads the perf.data at `path`: a file, a pipe (`/dev/stdin`), or the directory that
/// `perf record --threads` makes.
///
/// # Errors
/// [`TraceError::Corrupt`] where the file contradicts itself so that reading on makes no sense,
/// [`TraceError::Unsupported`] for traces that have to be converted first and for events that
/// are not in the file. A file that is cut off is read as far as it goes, and the tally says so.
pub fn read<S: Sink>(
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let io = |source| TraceError::Io { path: path.to_owned(), source };
    let is_directory = std::fs::metadata(path).map_err(io)?.is_dir();
    let main = if is_directory { path.join("data") } else { path.to_owned() };
    let file = File::open(&main).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let parts = if is_directory { parts(path).map_err(io)? } else { Vec::new() };
    read_all(InputFile::new(path, file, length), &parts, path, options, sink)
}

/// Reads `input`, which is a perf.data of `length` bytes; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse<R: Read + Seek, S: Sink>(
    input: R,
    length: u64,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    read_all(InputFile::new(path, input, length), &[], path, options, sink)
}

fn read_all<R: Read + Seek, S: Sink>(
    mut input: InputFile<'_, R>,
    parts: &[PathBuf],
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let header = Header::read(&mut input)?;
    let mut session = Session::new(options, header.order());
    let drive = |feeder: &mut Feeder<'_, S>| {
        match header {
            Header::Pipe { .. } => {
                Stream::new(path, options, &mut session, feeder).read(input.file, 16)?;
            }
            Header::File(layout) => {
                input.announce(&layout, &mut session)?;
                if let Some(names) = session.events_missed() {
                    return Err(no_such_event(path, options, &names));
                }
                let position = input.file.seek(SeekFrom::Start(layout.data.offset));
                position.map_err(|source| TraceError::Io { path: path.to_owned(), source })?;
                let size = layout.data_size(&mut session, input.length);
                let data = input.file.take(size);
                Stream::new(path, options, &mut session, feeder).read(data, layout.data.offset)?;
            }
        }
        for part in parts {
            let file =
                File::open(part).map_err(|source| TraceError::Io { path: part.clone(), source })?;
            Stream::new(part, options, &mut session, feeder).read(file, 0)?;
        }
        Ok(session)
    };
    let (session, counts) = with_feeder(path, options, sink, drive)?;
    if let Some(names) = session.events_missed() {
        return Err(no_such_event(path, options, &names));
    }
    let unsupported = |what| Err(TraceError::Unsupported { path: path.to_owned(), what });
    let trace = session.seen.auxtrace.filter(|_| session.seen.auxtrace_bytes > 0);
    match trace {
        Some(kind) if !session.is_spe() && !session.has_branch_stacks() => {
            unsupported(notes::raw_trace(kind))
        }
        None if session.seen.branch_list && !session.has_branch_stacks() => unsupported(
            "its ETM trace was stored as a branch list; extract it with `simpleperf inject \
             --output branch-list -i perf.data -o branch_list.data`"
                .to_owned(),
        ),
        None if session.seen.counted && !session.has_branch_stacks() => unsupported(
            "it has the counts of `perf stat record`, and no branches; record with \
             `perf record -b`"
                .to_owned(),
        ),
        _ => Ok(session.finish(&counts)),
    }
}

fn no_such_event(path: &Path, options: &Options<'_>, names: &[String]) -> TraceError {
    let (wanted, there) = (options.events.join(", "), names.join(", "));
    let what = format!("it has no event {wanted}; its events are: {there}");
    TraceError::Unsupported { path: path.to_owned(), what }
}

/// The records of each CPU or thread, beside the `data` that has the header:
/// tools/perf/util/data.c, `perf_data__open_dir()`.
fn parts(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("data.") {
            parts.push(entry.path());
        }
    }
    parts.sort();
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use mepof_address::RuntimeAddress;

    use super::*;
    use crate::output::perf_data::{
        Compression, PerfHeader, RecordedEvent, RecordedSample, Writer,
    };
    use crate::{Aggregate, BranchEntry, BranchKind, Space};
    use cursor::ByteOrder;

    type Counts = Vec<(u64, u64, u64)>;

    /// The same samples, as machines of both byte orders write it.
    fn recorded(order: ByteOrder) -> Option<(Facts, Counts)> {
        const TEXT: u64 = 0xc000_0000_0010_0000;
        let events = vec![RecordedEvent::kernel_branches(7)];
        let recording =
            PerfHeader { kernel_release: "6.12".to_owned(), events, ..Default::default() };
        let out = Cursor::new(Vec::new());
        let mut writer = Writer::file_in(out, recording, Compression::None, order).ok()?;
        let entry = |from: u64, to: u64| BranchEntry {
            from: RuntimeAddress(TEXT + from),
            to: RuntimeAddress(TEXT + to),
            mispredicted: Some(true),
            kind: BranchKind::Call,
            ..BranchEntry::default()
        };
        let sample = RecordedSample {
            event: 0,
            address: RuntimeAddress(TEXT),
            space: Space::Kernel,
            time: 5,
            process: (1, 2),
            cpu: 3,
            branches: &[entry(0x20, 0x40), entry(0x8, 0x10)],
        };
        writer.sample(&sample).ok()?;
        let bytes = writer.finish().ok()?.into_inner();
        let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let options = Options {
            space: Space::Kernel,
            events: &[],
            max_distinct: 100,
            symbols: None,
            binary: None,
            threads: 1,
            cancelled: &cancelled,
            progress: &progress,
        };
        let mut aggregate = Aggregate::default();
        let length = bytes.len() as u64;
        let file = Cursor::new(bytes);
        let facts = parse(file, length, Path::new("x"), &options, &mut aggregate).ok()?;
        let mut branches: Counts =
            aggregate.branches().map(|(from, to, count)| (from.0, to.0, count)).collect();
        branches.sort_unstable();
        Some((facts, branches))
    }

    #[test]
    fn the_byte_order_makes_no_difference() {
        let little = recorded(ByteOrder::Little);
        assert_eq!(little.as_ref().map(|(_, branches)| branches.len()), Some(2));
        assert_eq!(recorded(ByteOrder::Big), little);
    }
}
