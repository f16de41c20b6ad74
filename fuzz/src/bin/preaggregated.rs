//! BOLT's pre-aggregated text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_fuzz::read;
use mepof_trace::input::preaggregated;

fuzz_target!(|data: &[u8]| {
    read(1, |path, options, sink| preaggregated::parse(data, path, options, sink));
});
