//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::fault::{Fault, reason};

/// A file that is being written beside its path. It is moved there by [`Files::publish`]; dropped
/// before, nothing of it remains.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// `None` where the path is not a regular file (`/dev/stdout`, a pipe): it is written at once.
    partial: Option<PathBuf>,
    writer: BufWriter<File>,
    /// What the system said when writing failed: who writes through this does not know the path.
    failure: Option<Fault>,
}

impl Output {
    /// Begins to write what will be `path`.
    pub fn create(path: &Path) -> Result<Self, Fault> {
        let unwritable = |error: io::Error| {
            Fault::input(format_args!("{} cannot be written: {}", path.display(), reason(&error)))
        };
        let (partial, file) = if is_special(path) {
            (None, File::options().write(true).open(path).map_err(unwritable)?)
        } else {
            // Through a link, as a plain write would go.
            let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let partial = target.with_file_name(format!(".{name}.{}", std::process::id()));
            let file = File::create(&partial).map_err(unwritable)?;
            (Some(partial), file)
        };
        let writer = BufWriter::new(file);
        Ok(Self { path: path.to_owned(), partial, writer, failure: None })
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.writer.flush().map_err(|error| self.failed(&error))
    }

    fn rename(&mut self) -> Result<(), Fault> {
        if let Some(partial) = self.partial.take() {
            let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            fs::rename(&partial, target).map_err(|error| {
                self.partial = Some(partial);
                self.failed(&error)
            })?;
        }
        Ok(())
    }

    /// Remembers an error that goes on to who writes.
    fn noted<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &outcome {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failure = Some(self.failed(error));
            }
        }
        outcome
    }

    fn failed(&self, error: &io::Error) -> Fault {
        Fault::work(format_args!("{} cannot be written: {}", self.path.display(), reason(error)))
    }
}

/// Files that are seen together, once all of them have been written.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Vec<Output>,
}

impl Files {
    /// Writes what `content` says, to be seen at `path` later.
    pub fn write(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut Output) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut file = Output::create(path)?;
        content(&mut file).map_err(|fault| file.failure.take().unwrap_or(fault))?;
        self.files.push(file);
        Ok(())
    }

    /// Writes `value` as JSON, to be seen at `path` later.
    pub fn write_document(&mut self, path: &Path, value: &impl Serialize) -> Result<(), Fault> {
        self.write(path, |out| {
            serde_json::to_writer_pretty(&mut *out, value).map_err(Fault::work)?;
            out.write_all(b"\n").map_err(Fault::work)
        })
    }

    /// Writes `value` as JSON beside `output`, unless that is a pipe or a terminal, which has
    /// nothing beside it.
    pub fn write_beside(
        &mut self,
        output: &Path,
        suffix: &str,
        value: &impl Serialize,
    ) -> Result<(), Fault> {
        if is_special(output) {
            Ok(())
        } else {
            self.write_document(&beside(output, suffix), value)
        }
    }

    /// What has been written so far.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Lets the files be seen, unless the user wants to stop.
    pub fn publish(mut self, cancelled: &AtomicBool) -> Result<(), Fault> {
        self.files.iter_mut().try_for_each(Output::flush)?;
        if cancelled.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted);
        }
        self.files.iter_mut().try_for_each(Output::rename)
    }
}

/// Whether what is at `path` is not a regular file but a pipe or a terminal; or one that is open
/// already, whatever it is (`/dev/stdout`).
pub(crate) fn is_special(path: &Path) -> bool {
    let open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    open.iter().any(|open| path.starts_with(open))
        || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// A file beside `path`: `out` and `cc_profile` make `out.cc_profile`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.writer.write(bytes);
        self.noted(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.writer.flush();
        self.noted(outcome)
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let outcome = self.writer.seek(to);
        self.noted(outcome)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Nobody would read the error, and the remaining file is hidden.
            let _ = fs::remove_file(partial);
        }
    }
}
