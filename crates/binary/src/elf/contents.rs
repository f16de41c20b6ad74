use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, UncheckedAdvice};

/// A file's bytes.
pub enum Contents {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Contents {
    /// Maps the file at `path`. Only a regular file: debug information may name any, and to open
    /// a pipe would wait for a writer.
    #[allow(unsafe_code)]
    pub fn map(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
        }
        let file = File::open(path)?;
        if metadata.len() == 0 {
            return Ok(Self::Owned(Vec::new()));
        }
        // SAFETY: The map is private and never written to. Should another process write to the
        // file meanwhile, the bytes that are read change, and every reader checks each value
        // when it reads it; should it cut the file short, the kernel ends this process with
        // SIGBUS. Neither breaks a promise that the type system relies on in practice: a build
        // replaces its outputs rather than writing into them.
        unsafe { Mmap::map(&file) }.map(Self::Mapped)
    }

    /// Gives the memory of pages that were read back; who reads them again has them read from the
    /// file again.
    #[allow(unsafe_code)]
    pub fn release(&self) {
        if let Self::Mapped(map) = self {
            // SAFETY: The map is of a file and was never written to: its pages have the same
            // contents when they are read again. A failure leaves them as they are.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}
