//! What goes wrong in the engine, as the errors of `mepof.errors`.

use std::fmt;
use std::io;
use std::path::Path;

use mepof_binary::BinaryError;
use mepof_convert::ConvertError;
use mepof_profile::{CompareError, MergeError, ReadError, WriteError};
use mepof_trace::TraceError;
use pyo3::PyErr;
use pyo3::import_exception;

import_exception!(mepof.errors, InputError);
import_exception!(mepof.errors, Interrupted);
import_exception!(mepof.errors, WorkError);

/// An expected error, by who has to act.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What the user gave is wrong.
    Input(String),
    /// The work failed.
    Work(String),
    /// The user stopped it.
    Interrupted,
}

impl Fault {
    pub fn input(error: impl fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    pub fn work(error: impl fmt::Display) -> Self {
        Self::Work(error.to_string())
    }

    /// An input that cannot be opened or read.
    pub fn unreadable(path: &Path, error: impl fmt::Display) -> Self {
        Self::Input(format!("{}: {error}", path.display()))
    }
}

/// What the system says, within a sentence.
pub(crate) fn reason(error: &io::Error) -> String {
    mepof_trace::reason(error).to_lowercase()
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Input(message) => InputError::new_err(message),
            Fault::Work(message) => WorkError::new_err(message),
            Fault::Interrupted => Interrupted::new_err("interrupted"),
        }
    }
}

impl From<TraceError> for Fault {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Cancelled => Self::Interrupted,
            other => Self::input(other),
        }
    }
}

impl From<BinaryError> for Fault {
    fn from(error: BinaryError) -> Self {
        Self::input(error)
    }
}

impl From<ConvertError> for Fault {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Trace(error) => error.into(),
            other => Self::input(other),
        }
    }
}

impl From<MergeError> for Fault {
    fn from(error: MergeError) -> Self {
        Self::input(error)
    }
}

impl From<CompareError> for Fault {
    fn from(error: CompareError) -> Self {
        Self::input(error)
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => Self::work(error),
            // What was asked for cannot be.
            other => Self::input(other),
        }
    }
}

/// A profile that cannot be read, with its path; what it is, if it is something else.
pub(crate) fn damaged(path: &Path, error: &ReadError) -> Fault {
    if !matches!(error, ReadError::UnknownFormat) {
        return Fault::unreadable(path, error);
    }
    let what = match mepof_trace::input::format_of(path) {
        Ok(_) => "this looks like a branch trace: convert it with `mepof profile convert`".into(),
        Err(TraceError::UnknownFormat { found, .. }) if !found.contains("unknown kind") => found,
        Err(_) => return Fault::unreadable(path, error),
    };
    Fault::unreadable(path, format!("not a sample profile: {what}"))
}

/// What came of writing to an output.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Fault> {
    outcome.map_err(Fault::work)
}
