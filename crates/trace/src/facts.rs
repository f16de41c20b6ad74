use std::ops::Range;

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;

use crate::Tally;

/// Whose addresses these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The kernel of the machine that recorded.
    #[default]
    Kernel,
    /// The kernel of a virtual machine on it.
    GuestKernel,
    /// A process.
    User,
}

/// A stretch of run-time addresses that a binary was mapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First byte to one past the last.
    pub addresses: Range<RuntimeAddress>,
    /// perf's `pgoff`: for a kernel the run-time address of its reference symbol (`_text` or
    /// `_stext`), for a module and a file the offset in the file.
    pub offset: u64,
    /// The section, where the input says (a module placed by `/sys/module/*/sections`).
    pub section: Option<String>,
}

/// A binary that the input mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedImage {
    /// As the input calls it: `[kernel.kallsyms]_text`, `[nf_tables]`, `/usr/bin/x`.
    pub name: String,
    /// Whose it is.
    pub space: Space,
    /// Its build-id, where the input says.
    pub build_id: Option<BuildId>,
    /// Where it ran, by first appearance.
    pub mappings: Vec<Mapping>,
}

/// An event that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// perf's name, such as `cycles:k` or `br_inst_retired.near_taken:k`.
    pub name: String,
    /// Every how many events a sample was taken, if fixed.
    pub period: Option<u64>,
    /// Samples per second, if perf adapted the period.
    pub frequency: Option<u64>,
    /// Whether the kernel was left out (`:u`).
    pub excludes_kernel: bool,
    /// Whether user code was left out (`:k`).
    pub excludes_user: bool,
    /// Whether it asked for branch stacks at all.
    pub branch_stack: bool,
    /// Whether the branch filter left the kernel's branches out.
    pub branch_stack_excludes_kernel: bool,
    /// Whether the branch filter kept only some kinds of branches.
    pub branch_stack_has_gaps: bool,
    /// Samples of this event.
    pub samples: u64,
}

/// What the addresses of an input are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// As the CPU saw them.
    #[default]
    Runtime,
    /// As the linker gave them: the input was made from the binary.
    Image,
    /// Offsets in the file, or from the address of its first segment: simpleperf has written both.
    /// The input does not say which, and the code tells.
    Offset,
    /// Those of the first binary as the linker gave them, or bytes from the linked address of its
    /// first executable segment. The latter wrap around: an address below the segment is close to
    /// 2^64. The input does not say which, and the binary tells.
    ImageOrTextOffset {
        /// The lowest address that must be in the binary.
        lowest: u64,
        /// The highest such address.
        highest: u64,
    },
}

/// What an input says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What was recorded into: `perf.data`, `perf script text`, …
    pub format: String,
    /// The machine's instruction set, where the input says.
    pub machine: Option<Machine>,
    /// The CPU's description, where the input says.
    pub cpu: Option<String>,
    /// `uname -r` of the machine that recorded.
    pub kernel_release: Option<String>,
    /// What its addresses are. `images` and `kernel_base` matter for run-time addresses only.
    pub addressing: Addressing,
    /// The event's name and settings; several where several were recorded.
    pub events: Vec<Event>,
    /// The binaries that ran, in the order of their appearance.
    pub images: Vec<TracedImage>,
    /// The run-time address of `_text` or `_stext` where the input says; see [`crate::place()`].
    pub kernel_base: Option<(String, RuntimeAddress)>,
    /// The capacity of the branch stack, in entries, where the input says.
    pub branch_depth: Option<u32>,
    /// Samples (or aggregated lines) read, used and dropped.
    pub samples: Tally,
    /// Branch entries read, used and dropped by the reader.
    pub entries: Tally,
    /// Whether every branch was recorded, not a sample of them.
    pub exact: bool,
    /// Samples of the kernel whose branches are at offsets in place of addresses.
    pub offsets: u64,
    /// What a user should know, one line each.
    pub notes: Vec<String>,
}

impl Facts {
    /// Whether user code's branches can be in there at all.
    pub fn has_user_branches(&self) -> bool {
        let has = |event: &Event| event.branch_stack && !event.excludes_user;
        self.events.is_empty() || self.events.iter().any(has)
    }

    /// Whether a kernel's branches can be in there at all.
    pub fn has_kernel_branches(&self) -> bool {
        self.events.is_empty()
            || self.events.iter().any(|event| {
                event.branch_stack && !event.excludes_kernel && !event.branch_stack_excludes_kernel
            })
    }
}
