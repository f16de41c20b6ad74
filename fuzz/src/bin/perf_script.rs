//! Text of `perf script`: what one thread makes of it, two do too, with a table of symbols and
//! without one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_address::RuntimeAddress;
use mepof_fuzz::{read, sorted};
use mepof_trace::input::Options;
use mepof_trace::input::perf_script::{SymbolAddresses, SymbolTable, parse};

fuzz_target!(|data: &[u8]| {
    let mut table = SymbolTable::default();
    let names = ["main", "f", "add", "operator new(unsigned long)", "twice", "twice"];
    for (name, start) in names.into_iter().zip((0x1000..).step_by(0x1000)) {
        table.add(name.as_bytes(), RuntimeAddress(start), 0x100);
    }
    for symbols in [None, Some(&table as &dyn SymbolAddresses)] {
        let with = |threads| {
            read(threads, |path, options, sink| {
                parse(data, path, &Options { symbols, ..*options }, sink)
            })
        };
        let (one, two) = (with(1), with(2));
        assert_eq!(one.as_ref().map(sorted), two.as_ref().map(sorted));
    }
});
