use std::collections::BTreeMap;
use std::sync::Arc;

/// A place in a function's source: lines from its declaration, or with pseudo probes the probe's
/// number, and which of several paths through the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineLocation {
    /// Lines from the declaration (16 bits of it), or a probe's number.
    pub offset: u32,
    /// The discriminator.
    pub discriminator: u32,
}

/// What was counted at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSamples {
    /// How often it ran.
    pub count: u64,
    /// The functions called from there, with how often.
    pub targets: BTreeMap<Arc<str>, u64>,
}

/// The samples of a function, or of one of its inlined copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionProfile {
    /// Samples in the body, inlined calls included.
    pub total: u64,
    /// How often it was entered. Zero for an inlined copy.
    pub head: u64,
    /// The hash of the control flow, with pseudo probes.
    pub checksum: Option<u64>,
    /// Attributes, as LLVM's `SampleContext` has them: 1 should be inlined, 2 always was, 4 a
    /// flattened copy.
    pub attributes: u32,
    /// Where in the source it ran, and how often.
    pub body: BTreeMap<LineLocation, LineSamples>,
    /// Calls that were inlined there, by callee.
    pub inlined: BTreeMap<LineLocation, BTreeMap<Arc<str>, FunctionProfile>>,
}

/// The profile of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By function name. In a profile with MD5 names, the decimal GUID stands for the name.
    pub functions: BTreeMap<Arc<str>, FunctionProfile>,
    /// Places are pseudo probes, not lines.
    pub probe_based: bool,
    /// Discriminators are flow-sensitive (`-enable-fs-discriminator`).
    pub flow_sensitive: bool,
    /// Names are GUIDs.
    pub md5_names: bool,
    /// Functions that the binary had, ran or not; empty if not recorded. Functions in here
    /// without samples are cold; those not in here are new.
    pub symbols: Vec<Arc<str>>,
}
