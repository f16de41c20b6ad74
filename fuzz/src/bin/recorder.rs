//! The emulated recorder's trace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_trace::input::recorder;

fuzz_target!(|data: &[u8]| {
    mepof_fuzz::read(1, |path, options, sink| recorder::parse(data, path, options, sink));
});
