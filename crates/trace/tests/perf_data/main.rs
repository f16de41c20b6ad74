//! The reader of perf.data against the writer, and the writer against perf.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod damage;
mod hardware;
mod machines;
mod probed;
mod recordings;
mod samples;
mod shapes;
mod traces;
mod unusable;
mod with_perf;
