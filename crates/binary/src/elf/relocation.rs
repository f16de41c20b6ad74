//! Relocations of a relocatable file, as far as code and debug information need them.

use std::borrow::Cow;

use mepof_machine::{Machine, Relocation as Change};
use object::read::elf::{ElfFile, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget,
    SectionIndex,
};

use super::section::SectionHeader;

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
        let Some(change) = machine.relocation(r_type.0) else { continue };
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
        let address = header.address.wrapping_add(offset);
        let Ok(offset) = usize::try_from(offset) else { continue };
        let Some(bytes) = data.to_mut().get_mut(offset..) else { continue };
        write(change, file.endian(), &relocation, target, address, bytes);
    }
    Ok(())
}

/// Changes the bytes at `address`. A `target` of `None` is a symbol of another file.
fn write(
    change: Change,
    endian: Endianness,
    relocation: &Relocation,
    target: Option<u64>,
    address: u64,
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
    // Where a branch goes, less its own address. Arm's stored addends only make up for the
    // program counter being ahead of the instruction, which its decoders do as well.
    let distance = |ahead: u64| {
        let to = target.map_or(0, |target| target.wrapping_add_signed(relocation.addend()));
        to.wrapping_sub(address).wrapping_sub(ahead)
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
            store(endian, bytes.get_mut(..size)?, value.wrapping_sub(address));
        }
        Change::Branch { ahead, patch } => patch(bytes, distance(ahead))?,
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
        let position = match endian {
            Endianness::Little => index,
            Endianness::Big => size - 1 - index,
        };
        *byte = (value >> (8 * position)) as u8;
    }
}
