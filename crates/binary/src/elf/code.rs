use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use mepof_address::ImageAddress;
use mepof_machine::Machine;
use object::read::elf::{ElfFile, FileHeader};
use object::{Object, ObjectSection, SectionIndex};

use super::relocation;
use super::section::{Section, SectionHeader, corrupt};
use crate::BinaryError;

/// Where a section's code is: in the file, or with relocations applied beside it.
pub enum Code {
    File(Range<usize>),
    Relocated(Vec<u8>),
}

impl Code {
    pub fn bytes<'a>(&'a self, contents: &'a [u8]) -> &'a [u8] {
        match self {
            Self::File(range) => contents.get(range.clone()).unwrap_or_default(),
            Self::Relocated(bytes) => bytes,
        }
    }
}

/// The sections with code, by address, and their code.
pub fn code<Elf: FileHeader<Endian = object::Endianness>>(
    path: &Path,
    machine: Machine,
    file: &ElfFile<'_, Elf>,
    headers: &[SectionHeader],
    relocatable: bool,
) -> Result<(Vec<Section>, Vec<Code>), BinaryError> {
    let mut all = Vec::new();
    for header in headers.iter().filter(|header| header.is_code()) {
        let damaged = |what: &str| corrupt(path, &header.name, what);
        let data = file
            .section_by_index(SectionIndex(header.index))
            .and_then(|section| section.data())
            .map_err(|_| damaged("it reaches beyond the end of the file"))?;
        let end = header
            .address
            .checked_add(header.size)
            .ok_or_else(|| damaged("it reaches beyond the end of the address space"))?;
        let code = if relocatable {
            let mut data = Cow::Borrowed(data);
            relocation::apply(machine, file, headers, header, &mut data)
                .map_err(|error| damaged(&error))?;
            Code::Relocated(data.into_owned())
        } else {
            let range = header.file_offset as usize..(header.file_offset + header.size) as usize;
            Code::File(range)
        };
        let section = Section {
            name: header.name.clone(),
            addresses: ImageAddress(header.address)..ImageAddress(end),
            file_offset: header.file_offset,
            index: header.index,
        };
        all.push((section, code));
    }
    all.sort_by_key(|(section, _)| (section.addresses.start, section.index));
    // Of sections that take turns in the same place, as the vectors of 32-bit Arm do, the first.
    all.dedup_by(|(second, _), (first, _)| {
        !first.addresses.is_empty() && first.addresses == second.addresses
    });
    for pair in all.windows(2) {
        if let [(first, _), (second, _)] = pair {
            if first.addresses.end > second.addresses.start {
                return Err(corrupt(
                    path,
                    &second.name,
                    format_args!("it overlaps {} in memory", first.name),
                ));
            }
        }
    }
    Ok(all.into_iter().unzip())
}
