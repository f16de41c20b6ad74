use std::path::PathBuf;

use mepof_binary::BinaryError;
use mepof_profile::MergeError;
use mepof_trace::TraceError;

use crate::Subject;

/// Why there is no profile. Each names the cause and the remedy in one line.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// An input cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A binary cannot be read, or does not have what the conversion needs.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The input, or a given copy of /proc/kallsyms, does not say where the binary ran.
    #[error("{input}: {what}", input = input.display())]
    NotLocated {
        /// The input, or that copy.
        input: PathBuf,
        /// Why not, and the remedy.
        what: String,
    },
    /// A kernel was given for user code.
    #[error(
        "{binary} is a kernel and has no user code; give the program that ran, or use the \
         kernel's samples (--space kernel)", binary = binary.display()
    )]
    KernelForUserCode {
        /// The binary.
        binary: PathBuf,
    },
    /// What was given as a module is none.
    #[error(
        "{path} is not a kernel module, which is a relocatable file (.ko); give modules as they \
         were built, and the vmlinux once (--binary)", path = path.display()
    )]
    NotAModule {
        /// What was given.
        path: PathBuf,
    },
    /// A binary was given twice.
    #[error(
        "{path} is the same binary as {other}, and its branches would count twice; give it once",
        path = path.display(), other = other.display()
    )]
    GivenTwice {
        /// What was given again.
        path: PathBuf,
        /// What was given before.
        other: PathBuf,
    },
    /// The binaries' profiles do not go together.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Not one branch lies in the binary.
    #[error(
        "{input}: none of its {branches} branches is in {binary}; {remedy}",
        input = input.display(), binary = binary.display(),
        remedy = instead.clone().unwrap_or_else(|| subject.remedy())
    )]
    NothingInBinary {
        /// The input.
        input: PathBuf,
        /// The binary.
        binary: PathBuf,
        /// What that is.
        subject: Subject,
        /// Branches in the input.
        branches: u64,
        /// What most of them are in instead, where the input says, and the remedy.
        instead: Option<String>,
    },
    /// An input has to be read twice, and can be read once.
    #[error("{input}: this must be read twice, which a pipe does not allow; write it to a file",
            input = input.display())]
    ReadOnce {
        /// The input.
        input: PathBuf,
    },
}
