use super::cursor::{ByteOrder, Cursor};
use super::format::{ATTR_MINIMUM, attr_flag, branch, sample};
use crate::Event;

/// A hostile file may announce any number of events; perf itself opens a few dozen.
pub(crate) const MAX_EVENTS: usize = 1024;

/// What matters of a `perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) period_or_frequency: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) branch_sample_type: u64,
}

impl Attr {
    /// Reads an attr and its true size in bytes. It grew over the years, and says its size.
    pub(crate) fn read(bytes: &[u8], order: ByteOrder) -> Option<(Self, usize)> {
        let mut cursor = Cursor::new(bytes, order);
        let kind = cursor.u32()?;
        let size = usize::try_from(cursor.u32()?).ok()?;
        // perf writes 0 where it means the first version.
        let size = if size == 0 { ATTR_MINIMUM } else { size };
        if size < ATTR_MINIMUM || size > bytes.len() {
            return None;
        }
        let config = cursor.u64()?;
        let period_or_frequency = cursor.u64()?;
        let sample_type = cursor.u64()?;
        let read_format = cursor.u64()?;
        let flags = cursor.u64()?;
        // A compiler for a big-endian machine gives bit-fields out from the other end.
        let flags = if order == ByteOrder::Big { flags.reverse_bits() } else { flags };
        let mut rest = Cursor::new(bytes.get(72..size).unwrap_or_default(), order);
        let branch_sample_type = rest.u64().unwrap_or_default();
        let attr = Self {
            kind,
            config,
            period_or_frequency,
            sample_type,
            read_format,
            flags,
            branch_sample_type,
        };
        Some((attr, size))
    }

    pub(crate) fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Whether samples carry records of branches. In call-stack mode (`perf record --call-graph
    /// lbr`) the hardware pops an entry at each return: what is left are calls, not a history.
    pub(crate) fn has_branch_stack(&self) -> bool {
        self.sample_type & sample::BRANCH_STACK != 0 && !self.is_call_stack()
    }

    pub(crate) fn is_call_stack(&self) -> bool {
        self.branch_sample_type & branch::CALL_STACK != 0
    }

    /// Whether every taken branch was recorded, so that code between two ran straight through.
    pub(crate) fn records_any_branch(&self) -> bool {
        self.branch_sample_type & branch::ANY != 0
    }

    /// perf's name for it, where the file gives none.
    fn name(&self) -> String {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 4] = ["cpu-clock", "task-clock", "page-faults", "context-switches"];
        // The upper half of a hardware event's config names one of several kinds of core.
        let index = usize::try_from(self.config & 0xffff_ffff).unwrap_or(usize::MAX);
        let known = match self.kind {
            0 => HARDWARE.get(index),
            1 => SOFTWARE.get(index),
            _ => None,
        };
        let base = match (known, self.kind) {
            (Some(&name), _) => name.to_owned(),
            (None, 4) => format!("r{:x}", self.config),
            (None, kind) => format!("type {kind} config {:#x}", self.config),
        };
        match (self.has(attr_flag::EXCLUDE_USER), self.has(attr_flag::EXCLUDE_KERNEL)) {
            (true, false) => base + ":k",
            (false, true) => base + ":u",
            _ => base,
        }
    }

    /// What a user should know of the event.
    pub(crate) fn event(&self, name: Option<&str>, samples: u64) -> Event {
        let by_frequency = self.has(attr_flag::FREQ);
        let value = Some(self.period_or_frequency).filter(|&value| value != 0);
        let privilege = branch::USER | branch::KERNEL | branch::HV;
        // Without a filter of its own, a branch stack has the event's: kernel/events/core.c,
        // perf_copy_attr().
        let kernel_left_out = match self.branch_sample_type & privilege {
            0 => self.has(attr_flag::EXCLUDE_KERNEL),
            filter => filter & branch::KERNEL == 0,
        };
        Event {
            name: name.filter(|name| !name.is_empty()).map_or_else(|| self.name(), str::to_owned),
            period: value.filter(|_| !by_frequency),
            frequency: value.filter(|_| by_frequency),
            excludes_kernel: self.has(attr_flag::EXCLUDE_KERNEL),
            excludes_user: self.has(attr_flag::EXCLUDE_USER),
            branch_stack: self.has_branch_stack(),
            branch_stack_excludes_kernel: self.has_branch_stack() && kernel_left_out,
            branch_stack_has_gaps: self.has_branch_stack() && !self.records_any_branch(),
            samples,
        }
    }
}
