use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mepof_address::RuntimeAddress;

use crate::input::{Format, MAX_DISTINCT, Options, format_of, read};
use crate::{Sample, Sink, Space, TraceError};

/// The format of the branch records at `path`, a file or a directory of `perf record --threads`.
/// Of perf.data, which may hold anything, as much is read as tells that there are branches of the
/// kernel in it; `stop` is then set, as a user does to stop earlier.
///
/// # Errors
/// [`TraceError`], if it is something else or has none.
pub fn probe(path: &Path, stop: &AtomicBool) -> Result<Format, TraceError> {
    let format = if path.is_dir() { Format::PerfData } else { format_of(path)? };
    if format != Format::PerfData {
        return Ok(format);
    }
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: MAX_DISTINCT,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: stop,
        progress: &AtomicU64::new(0),
    };
    match read(path, Some(format), &options, &mut First(stop)) {
        Ok(_) | Err(TraceError::Cancelled) => Ok(format),
        Err(error) => Err(error),
    }
}

/// Stops the reader at the first branch.
struct First<'a>(&'a AtomicBool);

impl First<'_> {
    fn found(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sink for First<'_> {
    fn sample(&mut self, sample: &Sample<'_>) {
        if !sample.branches.is_empty() {
            self.found();
        }
    }

    fn branch(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {
        self.found();
    }

    fn range(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {
        self.found();
    }

    fn fork(&self) -> Self {
        Self(self.0)
    }

    fn merge(&mut self, _: Self) {}
}
