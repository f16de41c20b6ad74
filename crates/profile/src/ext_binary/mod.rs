//! LLVM's binary forms: the extensible one, of sections, and the older plain one.
//!
//! LLVM 22, `llvm/lib/ProfileData/SampleProfWriter.cpp` and `SampleProfReader.cpp`, the sections
//! and flags in `llvm/include/llvm/ProfileData/SampleProf.h`. Version 103 has not changed since
//! LLVM 3.5; LLVM 19 and 22 read and write the same. What is written here has the section order of
//! LLVM's default layout.

mod add;
mod function;
mod read;
mod section;
mod write;

pub(crate) use read::{add, has_metadata};
pub use read::{format_of, read};
pub use write::{Options, write};
