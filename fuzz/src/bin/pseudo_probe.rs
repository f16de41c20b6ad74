//! Any bytes as `.pseudo_probe` and as `.pseudo_probe_desc`, and as a binary that has them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_address::ImageAddress;
use mepof_binary::{Binary, ProbeSection, Probes};

/// Functions of the seeds; two have the same name.
const SYMBOLS: [(&[u8], u64); 4] =
    [(b"f", 0x1000), (b"g", 0x2000), (b"f.cold.1", 0x3000), (b"g", 0x4000)];

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"\x7fELF") {
        let Ok(binary) = Binary::parse("fuzzed", bytes) else { return };
        let _ = Probes::read(&binary);
        return;
    }
    let section = ProbeSection { data: bytes, code: None };
    let symbols = SYMBOLS.iter().map(|&(name, address)| (name, ImageAddress(address)));
    match Probes::parse(&[section], symbols, true) {
        Ok(found) => assert!(found.probes.is_sorted_by_key(|probe| probe.address)),
        Err(damage) => assert!(damage.offset <= bytes.len(), "{damage}"),
    }
    let mut described = Probes::default();
    if described.describe(bytes, true).is_ok() {
        assert!(described.functions.is_sorted_by_key(|(guid, ..)| *guid));
    }
});
