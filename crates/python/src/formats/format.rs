use std::path::Path;

use mepof_convert::{BranchTrace, Image};
use mepof_profile::Profile;
use mepof_trace::ImageTrace;

use crate::fault::Fault;
use crate::output::{Files, Output};
use crate::reading::Reading;

/// A format that branch traces are converted to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputFormat {
    /// Its name on the command line.
    pub name: &'static str,
    /// The options on the command line that some formats take, and this one does.
    pub options: &'static [&'static str],
    /// Writes it.
    pub writer: Writer,
}

/// What a format is written from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer {
    /// From an AutoFDO profile, which covers all binaries. `md5_names`: names as MD5 hashes.
    Profile(fn(profile: &Profile, md5_names: bool, out: &mut Output) -> Result<(), Fault>),
    /// From the branch trace of each binary, to its own file.
    Image {
        /// Whether the files of one binary are several, whose names begin with the output's.
        several: bool,
        /// Writes those of one binary.
        write: fn(job: &ImageJob<'_>, path: &Path, files: &mut Files) -> Result<(), Fault>,
    },
    /// From the inputs, to one file.
    Inputs(fn(reading: &Reading<'_>, path: &Path, files: &mut Files) -> Result<(), Fault>),
}

/// One binary whose branch trace is written.
#[derive(Clone, Copy)]
pub(crate) struct ImageJob<'a> {
    pub reading: &'a Reading<'a>,
    /// Which of the binaries it is.
    pub index: usize,
    pub image: &'a Image,
    /// What of the image's trace can be true.
    pub trace: &'a ImageTrace,
    /// Whether blocks may be copied along hot paths.
    pub path_cloning: bool,
}

impl ImageJob<'_> {
    /// All inputs and binaries.
    pub fn all(&self) -> &BranchTrace {
        self.reading.branch_trace
    }
}
