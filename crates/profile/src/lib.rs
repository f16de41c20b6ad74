//! AutoFDO profiles: the samples of a function, line by line and through all inlined calls, in
//! every form that compilers read.
//!
//! Readers take bytes and never panic: lengths are checked against what is there, nesting is
//! bounded by [`MAX_INLINE_DEPTH`], and names are shared, so that memory stays within a constant
//! multiple of the input. Writers give what `llvm-profdata` of LLVM 22 gives for the same data, to
//! the byte where its own order is defined.

mod compare;
mod cursor;
mod error;
pub mod ext_binary;
mod format;
pub mod gcov;
mod merge;
mod name;
mod names;
mod prune;
mod read;
mod samples;
mod sorted;
mod statistics;
mod sum;
mod summary;
pub mod text;

pub use compare::{CompareError, Comparison, FunctionDifference, SetOverlap, compare};
pub use error::{ReadError, WriteError};
pub use format::{Format, MAX_INLINE_DEPTH};
pub use merge::{AddError, Conflict, MergeError, Merged, Merger, Origin, Provenance};
pub use name::{SuffixElision, UNIQUE_SUFFIX, canonical_name, guid};
pub use prune::{filter_ambiguous, trim_cold};
pub use read::read;
pub use samples::{
    ATTRIBUTE_DUPLICATED_INTO_BASE, ATTRIBUTE_SHOULD_BE_INLINED, ATTRIBUTE_WAS_INLINED,
    FunctionProfile, LineLocation, LineSamples, Merge, Profile,
};
pub use statistics::{Density, HotFunction, HotLine, Statistics};
pub use summary::{CUTOFFS, Summary, SummaryEntry};
