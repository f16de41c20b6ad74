use std::io;
use std::path::PathBuf;

/// Why an input could not be read at all. Each says what is wrong and what mends it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system said no.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// No reader knows the format.
    #[error("{path}: {found}, which is no branch record that mepof reads", path = path.display())]
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
    #[error("{path}: more than {limit} distinct branches, which no kernel has; \
             is this one program's branch record?", path = path.display())]
    TooManyBranches {
        /// The file.
        path: PathBuf,
        /// How many are allowed.
        limit: usize,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Cancelled,
}
