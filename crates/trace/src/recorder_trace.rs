//! The numbers of `docs/recorder-trace.md`, for its reader and its writer.

pub(crate) const MAGIC: &[u8] = b"MEPOFTRC";
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEADER_SIZE: usize = 128;
pub(crate) const FLAG_SAMPLED: u32 = 1;
pub(crate) const FLAG_KERNEL_ONLY: u32 = 2;
pub(crate) const LARGEST_BODY: u32 = 16 << 20;
pub(crate) const END: u32 = 255;

/// The event that the period of a sampled trace counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Taken branches.
    TakenBranches = 1,
    /// Instructions.
    Instructions = 2,
    /// Nanoseconds of guest time.
    Nanoseconds = 3,
}

/// All records except the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordType {
    Branches = 1,
    Ranges = 2,
    Sample = 3,
    Counters = 4,
    Mapping = 5,
}

impl RecordType {
    pub(crate) fn of(number: u32) -> Option<Self> {
        [Self::Branches, Self::Ranges, Self::Sample, Self::Counters, Self::Mapping]
            .into_iter()
            .find(|&kind| kind as u32 == number)
    }
}

/// What a recorder counts beside its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Iterations of REP string instructions that went back to themselves.
    RepIterations = 1,
    /// Asynchronous interruptions.
    Interruptions = 2,
    /// Branches that did not fit.
    LostBranches = 3,
    /// Samples that did not fit.
    LostSamples = 4,
    /// Kernel instructions executed.
    KernelInstructions = 5,
    /// Taken branches of the kernel.
    KernelBranches = 6,
}

impl Counter {
    pub(crate) fn of(number: u64) -> Option<Self> {
        [
            Self::RepIterations,
            Self::Interruptions,
            Self::LostBranches,
            Self::LostSamples,
            Self::KernelInstructions,
            Self::KernelBranches,
        ]
        .into_iter()
        .find(|&counter| counter as u64 == number)
    }

    /// For people, to follow a number.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::RepIterations => "iterations of REP string instructions were left out",
            Self::Interruptions => "asynchronous interruptions ended a range without a branch",
            Self::LostBranches => "branches were lost",
            Self::LostSamples => "samples were lost",
            Self::KernelInstructions => "kernel instructions were executed",
            Self::KernelBranches => "branches of the kernel were taken",
        }
    }
}
