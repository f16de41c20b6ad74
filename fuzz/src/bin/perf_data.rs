//! perf.data: what one thread makes of it, two do too.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use mepof_fuzz::{read, sorted};
use mepof_trace::input::perf_data::parse;

fuzz_target!(|data: &[u8]| {
    let length = data.len() as u64;
    let one = read(1, |path, options, sink| parse(Cursor::new(data), length, path, options, sink));
    let two = read(2, |path, options, sink| parse(Cursor::new(data), length, path, options, sink));
    assert_eq!(one.as_ref().map(sorted), two.as_ref().map(sorted));
});
