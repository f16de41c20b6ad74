//! Code that a kernel rewrites while it runs.
//!
//! A static key's `jmp` becomes a `nop` and back, an alternative is replaced by what suits the
//! CPU, a static call that has no function becomes a `nop`. What the file says about control flow
//! there may not hold for a trace: a branch may come from a `nop`, and code may run straight
//! through a `jmp`. The kernel lists such code in tables.

use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, BinaryError};
use mepof_machine::{CodeAddress, PatchTable};

/// The code of a kernel that is rewritten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patched {
    /// By start; they may touch, and nest where one replaces another.
    ranges: Vec<Range<ImageAddress>>,
}

impl Patched {
    /// Reads the tables of `binary`; those that it does not have, or that make no sense, are as if
    /// empty: they only make the check of a trace less strict.
    pub fn read(binary: &Binary) -> Result<Self, BinaryError> {
        let mut ranges = Vec::new();
        if !binary.is_little_endian() {
            return Ok(Self { ranges });
        }
        for table in binary.machine().patch_tables() {
            ranges.extend(read(binary, table)?);
        }
        ranges.sort_by_key(|range| (range.start, range.end));
        Ok(Self { ranges })
    }

    #[cfg(test)]
    pub fn of(ranges: Vec<Range<ImageAddress>>) -> Self {
        Self { ranges }
    }

    /// Whether the byte at `address` may be rewritten.
    pub fn contains(&self, address: ImageAddress) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= address);
        // An enclosing location begins at most a few before: alternatives nest two or three deep.
        let before = self.ranges.get(..after).unwrap_or_default();
        before.iter().rev().take(4).any(|range| range.contains(&address))
    }
}

fn read(binary: &Binary, table: &PatchTable) -> Result<Vec<Range<ImageAddress>>, BinaryError> {
    let Some((address, bytes)) = find(binary, table)? else { return Ok(Vec::new()) };
    let is_code = |location: ImageAddress| {
        binary.sections().iter().any(|section| section.addresses.contains(&location))
    };
    let mut strides = table.strides.iter().filter(|&&stride| bytes.len() % stride == 0);
    let entries = strides.find_map(|&stride| {
        let locations: Option<Vec<_>> = bytes
            .chunks(stride)
            .enumerate()
            .map(|(index, entry)| {
                let start = ImageAddress(match table.address {
                    CodeAddress::Offset => {
                        let offset = i32::from_le_bytes(*entry.first_chunk()?);
                        let base = address.checked_add((index * stride) as u64)?;
                        base.checked_add_signed(i64::from(offset))?
                    }
                    CodeAddress::Absolute => u64::from_le_bytes(*entry.first_chunk()?),
                });
                let length = match table.length_at {
                    Some(at) => u64::from(*entry.get(at(stride))?),
                    None => length_of_instruction(binary, start)?,
                };
                is_code(start).then_some(start..ImageAddress(start.0.checked_add(length)?))
            })
            .collect();
        locations
    });
    Ok(entries.unwrap_or_default())
}

fn length_of_instruction(binary: &Binary, address: ImageAddress) -> Option<u64> {
    let code = binary.code(address..ImageAddress(address.0.checked_add(16)?));
    let instruction = binary.machine().decode(false, address, code)?;
    Some(u64::from(instruction.size))
}

/// The table's address and bytes.
fn find(binary: &Binary, table: &PatchTable) -> Result<Option<(u64, Vec<u8>)>, BinaryError> {
    let headers = binary.section_headers();
    if let Some(header) = headers.iter().find(|header| header.name == table.section) {
        // In a relocatable file it is at address 0, from which its relocations count as well.
        return Ok(Some((header.address, binary.contents_of(header)?.into_owned())));
    }
    let (Some(start), Some(end)) = (binary.symbol(table.symbols.0), binary.symbol(table.symbols.1))
    else {
        return Ok(None);
    };
    for header in headers {
        let (Some(from), Some(to)) =
            (start.0.checked_sub(header.address), end.0.checked_sub(header.address))
        else {
            continue;
        };
        if from < to && to <= header.size && header.address != 0 {
            let bytes = binary.contents_of(header)?;
            let table = bytes.get(from as usize..to as usize).unwrap_or_default();
            return Ok(Some((start.0, table.to_vec())));
        }
    }
    Ok(None)
}
