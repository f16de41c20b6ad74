use std::path::Path;

use mepof_address::{BuildId, ImageAddress};
use mepof_machine::{CodeKind, Machine};
use object::Object;
use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};

use super::code::{self, Code};
use super::foreign::not_a_binary;
use super::function::{Function, Symbols};
use super::section::{self, Section, SectionHeader};
use super::width::with_elf;
use crate::BinaryError;

// Within a page, a segment begins where its content does in the file.
const PAGE_MASK: u64 = !0xfff;

/// What is read of an ELF file when it is opened.
pub(super) struct Parts {
    pub machine: Machine,
    pub little_endian: bool,
    pub relocatable: bool,
    pub build_id: Option<BuildId>,
    pub executable_base: Option<ImageAddress>,
    pub load_base: Option<ImageAddress>,
    pub headers: Vec<SectionHeader>,
    pub sections: Vec<Section>,
    pub code: Vec<Code>,
    pub functions: Vec<Function>,
    pub code_kinds: Vec<(ImageAddress, CodeKind)>,
}

impl Parts {
    /// Reads the ELF file in `bytes`; `path` is for messages.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, BinaryError> {
        with_elf!(path, bytes, |file| Self::of(path, &file))
    }

    fn of<Elf: FileHeader<Endian = object::Endianness>>(
        path: &Path,
        file: &ElfFile<'_, Elf>,
    ) -> Result<Self, BinaryError> {
        let endian = file.endian();
        let machine = machine(path, file)?;
        let relocatable = file.elf_header().e_type(endian) == elf::ET_REL;
        let headers = section::headers(path, file, relocatable)?;
        let (sections, code) = code::code(path, machine, file, &headers, relocatable)?;
        if sections.is_empty() && headers.iter().any(SectionHeader::is_code_left_out) {
            return Err(not_a_binary(
                path,
                format!(
                    "this is debug information that was split off, without the code; give the \
                     binary as it was built, or join both: eu-unstrip -o JOINED STRIPPED {}",
                    path.display()
                ),
            ));
        }
        let segments = file.elf_program_headers().iter();
        let mut loaded = segments.filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        let mut executable =
            loaded.clone().filter(|segment| segment.p_flags(endian).0 & elf::PF_X.0 != 0);
        let symbols = Symbols::read(machine, file, &headers);
        Ok(Self {
            machine,
            little_endian: endian == object::Endianness::Little,
            relocatable,
            build_id: file
                .build_id()
                .map_err(|error| section::corrupt(path, "the build-id note", error))?
                .and_then(|id| BuildId::new(id).ok()),
            // As llvm-profgen has it: the page of the first.
            executable_base: executable
                .next()
                .map(|segment| ImageAddress(segment.p_vaddr(endian).into() & PAGE_MASK)),
            load_base: loaded.next().map(|segment| ImageAddress(segment.p_vaddr(endian).into())),
            functions: symbols.functions(&sections),
            code_kinds: symbols.into_code_kinds(),
            headers,
            sections,
            code,
        })
    }
}

/// The instruction set, if it is one that is known and the file is not for another purpose.
fn machine<Elf: FileHeader<Endian = object::Endianness>>(
    path: &Path,
    file: &ElfFile<'_, Elf>,
) -> Result<Machine, BinaryError> {
    let (endian, header) = (file.endian(), file.elf_header());
    if header.e_type(endian) == elf::ET_CORE {
        return Err(not_a_binary(
            path,
            "this is a memory dump; give the vmlinux of the kernel that was dumped",
        ));
    }
    let (number, wide) = (header.e_machine(endian).0, header.is_class_64());
    let bits = |wide| if wide { 64 } else { 32 };
    Machine::of_elf(number).filter(|machine| machine.is_64_bit() == wide).ok_or_else(|| {
        let known = Machine::ALL.map(|machine| {
            let bits = bits(machine.is_64_bit());
            format!("{machine} ({}, {bits}-bit)", machine.elf_number())
        });
        not_a_binary(
            path,
            format!(
                "this is a {}-bit ELF file for machine {number}; mepof reads {}",
                bits(wide),
                known.join(", ")
            ),
        )
    })
}
