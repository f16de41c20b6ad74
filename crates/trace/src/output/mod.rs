//! Writers, one file each.

pub mod perf_data;
mod perf_data_header;
pub mod perf_data_samples;
pub mod recorder;
pub mod unsymbolized;
