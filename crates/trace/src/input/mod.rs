//! Readers, one file each. [`read`] finds the right one.

pub mod perf_data;
pub mod perf_script;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::{Facts, Sink, Space, TraceError};

/// How to read an input.
#[derive(Debug)]
pub struct Options<'a> {
    /// Whose samples to take: host or guest kernel, or user code.
    pub space: Space,
    /// The events to take, by name; empty takes all that have branch stacks.
    pub events: &'a [String],
    /// How many distinct branches and ranges to hold at most.
    pub max_distinct: usize,
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
    /// `perf.data`: as recorded, or from a pipe.
    PerfData,
    /// The text of `perf script -F …,brstack` or `brstacksym`.
    PerfScript,
    /// llvm-profgen's unsymbolized text.
    Unsymbolized,
    /// simpleperf's branch list of ETM traces.
    BranchList,
    /// The emulated recorder's trace.
    Recorder,
}

/// Reads the file at `path` into `sink` and says what it was.
pub fn read<S: Sink>(
    path: &Path,
    format: Option<Format>,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let _ = (path, format, options, sink);
    todo!("dispatch, once the readers are there")
}
