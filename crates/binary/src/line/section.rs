//! The sections that debug information is in.

use std::borrow::Cow;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};

use crate::{Binary, BinaryError};

/// What a kernel and its modules are built with so that a profile finds its lines.
pub const KERNEL_LINES: &str = "CONFIG_DEBUG_INFO_DWARF5=y and -fdebug-info-for-profiling";
/// The same for a program.
pub const PROGRAM_LINES: &str = "-g -fdebug-info-for-profiling";

pub type Reader<'d> = EndianSlice<'d, RunTimeEndian>;
pub type Sections<'d> = DwarfSections<Cow<'d, [u8]>>;

pub fn endian(binary: &Binary) -> RunTimeEndian {
    if binary.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// Whether functions and lines need the section: the others may be large and compressed.
fn is_needed(id: SectionId) -> bool {
    use SectionId::{
        DebugAbbrev, DebugAddr, DebugInfo, DebugLine, DebugLineStr, DebugRanges, DebugRngLists,
        DebugStr, DebugStrOffsets,
    };
    matches!(
        id,
        DebugAbbrev
            | DebugAddr
            | DebugInfo
            | DebugLine
            | DebugLineStr
            | DebugRanges
            | DebugRngLists
            | DebugStr
            | DebugStrOffsets
    )
}

/// The contents of a section, or of one in the older way of compression (`.zdebug_info`).
pub fn read<'d>(binary: &'d Binary, name: &str) -> Result<Cow<'d, [u8]>, BinaryError> {
    if let Some(data) = binary.section_data(name)? {
        return Ok(data);
    }
    let compressed = name.replacen(".debug", ".zdebug", 1);
    Ok(binary.section_data(&compressed)?.unwrap_or_default())
}

/// The debug sections of `binary`.
pub fn load(binary: &Binary) -> Result<Sections<'_>, BinaryError> {
    let is_info = |name: &str| name == ".debug_info" || name == ".zdebug_info";
    if !binary.section_headers().iter().any(|header| is_info(&header.name) && header.size > 0) {
        return Err(BinaryError::Missing {
            path: binary.path().to_owned(),
            what: "debug information".to_owned(),
            remedy: format!(
                "build with {KERNEL_LINES} and use the vmlinux or .ko that was not stripped (for \
                 a program: {PROGRAM_LINES})"
            ),
        });
    }
    Sections::load(|id| match is_needed(id) {
        true => read(binary, id.name()),
        false => Ok(Cow::Borrowed(&[][..])),
    })
}

/// A view of the sections to read from.
pub fn view<'a>(binary: &Binary, sections: &'a Sections<'_>) -> gimli::Dwarf<Reader<'a>> {
    let endian = endian(binary);
    sections.borrow(|data| EndianSlice::new(data, endian))
}
