use std::fmt;
use std::str::FromStr;

/// The formats that can be read, with their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `perf-data`: as recorded, or from a pipe.
    PerfData,
    /// `perf-script`: the text of `perf script -F …,brstack`.
    PerfScript,
    /// `unsymbolized`: llvm-profgen's unsymbolized text.
    Unsymbolized,
    /// `bolt-preaggregated`: BOLT's text of branches and ranges.
    Preaggregated,
    /// `branch-list`: simpleperf's branch list of ETM traces.
    BranchList,
    /// `recorder`: the emulated recorder's trace.
    Recorder,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::PerfData,
        Self::PerfScript,
        Self::Unsymbolized,
        Self::Preaggregated,
        Self::BranchList,
        Self::Recorder,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerfData => "perf-data",
            Self::PerfScript => "perf-script",
            Self::Unsymbolized => "unsymbolized",
            Self::Preaggregated => "bolt-preaggregated",
            Self::BranchList => "branch-list",
            Self::Recorder => "recorder",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown input format {0:?}; known: {names}", names = Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}
