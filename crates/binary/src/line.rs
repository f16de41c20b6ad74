use std::sync::Arc;

use mepof_address::ImageAddress;

use crate::{Binary, BinaryError};

/// A function's name, as an index into [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// The function names that debug information mentions: linkage names where there are some.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<Arc<str>>,
}

impl Names {
    /// The name, as debug information has it.
    pub fn get(&self, id: NameId) -> Option<&Arc<str>> {
        self.names.get(id.0 as usize)
    }
}

/// A source location within one function of an inline stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function.
    pub function: NameId,
    /// Lines from the function's declaration (`DW_AT_decl_line`) to the location; negative when
    /// the location is above it. AutoFDO keeps the low 16 bits.
    pub line_offset: i32,
    /// The DWARF discriminator, all of its bits.
    pub discriminator: u32,
}

/// Answers which source location an address belongs to, through all inlined calls.
pub struct Symbolizer {}

impl Symbolizer {
    /// Reads the debug information of `binary` for `addresses`, in parallel, and of nothing
    /// else. Addresses may come in any order.
    pub fn new(binary: &Binary, addresses: &[ImageAddress]) -> Result<Self, BinaryError> {
        let _ = (binary, addresses);
        todo!()
    }

    /// The names that frames refer to.
    pub fn names(&self) -> &Names {
        todo!()
    }

    /// The inline stack at `address`, the outermost function first; empty where debug
    /// information says nothing (or line 0 only).
    pub fn frames(&self, address: ImageAddress) -> &[Frame] {
        let _ = address;
        todo!()
    }
}
