//! GCC's AutoFDO data.

use mepof_profile::gcov;

use super::format::{OutputFormat, Writer};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "gcov",
    writer: Writer::Profile(|profile, _, out| {
        Ok(gcov::write(profile, gcov::Version::default(), out)?)
    }),
};
