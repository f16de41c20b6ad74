//! BOLT's pre-aggregated branches and ranges.

use mepof_layout::bolt;

use super::format::{OutputFormat, Writer};
use crate::fault::written;

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "bolt-preaggregated",
    options: &[],
    writer: Writer::Image {
        several: false,
        write: |job, path, files| {
            files.write(path, |out| written(bolt::write_branches(out, job.trace)))
        },
    },
};
