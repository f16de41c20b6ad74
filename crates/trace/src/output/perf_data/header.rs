//! The parts of perf.data's header. Source: Linux 6.12, tools/perf/util/header.c.

use super::bytes::Bytes;
use super::recorded::{Compression, PerfHeader, RecordedEvent};
use crate::Space;
use crate::input::perf_data::cursor::ByteOrder;
use crate::input::perf_data::format::{RECORD_HEADER, attr_flag, feature, misc, record};

/// Bytes of a `perf_event_attr` as of Linux 5.13 (`PERF_ATTR_SIZE_VER7`).
pub(super) const ATTR_SIZE: u32 = 128;
/// The size that perf's ring buffer is claimed to have.
pub(super) const RING_BUFFER: u32 = 512 << 10;
/// perf pads strings of its header to this.
const NAME_ALIGN: usize = 64;

pub(super) fn section(bytes: &mut Bytes, offset: u64, size: u64) {
    bytes.u64(offset);
    bytes.u64(size);
}

/// The ids of all events, one each.
pub(super) fn ids(bytes: &mut Bytes, facts: &PerfHeader) {
    facts.events.iter().for_each(|event| bytes.u64(event.id));
}

/// A `perf_event_attr`.
pub(super) fn attr(bytes: &mut Bytes, event: &RecordedEvent) {
    let start = bytes.bytes.len();
    bytes.u32(event.kind);
    bytes.u32(ATTR_SIZE);
    bytes.u64(event.config);
    bytes.u64(event.period);
    bytes.u64(event.sample_type());
    bytes.u64(0); // read_format
    let set = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
    let flags = set(attr_flag::EXCLUDE_USER, event.excludes_user)
        | set(attr_flag::EXCLUDE_KERNEL, event.excludes_kernel)
        | attr_flag::SAMPLE_ID_ALL;
    bytes.u64(match bytes.order {
        ByteOrder::Little => flags,
        ByteOrder::Big => flags.reverse_bits(),
    });
    bytes.zeros(24); // wakeup_events, bp_type, config1, config2
    bytes.u64(event.branches.unwrap_or_default());
    bytes.zeros((start + ATTR_SIZE as usize).saturating_sub(bytes.bytes.len()));
}

fn counted_string(bytes: &mut Bytes, text: &str) {
    bytes.u32((text.len() + 1).next_multiple_of(NAME_ALIGN) as u32);
    bytes.padded_string(text, NAME_ALIGN);
}

/// The features of a file, by bit.
pub(super) fn features(
    facts: &PerfHeader,
    compression: Compression,
    order: ByteOrder,
) -> Vec<(u64, Vec<u8>)> {
    let text = |text: &str| {
        let mut bytes = Bytes::new(order);
        counted_string(&mut bytes, text);
        bytes.bytes
    };
    let mut all = Vec::new();
    if !facts.build_ids.is_empty() {
        all.push((feature::BUILD_ID, build_ids(facts, order)));
    }
    if !facts.kernel_release.is_empty() {
        all.push((feature::OSRELEASE, text(&facts.kernel_release)));
    }
    if let Some(machine) = facts.machine {
        all.push((feature::ARCH, text(machine.uname())));
    }
    if !facts.cpu.is_empty() {
        all.push((feature::CPUDESC, text(&facts.cpu)));
    }
    if !facts.cpu_id.is_empty() {
        all.push((feature::CPUID, text(&facts.cpu_id)));
    }
    if !facts.command.is_empty() {
        let mut bytes = Bytes::new(order);
        bytes.u32(facts.command.len() as u32);
        facts.command.iter().for_each(|word| counted_string(&mut bytes, word));
        all.push((feature::CMDLINE, bytes.bytes));
    }
    all.push((feature::EVENT_DESC, events(facts, order)));
    if facts.events.iter().any(|event| event.branches.is_some()) {
        all.push((feature::BRANCH_STACK, Vec::new()));
    }
    if compression != Compression::None {
        let mut bytes = Bytes::new(order);
        // Version, zstd, level, ratio, and the size of the ring buffer.
        [1, 1, 1, 4, RING_BUFFER].into_iter().for_each(|value| bytes.u32(value));
        all.push((feature::COMPRESSED, bytes.bytes));
    }
    if let Some(depth) = facts.branch_depth {
        let mut bytes = Bytes::new(order);
        bytes.u32(1);
        counted_string(&mut bytes, "branches");
        counted_string(&mut bytes, &depth.to_string());
        all.push((feature::CPU_PMU_CAPS, bytes.bytes));
    }
    all
}

fn events(facts: &PerfHeader, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Bytes::new(order);
    bytes.u32(facts.events.len() as u32);
    bytes.u32(ATTR_SIZE);
    for event in &facts.events {
        attr(&mut bytes, event);
        bytes.u32(1);
        counted_string(&mut bytes, &event.name);
        bytes.u64(event.id);
    }
    bytes.bytes
}

/// A `PERF_RECORD_HEADER_BUILD_ID` for each, which is what pipes have too.
fn build_ids(facts: &PerfHeader, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Bytes::new(order);
    for (space, name, id) in &facts.build_ids {
        let id: Vec<u8> = id.bytes().iter().copied().take(20).collect();
        let size = RECORD_HEADER + 28 + (name.len() + 1).next_multiple_of(NAME_ALIGN);
        bytes.u32(record::HEADER_BUILD_ID);
        bytes.u16(cpumode(*space) | misc::BUILD_ID_SIZE);
        bytes.u16(u16::try_from(size).unwrap_or(u16::MAX));
        bytes.u32(u32::MAX);
        bytes.bytes.extend(&id);
        bytes.zeros(20 - id.len());
        bytes.u8(id.len() as u8);
        bytes.zeros(3);
        bytes.padded_string(name, NAME_ALIGN);
    }
    bytes.bytes
}

pub(super) fn cpumode(space: Space) -> u16 {
    match space {
        Space::Kernel => misc::KERNEL,
        Space::GuestKernel => misc::GUEST_KERNEL,
        Space::User => misc::USER,
    }
}
