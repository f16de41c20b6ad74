//! Branch stacks of names: `FROM+0x1/TO+0x2/P/-/-/CYCLES/TYPE/SPECULATION`.
//!
//! Source of the format: Linux 6.12, tools/perf/builtin-script.c,
//! `perf_sample__fprintf_brstacksym`, and tools/perf/util/symbol_fprintf.c. An address without a
//! symbol is `[unknown]`; with `-F +dso` each address is followed by `(file)`, since 6.2 or so
//! after a blank. What stands before the first name is not set off: the sample's address and its
//! symbol run into it.

use memchr::{memchr, memchr2_iter, memmem};
use mepof_address::RuntimeAddress;

use super::entry::{Entry, MAX_FILE, flags};
use super::symbol_table::{NamedSymbol, SymbolAddresses};
use crate::OTHER_SIDE;
use crate::input::text::hexadecimal;
use crate::{BranchEntry, Cause, Space};

const UNKNOWN: &[u8] = b"[unknown]";
/// Bytes before the first offset of a line in which a name is looked for: a kernel's symbols have
/// up to 512.
const MAX_NAME: usize = 600;

/// Where a branch began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side<'a> {
    name: &'a [u8],      // with what stands before it
    offset: Option<u64>, // none, if it is unknown
    file: &'a [u8],      // empty, if it is not printed
}

/// The side that `text` begins with, and what follows it, which begins with a slash.
fn side(text: &[u8]) -> Option<(Side<'_>, &[u8])> {
    for at in memchr2_iter(b'+', b'[', text) {
        let (name, rest) = text.split_at_checked(at)?;
        let (offset, after) = match (rest.strip_prefix(UNKNOWN), rest.strip_prefix(b"+0x")) {
            (Some(after), _) => (None, after),
            (_, Some(digits)) => match hexadecimal(digits) {
                Some((offset, after)) => (Some(offset), after),
                None => continue,
            },
            _ => continue,
        };
        if let Some((file, rest)) = file(after) {
            return Some((Side { name, offset, file }, rest));
        }
    }
    None
}

/// The file that `text` begins with, if any, and what follows, if that is a slash.
fn file(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.starts_with(b"/") {
        return Some((&[], text));
    }
    let inside = text.strip_prefix(b" (").or_else(|| text.strip_prefix(b"("))?;
    let near = inside.get(..MAX_FILE).unwrap_or(inside);
    let end = memmem::find(near, b")/")?;
    let file = inside.get(..end)?;
    // The sample's own symbol has a file as well; the first name of the stack follows it.
    let behind = memchr(b')', file).and_then(|first| file.get(first..)).unwrap_or_default();
    if memmem::find(behind, b"+0x").is_some() || memmem::find(behind, UNKNOWN).is_some() {
        return None;
    }
    Some((file, inside.get(end + 1..)?))
}

/// Whether `text` begins as the flags of an entry do.
fn begins_flags(text: &[u8]) -> bool {
    matches!(
        text,
        [b'/', b'P' | b'M' | b'-', b'/', b'X' | b'-', b'/', ..]
            | [b'/', b'P' | b'M' | b'-', b'N', b'/', b'X' | b'-', b'/', ..]
    )
}

/// Says where names lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) symbols: &'a dyn SymbolAddresses,
    pub(super) space: Space,
}

/// One entry of a stack of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedEntry {
    pub(super) entry: Entry,
    /// Why neither of its sides has an address. If one has, the other one is [`OTHER_SIDE`].
    pub(super) missing: Option<Cause>,
    /// How many of its sides lie beyond the end of their symbols.
    pub(super) beyond: u64,
}

impl Names<'_> {
    /// The first entry of the line that `text` is, what stands before it, and what follows it.
    pub(super) fn first_entry<'t>(
        &self,
        text: &'t [u8],
    ) -> Option<(&'t [u8], NamedEntry, &'t [u8])> {
        let (mut from, rest) = side(text)?;
        let (start, doubt) = match from.offset {
            Some(_) => self.first_name(from.name),
            None => (from.name.len(), None),
        };
        let (before, name) = from.name.split_at_checked(start)?;
        from.name = name;
        let from = doubt.map_or_else(|| self.address(from), Err);
        self.entry_from(from, rest).map(|(entry, rest)| (before, entry, rest))
    }

    /// The entry that `text` begins with, and what follows it.
    pub(super) fn entry<'t>(&self, text: &'t [u8]) -> Option<(NamedEntry, &'t [u8])> {
        let (from, rest) = side(text)?;
        self.entry_from(self.address(from), rest)
    }

    fn entry_from<'t>(
        &self,
        from: Result<u64, Missing>,
        rest: &'t [u8],
    ) -> Option<(NamedEntry, &'t [u8])> {
        let (to, rest) = side(rest.strip_prefix(b"/")?)?;
        // Or else it is that of another entry.
        if memmem::find(to.name, b"/-/").is_some() || !begins_flags(rest) {
            return None;
        }
        let to = self.address(to);
        let address = |side: &Result<u64, Missing>| {
            side.as_ref().map_or(OTHER_SIDE, |&address| RuntimeAddress(address))
        };
        let branch =
            BranchEntry { from: address(&from), to: address(&to), ..BranchEntry::default() };
        let beyond =
            [&from, &to].iter().filter(|side| matches!(side, Err(Missing::Beyond))).count();
        let missing = match (from, to) {
            (Err(Missing::Ambiguous), Err(_)) | (Err(_), Err(Missing::Ambiguous)) => {
                Some(Cause::Ambiguous)
            }
            (Err(_), Err(_)) => Some(Cause::OutsideBinary),
            _ => None,
        };
        let (entry, rest) = flags(branch, rest)?;
        Some((NamedEntry { entry, missing, beyond: beyond as u64 }, rest))
    }

    fn address(&self, side: Side<'_>) -> Result<u64, Missing> {
        let offset = side.offset.ok_or(Missing::Unknown)?;
        if self.is_elsewhere(side.file) {
            return Err(Missing::Unknown);
        }
        match self.symbols.symbol(side.name) {
            None => Err(Missing::Unknown),
            Some(NamedSymbol::Several) => Err(Missing::Ambiguous),
            Some(NamedSymbol::One { start, size }) if offset == 0 || offset < size => {
                Ok(start.0.wrapping_add(offset))
            }
            Some(_) => Err(Missing::Beyond),
        }
    }

    /// Whether `file` is of the side, user or kernel, that is not asked for.
    fn is_elsewhere(&self, file: &[u8]) -> bool {
        let of_kernel = file.starts_with(b"[kernel") || file.starts_with(b"[guest.kernel");
        if self.space == Space::User {
            return of_kernel;
        }
        let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let has = |part: &[u8]| memmem::find(name, part).is_some();
        let is_path =
            file.starts_with(b"/") && !has(b"vmlinux") && !has(b".ko") && name != b"kcore";
        is_path || matches!(file, b"[vdso]" | b"[vsyscall]")
    }

    /// Where the name at the end of `text` begins: `text` is the beginning of a line. If that is
    /// not known, the second part says why.
    fn first_name(&self, text: &[u8]) -> (usize, Option<Missing>) {
        let known = |name: &[u8]| self.symbols.symbol(name).is_some();
        let line = text.len() - text.trim_ascii_start().len();
        let token = text.iter().rposition(|&byte| is_blank(byte)).map_or(0, |blank| blank + 1);
        // Nothing before it, or a kernel's address.
        for start in [line, token.saturating_add(16)] {
            let (before, name) = text.split_at_checked(start).unwrap_or_default();
            if known(name) && (start == line || is_address(before)) {
                return (start, None);
            }
        }
        let from = text.len().saturating_sub(MAX_NAME).max(line);
        let mut found = None;
        for start in from..text.len() {
            let Some((before, name)) = text.split_at_checked(start) else { continue };
            if known(name) && may_stand_before(before, known) && found.replace(start).is_some() {
                return (token, Some(Missing::Ambiguous));
            }
        }
        found.map_or((token, Some(Missing::Unknown)), |start| (start, None))
    }
}

/// Why a side has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Unknown,
    Ambiguous,
    Beyond,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether a name can begin behind `before`: behind a blank, a file, `[unknown]`, an address, or
/// the sample's own symbol, with its offset or without.
fn may_stand_before(before: &[u8], known: impl Fn(&[u8]) -> bool) -> bool {
    if matches!(before.last(), None | Some(b' ' | b'\t' | b')' | b']')) || is_address(before) {
        return true;
    }
    let token = before.rsplit(|&byte| is_blank(byte)).next().unwrap_or_default();
    let symbol = memmem::rfind(token, b"+0x").map_or(token, |plus| {
        let (symbol, offset) = token.split_at_checked(plus).unwrap_or((token, &[]));
        let digits = offset.get(3..).unwrap_or_default();
        let is_offset = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        if is_offset { symbol } else { token }
    });
    token.len() < before.len() && known(symbol)
}

/// Whether `before` ends with an address, which perf sets into 16 columns, one or two blanks
/// behind what stands before it.
fn is_address(before: &[u8]) -> bool {
    let columns = before.iter().rev();
    let digits = columns.clone().take_while(|byte| byte.is_ascii_hexdigit()).take(17).count();
    let blanks = columns.skip(digits).take_while(|byte| is_blank(**byte)).take(18).count();
    match digits {
        0 | 17 => false,
        16 => true,
        digits => matches!(digits + blanks, 17 | 18),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::perf_script::SymbolTable;

    const ONE: u64 = 0x1000;
    const TWO: u64 = 0x2000;
    const ADD: u64 = 0x3000;
    const NEW: u64 = 0x4000;

    /// `one`, `two` and a few more of 0x100 bytes; `both` is ambiguous.
    fn table() -> SymbolTable {
        let mut table = SymbolTable::default();
        let names = ["one", "two", "add", "operator new(unsigned long)", "both", "both"];
        for (name, start) in names.into_iter().zip([ONE, TWO, ADD, NEW, 0x5000, 0x6000]) {
            table.add(name.as_bytes(), RuntimeAddress(start), 0x100);
        }
        table
    }

    type Read = Option<(String, u64, u64, Option<Cause>, u64, String)>;

    fn read(text: &str, space: Space) -> Read {
        let symbols = table();
        let names = Names { symbols: &symbols, space };
        let (before, named, rest) = names.first_entry(text.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (from, to) = match named.entry {
            Entry::Taken(branch) => (branch.from.0, branch.to.0),
            Entry::NotTaken => (0, 0),
        };
        Some((text(before), from, to, named.missing, named.beyond, text(rest)))
    }

    fn read_all(before: &str, entry: &str, space: Space) -> (u64, u64, Option<Cause>, u64) {
        let (found, from, to, missing, beyond, rest) =
            read(&format!("{before}{entry}"), space).unwrap_or_else(|| panic!("{before}{entry}"));
        assert_eq!((&*found, rest.trim()), (before, ""), "{before}{entry}");
        (from, to, missing, beyond)
    }

    #[test]
    fn the_first_name_is_found_behind_whatever_perf_prints_before_it() {
        for before in [
            "",
            " ",
            " ffffffff81000010",
            " ffffffff81000010 ",
            " ffffffff81000010 one",
            " ffffffff81000010 one+0x3e",
            " ffffffff81000010 [unknown]",
            " ffffffff81000010 elsewhere ([nf_tables])",
            " ffffffff81000010 [unknown] ([unknown])",
            " ffffffff81000010 one+0x10 ([kernel.kallsyms])",
            "           401000",
            "swapper 0 [000] 1.5: 1 cycles:k:            401000",
            "swapper 0 [000] 1.5: 1 cycles:k:  ffffffff81000010 two",
        ] {
            for (name, from) in [("two", TWO), ("add", ADD), ("operator new(unsigned long)", NEW)] {
                let entry = format!("{name}+0x10/one+0x0/P/-/-/0/ ");
                let found = read_all(before, &entry, Space::Kernel);
                assert_eq!(found, (from + 0x10, ONE, None, 0), "{before}{entry}");
            }
            let found = read_all(before, "[unknown]/one+0x0/P/-/-/0/", Space::Kernel);
            assert_eq!(found, (1, ONE, None, 0), "{before}");
        }
    }

    #[test]
    fn a_first_name_that_may_begin_at_two_places_is_ambiguous() {
        let mut symbols = table();
        for name in ["onea", "dd"] {
            symbols.add(name.as_bytes(), RuntimeAddress(0x7000), 0x100);
        }
        let names = Names { symbols: &symbols, space: Space::Kernel };
        let line = b" ffffffff81000010 oneadd+0x10/[unknown]/P/-/-/0/ ";
        let (_, named, _) = names.first_entry(line).unwrap();
        assert_eq!(named.missing, Some(Cause::Ambiguous));
    }

    #[test]
    fn a_side_without_an_address_is_the_other_side() {
        for (entry, expected) in [
            ("one+0x10/[unknown]/P/-/-/0/", (ONE + 0x10, 1, None, 0)),
            ("both+0x1/one+0x0/P/-/-/0/", (1, ONE, None, 0)),
            ("both+0x1/nobody+0x0/P/-/-/0/", (1, 1, Some(Cause::Ambiguous), 0)),
            ("nobody+0x1/both+0x0/P/-/-/0/", (1, 1, Some(Cause::Ambiguous), 0)),
            ("nobody+0x1/[unknown]/P/-/-/0/", (1, 1, Some(Cause::OutsideBinary), 0)),
            ("one+0xff/one+0x100/P/-/-/0/", (ONE + 0xff, 1, None, 1)),
            ("one+0xffffffffffffffff/two+0x100/M/-/-/0/", (1, 1, Some(Cause::OutsideBinary), 2)),
            ("one+0x1/two+0x2/PN/-/-/0/COND/-", (0, 0, None, 0)),
        ] {
            assert_eq!(read_all(" ", entry, Space::Kernel), expected, "{entry}");
        }
    }

    #[test]
    fn a_file_tells_user_code_from_the_kernel() {
        let outside = (1, 1, Some(Cause::OutsideBinary), 0);
        let inside = (ONE + 1, TWO, None, 0);
        for (file, kernel, user) in [
            ("[kernel.kallsyms]", inside, outside),
            ("[kernel.vmlinux]", inside, outside),
            ("[nf_tables]", inside, inside),
            ("/boot/vmlinux-6.12 (a)", inside, inside),
            ("/proc/kcore", inside, inside),
            ("/lib/modules/6.12/x.ko.xz", inside, inside),
            ("/usr/bin/a (b)", outside, inside),
            ("/usr/bin/a+0x12", outside, inside),
            ("[vdso]", outside, inside),
        ] {
            for blank in ["", " "] {
                let entry = format!("one+0x1{blank}({file})/two+0x0{blank}({file})/P/-/-/0/");
                assert_eq!(read_all(" ", &entry, Space::Kernel), kernel, "{entry}");
                assert_eq!(read_all(" ", &entry, Space::User), user, "{entry}");
            }
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "one",
            "one+0x",
            "one+0x1",
            "one+0x1/",
            "one+0x1/two+0x2",
            "one+0x1/two+0x2/",
            "one+0x1/two+0x2/Q/-/-/0",
            "one+0x1/two+0x2/P-/-/0",
            "one+0xg/two+0x2/P/-/-/0",
            "one+0x/two+0x2/P/-/-/0",
            "one+0x1/two+0xg/P/-/-/0 one+0x1/two+0x2/P/-/-/0",
            "one+0x1/two/P/-/-/0 one+0x1/two+0x2/P/-/-/0",
            "one+0x1 (a/two+0x2/P/-/-/0",
            "one+0x00000000000000001/two+0x2/P/-/-/0",
            "one+1/two+2/P/-/-/0",
        ] {
            assert_eq!(read(text, Space::Kernel), None, "{text}");
        }
    }
}
