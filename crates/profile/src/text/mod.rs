//! LLVM's text form: one line for a function, a location or an inlined call, nested by indentation.
//!
//! Described in Clang's user manual under *Sample Profile Formats*; the order of everything and
//! what a reader accepts follow LLVM 22, `llvm/lib/ProfileData/SampleProfWriter.cpp` and
//! `SampleProfReader.cpp`.
//!
//! ```text
//! name:total:head
//!  offset[.discriminator]: count [target:count]…
//!  offset[.discriminator]: callee:total
//!   offset: count
//!  !CFGChecksum: checksum
//!  !Attributes: attributes
//! ```

mod line;
mod read;
mod write;

pub use read::{is_text, read};
pub use write::write;
