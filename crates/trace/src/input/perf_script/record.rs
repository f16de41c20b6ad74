//! Lines of `perf script --show-mmap-events` and its relatives.
//!
//! Source of the format: Linux 6.12, tools/perf/util/event.c, `perf_event__fprintf_mmap`,
//! `perf_event__fprintf_mmap2` and `perf_event__fprintf_lost`.

use memchr::memmem;
use mepof_address::{BuildId, RuntimeAddress};

use crate::input::perf_data::module_name;
use crate::input::text::{decimal, hexadecimal};
use crate::{Mapping, Space};

/// A binary that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) name: String,
    pub(super) space: Space,
    pub(super) build_id: Option<BuildId>,
    pub(super) mapping: Mapping,
}

/// What a record line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A mapping with code.
    Mapped(Mapped),
    /// So many records were lost.
    Lost(u64),
    /// Nothing of interest.
    Other,
}

/// What stands behind `PERF_RECORD_`; `None` if that cannot be read.
pub(super) fn record(text: &[u8]) -> Option<Record> {
    let name = text.split(|&byte| byte == b' ').next()?;
    match name {
        b"MMAP" | b"MMAP2" => mapped(text),
        b"LOST" => {
            let at = memmem::find(text, b" lost ")?;
            Some(Record::Lost(decimal(text.get(at + 6..)?.trim_ascii())?))
        }
        _ => Some(Record::Other),
    }
}

/// `MMAP PID/TID: [START(SIZE) @ OFFSET]: x NAME`, and for MMAP2
/// `[START(SIZE) @ OFFSET MAJOR:MINOR INODE GENERATION]: r-xp NAME` or
/// `[START(SIZE) @ OFFSET <BUILD-ID>]: r-xp NAME`.
fn mapped(text: &[u8]) -> Option<Record> {
    let process = memmem::find(text, b": [")?;
    let (head, rest) = (text.get(..process)?, text.get(process + 3..)?);
    let of_no_process = memmem::find(head, b" -1/").is_some();
    let (start, rest) = number(rest)?;
    let (size, rest) = number(rest.strip_prefix(b"(")?)?;
    let (offset, rest) = number(rest.strip_prefix(b") @ ")?)?;
    let end = memmem::find(rest, b"]: ")?;
    let (inode, rest) = (rest.get(..end)?, rest.get(end + 3..)?);
    let blank = memchr::memchr(b' ', rest)?;
    let (protection, name) = (rest.get(..blank)?, rest.get(blank + 1..)?);
    let build_id = inode
        .strip_prefix(b" <")
        .and_then(|id| id.strip_suffix(b">"))
        .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    let name = String::from_utf8_lossy(name).into_owned();
    let of_kernel = name.starts_with('[') && !matches!(&*name, "[vdso]" | "[vsyscall]" | "[heap]");
    let space = match of_kernel {
        true if name.starts_with("[guest.") => Space::GuestKernel,
        true => Space::Kernel,
        false if module_name(&name).is_some() && (of_no_process || start >> 63 == 1) => {
            Space::Kernel
        }
        false => Space::User,
    };
    // Of the kernel and its modules, perf writes no protection beside a build-id.
    if name.is_empty() || (space == Space::User && !protection.contains(&b'x')) {
        return Some(Record::Other);
    }
    let addresses = RuntimeAddress(start)..RuntimeAddress(start.saturating_add(size));
    let mapping = Mapping { addresses, offset, section: None };
    Some(Record::Mapped(Mapped { name, space, build_id, mapping }))
}

/// A number as C's `%#lx` prints it: zero has no prefix.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    match text.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits),
        None => Some((0, text.strip_prefix(b"0")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(text: &str) -> Mapped {
        match record(text.as_bytes()) {
            Some(Record::Mapped(mapped)) => mapped,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_kernel_says_where_its_reference_symbol_is() {
        let kernel = mapped(
            "MMAP -1/0: [0xffffffff81e00000(0x3e8fa000) @ 0xffffffff81e00000]: x \
             [kernel.kallsyms]_text",
        );
        assert_eq!(kernel.name, "[kernel.kallsyms]_text");
        assert_eq!(kernel.space, Space::Kernel);
        assert_eq!(kernel.mapping.offset, 0xffff_ffff_81e0_0000);
        assert_eq!(kernel.mapping.addresses.end.0, 0xffff_ffff_c06f_a000);
    }

    #[test]
    fn a_file_has_an_inode_or_a_build_id() {
        let text = "MMAP2 7/7: [0x7fd4efb57000(0x204000) @ 0 08:04 19532229 3585508847]: r-xp \
                    /usr/lib/a b.so";
        let file = mapped(text);
        assert_eq!(
            (&*file.name, file.space, file.mapping.offset),
            ("/usr/lib/a b.so", Space::User, 0)
        );
        let file = mapped("MMAP2 7/7: [0x7000(0x1000) @ 0x2000 <abcdef01>]: r-xp //anon");
        assert_eq!(file.build_id, "abcdef01".parse().ok());
        let guest =
            mapped("MMAP 0/0: [0xffffffff81000000(0x10) @ 0]: x [guest.kernel.kallsyms]_text");
        assert_eq!(guest.space, Space::GuestKernel);
        assert_eq!(
            record(b"MMAP2 7/7: [0x7000(0x1000) @ 0x2000 08:04 1 2]: r--p /a"),
            Some(Record::Other)
        );
    }

    #[test]
    fn beside_a_build_id_the_kernel_and_its_modules_have_no_protection() {
        let kernel = mapped(
            "MMAP2 -1/0: [0xffffffff81000000(0x1203000) @ 0xffffffff81000000 <abcdef01>]: ---p \
             [kernel.kallsyms]_text",
        );
        assert_eq!((kernel.space, kernel.build_id), (Space::Kernel, "abcdef01".parse().ok()));
        for suffix in ["", ".gz", ".xz", ".zst"] {
            let module = mapped(&format!(
                "MMAP2 -1/0: [0xffffffffc0a00000(0x9000) @ 0 <abcdef01>]: ---p \
                 /lib/modules/6.12.7/kernel/net/nf_tables.ko{suffix}"
            ));
            assert_eq!(module.space, Space::Kernel, "{suffix}");
        }
        // A 32-bit Arm kernel's modules lie below it.
        let low = mapped("MMAP -1/0: [0xbf000000(0x9000) @ 0]: x /lib/modules/6.12.7/nf_tables.ko");
        assert_eq!(low.space, Space::Kernel);
        let data = "MMAP2 7/7: [0x7000(0x1000) @ 0x2000 <abcdef01>]: r--p /usr/lib/a.so";
        assert_eq!(record(data.as_bytes()), Some(Record::Other));
    }

    #[test]
    fn lost_records_are_counted() {
        assert_eq!(record(b"LOST lost 41"), Some(Record::Lost(41)));
        assert_eq!(record(b"COMM exec: a:1/1"), Some(Record::Other));
    }

    #[test]
    fn damaged_records_are_refused() {
        for text in ["MMAP", "MMAP 1/1: [", "MMAP 1/1: [0x1(0x2) @ 0x3]: x", "LOST lost x", "LOST"]
        {
            assert_eq!(record(text.as_bytes()), None, "{text}");
        }
    }
}
