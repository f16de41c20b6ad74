//! Writes perf.data: samples that were not recorded by perf, for the tools that read perf's.
//!
//! What it writes, `perf script -F ip,brstack` and `perf report` read. Formats: Linux 6.12,
//! tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.

mod bytes;
mod header;
mod recorded;
mod samples;
mod writer;

pub use recorded::{Compression, PerfHeader, RecordedEvent, RecordedMapping, RecordedSample};
pub use samples::Samples;
pub use writer::Writer;
