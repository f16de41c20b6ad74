//! Notes for the user on what the tallies do not show.

use mepof_machine::BranchRecorder;

use super::attr::Attr;
use super::decoder::SampleCounts;
use super::format::auxtrace;
use crate::{Facts, Space};

/// What [`notes`] are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) cpu_id: Option<String>,
    /// The capacity of the hardware's stack, in entries.
    pub(crate) depth: Option<u64>,
    pub(crate) throttled: u64,
    pub(crate) lost: u64,
    /// BPF programs, trampolines and similar code that was loaded while recording.
    pub(crate) symbols: u64,
    /// `perf stat record` counted events.
    pub(crate) counted: bool,
    pub(crate) auxtrace: Option<u32>,
    pub(crate) auxtrace_bytes: u64,
    pub(crate) simpleperf: bool,
    pub(crate) branch_list: bool,
    /// Bytes of the ring buffer that compressed records were made from.
    pub(crate) compression_buffer: Option<u64>,
    pub(crate) compressed_records: u64,
    pub(crate) unknown_ids: bool,
    pub(crate) kernel_mapping: bool,
    pub(crate) images_refused: u64,
    /// What the driver of the reader has to say.
    pub(crate) remarks: Vec<String>,
}

pub(crate) fn notes(
    facts: &Facts,
    seen: &Seen,
    attrs: &[Attr],
    counts: &SampleCounts,
    space: Space,
) -> Vec<String> {
    let mut notes = seen.remarks.clone();
    events(attrs, &mut notes);
    if counts.entries.passed > 0 {
        hardware(facts, seen, counts, &mut notes);
    }
    losses(seen, counts, &mut notes);
    spaces(seen, counts, space, &mut notes);
    if seen.branch_list {
        notes.push(
            "simpleperf stored a branch list of an ETM trace in it, which is not read from \
             here: `simpleperf inject --output branch-list -i perf.data -o branch_list.data`"
                .to_owned(),
        );
    }
    notes
}

fn events(attrs: &[Attr], notes: &mut Vec<String>) {
    if attrs.iter().any(Attr::is_call_stack) {
        notes.push(
            "an event recorded call stacks instead of branch stacks (--call-graph lbr), without \
             the calls that returned: record with `-b` or `-j any,k`"
                .to_owned(),
        );
    }
    if attrs.iter().any(|attr| attr.has_branch_stack() && !attr.records_any_branch()) {
        notes.push(
            "an event's branch filter kept only some kinds of branches, so the code between them \
             is unknown: record with `-j any,k`"
                .to_owned(),
        );
    }
}

fn hardware(facts: &Facts, seen: &Seen, counts: &SampleCounts, notes: &mut Vec<String>) {
    let entries = &counts.entries;
    let depth = seen.depth.unwrap_or(entries.deepest);
    let id = seen.cpu_id.as_deref().unwrap_or_default();
    let says_speculation = entries.speculation_known > 0;
    let recorder = facts.machine.and_then(|machine| machine.branch_recorder(id, says_speculation));
    if let Some(BranchRecorder { name, remark }) = recorder {
        let colon = if remark.is_empty() { "" } else { ": " };
        notes.push(format!("recorded by {name}, {depth} deep{colon}{remark}"));
    }
    if entries.wrong_path > 0 {
        notes.push(format!(
            "{} of {} entries were speculative and undone; they are left out, and the rest of \
             their stacks is kept",
            entries.wrong_path, entries.passed
        ));
    }
    if entries.empty > 0 {
        notes.push(format!(
            "{} of {} entries are empty on one side or both: slots that were never filled, or \
             a side where recording was prohibited",
            entries.empty, entries.passed
        ));
    }
}

fn losses(seen: &Seen, counts: &SampleCounts, notes: &mut Vec<String>) {
    if seen.lost > 0 {
        notes.push(format!(
            "the kernel lost {} records, its buffer was full: record with a larger one \
             (`-m 8M`) or a longer period (`-c`)",
            seen.lost
        ));
    }
    if seen.throttled > 0 {
        notes.push(format!(
            "the kernel throttled the event {} times: record with a longer period (`-c`)",
            seen.throttled
        ));
    }
    if seen.unknown_ids && counts.samples.read() > 0 {
        notes.push(
            "its events have different fields and its samples no identifier, so their events are \
             unknown"
                .to_owned(),
        );
    }
    if seen.images_refused > 0 {
        notes.push(format!(
            "{} mappings were dropped: there are more than any machine has",
            seen.images_refused
        ));
    }
}

fn spaces(seen: &Seen, counts: &SampleCounts, space: Space, notes: &mut Vec<String>) {
    match space {
        Space::GuestKernel if counts.guest_samples == 0 && counts.host_samples > 0 => notes.push(
            "all samples are of the host, none of a guest: record with `perf kvm --guest`, or use \
             the host's kernel (--space kernel)"
                .to_owned(),
        ),
        Space::Kernel | Space::User if counts.host_samples == 0 && counts.guest_samples > 0 => {
            notes.push(
                "all samples are of guests, none of the host: use the guest's kernel (--space \
                 guest)"
                    .to_owned(),
            );
        }
        _ => {}
    }
    if space != Space::User && !seen.kernel_mapping {
        notes.push(
            "it does not say where the kernel ran (kernel.kptr_restrict hides it from perf); \
             a copy of /proc/kallsyms of the machine does (--kallsyms)"
                .to_owned(),
        );
    }
    if seen.symbols > 0 && space != Space::User {
        notes.push(format!(
            "{} pieces of code came and went while recording (BPF programs, trampolines); \
             branches there are in no binary",
            seen.symbols
        ));
    }
}

/// Why a trace of instructions in it was not read, and what to do.
pub(crate) fn raw_trace(kind: u32) -> String {
    let (what, remedy) = match kind {
        auxtrace::CS_ETM => (
            "an undecoded CoreSight ETM trace",
            "convert it with `simpleperf inject --output branch-list -i perf.data -o \
             branch_list.data` or `perf inject --itrace=i1000il --strip -i perf.data -o \
             branches.data`",
        ),
        auxtrace::INTEL_PT => (
            "an undecoded Intel PT trace",
            "convert it with `perf inject --itrace=i100usle --strip -i perf.data -o \
             branches.data`",
        ),
        auxtrace::INTEL_BTS => {
            ("an undecoded Intel BTS trace", "record with `-b` instead: branch stacks cost less")
        }
        _ => ("a hardware trace of an unknown kind", "record with `-b` instead"),
    };
    format!("it has {what} and no branch stacks; {remedy}")
}
