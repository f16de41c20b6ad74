//! Text of `perf script`: what one thread makes of it, two do too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_fuzz::{read, sorted};
use mepof_trace::input::perf_script;

fuzz_target!(|data: &[u8]| {
    let one = read(1, |path, options, sink| perf_script::parse(data, path, options, sink));
    let two = read(2, |path, options, sink| perf_script::parse(data, path, options, sink));
    assert_eq!(one.as_ref().map(sorted), two.as_ref().map(sorted));
});
