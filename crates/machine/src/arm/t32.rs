//! The branches of T32, from the Arm Architecture Reference Manual (DDI 0406C), chapter A6.

use mepof_address::ImageAddress;

use crate::instruction::{Flow, Instruction, displaced, signed};

/// The size of the instruction that begins with `first`.
pub(super) fn size(first: u16) -> u8 {
    if first >> 11 > 0b11100 { 4 } else { 2 }
}

/// The number of instructions that `first` makes conditional, if it is `it`.
pub(super) fn block_length(first: u16) -> Option<u8> {
    let mask = first & 0xf;
    (first >> 8 == 0xbf && mask != 0).then(|| 4 - mask.trailing_zeros() as u8)
}

pub(super) fn decode(address: ImageAddress, code: &[u8]) -> Option<Instruction> {
    let first = u16::from_le_bytes(*code.first_chunk()?);
    if size(first) == 2 {
        return Some(Instruction::new(2, narrow(address, u32::from(first))));
    }
    let &[_, _, low, high] = code.first_chunk()?;
    let second = u16::from_le_bytes([low, high]);
    Some(Instruction::new(4, wide(address, u32::from(first), u32::from(second))))
}

/// The program counter reads as four bytes ahead; addresses have 32 bits.
fn ahead(address: ImageAddress, by: i64) -> ImageAddress {
    ImageAddress(displaced(address, by + 4).0 & 0xffff_ffff)
}

fn narrow(address: ImageAddress, half: u32) -> Flow {
    match half >> 8 {
        0xd0..=0xdd => Flow::Conditional(ahead(address, signed(half, 0, 8) << 1)),
        0xde => Flow::Stop,   // UDF
        0xdf => Flow::System, // SVC
        0xe0..=0xe7 => Flow::Jump(ahead(address, signed(half, 0, 11) << 1)),
        0xb1 | 0xb3 | 0xb9 | 0xbb => {
            let distance = (half >> 3 & 0x1f) << 1 | (half >> 9 & 1) << 6;
            Flow::Conditional(ahead(address, i64::from(distance)))
        }
        0x47 => match (half >> 7 & 1, half >> 3 & 0xf) {
            (1, _) => Flow::IndirectCall,
            (_, 14) => Flow::Return,
            _ => Flow::IndirectJump,
        },
        0x46 if half & 0x87 == 0x87 => match half >> 3 & 0xf {
            14 => Flow::Return, // MOV PC, LR
            _ => Flow::IndirectJump,
        },
        0x44 if half & 0x87 == 0x87 => Flow::IndirectJump, // ADD PC, Rm
        0xbd => Flow::Return,                              // POP {…, PC}
        0xbe => Flow::Stop,                                // BKPT
        0xba if half >> 6 & 3 == 2 => Flow::Stop,          // HLT
        _ => Flow::Next,
    }
}

fn wide(address: ImageAddress, first: u32, second: u32) -> Flow {
    if first >> 11 == 0b11110 && second >> 15 == 1 {
        return branch(address, first, second);
    }
    let loads_pc = second >> 12 == 0xf;
    match first {
        // TBB, TBH
        0xe8d0..=0xe8df if second & 0xffe0 == 0xf000 => Flow::IndirectJump,
        // LDM, LDMDB
        _ if matches!(first & 0xffd0, 0xe890 | 0xe910) && second >> 15 == 1 => Flow::Return,
        // RFE
        _ if matches!(first & 0xffd0, 0xe810 | 0xe990) => Flow::System,
        // LDR PC, [SP], #4
        0xf85d if second == 0xfb04 => Flow::Return,
        _ if first & 0xff70 == 0xf850 && loads_pc => Flow::IndirectJump,
        _ => Flow::Next,
    }
}

/// Branches and miscellaneous control.
fn branch(address: ImageAddress, first: u32, second: u32) -> Flow {
    let sign = first >> 10 & 1;
    let (j1, j2) = (second >> 13 & 1, second >> 11 & 1);
    let far = || {
        let (i1, i2) = (1 ^ j1 ^ sign, 1 ^ j2 ^ sign);
        let distance =
            sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
        signed(distance, 0, 25)
    };
    match second >> 12 & 5 {
        0 if first >> 7 & 7 != 7 => {
            let distance =
                sign << 20 | j2 << 19 | j1 << 18 | (first & 0x3f) << 12 | (second & 0x7ff) << 1;
            Flow::Conditional(ahead(address, signed(distance, 0, 21)))
        }
        0 => control(first, second),
        1 => Flow::Jump(ahead(address, far())),
        5 => Flow::Call(ahead(address, far())),
        // BLX, into A32 code: the program counter is aligned first.
        _ => Flow::Call(ahead(ImageAddress(address.0 & !3), far())),
    }
}

fn control(first: u32, second: u32) -> Flow {
    match (first, second >> 12) {
        (0xf3c0..=0xf3cf, _) => Flow::IndirectJump, // BXJ
        (0xf3de, _) => Flow::System,                // ERET; SUBS PC, LR
        (0xf7e0..=0xf7ff, 0x8) => Flow::System,     // HVC, SMC
        (0xf7f0..=0xf7ff, 0xa) => Flow::Stop,       // UDF
        (0xf78f, 0x8) => Flow::System,              // DCPS1 to DCPS3
        _ => Flow::Next,
    }
}

/// Sets the distance of encodings T4 of B and T1 of BL.
pub(super) fn set_branch24(instruction: &mut [u8], distance: u64) -> Option<()> {
    set_branch(instruction, distance, true)
}

/// Sets the distance of encoding T3 of B.
pub(super) fn set_branch19(instruction: &mut [u8], distance: u64) -> Option<()> {
    set_branch(instruction, distance, false)
}

fn set_branch(bytes: &mut [u8], distance: u64, wide: bool) -> Option<()> {
    let field = bytes.first_chunk_mut::<4>()?;
    let [a, b, c, d] = *field;
    let (first, second) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let bit = |number: u32| (distance >> number) as u16 & 1;
    let low = (distance >> 1) as u16 & 0x7ff;
    let (first, second) = if wide {
        let sign = bit(24);
        let (j1, j2) = (1 ^ bit(23) ^ sign, 1 ^ bit(22) ^ sign);
        let high = (distance >> 12) as u16 & 0x3ff;
        (first & 0xf800 | sign << 10 | high, second & 0xd000 | j1 << 13 | j2 << 11 | low)
    } else {
        let high = (distance >> 12) as u16 & 0x3f;
        (
            first & 0xfbc0 | bit(20) << 10 | high,
            second & 0xd000 | bit(18) << 13 | bit(19) << 11 | low,
        )
    };
    let ([a, b], [c, d]) = (first.to_le_bytes(), second.to_le_bytes());
    *field = [a, b, c, d];
    Some(())
}
