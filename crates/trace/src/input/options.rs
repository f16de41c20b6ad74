use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::BuildId;

use super::perf_script::SymbolAddresses;
use crate::{Space, TraceError};

/// How many distinct branches and ranges to hold by default: 2 GiB of them, more than any kernel
/// has.
pub const MAX_DISTINCT: usize = 64 << 20;

/// The binary that an input of several is read for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The program's file; `None` is a kernel.
    pub program: Option<&'a Path>,
    /// Its build-id.
    pub build_id: Option<&'a BuildId>,
}

impl Wanted<'_> {
    /// Whether it is what an input calls `name`: by build-id, if both have one.
    pub(super) fn is(&self, name: &str, build_id: Option<&BuildId>) -> bool {
        let file = Path::new(name).file_name();
        match (self.build_id, build_id, self.program) {
            (Some(one), Some(other), _) => one == other,
            (_, _, Some(program)) => program.file_name() == file,
            _ => name.starts_with("[kernel.kallsyms]") || file.is_some_and(|it| it == "vmlinux"),
        }
    }
}

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
    /// The binary to read, of an input of several; `None` takes all.
    pub binary: Option<Wanted<'a>>,
    /// Threads to use at most; 0 is one per core.
    pub threads: usize,
    /// Set from outside to stop: the reader then returns [`TraceError::Cancelled`] within a
    /// tenth of a second or so.
    pub cancelled: &'a AtomicBool,
    /// Bytes of the input that were read so far, for a progress display.
    pub progress: &'a AtomicU64,
}

pub(super) fn open(path: &Path) -> Result<File, TraceError> {
    File::open(path).map_err(|source| TraceError::Io { path: path.to_owned(), source })
}
