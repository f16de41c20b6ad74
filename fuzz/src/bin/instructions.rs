//! Any bytes as code of any machine, which the first byte names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_address::ImageAddress;
use mepof_binary::Instructions;
use mepof_machine::Machine;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, code)) = bytes.split_first() else { return };
    let (machine, thumb) = match kind % 4 {
        0 => (Machine::X86_64, false),
        1 => (Machine::AARCH64, false),
        2 => (Machine::ARM, false),
        _ => (Machine::ARM, true),
    };
    // At the end of the address space, too.
    let base = if kind & 0x80 == 0 { 0x1000 } else { u64::MAX - 0x40 };
    let mut next = 0; // no instruction lies in another
    for (address, instruction) in Instructions::new(machine, thumb, ImageAddress(base), code) {
        let offset = usize::try_from(address.0.wrapping_sub(base)).unwrap();
        assert!(offset >= next && instruction.size > 0);
        next = offset + usize::from(instruction.size);
        assert!(next <= code.len());
        let alone = machine.decode(thumb, address, &code[offset..]).unwrap();
        assert_eq!((alone.size, alone.repeats), (instruction.size, instruction.repeats));
        if !thumb {
            assert_eq!(alone, instruction);
        }
    }
});
