use std::ops::Range;
use std::path::Path;

use mepof_address::{BuildId, ImageAddress, Machine};

use crate::BinaryError;

/// A section with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `.text`, `.init.text`, `.text.hot`, ….
    pub name: String,
    /// Where it is.
    pub addresses: Range<ImageAddress>,
    /// Where it is in the file.
    pub file_offset: u64,
}

/// A function of the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As the symbol table calls it, suffixes such as `.llvm.123`, `.cold` and `.__part.1`
    /// included. Where several symbols share an address: the global one, then by name.
    pub name: String,
    /// What it covers. A symbol without a size reaches to the next one, or to the section's end.
    pub addresses: Range<ImageAddress>,
    /// Whether this is where calls go, not a part that was split off.
    pub is_entry: bool,
}

/// An ELF file with code. Cheap to open: sections and symbols are read, debug information is
/// not. In a relocatable file (a kernel module) the executable sections are laid out one after
/// the other in the order of the section table, from 0x1000 on, each aligned as it asks.
#[derive(Debug)]
pub struct Binary {}

impl Binary {
    /// Opens the vmlinux, module or program at `path`.
    pub fn open(path: &Path) -> Result<Self, BinaryError> {
        let _ = path;
        todo!()
    }

    /// Its instruction set.
    pub fn machine(&self) -> Machine {
        todo!()
    }

    /// Its build-id, if it has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        todo!()
    }

    /// Whether it is a relocatable file: a kernel module.
    pub fn is_relocatable(&self) -> bool {
        todo!()
    }

    /// The sections with code, by address.
    pub fn sections(&self) -> &[Section] {
        todo!()
    }

    /// The functions of the symbol table, by address; none overlaps another.
    pub fn functions(&self) -> &[Function] {
        todo!()
    }

    /// The function that covers `address`.
    pub fn function_at(&self, address: ImageAddress) -> Option<&Function> {
        let _ = address;
        todo!()
    }

    /// The address of a symbol: `_text`, `_stext`, `_etext`, ….
    pub fn symbol(&self, name: &str) -> Option<ImageAddress> {
        let _ = name;
        todo!()
    }

    /// The code in `addresses`, or as much of it as lies in one section.
    pub fn code(&self, addresses: Range<ImageAddress>) -> &[u8] {
        let _ = addresses;
        todo!()
    }
}
