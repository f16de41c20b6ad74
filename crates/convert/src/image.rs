use mepof_binary::Binary;
use mepof_trace::ImageTrace;

use crate::verdict::BuildIdMatch;

/// One binary, and what ran of it.
#[derive(Debug)]
pub struct Image {
    /// The binary.
    pub binary: Binary,
    /// Its branches and ranges, of all inputs.
    pub trace: ImageTrace,
    /// Whether the inputs come from this exact build.
    pub build_id_match: BuildIdMatch,
}
