use std::io;
use std::path::PathBuf;

use crate::Space;

/// Why an input could not be read at all. Each says what is wrong and how to remedy it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{path}: {reason}", path = path.display(), reason = reason(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// A copy of /proc/kallsyms is something else.
    #[error("{path}: not a copy of /proc/kallsyms: {found}", path = path.display())]
    NotKallsyms {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// No reader knows the format.
    #[error("{path}: not a branch trace that mepof reads: {found}", path = path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// The format is known, and this is damaged beyond use.
    #[error("{path}: {what} at byte {offset}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The format is known, and this uses a part of it that is not supported.
    #[error("{path}: {what}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What, and what to do instead.
        what: String,
    },
    /// The input has more distinct branches than any real one.
    #[error("{path}: more than {limit} distinct branches, more than any kernel has; was only one \
        program recorded?", path = path.display())]
    TooManyBranches {
        /// The file.
        path: PathBuf,
        /// How many are allowed.
        limit: usize,
    },
    /// Nothing was recorded.
    #[error(
        "{path}: no samples; did the workload run while it was recorded?", path = path.display()
    )]
    NoSamples {
        /// The file.
        path: PathBuf,
    },
    /// There are samples, and none has branches.
    #[error(
        "{path}: none of its {samples} samples has a branch stack; record with `perf record -b` \
         on a CPU that records branches, which most virtual machines hide, or run the workload in \
         the emulator (`mepof run`), which records every branch", path = path.display()
    )]
    NoBranchStacks {
        /// The file.
        path: PathBuf,
        /// Samples in it.
        samples: u64,
    },
    /// The events leave out what was asked for.
    #[error(
        "{path}: {event} excludes {what}, so only {there} was recorded; {remedy}, or use {there} \
         (--space {name})", path = path.display(), what = side(*wanted),
        there = side(other(*wanted)), remedy = how_to_record(*wanted), name = name(other(*wanted))
    )]
    LeftOut {
        /// The file.
        path: PathBuf,
        /// The events.
        event: String,
        /// What was asked for.
        wanted: Space,
    },
    /// All branches are of another side than that which was asked for.
    #[error(
        "{path}: all of its branches are of {there}, none of {what}; {remedy}, or use {there} \
         (--space {name})", path = path.display(), there = side(*found), what = side(*wanted),
        remedy = how_to_record(*wanted), name = name(*found)
    )]
    OtherSpace {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        wanted: Space,
        /// What is there.
        found: Space,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Cancelled,
}

/// What the system says, without Rust's `(os error 2)`.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

pub(crate) fn side(space: Space) -> &'static str {
    match space {
        Space::Kernel => "the kernel",
        Space::GuestKernel => "a guest's kernel",
        Space::User => "user code",
    }
}

fn how_to_record(space: Space) -> &'static str {
    match space {
        Space::Kernel => {
            "record as root with an event such as `cycles:k` and `--branch-filter any,k`"
        }
        Space::GuestKernel => "record with `perf kvm --guest record -b`",
        Space::User => "record with an event such as `cycles:u` and `--branch-filter any,u`",
    }
}

/// The other side of the system call.
fn other(space: Space) -> Space {
    match space {
        Space::Kernel | Space::GuestKernel => Space::User,
        Space::User => Space::Kernel,
    }
}

/// On the command line.
pub(crate) fn name(space: Space) -> &'static str {
    match space {
        Space::Kernel => "kernel",
        Space::GuestKernel => "guest",
        Space::User => "user",
    }
}
