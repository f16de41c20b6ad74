//! The numbers of the format, for the reader and for the writer.
//!
//! Sources: Linux 6.12, `include/uapi/linux/perf_event.h`, `tools/lib/perf/include/perf/event.h`,
//! `tools/perf/util/header.h`; `PERF_RECORD_COMPRESSED2` is of Linux 6.16.

/// The first eight bytes of a file, as the machine that wrote it stores a `u64`.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
/// The header of a pipe: magic and its own size.
pub(crate) const PIPE_HEADER: u64 = 16;
/// The header of a file.
pub(crate) const FILE_HEADER: u64 = 104;
/// The header of a record: type, misc, size.
pub(crate) const RECORD_HEADER: usize = 8;
/// The part of `perf_event_attr` that its first version had.
pub(crate) const ATTR_MINIMUM: usize = 64;

/// `perf_event_header.type`.
pub(crate) mod record {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const KSYMBOL: u32 = 17;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const HEADER_TRACING_DATA: u32 = 66;
    pub(crate) const HEADER_BUILD_ID: u32 = 67;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const STAT: u32 = 76;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// `perf_event_header.misc`.
pub(crate) mod misc {
    pub(crate) const CPUMODE: u16 = 7;
    /// Of lost samples: a filter left them out.
    pub(crate) const LOST_TO_FILTER: u16 = 1 << 15;
    pub(crate) const KERNEL: u16 = 1;
    pub(crate) const USER: u16 = 2;
    pub(crate) const HYPERVISOR: u16 = 3;
    pub(crate) const GUEST_KERNEL: u16 = 4;
    pub(crate) const GUEST_USER: u16 = 5;
    pub(crate) const MMAP_DATA: u16 = 1 << 13;
    pub(crate) const MMAP_BUILD_ID: u16 = 1 << 14;
    pub(crate) const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// `perf_event_attr.sample_type`.
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// `perf_event_attr.read_format`.
pub(crate) mod read_format {
    pub(crate) const ENABLED: u64 = 1;
    pub(crate) const RUNNING: u64 = 1 << 1;
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
    pub(crate) const LOST: u64 = 1 << 4;
}

/// The bits of `perf_event_attr` after `read_format`.
pub(crate) mod attr_flag {
    pub(crate) const EXCLUDE_USER: u64 = 1 << 4;
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(crate) const FREQ: u64 = 1 << 10;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
}

/// `perf_event_attr.branch_sample_type`.
pub(crate) mod branch {
    pub(crate) const USER: u64 = 1;
    pub(crate) const KERNEL: u64 = 1 << 1;
    pub(crate) const HV: u64 = 1 << 2;
    pub(crate) const ANY: u64 = 1 << 3;
    pub(crate) const CALL_STACK: u64 = 1 << 11;
    pub(crate) const HW_INDEX: u64 = 1 << 17;
    pub(crate) const COUNTERS: u64 = 1 << 19;
}

/// Bits of the header's table of features.
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u64 = 2;
    pub(crate) const OSRELEASE: u64 = 4;
    pub(crate) const ARCH: u64 = 6;
    pub(crate) const CPUDESC: u64 = 8;
    pub(crate) const CPUID: u64 = 9;
    pub(crate) const CMDLINE: u64 = 11;
    pub(crate) const EVENT_DESC: u64 = 12;
    pub(crate) const BRANCH_STACK: u64 = 15;
    pub(crate) const COMPRESSED: u64 = 27;
    pub(crate) const CPU_PMU_CAPS: u64 = 28;
    pub(crate) const PMU_CAPS: u64 = 31;
    /// simpleperf's own; system/extras, `simpleperf/record_file.h`.
    pub(crate) const SIMPLEPERF_META_INFO: u64 = 129;
    pub(crate) const SIMPLEPERF_ETM_BRANCH_LIST: u64 = 133;
    pub(crate) const BITS: u64 = 256;
}

/// `PERF_RECORD_AUXTRACE_INFO`'s types: `tools/perf/util/auxtrace.h`.
pub(crate) mod auxtrace {
    pub(crate) const INTEL_PT: u32 = 1;
    pub(crate) const INTEL_BTS: u32 = 2;
    pub(crate) const CS_ETM: u32 = 3;
    pub(crate) const ARM_SPE: u32 = 4;
}

/// `PERF_RECORD_EVENT_UPDATE` that names an event.
pub(crate) const EVENT_UPDATE_NAME: u64 = 2;

/// Bytes of a `perf_branch_entry`.
pub(crate) const BRANCH_ENTRY: usize = 24;

/// `perf_branch_entry`'s third word.
pub(crate) mod entry {
    /// Lowest bit and width of each field.
    pub(crate) const MISPREDICTED: (u32, u32) = (0, 1);
    pub(crate) const PREDICTED: (u32, u32) = (1, 1);
    pub(crate) const TYPE: (u32, u32) = (20, 4);
    pub(crate) const SPEC: (u32, u32) = (24, 2);
    pub(crate) const NEW_TYPE: (u32, u32) = (26, 4);
    pub(crate) const PRIV: (u32, u32) = (30, 3);

    pub(crate) const SPEC_WRONG_PATH: u64 = 1;
    pub(crate) const SPEC_NON_SPECULATIVE: u64 = 2;
    pub(crate) const SPEC_CORRECT_PATH: u64 = 3;

    pub(crate) const PRIV_HYPERVISOR: u64 = 3;

    pub(crate) const TYPE_CONDITIONAL: u64 = 1;
    pub(crate) const TYPE_JUMP: u64 = 2;
    pub(crate) const TYPE_INDIRECT_JUMP: u64 = 3;
    pub(crate) const TYPE_CALL: u64 = 4;
    pub(crate) const TYPE_INDIRECT_CALL: u64 = 5;
    pub(crate) const TYPE_RETURN: u64 = 6;
    pub(crate) const TYPE_SYSCALL: u64 = 7;
    pub(crate) const TYPE_SYSRET: u64 = 8;
    pub(crate) const TYPE_CONDITIONAL_CALL: u64 = 9;
    pub(crate) const TYPE_CONDITIONAL_RETURN: u64 = 10;
    pub(crate) const TYPE_ERET: u64 = 11;
    pub(crate) const TYPE_IRQ: u64 = 12;
    pub(crate) const TYPE_SERROR: u64 = 13;
    /// Not a type, but "see `new_type`".
    pub(crate) const TYPE_EXTENDED: u64 = 15;
    /// `PERF_BR_ARM64_DEBUG_EXIT`; every other new type is a way into the kernel.
    pub(crate) const NEW_TYPE_DEBUG_EXIT: u64 = 5;
}
