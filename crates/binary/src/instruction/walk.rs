use std::ops::Range;

use iced_x86::{Decoder, Instruction as Decoded};
use mepof_address::{ImageAddress, Machine};

use super::{Flow, Instruction, a32, a64, t32, x86};
use crate::{Binary, CodeKind};

/// The instructions that begin in `addresses`, or in as much of it as lies in one section, in
/// the order of their addresses.
///
/// Bytes that are no instruction are passed over the way `llvm-objdump` does it: one by one on
/// x86, by words on Arm. So is data between the code of Arm, as far as mapping symbols tell.
pub fn instructions(binary: &Binary, addresses: Range<ImageAddress>) -> Instructions<'_> {
    // The last instruction may reach beyond the range.
    let code = binary.code(addresses.start..ImageAddress(u64::MAX));
    let kind = binary.code_kind(addresses.start);
    let thumb = kind == Some(CodeKind::Thumb);
    let mut walk = Instructions::new(binary.machine(), thumb, addresses.start, code);
    let size = addresses.end.0.saturating_sub(addresses.start.0);
    walk.limit = walk.limit.min(usize::try_from(size).unwrap_or(usize::MAX));
    walk.end = walk.limit;
    if binary.machine() != Machine::X86_64 {
        let kinds = binary.code_kinds();
        let after = kinds.partition_point(|(start, _)| *start <= addresses.start);
        walk.kinds = kinds.get(after..).unwrap_or_default();
        walk.end = walk.next_kind();
        if kind == Some(CodeKind::Data) {
            walk.position = walk.end;
        }
    }
    walk
}

/// The instructions of a piece of code, with their addresses.
pub struct Instructions<'a> {
    code: &'a [u8],
    base: ImageAddress,                    // of `code`
    position: usize,                       // in `code`, of the next instruction
    end: usize,                            // where it becomes code of another kind, or `limit`
    limit: usize,                          // where no instruction begins any more
    kinds: &'a [(ImageAddress, CodeKind)], // the changes that lie ahead
    state: State<'a>,
}

enum State<'a> {
    /// `None` cannot be: 64 is a bitness that the decoder knows.
    X86(Option<Box<(Decoder<'a>, Decoded)>>),
    A64,
    A32,
    /// How many instructions are left of an `it` block.
    T32(u8),
}

impl<'a> Instructions<'a> {
    /// The instructions of `code`, which lies at `address`; `thumb` as for
    /// [`decode`](super::decode).
    pub fn new(machine: Machine, thumb: bool, address: ImageAddress, code: &'a [u8]) -> Self {
        let state = match machine {
            Machine::X86_64 => State::X86(
                x86::decoder(address, code).map(|decoder| Box::new((decoder, Decoded::default()))),
            ),
            Machine::Aarch64 => State::A64,
            Machine::Arm if thumb => State::T32(0),
            Machine::Arm => State::A32,
        };
        let end = code.len();
        Self { code, base: address, position: 0, end, limit: end, kinds: &[], state }
    }

    /// The place in `code` where the next mapping symbol stands.
    fn next_kind(&self) -> usize {
        let distance = self.kinds.first().map(|(at, _)| at.0.saturating_sub(self.base.0));
        distance.and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX).min(self.limit)
    }

    /// Goes on to code of another kind, past data. `None` at the end.
    #[cold]
    fn turn(&mut self) -> Option<()> {
        while self.position >= self.end {
            if self.end >= self.limit {
                return None;
            }
            let (&(_, kind), rest) = self.kinds.split_first()?;
            // A mapping symbol begins anew whatever the instruction before it claimed.
            self.position = self.end;
            self.kinds = rest;
            self.end = self.next_kind();
            match (kind, &self.state) {
                (CodeKind::Data, _) => self.position = self.end,
                (CodeKind::Thumb, State::A32 | State::T32(_)) => self.state = State::T32(0),
                (CodeKind::Arm, State::T32(_)) => self.state = State::A32,
                _ => {}
            }
        }
        Some(())
    }

    fn next_x86(
        decoder: &mut Decoder<'_>,
        decoded: &mut Decoded,
        end: usize,
    ) -> Option<(ImageAddress, Instruction)> {
        loop {
            let position = decoder.position();
            if position >= end {
                return None;
            }
            decoder.decode_out(decoded);
            if let Some(instruction) = x86::interpret(decoded) {
                return Some((ImageAddress(decoded.ip()), instruction));
            }
            let after = decoded.ip().wrapping_add(1);
            decoder.set_position(position + 1).ok()?;
            decoder.set_ip(after);
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

impl Iterator for Instructions<'_> {
    type Item = (ImageAddress, Instruction);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let State::X86(decoder) = &mut self.state {
                let (decoder, decoded) = &mut **decoder.as_mut()?;
                return Self::next_x86(decoder, decoded, self.end);
            }
            if self.position >= self.end {
                self.turn()?;
            }
            let address = ImageAddress(self.base.0.wrapping_add(self.position as u64));
            let code = self.code.get(self.position..)?;
            let found = match &mut self.state {
                State::T32(left) => Some(next_t32(address, code, left)?),
                State::A32 => {
                    Some(a32::instruction(address, u32::from_le_bytes(*code.first_chunk()?)))
                }
                _ => a64::flow(address, u32::from_le_bytes(*code.first_chunk()?))
                    .map(|flow| Instruction::new(4, flow)),
            };
            self.position += found.map_or(4, |instruction| usize::from(instruction.size));
            if let Some(instruction) = found {
                return Some((address, instruction));
            }
        }
    }
}
