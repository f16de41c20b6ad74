//! 64-bit Arm.
//!
//! The branches of A64 are from the encoding index of the Arm Architecture Reference Manual
//! (DDI 0487), section C4.1; everything else continues with the next instruction. Why they are
//! decoded here: docs/decisions/0015-arm-decoders.md.

use mepof_address::ImageAddress;
use object::elf;

use crate::architecture::{
    Architecture, BranchRecorder, CodeKind, Decoder, Step, arm_mapping_symbol, has_magic, word,
};
use crate::instruction::{Flow, Instruction, displaced, signed};
use crate::module_table::{ModuleTable, TableSize};
use crate::patch_table::PatchTable;
use crate::relocation::{Relocation, set_bits};

pub(crate) struct Aarch64;

impl Architecture for Aarch64 {
    fn name(&self) -> &'static str {
        "arm64"
    }

    fn elf_number(&self) -> u16 {
        elf::EM_AARCH64.0
    }

    fn uname(&self) -> &'static str {
        "aarch64"
    }

    fn has_uname(&self, name: &str) -> bool {
        // A 32-bit perf on a 64-bit kernel calls it armv8l.
        matches!(name, "aarch64" | "arm64" | "armv8l")
    }

    fn boot_image(&self, bytes: &[u8]) -> Option<&'static str> {
        has_magic(bytes, 0x38, b"ARM\x64").then_some("an arm64 kernel image (Image)")
    }

    fn mapping_symbol(&self, name: &[u8]) -> Option<CodeKind> {
        arm_mapping_symbol(name)
    }

    /// Numbers: "ELF for the Arm 64-bit Architecture".
    fn relocation(&self, kind: u32) -> Option<Relocation> {
        fn branch26(instruction: &mut [u8], distance: u64) -> Option<()> {
            set_bits(instruction, distance >> 2, 26, 0)
        }
        fn branch19(instruction: &mut [u8], distance: u64) -> Option<()> {
            set_bits(instruction, distance >> 2, 19, 5)
        }
        fn branch14(instruction: &mut [u8], distance: u64) -> Option<()> {
            set_bits(instruction, distance >> 2, 14, 5)
        }
        Some(match elf::RelocationType(kind) {
            elf::R_AARCH64_ABS64 => Relocation::Absolute(8),
            elf::R_AARCH64_ABS32 => Relocation::Absolute(4),
            elf::R_AARCH64_PREL64 => Relocation::Relative(8),
            elf::R_AARCH64_PREL32 => Relocation::Relative(4),
            elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => {
                Relocation::Branch { ahead: 0, patch: branch26 }
            }
            elf::R_AARCH64_CONDBR19 => Relocation::Branch { ahead: 0, patch: branch19 },
            elf::R_AARCH64_TSTBR14 => Relocation::Branch { ahead: 0, patch: branch14 },
            _ => return None,
        })
    }

    /// Source: Linux 6.12, `arch/arm64/include/asm/alternative.h` (`struct alt_instr`).
    fn patch_tables(&self) -> &'static [PatchTable] {
        const { &[PatchTable::JUMP_LABELS, PatchTable::alternatives(&[12], |_| 10)] }
    }

    /// Source: Linux 6.12, `arch/arm64/kernel/module-plts.c`. Before 6.5, commit ea3752ba9685
    /// "arm64: module: mandate MODULE_PLTS", the sizes depend on the configuration. They are larger
    /// on a Cortex-A53 with erratum 843419, which records no branch stacks.
    fn module_tables(&self) -> &'static [ModuleTable] {
        const fn table(
            section: &'static str,
            alignment: u64,
            branches: &'static [u32],
        ) -> ModuleTable {
            let size = TableSize { since: (6, 5), alignment, entry_size: 12, entries: 1, branches };
            ModuleTable { section, size: Some(size) }
        }
        const {
            &[
                table(".plt", 64, &[elf::R_AARCH64_JUMP26.0, elf::R_AARCH64_CALL26.0]),
                table(".text.ftrace_trampoline", 4, &[]),
            ]
        }
    }

    fn decode(&self, _thumb: bool, address: ImageAddress, code: &[u8]) -> Option<Instruction> {
        Some(Instruction::new(4, flow(address, word(code)?)?))
    }

    fn decoder<'a>(
        &self,
        _thumb: bool,
        address: ImageAddress,
        code: &'a [u8],
    ) -> Box<dyn Decoder + 'a> {
        Box::new(A64Decoder { base: address, code })
    }

    fn is_traced_barrier(&self, _thumb: bool, code: &[u8]) -> bool {
        word(code).is_some_and(|word| word & 0xffff_f0ff == 0xd503_30df) // isb
    }

    fn is_traced_exception_return(&self, code: &[u8]) -> bool {
        // eret, eretaa, eretab
        matches!(word(code), Some(0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff))
    }

    fn branch_recorder(&self, _cpu_id: &str, _says_speculation: bool) -> Option<BranchRecorder> {
        // Armv9.2: drivers/perf/arm_brbe.c.
        Some(BranchRecorder { name: "Arm's BRBE", remark: "" })
    }
}

struct A64Decoder<'a> {
    base: ImageAddress,
    code: &'a [u8],
}

impl Decoder for A64Decoder<'_> {
    #[inline]
    fn step(&mut self, offset: usize) -> Option<Step> {
        let word = word(self.code.get(offset..)?)?;
        let address = ImageAddress(self.base.0.wrapping_add(offset as u64));
        Some(
            flow(address, word)
                .map_or(Step::Skip(4), |flow| Step::Instruction(Instruction::new(4, flow))),
        )
    }
}

/// Where control goes after `word`. `None` in the unallocated parts of the top level.
#[inline]
fn flow(address: ImageAddress, word: u32) -> Option<Flow> {
    let to = |low, bits| displaced(address, signed(word, low, bits) << 2);
    Some(match word >> 25 & 0xf {
        // Reserved, except SME with the top bit set.
        0 if word >> 16 == 0 => Flow::Stop, // UDF
        0 if word >> 31 == 0 => return None,
        1 | 3 => return None,
        0xa | 0xb => match word >> 26 {
            0b000101 => Flow::Jump(to(0, 26)),
            0b100101 => Flow::Call(to(0, 26)),
            _ => match word >> 24 & 0x7f {
                // B.cond and BC.cond; the conditions AL and NV always hold.
                0x54 if word >> 31 == 0 && word & 0xe == 0xe => Flow::Jump(to(5, 19)),
                0x54 if word >> 31 == 0 => Flow::Conditional(to(5, 19)),
                // RETAASPPC and RETABSPPC with a label (FEAT_PAuth_LR).
                0x55 if word >> 31 == 0 => Flow::Return,
                0x54 => exception(word),
                0x34 | 0x35 => Flow::Conditional(to(5, 19)), // CBZ, CBNZ
                0x36 | 0x37 => Flow::Conditional(to(5, 14)), // TBZ, TBNZ
                0x74 | 0x75 => Flow::Conditional(to(5, 9)),  // CB<cc> (FEAT_CMPBR)
                0x56 | 0x57 if word >> 31 == 1 => register(word)?,
                _ => Flow::Next,
            },
        },
        _ => Flow::Next,
    })
}

/// Exception generation: 0xd4.
fn exception(word: u32) -> Flow {
    match (word >> 21 & 7, word & 0x1f) {
        (0, 1..=3) => Flow::System, // SVC, HVC, SMC
        (1 | 2, 0) => Flow::Stop,   // BRK, HLT
        (5, 1..=3) => Flow::System, // DCPS1 to DCPS3
        _ => Flow::Next,
    }
}

/// Branches to a register, plain or with pointer authentication: 0xd6 and 0xd7.
fn register(word: u32) -> Option<Flow> {
    if word >> 16 & 0x1f != 0x1f {
        return None;
    }
    Some(match word >> 21 & 0xf {
        0 | 8 => Flow::IndirectJump,
        1 | 9 => Flow::IndirectCall,
        2 => Flow::Return,
        4 | 5 => Flow::System, // ERET, DRPS
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_reaches_both_ways_and_to_its_limits() {
        let base = ImageAddress(0xffff_8000_1000_0000);
        let to = |distance: i64| displaced(base, distance);
        for (word, flow) in [
            (0x1400_0000, Flow::Jump(to(0))),
            (0x15ff_ffff, Flow::Jump(to(0x7ff_fffc))),
            (0x1600_0000, Flow::Jump(to(-0x800_0000))),
            (0x97ff_ffff, Flow::Call(to(-4))),
            (0x54ff_ffe1, Flow::Conditional(to(-4))),
            (0x5400_0040, Flow::Conditional(to(8))),
            (0x5400_0050, Flow::Conditional(to(8))), // bc.eq
            (0x5400_004e, Flow::Jump(to(8))),        // b.al
            (0xb480_0000, Flow::Conditional(to(-0x10_0000))),
            (0x3707_ffe0, Flow::Conditional(to(-4))),
            (0xb603_ffe0, Flow::Conditional(to(0x7ffc))),
        ] {
            assert_eq!(flow_of(base, word), Some(flow), "{word:#x}");
        }
    }

    fn flow_of(base: ImageAddress, word: u32) -> Option<Flow> {
        super::flow(base, word)
    }

    #[test]
    fn what_is_not_allocated_is_not_an_instruction() {
        for word in [0x0001_0000, 0x0200_0000, 0x0600_0000, 0xd61e_0000, 0xd6ff_0000] {
            assert_eq!(flow_of(ImageAddress(0), word), None, "{word:#x}");
        }
    }
}
