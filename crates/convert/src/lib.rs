//! From a branch trace and the binary that ran, to a profile that a compiler reads,
//! with a verdict on whether it is worth reading.

mod autofdo;
mod branch_list;
mod branch_trace;
mod check;
mod code;
mod coverage;
mod discriminator;
mod disjoint;
mod drift;
mod error;
mod executed;
mod flow_graph;
mod image;
pub mod inference;
mod judge;
mod location;
mod offsets;
mod outside;
mod patched;
mod probes;
mod profile;
mod slide;
mod smooth;
mod sources;
mod subject;
mod symbols;
mod tree;
mod verdict;

pub use branch_trace::{BranchTrace, Input, Request};
pub use drift::{Change, Drift, FunctionDrift, Share, drift};
pub use error::ConvertError;
pub use executed::{Executed, executed};
pub use image::{Image, wanted};
pub use judge::{Judged, judge};
pub use location::{Placed, place};
pub use profile::{Converted, Inference, Locations, ProfileOptions, autofdo};
pub use sources::BranchSources;
pub use subject::Subject;
pub use verdict::{BinaryVerdict, BuildIdMatch, Count, InputVerdict, Quality, Reason, Verdict};
