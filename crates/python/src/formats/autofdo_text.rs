//! LLVM's text.

use mepof_profile::text;

use super::format::{OutputFormat, Writer};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "autofdo-text",
    options: &[],
    writer: Writer::Profile(|profile, _, out| Ok(text::write(profile, out)?)),
};
