use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_machine::{CodeKind, Decoder, Instruction, Machine, Step};

use crate::Binary;

/// The instructions that begin in `addresses`, or in as much of it as lies in one section, in
/// the order of their addresses.
///
/// Bytes that are not an instruction are skipped the way `llvm-objdump` does it: one by one on
/// x86, by words on Arm. So is data between the code of Arm, as far as mapping symbols tell.
pub fn instructions(binary: &Binary, addresses: Range<ImageAddress>) -> Instructions<'_> {
    // The last instruction may reach beyond the range.
    let code = binary.code(addresses.start..ImageAddress(u64::MAX));
    let kind = binary.code_kind(addresses.start);
    let thumb = kind == Some(CodeKind::Thumb);
    let mut walk = Instructions::new(binary.machine(), thumb, addresses.start, code);
    let size = addresses.end.0.saturating_sub(addresses.start.0);
    walk.limit = walk.limit.min(usize::try_from(size).unwrap_or(usize::MAX));
    let kinds = binary.code_kinds();
    let after = kinds.partition_point(|(start, _)| *start <= addresses.start);
    walk.kinds = kinds.get(after..).unwrap_or_default();
    walk.end = walk.next_kind();
    if kind == Some(CodeKind::Data) {
        walk.position = walk.end;
    }
    walk
}

/// The instructions of a piece of code, with their addresses.
pub struct Instructions<'a> {
    base: ImageAddress,                    // of the code
    position: usize,                       // in the code, of the next instruction
    end: usize,                            // where it becomes code of another kind, or `limit`
    limit: usize,                          // where no instruction begins any more
    kinds: &'a [(ImageAddress, CodeKind)], // the changes that lie ahead
    decoder: Box<dyn Decoder + 'a>,
}

impl<'a> Instructions<'a> {
    /// The instructions of `code`, which lies at `address`; `thumb` selects T32 code on
    /// 32-bit Arm.
    pub fn new(machine: Machine, thumb: bool, address: ImageAddress, code: &'a [u8]) -> Self {
        let decoder = machine.decoder(thumb, address, code);
        let end = code.len();
        Self { base: address, position: 0, end, limit: end, kinds: &[], decoder }
    }

    /// The position in `code` where the next mapping symbol stands.
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
            // A mapping symbol starts afresh whatever the instruction before it claimed.
            self.position = self.end;
            self.kinds = rest;
            self.end = self.next_kind();
            match kind {
                CodeKind::Data => self.position = self.end,
                CodeKind::Arm | CodeKind::Thumb => self.decoder.switch(kind),
            }
        }
        Some(())
    }
}

impl Iterator for Instructions<'_> {
    type Item = (ImageAddress, Instruction);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.position >= self.end {
                self.turn()?;
            }
            let position = self.position;
            match self.decoder.step(position)? {
                Step::Instruction(instruction) => {
                    self.position += usize::from(instruction.size);
                    let address = ImageAddress(self.base.0.wrapping_add(position as u64));
                    return Some((address, instruction));
                }
                Step::Skip(bytes) => self.position += bytes,
            }
        }
    }
}
