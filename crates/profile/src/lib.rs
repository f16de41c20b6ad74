//! AutoFDO profiles: the samples of a function, line by line and through all inlined calls, in
//! every form that compilers read.

mod samples;

pub use samples::{FunctionProfile, LineLocation, LineSamples, Profile};
