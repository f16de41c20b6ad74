mod contents;
mod foreign;
mod function;
mod relocation;
mod section;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mepof_address::{BuildId, ImageAddress, Machine};
use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};

use crate::BinaryError;
use contents::Contents;
pub use function::{CodeSymbol, Function, whole_function};
pub use section::{Section, SectionHeader};

/// Where the first executable section of a relocatable file is laid out.
const RELOCATABLE_BASE: u64 = 0x1000;

/// What kind of code a stretch of a 32-bit or 64-bit Arm section holds, from a mapping symbol
/// (ELF for the Arm Architecture, section "Mapping symbols").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeKind {
    /// `$a` and `$x`: A32 or A64 instructions.
    Arm,
    /// `$t`: T32 instructions.
    Thumb,
    /// `$d`: data between the code.
    Data,
}

/// An ELF file with code. Cheap to open: sections and symbols are read, debug information is
/// not. In a relocatable file (a kernel module) the executable sections are laid out one after
/// the other in the order of the section table, from 0x1000 on, each aligned as it asks; calls
/// to functions that the file does not have lead to address 0.
pub struct Binary {
    path: PathBuf,
    contents: Contents,
    machine: Machine,
    little_endian: bool,
    relocatable: bool,
    build_id: Option<BuildId>,
    executable_base: Option<ImageAddress>,
    headers: Vec<SectionHeader>,
    sections: Vec<Section>,
    code: Vec<section::Code>, // beside `sections`
    functions: Vec<Function>,
    code_kinds: Vec<(ImageAddress, CodeKind)>,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Calls a function that is generic over the width of the ELF file.
macro_rules! with_elf {
    ($binary:expr, |$file:ident| $body:expr) => {
        with_elf!(&$binary.path, &$binary.contents, |$file| $body)
    };
    ($path:expr, $contents:expr, |$file:ident| $body:expr) => {{
        let (path, bytes): (&Path, &[u8]) = ($path, $contents);
        match object::FileKind::parse(bytes) {
            Ok(object::FileKind::Elf64) => {
                ElfFile::<elf::FileHeader64<object::Endianness>>::parse(bytes)
                    .map_err(|error| $crate::elf::section::corrupt(path, "the ELF header", error))
                    .and_then(|$file| $body)
            }
            Ok(object::FileKind::Elf32) => {
                ElfFile::<elf::FileHeader32<object::Endianness>>::parse(bytes)
                    .map_err(|error| $crate::elf::section::corrupt(path, "the ELF header", error))
                    .and_then(|$file| $body)
            }
            _ => Err($crate::elf::foreign::describe(path, bytes)),
        }
    }};
}
use with_elf;

impl Binary {
    /// Opens the vmlinux, module or program at `path`.
    pub fn open(path: &Path) -> Result<Self, BinaryError> {
        let contents = Contents::map(path)
            .map_err(|source| BinaryError::Io { path: path.to_owned(), source })?;
        Self::read(path.to_owned(), contents)
    }

    /// Reads the ELF file in `bytes`; `name` stands for its path.
    pub fn parse(name: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Result<Self, BinaryError> {
        Self::read(name.into(), Contents::Owned(bytes.into()))
    }

    fn read(path: PathBuf, contents: Contents) -> Result<Self, BinaryError> {
        let mut binary = Self {
            machine: foreign::machine(&path, &contents)?,
            path,
            contents,
            little_endian: true,
            relocatable: false,
            build_id: None,
            executable_base: None,
            headers: Vec::new(),
            sections: Vec::new(),
            code: Vec::new(),
            functions: Vec::new(),
            code_kinds: Vec::new(),
        };
        let parts = with_elf!(&binary, |file| Parts::read(&binary.path, binary.machine, &file))?;
        binary.little_endian = parts.little_endian;
        binary.relocatable = parts.relocatable;
        binary.build_id = parts.build_id;
        binary.executable_base = parts.executable_base;
        binary.headers = parts.headers;
        binary.sections = parts.sections;
        binary.code = parts.code;
        binary.functions = parts.functions;
        binary.code_kinds = parts.code_kinds;
        Ok(binary)
    }

    /// Gives back the memory that the file's pages take. All stays usable; what is asked for again
    /// is read again.
    pub fn release(&self) {
        self.contents.release();
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its instruction set.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Whether its numbers are little endian.
    pub fn is_little_endian(&self) -> bool {
        self.little_endian
    }

    /// Its build-id, if it has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }

    /// Whether it is a relocatable file: a kernel module.
    pub fn is_relocatable(&self) -> bool {
        self.relocatable
    }

    /// The sections with code, by address.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section table, sections without code included, in the file's order.
    pub fn section_headers(&self) -> &[SectionHeader] {
        &self.headers
    }

    /// Bytes of code, all sections together.
    pub fn text_size(&self) -> u64 {
        let size = |section: &Section| section.addresses.end.0 - section.addresses.start.0;
        self.sections.iter().map(size).fold(0, u64::saturating_add)
    }

    /// The lowest address of a segment that is loaded to be executed: llvm-profgen's text with
    /// offsets counts from there. `None` in a relocatable file.
    pub fn executable_base(&self) -> Option<ImageAddress> {
        self.executable_base
    }

    /// The functions of the symbol table, by address; none overlaps another.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function that covers `address`.
    pub fn function_at(&self, address: ImageAddress) -> Option<&Function> {
        let after = self.functions.partition_point(|function| function.addresses.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address < function.addresses.end).then_some(function)
    }

    /// The address of a symbol: `_text`, `_stext`, `_etext`, …. Looks through the whole symbol
    /// table: for a few symbols, not for many.
    pub fn symbol(&self, name: &str) -> Option<ImageAddress> {
        with_elf!(self, |file| {
            let mut symbols = file.symbols().chain(file.dynamic_symbols());
            let found = symbols.find(|symbol| {
                !symbol.is_undefined() && symbol.name_bytes() == Ok(name.as_bytes())
            });
            Ok(found.map(|symbol| {
                self.place(symbol.section_index().map(|index| index.0), symbol.address())
            }))
        })
        .ok()
        .flatten()
    }

    /// The names and addresses of all symbols that lie in code: functions, labels and whatever
    /// else, in the symbol table's order.
    pub(crate) fn code_symbols(&self) -> Result<Vec<(&[u8], ImageAddress)>, BinaryError> {
        with_elf!(self, |file| {
            let in_code = file.symbols().filter_map(|symbol| {
                let index = symbol.section_index()?.0;
                let header = self.headers.get(index).filter(|header| header.is_code())?;
                let address = self.place(Some(header.index), symbol.address());
                Some((symbol.name_bytes().ok()?, address))
            });
            Ok(in_code.collect())
        })
    }

    /// The named symbols that lie in code, in the symbol table's order: of functions and labels,
    /// all that share an address included. A stripped program still has its dynamic symbols.
    pub fn symbols_of_code(&self) -> Result<Vec<CodeSymbol<'_>>, BinaryError> {
        with_elf!(self, |file| {
            let table = if file.elf_symbol_table().is_empty() {
                file.dynamic_symbols()
            } else {
                file.symbols()
            };
            let in_code = table.filter_map(|symbol| {
                let index = symbol.section_index()?.0;
                let header = self.headers.get(index).filter(|header| header.is_code())?;
                let name = symbol.name_bytes().ok()?;
                let kind = symbol.elf_symbol().st_type();
                let is_function = matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC);
                let is_label = kind == elf::STT_NOTYPE && !function::is_mapping(self.machine, name);
                if name.is_empty() || !(is_function || is_label) {
                    return None;
                }
                // The lowest bit of a function's address says that it is T32 code.
                let is_thumb = self.machine == Machine::Arm && is_function;
                let address = symbol.address() & !u64::from(is_thumb);
                let address = self.place(Some(header.index), address);
                Some(CodeSymbol { name, address, size: symbol.size() })
            });
            Ok(in_code.collect())
        })
    }

    fn place(&self, section: Option<usize>, address: u64) -> ImageAddress {
        let base = if self.relocatable {
            section.and_then(|index| self.headers.get(index)).map_or(0, |header| header.address)
        } else {
            0
        };
        ImageAddress(base.wrapping_add(address))
    }

    /// The code in `addresses`, or as much of it as lies in one section.
    pub fn code(&self, addresses: Range<ImageAddress>) -> &[u8] {
        let after =
            self.sections.partition_point(|section| section.addresses.start <= addresses.start);
        after
            .checked_sub(1)
            .and_then(|index| {
                let start = self.sections.get(index)?.addresses.start.0;
                let code = self.code.get(index)?.bytes(&self.contents);
                let from = usize::try_from(addresses.start.0.checked_sub(start)?).ok()?;
                let to = usize::try_from(addresses.end.0.checked_sub(start)?).ok()?;
                code.get(from..to.min(code.len()))
            })
            .unwrap_or_default()
    }

    /// What mapping symbols say about the code at `address`: A32 or A64, T32, or data. `None`
    /// where there are none, as on x86.
    pub fn code_kind(&self, address: ImageAddress) -> Option<CodeKind> {
        let after = self.code_kinds.partition_point(|(start, _)| *start <= address);
        let (start, kind) = self.code_kinds.get(after.checked_sub(1)?)?;
        // A mapping symbol holds to the end of its section.
        let section = |address: ImageAddress| {
            self.sections.partition_point(|section| section.addresses.start <= address)
        };
        (section(*start) == section(address)).then_some(*kind)
    }

    /// Where code turns into another kind, by address.
    pub(crate) fn code_kinds(&self) -> &[(ImageAddress, CodeKind)] {
        &self.code_kinds
    }

    /// The contents of the first section called `name`, decompressed, and in a relocatable file
    /// with its relocations applied; `None` if there is no such section.
    pub fn section_data(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, BinaryError> {
        match self.headers.iter().find(|header| header.name == name) {
            Some(header) => self.contents_of(header).map(Some),
            None => Ok(None),
        }
    }

    /// The contents of one of [`section_headers`](Self::section_headers), as
    /// [`section_data`](Self::section_data) gives them.
    pub fn contents_of(&self, header: &SectionHeader) -> Result<Cow<'_, [u8]>, BinaryError> {
        with_elf!(self, |file| {
            let mut data = section::data(&self.path, &file, header)?;
            if self.relocatable {
                let damaged = |error| section::corrupt(&self.path, &header.name, error);
                relocation::apply(self.machine, &file, &self.headers, header, &mut data)
                    .map_err(damaged)?;
            }
            Ok(data)
        })
    }
}

/// What [`Binary::read`] finds.
struct Parts {
    little_endian: bool,
    relocatable: bool,
    build_id: Option<BuildId>,
    executable_base: Option<ImageAddress>,
    headers: Vec<SectionHeader>,
    sections: Vec<Section>,
    code: Vec<section::Code>,
    functions: Vec<Function>,
    code_kinds: Vec<(ImageAddress, CodeKind)>,
}

impl Parts {
    fn read<Elf: FileHeader<Endian = object::Endianness>>(
        path: &Path,
        machine: Machine,
        file: &ElfFile<'_, Elf>,
    ) -> Result<Self, BinaryError> {
        let endian = file.endian();
        let relocatable = file.elf_header().e_type(endian) == elf::ET_REL;
        let headers = section::headers(path, file, relocatable)?;
        let (sections, code) = section::code(path, machine, file, &headers, relocatable)?;
        let executable = file.elf_program_headers().iter().filter(|segment| {
            segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian).0 & elf::PF_X.0 != 0
        });
        let symbols = function::Symbols::read(machine, file, &headers);
        Ok(Self {
            little_endian: endian == object::Endianness::Little,
            relocatable,
            build_id: file
                .build_id()
                .map_err(|error| section::corrupt(path, "the build-id note", error))?
                .and_then(|id| BuildId::new(id).ok()),
            executable_base: executable
                .map(|segment| ImageAddress(segment.p_vaddr(endian).into()))
                .min(),
            functions: symbols.functions(&sections),
            code_kinds: symbols.into_code_kinds(),
            headers,
            sections,
            code,
        })
    }
}
