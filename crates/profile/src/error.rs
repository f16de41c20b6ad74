use std::io;

use crate::Format;

/// Why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The data is not a profile in any known form.
    #[error("not a sample profile: neither text, nor LLVM's binary forms, nor GCC's gcov")]
    UnknownFormat,
    /// The data is something else that is known.
    #[error("not a sample profile: this is {0}")]
    OtherFormat(&'static str),
    /// The data ends inside of something.
    #[error("{format} profile ends inside {inside} at byte {offset}: the file is truncated")]
    Truncated {
        /// The form that it is in.
        format: Format,
        /// What was being read.
        inside: &'static str,
        /// Where, in bytes; in a compressed section, of the uncompressed data.
        offset: usize,
    },
    /// Something in it cannot be.
    #[error("{format} profile is damaged at byte {offset}: {what}")]
    Malformed {
        /// The form that it is in.
        format: Format,
        /// What cannot be.
        what: &'static str,
        /// Where, in bytes; in a compressed section, of the uncompressed data.
        offset: usize,
    },
    /// A line of a text profile cannot be.
    #[error("line {line} of the text profile: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The profile has something that is not supported.
    #[error("{format} profile {what}")]
    Unsupported {
        /// The form that it is in.
        format: Format,
        /// What it has, as the end of a sentence about it.
        what: &'static str,
    },
    /// The version is another one.
    #[error("{format} profile has version {version}; {supported} can be read")]
    Version {
        /// The form that it is in.
        format: Format,
        /// The version found.
        version: u64,
        /// The versions that can be read.
        supported: &'static str,
    },
}

/// Why a profile cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing failed.
    #[error("cannot write the profile: {0}")]
    Io(#[from] io::Error),
    /// Compilers reject such an offset.
    #[error(
        "function {function} has samples at line offset {offset}, but the format's limit is \
         65535: make locations with LineLocation::from_lines"
    )]
    Offset {
        /// The function, or the inlined copy.
        function: String,
        /// The offset.
        offset: u32,
    },
    /// GCC has 16 bits for a discriminator.
    #[error(
        "function {function} has samples at discriminator {discriminator}, but gcov's limit is \
         65535: only profiles of GCC's builds fit"
    )]
    Discriminator {
        /// The function, or the inlined copy.
        function: String,
        /// The discriminator.
        discriminator: u32,
    },
    /// A name would break the form.
    #[error("{name:?} cannot be the name of a function in a {format} profile")]
    Name {
        /// The name.
        name: String,
        /// The form that was to be written.
        format: Format,
    },
    /// The form cannot hold this kind of profile.
    #[error("a {format} profile cannot hold {what}")]
    Kind {
        /// The form that was to be written.
        format: Format,
        /// What it cannot hold.
        what: &'static str,
    },
}
