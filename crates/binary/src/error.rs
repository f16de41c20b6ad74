use std::io;
use std::path::PathBuf;

/// Why a binary cannot be used. Each says what is wrong and how to remedy it.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// Not an ELF file, or not one of a kernel for a known machine.
    #[error("{path}: {what}", path = path.display())]
    NotABinary {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what is wanted (a bzImage wants its vmlinux).
        what: String,
    },
    /// A part of the file is damaged.
    #[error("{path}: {section} is damaged: {what}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The section.
        section: String,
        /// What is wrong there.
        what: String,
    },
    /// What a conversion needs is not in the file.
    #[error("{path} has no {what}; {remedy}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
        /// How to build a kernel that has it.
        remedy: String,
    },
}
