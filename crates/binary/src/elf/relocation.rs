//! Relocations of a relocatable file, as far as code and debug information need them.
//!
//! The numbers are those of the processor supplements of the ELF specification for x86-64,
//! "ELF for the Arm 64-bit Architecture" and "ELF for the Arm Architecture".

use std::borrow::Cow;

use mepof_address::Machine;
use object::elf;
use object::read::elf::{ElfFile, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget,
    SectionIndex,
};

use super::SectionHeader;

/// How a relocation changes the bytes at its place.
#[derive(Clone, Copy)]
enum Change {
    /// The value as a number of so many bytes.
    Absolute(usize),
    /// The distance from the place as a number of so many bytes.
    Relative(usize),
    /// The distance in words in the low 26 bits of an A64 instruction.
    Branch26,
    /// The distance in words in 19 bits from bit 5 of an A64 instruction.
    Branch19,
    /// The distance in words in 14 bits from bit 5 of an A64 instruction.
    Branch14,
    /// The distance in words in the low 24 bits of an A32 instruction.
    ArmBranch24,
    /// The distance in halfwords in a pair of T32 halfwords with 24 bits.
    ThumbBranch24,
    /// The distance in halfwords in a pair of T32 halfwords with 20 bits.
    ThumbBranch19,
}

fn change(machine: Machine, kind: elf::RelocationType) -> Option<Change> {
    Some(match (machine, kind) {
        (Machine::X86_64, elf::R_X86_64_64) => Change::Absolute(8),
        (Machine::X86_64, elf::R_X86_64_32 | elf::R_X86_64_32S) => Change::Absolute(4),
        (Machine::X86_64, elf::R_X86_64_PC64) => Change::Relative(8),
        (Machine::X86_64, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32) => Change::Relative(4),
        (Machine::X86_64, elf::R_X86_64_PC8) => Change::Relative(1),
        (Machine::Aarch64, elf::R_AARCH64_ABS64) => Change::Absolute(8),
        (Machine::Aarch64, elf::R_AARCH64_ABS32) => Change::Absolute(4),
        (Machine::Aarch64, elf::R_AARCH64_PREL64) => Change::Relative(8),
        (Machine::Aarch64, elf::R_AARCH64_PREL32) => Change::Relative(4),
        (Machine::Aarch64, elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26) => Change::Branch26,
        (Machine::Aarch64, elf::R_AARCH64_CONDBR19) => Change::Branch19,
        (Machine::Aarch64, elf::R_AARCH64_TSTBR14) => Change::Branch14,
        (Machine::Arm, elf::R_ARM_ABS32) => Change::Absolute(4),
        (Machine::Arm, elf::R_ARM_REL32) => Change::Relative(4),
        (Machine::Arm, elf::R_ARM_PC24 | elf::R_ARM_CALL | elf::R_ARM_JUMP24) => {
            Change::ArmBranch24
        }
        (Machine::Arm, elf::R_ARM_THM_PC22 | elf::R_ARM_THM_JUMP24) => Change::ThumbBranch24,
        (Machine::Arm, elf::R_ARM_THM_JUMP19) => Change::ThumbBranch19,
        _ => return None,
    })
}

/// Applies the relocations of the section that `header` describes to its bytes. Kinds that
/// neither branches nor debug information use are left alone; so is what lies outside.
pub fn apply<Elf: FileHeader<Endian = Endianness>>(
    machine: Machine,
    file: &ElfFile<'_, Elf>,
    headers: &[SectionHeader],
    header: &SectionHeader,
    data: &mut Cow<'_, [u8]>,
) -> Result<(), String> {
    let section =
        file.section_by_index(SectionIndex(header.index)).map_err(|error| error.to_string())?;
    let base = |index: SectionIndex| headers.get(index.0).map_or(0, |header| header.address);
    for (offset, relocation) in section.relocations() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let Some(change) = change(machine, r_type) else { continue };
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index).map_err(|error| error.to_string())?;
                match symbol.section_index() {
                    Some(section) if !symbol.is_undefined() => {
                        Some(symbol.address().wrapping_add(base(section)))
                    }
                    _ if symbol.is_undefined() => None,
                    _ => Some(symbol.address()),
                }
            }
            RelocationTarget::Section(index) => Some(base(index)),
            _ => Some(0),
        };
        let place = header.address.wrapping_add(offset);
        let Ok(offset) = usize::try_from(offset) else { continue };
        let Some(bytes) = data.to_mut().get_mut(offset..) else { continue };
        write(change, file.endian(), &relocation, target, place, bytes);
    }
    Ok(())
}

/// Changes the bytes at `place`. A `target` of `None` is a symbol of another file.
fn write(
    change: Change,
    endian: Endianness,
    relocation: &Relocation,
    target: Option<u64>,
    place: u64,
    bytes: &mut [u8],
) -> Option<()> {
    let implicit = relocation.has_implicit_addend();
    let value = |bytes: &[u8], size: usize| {
        let stored = if implicit { load(endian, bytes.get(..size)?) } else { 0 };
        Some(match target {
            Some(target) => target.wrapping_add_signed(relocation.addend()).wrapping_add(stored),
            None => 0,
        })
    };
    // Where a branch goes, less its own place. Arm's stored addends only make up for the
    // program counter being ahead of the instruction, which its decoders do as well.
    let distance = |ahead: u64| {
        let to = target.map_or(0, |target| target.wrapping_add_signed(relocation.addend()));
        to.wrapping_sub(place).wrapping_sub(ahead)
    };
    match change {
        Change::Absolute(size) => {
            let value = value(bytes, size)?;
            store(endian, bytes.get_mut(..size)?, value);
        }
        Change::Relative(size) => {
            // What x86 adds since it counts from the end of the field.
            let ahead = if target.is_none() { relocation.addend() } else { 0 };
            let value = value(bytes, size)?.wrapping_add_signed(ahead);
            store(endian, bytes.get_mut(..size)?, value.wrapping_sub(place));
        }
        Change::Branch26 => patch(bytes, distance(0) >> 2, 26, 0)?,
        Change::Branch19 => patch(bytes, distance(0) >> 2, 19, 5)?,
        Change::Branch14 => patch(bytes, distance(0) >> 2, 14, 5)?,
        Change::ArmBranch24 => patch(bytes, distance(8) >> 2, 24, 0)?,
        Change::ThumbBranch24 => patch_thumb(bytes, distance(4), true)?,
        Change::ThumbBranch19 => patch_thumb(bytes, distance(4), false)?,
    }
    Some(())
}

fn load(endian: Endianness, bytes: &[u8]) -> u64 {
    let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match endian {
        Endianness::Little => bytes.iter().rev().fold(0, shift),
        Endianness::Big => bytes.iter().fold(0, shift),
    }
}

fn store(endian: Endianness, bytes: &mut [u8], value: u64) {
    let size = bytes.len();
    for (index, byte) in bytes.iter_mut().enumerate() {
        let place = match endian {
            Endianness::Little => index,
            Endianness::Big => size - 1 - index,
        };
        *byte = (value >> (8 * place)) as u8;
    }
}

/// Sets `width` bits from bit `at` of the 32-bit instruction at the start of `bytes`. Arm's
/// instructions are little endian whatever the data is.
fn patch(bytes: &mut [u8], value: u64, width: u32, at: u32) -> Option<()> {
    let field = bytes.first_chunk_mut::<4>()?;
    let mask = ((1_u32 << width) - 1) << at;
    let instruction = u32::from_le_bytes(*field) & !mask | (value as u32) << at & mask;
    *field = instruction.to_le_bytes();
    Some(())
}

/// Sets the distance of a T32 branch: encodings T4 of B and T1 of BL (`wide`), and T3 of B.
fn patch_thumb(bytes: &mut [u8], distance: u64, wide: bool) -> Option<()> {
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
