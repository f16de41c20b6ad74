//! The branches of A64, from the encoding index of the Arm Architecture Reference Manual
//! (DDI 0487), section C4.1. Everything else runs on to the next instruction.

use mepof_address::ImageAddress;

use super::{Flow, displaced, signed};

/// Where control goes after `word`. `None` in the unallocated parts of the top level.
#[inline]
pub(super) fn flow(address: ImageAddress, word: u32) -> Option<Flow> {
    let to = |low, bits| displaced(address, signed(word, low, bits) << 2);
    Some(match word >> 25 & 0xf {
        // Reserved, but for SME with the top bit set.
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
    fn what_is_not_allocated_is_no_instruction() {
        for word in [0x0001_0000, 0x0200_0000, 0x0600_0000, 0xd61e_0000, 0xd6ff_0000] {
            assert_eq!(flow_of(ImageAddress(0), word), None, "{word:#x}");
        }
    }
}
