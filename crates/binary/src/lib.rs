//! What a kernel or module is made of: sections, functions, instructions, lines and inline
//! frames, pseudo probes, and the map of its basic blocks.
//!
//! Constraints that shaped this crate:
//!
//! - A vmlinux with debug information has hundreds of megabytes; a profile touches a few
//!   per cent of its functions. Everything beyond sections and symbols is read on demand and
//!   only for the addresses asked for.
//! - A file is hostile until proven otherwise: every reader returns [`BinaryError`].
//! - Addresses are [`ImageAddress`](mepof_address::ImageAddress)es throughout.

mod bb_address_map;
mod bytes;
mod elf;
mod error;
mod instructions;
mod line;
mod pseudo_probe;

pub use bb_address_map::{
    Block, BlockRange, FunctionBlocks, parse_bb_address_maps, read_bb_address_maps,
};
pub use bytes::Damage;
pub use elf::{Binary, CodeSymbol, Function, Section, SectionHeader, whole_function};
pub use error::BinaryError;
pub use instructions::{Instructions, instructions};
pub use line::{
    Frame, KERNEL_LINES, NameId, Names, PROGRAM_LINES, SourceFiles, SubprogramRange, Subprograms,
    Symbolizer, SymbolizerOptions,
};
pub use pseudo_probe::{Probe, ProbeKind, ProbeSection, Probes};
