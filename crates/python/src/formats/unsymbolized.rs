//! llvm-profgen's unsymbolized text.

use mepof_trace::output::unsymbolized;

use super::format::{OutputFormat, Writer};
use crate::fault::written;

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "unsymbolized",
    options: &[],
    writer: Writer::Image {
        several: false,
        write: |job, path, files| {
            // As recorded: its reader checks it.
            let base = job.image.binary.executable_base();
            files.write(path, |out| written(unsymbolized::write(&job.image.trace, base, out)))
        },
    },
};
