//! The branches of A32, from the Arm Architecture Reference Manual (DDI 0406C), chapter A5.

use mepof_address::ImageAddress;

use crate::instruction::{Flow, Instruction, displaced, signed};

const ALWAYS: u32 = 0xe;
const LINK: u32 = 14;
const STACK: u32 = 13;

/// What `word`, which lies at `address`, does.
pub(super) fn instruction(address: ImageAddress, word: u32) -> Instruction {
    let condition = word >> 28;
    // The program counter reads as two instructions ahead.
    let to = |extra: i64| {
        let ImageAddress(target) = displaced(address, 8 + (signed(word, 0, 24) << 2) + extra);
        ImageAddress(target & 0xffff_ffff)
    };
    if condition == 0xf {
        let flow = match word >> 25 & 7 {
            5 => Flow::Call(to(i64::from(word >> 24 & 1) << 1)), // BLX, into T32 code
            4 if word & 0xfe50_0000 == 0xf810_0000 => Flow::System, // RFE
            _ => Flow::Next,
        };
        return Instruction::new(4, flow);
    }
    let flow = match word >> 25 & 7 {
        0 => register_form(word),
        1 if writes_pc(word) => arithmetic(word, false),
        3 if word & 0x10 != 0 => match word & 0xfff0_00f0 {
            0xe7f0_00f0 => Flow::Stop, // UDF
            _ => Flow::Next,
        },
        2 | 3 => load(word),
        4 if word & 0x0010_8000 == 0x0010_8000 => match word >> 22 & 1 {
            1 => Flow::System, // LDM with ^: back from an exception
            _ => Flow::Return,
        },
        5 if word >> 24 & 1 == 1 => Flow::Call(to(0)),
        5 if condition == ALWAYS => Flow::Jump(to(0)),
        5 => Flow::Conditional(to(0)),
        7 if word >> 24 & 1 == 1 => Flow::System, // SVC
        _ => Flow::Next,
    };
    let predicated = condition != ALWAYS && !matches!(flow, Flow::Next | Flow::Conditional(_));
    Instruction { predicated, ..Instruction::new(4, flow) }
}

/// Data processing with a register operand, and the miscellaneous instructions among them.
fn register_form(word: u32) -> Flow {
    match word & 0x0fff_fff0 {
        0x012f_ff10 | 0x012f_ff20 if word & 0xf == LINK => return Flow::Return, // BX, BXJ
        0x012f_ff10 | 0x012f_ff20 => return Flow::IndirectJump,
        0x012f_ff30 => return Flow::IndirectCall, // BLX
        _ => {}
    }
    match word & 0x0ff0_00f0 {
        0x0120_0070 | 0x0100_0070 => Flow::Stop, // BKPT, HLT
        0x0140_0070 => Flow::System,             // HVC
        0x0160_0070 => Flow::System,             // SMC
        0x0160_0060 if word & 0x000f_ffff == 0x6e => Flow::System, // ERET
        // Multiplications, synchronisation, and loads of less or more than a word.
        _ if word & 0x90 == 0x90 => Flow::Next,
        _ if writes_pc(word) => arithmetic(word, word & 0xff0 == 0),
        _ => Flow::Next,
    }
}

/// Whether data processing has the program counter as its destination.
fn writes_pc(word: u32) -> bool {
    // Operations 8 to 11 compare; without the S bit they are something else altogether.
    word >> 12 & 0xf == 15 && !(8..12).contains(&(word >> 21 & 0xf))
}

fn arithmetic(word: u32, plain_register: bool) -> Flow {
    let sets_flags = word >> 20 & 1 == 1;
    let moves = word >> 21 & 0xf == 13;
    match (sets_flags, moves && plain_register && word & 0xf == LINK) {
        (true, _) => Flow::System, // back from an exception: SUBS PC, LR
        (false, true) => Flow::Return,
        (false, false) => Flow::IndirectJump,
    }
}

fn load(word: u32) -> Flow {
    let into_pc = word >> 20 & 1 == 1 && word >> 22 & 1 == 0 && word >> 12 & 0xf == 15;
    let pops = word & 0x0fff_0fff == 0x049d_0004 && word >> 16 & 0xf == STACK;
    match (into_pc, pops) {
        (false, _) => Flow::Next,
        (true, true) => Flow::Return,
        (true, false) => Flow::IndirectJump,
    }
}
