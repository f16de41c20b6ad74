//! What a perf.data is written from.

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;

use crate::input::perf_data::format::{branch, sample};
use crate::{BranchEntry, Space};

/// Whose samples and mappings of programs are: the inputs do not always say.
pub(super) const PROCESS: u32 = 1;

/// What a perf.data says of the machine.
#[derive(Clone, Debug, Default)]
pub struct PerfHeader {
    /// Its instruction set.
    pub machine: Option<Machine>,
    /// The CPU's name.
    pub cpu: String,
    /// perf's id of the CPU, such as `GenuineIntel,6,143,8`; readers recognise the hardware
    /// that recorded by it.
    pub cpu_id: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// The command that recorded.
    pub command: Vec<String>,
    /// The capacity of the branch recorder, in entries, if known.
    pub branch_depth: Option<u32>,
    /// What was recorded; at least one.
    pub events: Vec<RecordedEvent>,
    /// Binaries: whose, their names as in the mappings without a symbol
    /// (`[kernel.kallsyms]`), and their build-ids.
    pub build_ids: Vec<(Space, String, BuildId)>,
}

/// An event of a [`PerfHeader`].
#[derive(Clone, Debug)]
pub struct RecordedEvent {
    /// Its name.
    pub name: String,
    /// `perf_event_attr.type`: 0 is hardware, 1 software, 4 raw.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// Every how many events a sample was taken.
    pub period: u64,
    /// Whether the kernel was left out.
    pub excludes_kernel: bool,
    /// Whether user code was left out.
    pub excludes_user: bool,
    /// `perf_event_attr.branch_sample_type`, if it recorded branches.
    pub branches: Option<u64>,
    /// Its id, not 0; a sample has it.
    pub id: u64,
}

impl RecordedEvent {
    /// All taken branches of the kernel, by hardware cycles.
    pub fn kernel_branches(id: u64) -> Self {
        Self {
            name: "cycles:k".to_owned(),
            kind: 0,
            config: 0,
            period: 1_000_003,
            excludes_kernel: false,
            excludes_user: true,
            branches: Some(branch::KERNEL | branch::ANY),
            id,
        }
    }

    /// All taken branches of programs, by hardware cycles.
    pub fn user_branches(id: u64) -> Self {
        Self {
            name: "cycles:u".to_owned(),
            excludes_kernel: true,
            excludes_user: false,
            branches: Some(branch::USER | branch::ANY),
            ..Self::kernel_branches(id)
        }
    }

    pub(super) fn sample_type(&self) -> u64 {
        let fields = sample::IP | sample::TID | sample::TIME | sample::CPU | sample::PERIOD;
        let stack = if self.branches.is_some() { sample::BRANCH_STACK } else { 0 };
        sample::IDENTIFIER | fields | stack
    }
}

/// How the records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// In `PERF_RECORD_COMPRESSED`: perf of Linux 5.2 to 6.15.
    First,
    /// In `PERF_RECORD_COMPRESSED2`: perf of Linux 6.16 and later.
    Second,
}

/// A sample to be written.
#[derive(Clone, Copy, Debug)]
pub struct RecordedSample<'a> {
    /// Index of its event.
    pub event: usize,
    /// Where the event happened, and whose address that is.
    pub address: RuntimeAddress,
    /// See `address`.
    pub space: Space,
    /// Nanoseconds.
    pub time: u64,
    /// Process and thread.
    pub process: (u32, u32),
    /// CPU.
    pub cpu: u32,
    /// The newest first; at most 2000.
    pub branches: &'a [BranchEntry],
}

/// A mapping to be written.
#[derive(Clone, Copy, Debug)]
pub struct RecordedMapping<'a> {
    /// Whose.
    pub space: Space,
    /// `[kernel.kallsyms]_stext`, the path of a module or program.
    pub name: &'a str,
    /// First byte and number of bytes.
    pub start: RuntimeAddress,
    /// See `start`.
    pub size: u64,
    /// For a kernel the address of the symbol in its name, else the offset in the file.
    pub offset: u64,
    /// Its build-id, which makes this a `PERF_RECORD_MMAP2`.
    pub build_id: Option<&'a BuildId>,
}
