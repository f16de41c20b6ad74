//! AMD64, also known as Intel 64.

use iced_x86::{DecoderOptions, FlowControl, Instruction as Decoded, Mnemonic, OpKind};
use mepof_address::ImageAddress;
use object::elf;

use crate::architecture::{Architecture, BranchRecorder, Decoder, Step, has_magic};
use crate::instruction::{Flow, Instruction};
use crate::patch_table::{CodeAddress, PatchTable};
use crate::relocation::Relocation;

pub(crate) struct X86_64;

impl Architecture for X86_64 {
    fn name(&self) -> &'static str {
        "x86-64"
    }

    fn elf_number(&self) -> u16 {
        elf::EM_X86_64.0
    }

    fn uname(&self) -> &'static str {
        "x86_64"
    }

    fn has_uname(&self, name: &str) -> bool {
        matches!(name, "x86_64" | "amd64")
    }

    fn boot_image(&self, bytes: &[u8]) -> Option<&'static str> {
        has_magic(bytes, 0x202, b"HdrS").then_some("an x86 kernel image (bzImage, vmlinuz)")
    }

    /// Numbers: the processor supplement of the ELF specification for x86-64.
    fn relocation(&self, kind: u32) -> Option<Relocation> {
        Some(match elf::RelocationType(kind) {
            elf::R_X86_64_64 => Relocation::Absolute(8),
            elf::R_X86_64_32 | elf::R_X86_64_32S => Relocation::Absolute(4),
            elf::R_X86_64_PC64 => Relocation::Relative(8),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => Relocation::Relative(4),
            elf::R_X86_64_PC8 => Relocation::Relative(1),
            _ => return None,
        })
    }

    /// Sources: Linux 6.12, `include/linux/static_call_types.h` (`struct static_call_site`),
    /// `arch/x86/include/asm/alternative.h` (`struct alt_instr`, which had 12 bytes until 6.3,
    /// commit 5d1dd961e743 "x86/alternatives: Add alt_instr.flags", and 13 before 5.14), and
    /// `arch/x86/kernel/alternative.c`, `apply_retpolines()`: a call through a thunk becomes a
    /// shorter indirect call, so that it returns into the middle of what the file has. So does an
    /// indirect call of `pv_ops` that becomes a direct one: Linux 6.1,
    /// `arch/x86/include/asm/paravirt_types.h` (`struct paravirt_patch_site`). Since 6.8, commit
    /// f7af6977621a "x86/paravirt: Remove no longer needed paravirt patching code", these are
    /// alternatives.
    fn patch_tables(&self) -> &'static [PatchTable] {
        const {
            &[
                PatchTable::JUMP_LABELS,
                PatchTable {
                    section: ".static_call_sites",
                    symbols: ("__start_static_call_sites", "__stop_static_call_sites"),
                    address: CodeAddress::Offset,
                    strides: &[8],
                    length_at: None,
                },
                PatchTable {
                    section: ".retpoline_sites",
                    symbols: ("__retpoline_sites", "__retpoline_sites_end"),
                    address: CodeAddress::Offset,
                    strides: &[4],
                    length_at: None,
                },
                PatchTable {
                    section: ".parainstructions",
                    symbols: ("__parainstructions", "__parainstructions_end"),
                    address: CodeAddress::Absolute,
                    strides: &[16],
                    length_at: Some(|_| 9),
                },
                PatchTable::alternatives(
                    &[14, 12, 13],
                    |stride| if stride == 14 { 12 } else { 10 },
                ),
            ]
        }
    }

    fn decode(&self, _thumb: bool, address: ImageAddress, code: &[u8]) -> Option<Instruction> {
        decode(address, code)
    }

    fn decoder<'a>(
        &self,
        _thumb: bool,
        address: ImageAddress,
        code: &'a [u8],
    ) -> Box<dyn Decoder + 'a> {
        let decoder = decoder(address, code);
        Box::new(X86Decoder { base: address, decoder, decoded: Decoded::default() })
    }

    fn branch_recorder(&self, cpu_id: &str, says_speculation: bool) -> Option<BranchRecorder> {
        let mut parts = cpu_id.split([',', '-']);
        match parts.next() {
            Some("GenuineIntel") => Some(BranchRecorder { name: "Intel's LBR", remark: "" }),
            Some("AuthenticAMD" | "HygonGenuine") => {
                let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
                let (family, model) = (number(), number());
                // Of family 25, these models are Zen 3.
                let zen3 = family == Some(25)
                    && model.is_some_and(|model| matches!(model, 0x00..=0x0f | 0x20..=0x5f));
                Some(if zen3 && !says_speculation { AMD_BRS } else { AMD_LBR_EXT_V2 })
            }
            _ => None,
        }
    }
}

/// Zen 3: arch/x86/events/amd/brs.c.
const AMD_BRS: BranchRecorder = BranchRecorder {
    name: "AMD's BRS",
    remark: "it gives no predictions, fills up after the event rather than before it, and may \
             give a compare as the source where that is fused with its jump",
};
/// Zen 4 and later: arch/x86/events/amd/lbr.c.
const AMD_LBR_EXT_V2: BranchRecorder = BranchRecorder {
    name: "AMD's LbrExtV2",
    remark: "the kernel leaves out entries whose source it cannot decode, so that a few ranges \
             may span a jump",
};

struct X86Decoder<'a> {
    base: ImageAddress,
    /// `None` cannot be: 64 is a bitness that the decoder knows.
    decoder: Option<iced_x86::Decoder<'a>>,
    decoded: Decoded,
}

impl Decoder for X86Decoder<'_> {
    #[inline]
    fn step(&mut self, offset: usize) -> Option<Step> {
        let decoder = self.decoder.as_mut()?;
        if decoder.position() != offset {
            decoder.set_position(offset).ok()?;
            decoder.set_ip(self.base.0.wrapping_add(offset as u64));
        }
        decoder.decode_out(&mut self.decoded);
        Some(interpret(&self.decoded).map_or(Step::Skip(1), Step::Instruction))
    }
}

fn decode(address: ImageAddress, code: &[u8]) -> Option<Instruction> {
    let mut decoded = Decoded::default();
    decoder(address, code)?.decode_out(&mut decoded);
    interpret(&decoded)
}

/// A decoder for 64-bit code that lies at `address`.
fn decoder(address: ImageAddress, code: &[u8]) -> Option<iced_x86::Decoder<'_>> {
    iced_x86::Decoder::try_with_ip(64, code, address.0, DecoderOptions::NONE).ok()
}

/// What `decoded` does. `None` if it is not an instruction.
fn interpret(decoded: &Decoded) -> Option<Instruction> {
    if decoded.is_invalid() {
        return None;
    }
    let target = || ImageAddress(decoded.near_branch_target());
    let flow = match decoded.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Conditional(target()),
        FlowControl::UnconditionalBranch => Flow::Jump(target()),
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Call if decoded.op0_kind() == OpKind::NearBranch64 => Flow::Call(target()),
        // `syscall`, and the calls into a hypervisor.
        FlowControl::Call => Flow::System,
        FlowControl::Return => match decoded.mnemonic() {
            Mnemonic::Ret | Mnemonic::Retf => Flow::Return,
            _ => Flow::System,
        },
        FlowControl::Interrupt => match decoded.mnemonic() {
            Mnemonic::Int3 => Flow::Stop,
            _ => Flow::System,
        },
        FlowControl::XbeginXabortXend => match decoded.mnemonic() {
            // To its target when the transaction aborts.
            Mnemonic::Xbegin => Flow::Conditional(target()),
            _ => Flow::Next,
        },
        FlowControl::Exception => Flow::Stop,
    };
    let repeats =
        (decoded.has_rep_prefix() || decoded.has_repne_prefix()) && decoded.is_string_instruction();
    Some(Instruction { repeats, ..Instruction::new(decoded.len() as u8, flow) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_0x1000(code: &[u8]) -> Option<(u8, Flow, bool)> {
        decode(ImageAddress(0x1000), code).map(|found| (found.size, found.flow, found.repeats))
    }

    #[test]
    fn each_kind_of_branch_is_told_apart() {
        let target = ImageAddress;
        for (code, size, flow) in [
            (&[0x74, 0x10][..], 2, Flow::Conditional(target(0x1012))),
            (&[0x0f, 0x85, 0xfa, 0xff, 0xff, 0xff], 6, Flow::Conditional(target(0x1000))),
            (&[0xe3, 0xfe], 2, Flow::Conditional(target(0x1000))), // jrcxz
            (&[0xe2, 0xfe], 2, Flow::Conditional(target(0x1000))), // loop
            (&[0xc7, 0xf8, 2, 0, 0, 0], 6, Flow::Conditional(target(0x1008))), // xbegin
            (&[0xeb, 0x00], 2, Flow::Jump(target(0x1002))),
            (&[0x2e, 0xe9, 0, 1, 0, 0], 6, Flow::Jump(target(0x1106))), // cs jmp, a return thunk
            (&[0xe8, 0, 0, 0, 0], 5, Flow::Call(target(0x1005))),
            (&[0xff, 0xe0], 2, Flow::IndirectJump),
            (&[0x3e, 0xff, 0xe0], 3, Flow::IndirectJump), // notrack
            (&[0xff, 0x60, 8], 3, Flow::IndirectJump),
            (&[0xff, 0x2b], 2, Flow::IndirectJump), // far
            (&[0xff, 0xd0], 2, Flow::IndirectCall),
            (&[0xff, 0x15, 0, 0, 0, 0], 6, Flow::IndirectCall),
            (&[0xc3], 1, Flow::Return),
            (&[0xf3, 0xc3], 2, Flow::Return),
            (&[0xc2, 8, 0], 3, Flow::Return),
            (&[0x48, 0xcb], 2, Flow::Return),       // lretq
            (&[0x0f, 0x05], 2, Flow::System),       // syscall
            (&[0x0f, 0x34], 2, Flow::System),       // sysenter
            (&[0x48, 0x0f, 0x07], 3, Flow::System), // sysretq
            (&[0x48, 0xcf], 2, Flow::System),       // iretq
            (&[0xcd, 0x80], 2, Flow::System),
            (&[0x0f, 0x01, 0xc1], 3, Flow::System), // vmcall
            (&[0x0f, 0x0b], 2, Flow::Stop),         // ud2
            (&[0x0f, 0xb9, 0xc0], 3, Flow::Stop),   // ud1, as UBSan emits
            (&[0xcc], 1, Flow::Stop),
            (&[0xf4], 1, Flow::Next), // hlt
            (&[0xf3, 0x90], 2, Flow::Next),
            (&[0xf3, 0x0f, 0x1e, 0xfa], 4, Flow::Next), // endbr64
        ] {
            assert_eq!(at_0x1000(code), Some((size, flow, false)), "{code:x?}");
        }
    }

    #[test]
    fn only_string_instructions_with_a_prefix_repeat() {
        assert_eq!(at_0x1000(&[0xf3, 0xa4]), Some((2, Flow::Next, true)));
        assert_eq!(at_0x1000(&[0xf3, 0x48, 0xab]), Some((3, Flow::Next, true)));
        assert_eq!(at_0x1000(&[0xf2, 0xae]), Some((2, Flow::Next, true)));
        assert_eq!(at_0x1000(&[0xa4]), Some((1, Flow::Next, false)));
    }

    #[test]
    fn bytes_that_are_not_an_instruction_are_none() {
        for code in [&[][..], &[0x06], &[0xe8, 0, 0], &[0x0f], &[0x66; 16]] {
            assert_eq!(at_0x1000(code), None, "{code:x?}");
        }
    }
}
