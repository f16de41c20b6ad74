//! What each instruction set is and does: one file per architecture.
//!
//! [`Machine`] is what the other crates pass around, and [`Architecture`] what they ask it. No
//! crate compares machines to decide what to do: a difference between architectures is a method
//! here. A port is a file that implements [`Architecture`], and its line in [`Machine::ALL`].

mod aarch64;
mod architecture;
mod arm;
mod instruction;
mod machine;
mod module_table;
mod patch_table;
mod relocation;
mod x86_64;

pub use architecture::{Architecture, BranchRecorder, CodeKind, Decoder, Step};
pub use instruction::{Flow, Instruction};
pub use machine::Machine;
pub use module_table::{ModuleTable, TableSize};
pub use patch_table::{CodeAddress, PatchTable};
pub use relocation::Relocation;
