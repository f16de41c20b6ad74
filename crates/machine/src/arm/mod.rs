//! 32-bit Arm, with A32 and T32 code. Why its branches are decoded here:
//! docs/decisions/0015-arm-decoders.md.

mod a32;
mod t32;

use mepof_address::ImageAddress;
use object::elf;

use crate::architecture::{
    Architecture, CodeKind, Decoder, Step, arm_mapping_symbol, has_magic, word,
};
use crate::instruction::{Flow, Instruction};
use crate::module_table::ModuleTable;
use crate::patch_table::PatchTable;
use crate::relocation::{Relocation, set_bits};

pub(crate) struct Arm;

impl Architecture for Arm {
    fn name(&self) -> &'static str {
        "arm"
    }

    fn elf_number(&self) -> u16 {
        elf::EM_ARM.0
    }

    fn is_64_bit(&self) -> bool {
        false
    }

    fn uname(&self) -> &'static str {
        "armv7l"
    }

    fn has_uname(&self, name: &str) -> bool {
        name.starts_with("arm") && !matches!(name, "arm64" | "armv8l")
    }

    /// The default split of 3 GiB to 1 GiB, less the 16 MiB of modules below it.
    fn kernel_space(&self) -> u64 {
        0xbf00_0000
    }

    fn boot_image(&self, bytes: &[u8]) -> Option<&'static str> {
        has_magic(bytes, 0x24, &0x016f_2818_u32.to_le_bytes())
            .then_some("an Arm kernel image (zImage)")
    }

    /// T32 code.
    fn mode_bit(&self) -> u64 {
        1
    }

    fn mapping_symbol(&self, name: &[u8]) -> Option<CodeKind> {
        arm_mapping_symbol(name)
    }

    /// Numbers: "ELF for the Arm Architecture".
    fn relocation(&self, kind: u32) -> Option<Relocation> {
        fn branch24(instruction: &mut [u8], distance: u64) -> Option<()> {
            set_bits(instruction, distance >> 2, 24, 0)
        }
        Some(match elf::RelocationType(kind) {
            elf::R_ARM_ABS32 => Relocation::Absolute(4),
            elf::R_ARM_REL32 => Relocation::Relative(4),
            elf::R_ARM_PC24 | elf::R_ARM_CALL | elf::R_ARM_JUMP24 => {
                Relocation::Branch { ahead: 8, patch: branch24 }
            }
            elf::R_ARM_THM_PC22 | elf::R_ARM_THM_JUMP24 => {
                Relocation::Branch { ahead: 4, patch: t32::set_branch24 }
            }
            elf::R_ARM_THM_JUMP19 => Relocation::Branch { ahead: 4, patch: t32::set_branch19 },
            _ => return None,
        })
    }

    /// Its entries have absolute addresses, which are not read: the check of a branch trace is a
    /// little stricter for it.
    fn patch_tables(&self) -> &'static [PatchTable] {
        &[]
    }

    /// Its size depends on the kernel's configuration: `arch/arm/kernel/module-plts.c`.
    fn module_tables(&self) -> &'static [ModuleTable] {
        &[ModuleTable { section: ".plt", size: None }]
    }

    fn decode(&self, thumb: bool, address: ImageAddress, code: &[u8]) -> Option<Instruction> {
        if thumb {
            t32::decode(address, code)
        } else {
            Some(a32::instruction(address, word(code)?))
        }
    }

    fn decoder<'a>(
        &self,
        thumb: bool,
        address: ImageAddress,
        code: &'a [u8],
    ) -> Box<dyn Decoder + 'a> {
        let state = if thumb { State::T32 { left: 0 } } else { State::A32 };
        Box::new(ArmDecoder { base: address, code, state })
    }

    fn is_traced_barrier(&self, thumb: bool, code: &[u8]) -> bool {
        // isb
        word(code).is_some_and(|word| match thumb {
            true => word & 0xfff0_ffff == 0x8f60_f3bf,
            false => word & 0xffff_fff0 == 0xf57f_f060,
        })
    }
}

enum State {
    A32,
    /// How many instructions are left of an `it` block.
    T32 {
        left: u8,
    },
}

struct ArmDecoder<'a> {
    base: ImageAddress,
    code: &'a [u8],
    state: State,
}

impl Decoder for ArmDecoder<'_> {
    fn step(&mut self, offset: usize) -> Option<Step> {
        let address = ImageAddress(self.base.0.wrapping_add(offset as u64));
        let code = self.code.get(offset..)?;
        Some(Step::Instruction(match &mut self.state {
            State::A32 => a32::instruction(address, word(code)?),
            State::T32 { left } => next_t32(address, code, left)?,
        }))
    }

    fn switch(&mut self, kind: CodeKind) {
        match (kind, &self.state) {
            (CodeKind::Thumb, _) => self.state = State::T32 { left: 0 },
            (CodeKind::Arm, State::T32 { .. }) => self.state = State::A32,
            _ => {}
        }
    }
}

/// The instruction at the start of `code`; `left` is how many are left of an `it` block.
fn next_t32(address: ImageAddress, code: &[u8], left: &mut u8) -> Option<Instruction> {
    let first = u16::from_le_bytes(*code.first_chunk()?);
    let mut decoded = t32::decode(address, code)?;
    if let Some(length) = t32::block_length(first) {
        *left = length;
    } else if *left > 0 {
        *left -= 1;
        if let Flow::Jump(target) = decoded.flow {
            decoded.flow = Flow::Conditional(target);
        }
        decoded.predicated = !matches!(decoded.flow, Flow::Next | Flow::Conditional(_));
    }
    Some(decoded)
}
