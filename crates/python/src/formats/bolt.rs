//! BOLT's fdata, by function and offset.

use mepof_layout::{Symbols, bolt};

use super::format::{OutputFormat, Writer};
use crate::fault::written;

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "bolt",
    options: &[],
    writer: Writer::Image {
        several: false,
        write: |job, path, files| {
            let binary = &job.image.binary;
            let symbols = Symbols::read(binary, |_| None)?;
            files.write(path, |out| written(bolt::write_fdata(out, binary, &symbols, job.trace)))
        },
    },
};
