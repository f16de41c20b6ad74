//! Writers, one file each.

pub mod perf_data;
pub mod recorder;
pub mod unsymbolized;
