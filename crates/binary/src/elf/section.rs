use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use mepof_address::ImageAddress;
use object::elf;
use object::read::elf::{ElfFile, FileHeader, SectionHeader as _};
use object::{CompressedData, CompressionFormat, Object, ObjectSection, SectionIndex};

use crate::BinaryError;

/// Where the first executable section of a relocatable file is laid out.
const RELOCATABLE_BASE: u64 = 0x1000;
/// More than any section of a kernel with full debug information.
const MAX_UNPACKED: u64 = 8 << 30;
/// How much smaller compressed debug information usually is at most.
const MAX_LIKELY_RATIO: u64 = 8;

/// A section with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `.text`, `.init.text`, `.text.hot`, ….
    pub name: String,
    /// Where it is.
    pub addresses: Range<ImageAddress>,
    /// Where it is in the file.
    pub file_offset: u64,
    /// Its number in the section table: that of [`SectionHeader::index`].
    pub index: usize,
}

/// A section as the section table describes it, with code or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Its number in the section table.
    pub index: usize,
    /// Its name; empty where it has none that is text.
    pub name: String,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Where it is in memory. In a relocatable file, where a section with code was laid out; 0
    /// for others.
    pub address: u64,
    /// Where it is in the file.
    pub file_offset: u64,
    /// Bytes, in the file.
    pub size: u64,
    /// `sh_addralign`: 0 and 1 ask for nothing.
    pub alignment: u64,
    /// `sh_link`: the number of a section that belongs with it.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
}

impl SectionHeader {
    /// Whether it is code that the file has.
    pub fn is_code(&self) -> bool {
        self.is_executed() && self.kind != elf::SHT_NOBITS.0 && self.size > 0
    }

    /// Whether it is code that the file had: `objcopy --only-keep-debug` leaves it out.
    pub(super) fn is_code_left_out(&self) -> bool {
        self.is_executed() && self.kind == elf::SHT_NOBITS.0 && self.size > 0
    }

    /// Whether it is for code: it may be empty.
    pub(super) fn is_executed(&self) -> bool {
        let text = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
        self.flags & text == text
    }
}

pub fn corrupt(path: &Path, section: &str, what: impl fmt::Display) -> BinaryError {
    BinaryError::Corrupt {
        path: path.to_owned(),
        section: section.to_owned(),
        what: what.to_string(),
    }
}

/// The section table. Lays out the code of a relocatable file.
pub fn headers<Elf: FileHeader<Endian = object::Endianness>>(
    path: &Path,
    file: &ElfFile<'_, Elf>,
    relocatable: bool,
) -> Result<Vec<SectionHeader>, BinaryError> {
    let endian = file.endian();
    let table = file.elf_section_table();
    let mut next = RELOCATABLE_BASE;
    table
        .iter()
        .enumerate()
        .map(|(index, section)| {
            let name = table.section_name(endian, section).unwrap_or_default();
            let mut header = SectionHeader {
                index,
                name: String::from_utf8_lossy(name).into_owned(),
                kind: section.sh_type(endian).0,
                flags: section.sh_flags(endian).0,
                address: section.sh_addr(endian).into(),
                file_offset: section.sh_offset(endian).into(),
                size: section.sh_size(endian).into(),
                alignment: section.sh_addralign(endian).into(),
                link: section.sh_link(endian),
                info: section.sh_info(endian),
            };
            if relocatable {
                header.address = 0;
                if header.is_code() {
                    let end = next
                        .checked_next_multiple_of(header.alignment.max(1))
                        .and_then(|start| Some((start, start.checked_add(header.size)?)));
                    let (start, end) = end.ok_or_else(|| {
                        corrupt(path, &header.name, "it is larger than the address space")
                    })?;
                    (header.address, next) = (start, end);
                }
            }
            Ok(header)
        })
        .collect()
}

/// A section's bytes, decompressed.
pub fn data<'a, Elf: FileHeader<Endian = object::Endianness>>(
    path: &Path,
    file: &ElfFile<'a, Elf>,
    header: &SectionHeader,
) -> Result<Cow<'a, [u8]>, BinaryError> {
    let damaged = |error: object::read::Error| corrupt(path, &header.name, error);
    let section = file.section_by_index(SectionIndex(header.index)).map_err(damaged)?;
    let compressed = section.compressed_data().map_err(damaged)?;
    let unpacked = match compressed.format {
        CompressionFormat::None => return Ok(Cow::Borrowed(compressed.data)),
        CompressionFormat::Zlib => {
            unpack(flate2::read::ZlibDecoder::new(compressed.data), compressed)
        }
        CompressionFormat::Zstandard => zstd::stream::read::Decoder::with_buffer(compressed.data)
            .and_then(|decoder| unpack(decoder, compressed)),
        _ => Err(io::Error::other("its compression is unknown")),
    };
    unpacked.map(Cow::Owned).map_err(|error| corrupt(path, &header.name, error))
}

/// Reads as many bytes as were compressed, or fewer or more if the section lies: memory is only
/// taken beforehand for what its compressed size makes likely.
fn unpack(decoder: impl Read, compressed: CompressedData<'_>) -> io::Result<Vec<u8>> {
    let size = compressed.uncompressed_size;
    if size > MAX_UNPACKED {
        return Err(io::Error::other(format!("it claims {size} bytes, more than any kernel has")));
    }
    let likely = size.min((compressed.data.len() as u64).saturating_mul(MAX_LIKELY_RATIO));
    let mut bytes = Vec::with_capacity(usize::try_from(likely).unwrap_or(0));
    decoder.take(size.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(io::Error::other(format!(
        "its {} compressed bytes do not decompress to the {size} that it claims",
        compressed.data.len()
    )))
}
