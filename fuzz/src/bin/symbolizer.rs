//! Any bytes as a vmlinux or module: sections, symbols and code, then the debug information of
//! all of its functions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_address::ImageAddress;
use mepof_binary::{Binary, Symbolizer, SymbolizerOptions};

fuzz_target!(|bytes: &[u8]| {
    let Ok(binary) = Binary::parse("fuzzed", bytes) else { return };
    for header in binary.section_headers() {
        let _ = binary.contents_of(header);
    }
    let mut addresses = Vec::new();
    for function in binary.functions() {
        assert!(function.addresses.start < function.addresses.end);
        let _ = binary.code(function.addresses.clone());
        let _ = binary.code_kind(function.addresses.start);
        addresses.push(function.addresses.start);
        addresses.push(ImageAddress(function.addresses.end.0 - 1));
    }
    let options = SymbolizerOptions { all_subprograms: true, ..SymbolizerOptions::default() };
    let Ok(symbolizer) = Symbolizer::with_options(&binary, &addresses, options) else { return };
    for address in addresses {
        for frame in symbolizer.frames(address) {
            assert!(symbolizer.names().get(frame.function).is_some());
        }
        let _ = symbolizer.subprograms().covering(address);
    }
});
