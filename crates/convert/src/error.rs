use std::path::PathBuf;

use mepof_binary::BinaryError;
use mepof_profile::MergeError;
use mepof_trace::TraceError;

/// Why there is no profile. Each names the cause and the cure, in one line.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// An input cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A binary cannot be read, or lacks what the conversion needs.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The input does not say where the binary ran.
    #[error("{input}: {what}", input = input.display())]
    NotLocated {
        /// The input.
        input: PathBuf,
        /// Why not, and what mends it.
        what: String,
    },
    /// The input has samples, and none has branches.
    #[error(
        "{input}: {samples} samples, and none has a branch stack; record with \
         `perf record -b` on a CPU that has branch records", input = input.display()
    )]
    NoBranchStacks {
        /// The input.
        input: PathBuf,
        /// Samples in it.
        samples: u64,
    },
    /// The input has no samples at all.
    #[error("{input}: no samples; did the workload run while perf recorded?",
            input = input.display())]
    NoSamples {
        /// The input.
        input: PathBuf,
    },
    /// Only user code was recorded.
    #[error(
        "{input}: {event} leaves the kernel out; record as root with an event such as \
         `cycles:k` and `--branch-filter any,k`", input = input.display()
    )]
    NoKernelBranches {
        /// The input.
        input: PathBuf,
        /// The event.
        event: String,
    },
    /// The binaries' profiles do not go together.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Not one branch lies in the binary.
    #[error(
        "{input}: none of {branches} branches lies in {binary}; give the vmlinux of the very \
         build that ran, and where it was loaded (--kallsyms) if KASLR was on",
        input = input.display(), binary = binary.display()
    )]
    NothingInBinary {
        /// The input.
        input: PathBuf,
        /// The binary.
        binary: PathBuf,
        /// Branches in the input.
        branches: u64,
    },
    /// An input has to be read twice, and can be read once.
    #[error("{input}: this has to be read twice, which a pipe cannot be; write it to a file",
            input = input.display())]
    ReadOnce {
        /// The input.
        input: PathBuf,
    },
}
