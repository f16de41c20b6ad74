//! Any bytes as a `.llvm_bb_addr_map`, and as a binary that has one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_binary::{Binary, parse_bb_address_maps, read_bb_address_maps};
use mepof_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"\x7fELF") {
        let Ok(binary) = Binary::parse("fuzzed", bytes) else { return };
        if let Ok(functions) = read_bb_address_maps(&binary) {
            assert!(functions.is_sorted_by_key(|function| function.address));
        }
        return;
    }
    for (machine, little_endian) in
        [(Machine::X86_64, true), (Machine::AARCH64, false), (Machine::ARM, true)]
    {
        match parse_bb_address_maps(bytes, machine, little_endian) {
            Ok(functions) => {
                for function in &functions {
                    assert_eq!(function.ranges[0].address, function.address);
                }
            }
            Err(damage) => assert!(damage.offset <= bytes.len(), "{damage}"),
        }
    }
});
