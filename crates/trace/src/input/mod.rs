//! Readers, one file or folder each. [`read`] finds the right one.
//!
//! Each has two entries: `read`, which takes a path, and `parse`, which takes bytes from
//! anywhere ([`std::io::Read`], so a byte slice too) and a path for its errors. Fuzz targets use
//! the second one.

pub mod branch_list;
mod branch_list_message;
mod detect;
mod gathered;
pub mod perf_data;
pub mod perf_script;
pub mod recorder;
mod text;
pub mod unsymbolized;
mod unusable;

use std::fmt;
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64};

use self::perf_script::SymbolAddresses;
use crate::{Facts, Sink, Space, TraceError};
pub use unusable::unusable;

/// How many distinct branches and ranges to hold unless told otherwise: 2 GiB of them, more than
/// any kernel has.
pub const MAX_DISTINCT: usize = 64 << 20;

/// How to read an input.
#[derive(Debug)]
pub struct Options<'a> {
    /// Whose samples to take: host or guest kernel, or user code.
    pub space: Space,
    /// The events to take, by name; empty takes all that have branch stacks.
    pub events: &'a [String],
    /// How many distinct branches and ranges there may be, all threads together: see
    /// [`MAX_DISTINCT`]. Twice as many may be held while reading.
    pub max_distinct: usize,
    /// Where symbols are, for inputs that have names in place of addresses.
    pub symbols: Option<&'a dyn SymbolAddresses>,
    /// Threads to use at most; 0 is one per core.
    pub threads: usize,
    /// Set from outside to stop: the reader then returns [`TraceError::Cancelled`] within a
    /// tenth of a second or so.
    pub cancelled: &'a AtomicBool,
    /// Bytes of the input that were read so far, for whoever shows progress.
    pub progress: &'a AtomicU64,
}

/// The formats that can be read, with their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `perf-data`: as recorded, or from a pipe.
    PerfData,
    /// `perf-script`: the text of `perf script -F …,brstack`.
    PerfScript,
    /// `unsymbolized`: llvm-profgen's unsymbolized text.
    Unsymbolized,
    /// `branch-list`: simpleperf's branch list of ETM traces.
    BranchList,
    /// `recorder`: the emulated recorder's trace.
    Recorder,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PerfData, Self::PerfScript, Self::Unsymbolized, Self::BranchList, Self::Recorder];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerfData => "perf-data",
            Self::PerfScript => "perf-script",
            Self::Unsymbolized => "unsymbolized",
            Self::BranchList => "branch-list",
            Self::Recorder => "recorder",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no input format {0:?}; there are {names}", names = Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

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
            "this is {format} in a pipe, whose beginning is gone now; \
             say --input-format={format}, or write it to a file"
        )));
    }
    // Not opened anew, so that text may come out of a pipe.
    let input = Cursor::new(head).chain(file);
    match format {
        Format::PerfData => perf_data::read(path, options, sink),
        Format::PerfScript => perf_script::parse(input, path, options, sink),
        Format::Unsymbolized => unsymbolized::parse(input, path, options, sink),
        Format::BranchList => {
            let what = "a branch list is followed through the code of its binary, which is not at \
                        hand here: convert it";
            Err(TraceError::Unsupported { path: path.to_owned(), what: what.to_owned() })
        }
        Format::Recorder => recorder::parse(input, path, options, sink),
    }
}

fn open(path: &Path) -> Result<File, TraceError> {
    File::open(path).map_err(|source| TraceError::Io { path: path.to_owned(), source })
}
