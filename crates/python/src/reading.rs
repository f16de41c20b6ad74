//! Branch traces: where they are, and what was read of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mepof_convert::{BranchTrace, Request};
use mepof_trace::Space;
use mepof_trace::input::Format;

use crate::fault::Fault;

/// The names of [`Space`]s on the command line.
pub(crate) const SPACES: [(&str, Space); 3] =
    [("kernel", Space::Kernel), ("guest", Space::GuestKernel), ("user", Space::User)];

/// Where branch traces are, and the binaries that ran.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub binary: PathBuf,
    pub modules: Vec<PathBuf>,
    pub inputs: Vec<PathBuf>,
    /// What the verdict calls the inputs; empty, if that is their paths.
    pub names: Vec<PathBuf>,
    pub format: Option<Format>,
    pub kallsyms: Option<PathBuf>,
    pub space: Space,
    pub events: Vec<String>,
}

impl Records {
    pub fn request<'a>(
        &'a self,
        cancelled: &'a AtomicBool,
        progress: &'a AtomicU64,
    ) -> Request<'a> {
        Request {
            binary: &self.binary,
            modules: &self.modules,
            inputs: &self.inputs,
            format: self.format,
            space: self.space,
            events: &self.events,
            kallsyms: self.kallsyms.as_deref(),
            cancelled,
            progress,
        }
    }
}

/// What was read, and how to read it again.
pub(crate) struct Reading<'a> {
    pub request: &'a Request<'a>,
    pub branch_trace: &'a BranchTrace,
}

impl Reading<'_> {
    pub fn go_on(&self) -> Result<(), Fault> {
        let stop = self.request.cancelled.load(Ordering::Relaxed);
        if stop { Err(Fault::Interrupted) } else { Ok(()) }
    }
}
