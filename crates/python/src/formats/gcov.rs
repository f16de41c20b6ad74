//! GCC's AutoFDO data.

use mepof_profile::gcov::{Version, write};

use super::format::{OutputFormat, Writer};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "gcov",
    options: &[],
    writer: Writer::Profile(|profile, _, out| Ok(write(profile, Version::Gcc12, out)?)),
};

/// For the compilers that tell the blocks of a line apart.
pub(super) const FORMAT_13: OutputFormat = OutputFormat {
    name: "gcov-13",
    options: &[],
    writer: Writer::Profile(|profile, _, out| Ok(write(profile, Version::Gcc13, out)?)),
};

/// With a summary and files of functions.
pub(super) const FORMAT_16: OutputFormat = OutputFormat {
    name: "gcov-16",
    options: &[],
    writer: Writer::Profile(|profile, _, out| Ok(write(profile, Version::Gcc16, out)?)),
};
