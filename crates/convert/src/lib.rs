//! From a branch record and the binary that it belongs to, to a profile that a compiler reads,
//! with a verdict on whether it is worth reading.

mod autofdo;
mod branch_list;
mod check;
mod code;
mod coverage;
mod discriminator;
mod disjoint;
mod drift;
mod error;
mod flow_graph;
pub mod inference;
mod judge;
mod patched;
mod probes;
mod profile;
mod recording;
mod smooth;
mod subject;
mod symbols;
mod tree;
mod verdict;

pub use drift::{Change, Drift, FunctionDrift, Share, drift};
pub use error::ConvertError;
pub use judge::{Judged, judge};
pub use profile::{Converted, Inference, Places, ProfileOptions, autofdo};
pub use recording::{Image, Input, Recording, Request, placement};
pub use subject::Subject;
pub use verdict::{BinaryVerdict, BuildIdMatch, Count, InputVerdict, Quality, Reason, Verdict};
