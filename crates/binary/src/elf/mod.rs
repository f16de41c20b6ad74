mod code;
mod contents;
mod foreign;
mod function;
mod module;
mod parts;
mod relocation;
mod section;
mod width;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mepof_address::{BuildId, ImageAddress};
use mepof_machine::{CodeKind, Machine};
use object::elf;
use object::{Object, ObjectSymbol};

use crate::BinaryError;
use contents::Contents;
pub use function::{CodeSymbol, Function, whole_function};
use parts::Parts;
pub use section::{Section, SectionHeader};
use width::with_elf;

/// An ELF file with code. Cheap to open: sections and symbols are read, debug information is
/// not. In a relocatable file (a kernel module) the executable sections are laid out one after
/// the other in the order of the section table, from 0x1000 on, each aligned as it asks; calls
/// to functions that the file does not have lead to address 0.
pub struct Binary {
    path: PathBuf,
    contents: Contents,
    parts: Parts,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").field("path", &self.path).finish_non_exhaustive()
    }
}

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
        let parts = Parts::read(&path, &contents)?;
        Ok(Self { path, contents, parts })
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
        self.parts.machine
    }

    /// Whether its numbers are little endian.
    pub fn is_little_endian(&self) -> bool {
        self.parts.little_endian
    }

    /// Its build-id, if it has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.parts.build_id.as_ref()
    }

    /// Whether it is a relocatable file: a kernel module.
    pub fn is_relocatable(&self) -> bool {
        self.parts.relocatable
    }

    /// The sections with code, by address.
    pub fn sections(&self) -> &[Section] {
        &self.parts.sections
    }

    /// The section table, sections without code included, in the file's order.
    pub fn section_headers(&self) -> &[SectionHeader] {
        &self.parts.headers
    }

    /// Bytes of code, all sections together.
    pub fn text_size(&self) -> u64 {
        let size = |section: &Section| section.addresses.end.0 - section.addresses.start.0;
        self.parts.sections.iter().map(size).fold(0, u64::saturating_add)
    }

    /// The page of the first segment that is loaded to be executed: llvm-profgen's text with
    /// offsets counts from there. `None` in a relocatable file.
    pub fn executable_base(&self) -> Option<ImageAddress> {
        self.parts.executable_base
    }

    /// The address of the first segment that is loaded: AutoFDO's text counts from there. `None` in
    /// a relocatable file.
    pub fn load_base(&self) -> Option<ImageAddress> {
        self.parts.load_base
    }

    /// The functions of the symbol table, by address; none overlaps another.
    pub fn functions(&self) -> &[Function] {
        &self.parts.functions
    }

    /// The function that covers `address`.
    pub fn function_at(&self, address: ImageAddress) -> Option<&Function> {
        let after =
            self.parts.functions.partition_point(|function| function.addresses.start <= address);
        let function = self.parts.functions.get(after.checked_sub(1)?)?;
        (address < function.addresses.end).then_some(function)
    }

    /// The address of a symbol: `_text`, `_stext`, `_etext`, …. Looks through the whole symbol
    /// table: for a few symbols, not for many.
    pub fn symbol(&self, name: &str) -> Option<ImageAddress> {
        with_elf!(&self.path, &self.contents, |file| {
            let mut symbols = file.symbols().chain(file.dynamic_symbols());
            let found = symbols.find(|symbol| {
                !symbol.is_undefined() && symbol.name_bytes() == Ok(name.as_bytes())
            });
            Ok(found.map(|symbol| {
                self.image_address(symbol.section_index().map(|index| index.0), symbol.address())
            }))
        })
        .ok()
        .flatten()
    }

    /// The names and addresses of all symbols that lie in code: functions, labels and whatever
    /// else, in the symbol table's order.
    pub(crate) fn code_symbols(&self) -> Result<Vec<(&[u8], ImageAddress)>, BinaryError> {
        with_elf!(&self.path, &self.contents, |file| {
            let in_code = file.symbols().filter_map(|symbol| {
                let index = symbol.section_index()?.0;
                let header = self.parts.headers.get(index).filter(|header| header.is_code())?;
                let address = self.image_address(Some(header.index), symbol.address());
                Some((symbol.name_bytes().ok()?, address))
            });
            Ok(in_code.collect())
        })
    }

    /// The named symbols that lie in code, in the symbol table's order: of functions and labels,
    /// all that share an address included. A stripped program still has its dynamic symbols.
    pub fn symbols_of_code(&self) -> Result<Vec<CodeSymbol<'_>>, BinaryError> {
        with_elf!(&self.path, &self.contents, |file| {
            let table = if file.elf_symbol_table().is_empty() {
                file.dynamic_symbols()
            } else {
                file.symbols()
            };
            let in_code = table.filter_map(|symbol| {
                let index = symbol.section_index()?.0;
                let header = self.parts.headers.get(index).filter(|header| header.is_code())?;
                let name = symbol.name_bytes().ok()?;
                let kind = symbol.elf_symbol().st_type();
                let is_function = matches!(kind, elf::STT_FUNC | elf::STT_GNU_IFUNC);
                let is_label =
                    kind == elf::STT_NOTYPE && self.parts.machine.mapping_symbol(name).is_none();
                if name.is_empty() || !(is_function || is_label) {
                    return None;
                }
                let mode_bit = if is_function { self.parts.machine.mode_bit() } else { 0 };
                let address = symbol.address() & !mode_bit;
                let address = self.image_address(Some(header.index), address);
                Some(CodeSymbol { name, address, size: symbol.size() })
            });
            Ok(in_code.collect())
        })
    }

    fn image_address(&self, section: Option<usize>, address: u64) -> ImageAddress {
        let base = if self.parts.relocatable {
            section
                .and_then(|index| self.parts.headers.get(index))
                .map_or(0, |header| header.address)
        } else {
            0
        };
        ImageAddress(base.wrapping_add(address))
    }

    /// The code in `addresses`, or as much of it as lies in one section.
    pub fn code(&self, addresses: Range<ImageAddress>) -> &[u8] {
        let after = self
            .parts
            .sections
            .partition_point(|section| section.addresses.start <= addresses.start);
        after
            .checked_sub(1)
            .and_then(|index| {
                let start = self.parts.sections.get(index)?.addresses.start.0;
                let code = self.parts.code.get(index)?.bytes(&self.contents);
                let from = usize::try_from(addresses.start.0.checked_sub(start)?).ok()?;
                let to = usize::try_from(addresses.end.0.checked_sub(start)?).ok()?;
                code.get(from..to.min(code.len()))
            })
            .unwrap_or_default()
    }

    /// What mapping symbols say about the code at `address`: A32 or A64, T32, or data. `None`
    /// where there are none, as on x86.
    pub fn code_kind(&self, address: ImageAddress) -> Option<CodeKind> {
        let after = self.parts.code_kinds.partition_point(|(start, _)| *start <= address);
        let (start, kind) = self.parts.code_kinds.get(after.checked_sub(1)?)?;
        // A mapping symbol holds to the end of its section.
        let section = |address: ImageAddress| {
            self.parts.sections.partition_point(|section| section.addresses.start <= address)
        };
        (section(*start) == section(address)).then_some(*kind)
    }

    /// Where code turns into another kind, by address.
    pub(crate) fn code_kinds(&self) -> &[(ImageAddress, CodeKind)] {
        &self.parts.code_kinds
    }

    /// The contents of the first section called `name`, decompressed, and in a relocatable file
    /// with its relocations applied; `None` if there is no such section.
    pub fn section_data(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, BinaryError> {
        match self.parts.headers.iter().find(|header| header.name == name) {
            Some(header) => self.contents_of(header).map(Some),
            None => Ok(None),
        }
    }

    /// The contents of one of [`section_headers`](Self::section_headers), as
    /// [`section_data`](Self::section_data) gives them.
    pub fn contents_of(&self, header: &SectionHeader) -> Result<Cow<'_, [u8]>, BinaryError> {
        with_elf!(&self.path, &self.contents, |file| {
            let mut data = section::data(&self.path, &file, header)?;
            if self.parts.relocatable {
                let damaged = |error| section::corrupt(&self.path, &header.name, error);
                relocation::apply(
                    self.parts.machine,
                    &file,
                    &self.parts.headers,
                    header,
                    &mut data,
                )
                .map_err(damaged)?;
            }
            Ok(data)
        })
    }
}
