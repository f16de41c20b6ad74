//! llvm-profgen's unsymbolized text: what was read can be written, and is then the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_fuzz::{read, sorted};
use mepof_trace::{input, map_to_image, output};

fuzz_target!(|data: &[u8]| {
    let parse = |text: &[u8]| {
        read(1, |path, options, sink| input::unsymbolized::parse(text, path, options, sink))
    };
    let Some(first) = parse(data) else { return };
    // All addresses but the very last byte of the address space.
    let all = Region { runtime: RuntimeAddress(0), image: ImageAddress(0), size: u64::MAX };
    let trace = map_to_image(&first, &Placement::new(vec![all]), &[]);
    let mut text = Vec::new();
    output::unsymbolized::write(&trace, None, &mut text).expect("a vector takes everything");
    let [branches, ranges] = sorted(&first);
    let outside = |&(one, another, _): &(u64, u64, u64)| one == u64::MAX || another == u64::MAX;
    if !branches.iter().chain(&ranges).any(outside) && !(branches.is_empty() && ranges.is_empty()) {
        assert_eq!(parse(&text).as_ref().map(sorted), Some([branches, ranges]));
    }
});
