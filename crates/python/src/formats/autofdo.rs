//! LLVM's extensible binary.

use mepof_profile::ext_binary;

use super::format::{OutputFormat, Writer};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "autofdo",
    options: &["--md5-names", "--symbol-list"],
    writer: Writer::Profile(|profile, md5_names, out| {
        let options = ext_binary::Options { md5_names, ..Default::default() };
        Ok(ext_binary::write(profile, options, out)?)
    }),
};
