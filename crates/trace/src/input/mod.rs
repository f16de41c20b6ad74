//! Readers, one file or folder each. [`read`] finds the right one.
//!
//! Each has two entries: `read`, which takes a path, and `parse`, which takes bytes from
//! anywhere ([`std::io::Read`], so a byte slice too) and a path for its errors. Fuzz targets use
//! the second one.

pub mod branch_list;
mod detect;
mod foreign;
mod format;
mod gathered;
mod lines;
mod options;
pub mod perf_data;
pub mod perf_script;
pub mod preaggregated;
pub mod recorder;
mod text;
pub mod unsymbolized;
mod unusable;

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use crate::{Facts, Sink, TraceError};
pub(crate) use foreign::compression;
pub use format::{Format, UnknownFormat};
use options::open;
pub use options::{MAX_DISTINCT, Options, Wanted};
pub use unusable::unusable;

/// The format of the file at `path`, by its content.
///
/// # Errors
/// [`TraceError::UnknownFormat`] says what it is instead, as far as that is known.
pub fn format_of(path: &Path) -> Result<Format, TraceError> {
    let io = |source| TraceError::Io { path: path.to_owned(), source };
    let mut head = Vec::new();
    let file = open(path)?;
    file.take(detect::HEAD as u64).read_to_end(&mut head).map_err(io)?;
    detect::detect(&head)
        .map_err(|found| TraceError::UnknownFormat { path: path.to_owned(), found })
}

/// Reads the file at `path` into `sink` and says what it was. `None` finds the format by the
/// file's content.
///
/// # Errors
/// See [`TraceError`]; an input without a single sample that can be used is one of them.
pub fn read<S: Sink>(
    path: &Path,
    format: Option<Format>,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let facts = read_any(path, format, options, sink)?;
    if facts.samples.used == 0 {
        return Err(unusable(path, &facts, options.space));
    }
    Ok(facts)
}

fn read_any<S: Sink>(
    path: &Path,
    format: Option<Format>,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let io = |source| TraceError::Io { path: path.to_owned(), source };
    let unknown = |found| TraceError::UnknownFormat { path: path.to_owned(), found };
    // `perf record --threads` makes a directory.
    if format == Some(Format::PerfData) || std::fs::metadata(path).map_err(io)?.is_dir() {
        return perf_data::read(path, options, sink);
    }
    let mut file = open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(detect::HEAD as u64).read_to_end(&mut head).map_err(io)?;
    let format = format.map_or_else(|| detect::detect(&head).map_err(unknown), Ok)?;
    if matches!(format, Format::PerfData | Format::BranchList) && file.stream_position().is_err() {
        return Err(unknown(format!(
            "this is {format} in a pipe, whose beginning is gone now; give \
             --input-format={format}, or write it to a file"
        )));
    }
    // Not reopened, so that text may come out of a pipe.
    let input = Cursor::new(head).chain(file);
    match format {
        Format::PerfData => perf_data::read(path, options, sink),
        Format::PerfScript => perf_script::parse(input, path, options, sink),
        Format::Unsymbolized => unsymbolized::parse(input, path, options, sink),
        Format::Preaggregated => preaggregated::parse(input, path, options, sink),
        Format::BranchList => {
            let what = "a branch list can only be followed with its binary's code; use `mepof \
                profile convert`";
            Err(TraceError::Unsupported { path: path.to_owned(), what: what.to_owned() })
        }
        Format::Recorder => recorder::parse(input, path, options, sink),
    }
}
