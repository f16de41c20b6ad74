use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction as Decoded, Mnemonic, OpKind};
use mepof_address::ImageAddress;

use super::{Flow, Instruction};

pub(super) fn decode(address: ImageAddress, code: &[u8]) -> Option<Instruction> {
    let mut decoded = Decoded::default();
    decoder(address, code)?.decode_out(&mut decoded);
    interpret(&decoded)
}

/// A decoder for 64-bit code that lies at `address`.
pub(super) fn decoder(address: ImageAddress, code: &[u8]) -> Option<Decoder<'_>> {
    Decoder::try_with_ip(64, code, address.0, DecoderOptions::NONE).ok()
}

/// What `decoded` does. `None` if it is no instruction.
pub(super) fn interpret(decoded: &Decoded) -> Option<Instruction> {
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
    fn bytes_that_are_no_instruction_are_none() {
        for code in [&[][..], &[0x06], &[0xe8, 0, 0], &[0x0f], &[0x66; 16]] {
            assert_eq!(at_0x1000(code), None, "{code:x?}");
        }
    }
}
