//! Addresses, and what names a binary.
//!
//! A kernel has two address spaces that are easily mixed up: the one that it was linked
//! for, and the one that it ran at (KASLR moves it; modules go wherever there is space).
//! The type says which one an address belongs to, and only [`Placement`] turns one into
//! the other.

mod build_id;
mod placement;

pub use build_id::{BuildId, BuildIdError};
pub use placement::{Placement, Region};

use std::fmt;

/// An address as the CPU saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RuntimeAddress(pub u64);

/// An address as the linker gave it: what `nm` and DWARF say. In a relocatable file (a
/// kernel module), where every section begins at zero, executable sections are laid out
/// one after the other; `mepof_binary::Binary` says how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ImageAddress(pub u64);

impl fmt::Display for RuntimeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for ImageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
