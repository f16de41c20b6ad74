//! Entries of a branch stack: `0xFROM/0xTO/P/-/-/CYCLES/TYPE/SPECULATION`.
//!
//! Source of the format: Linux 6.12, tools/perf/builtin-script.c,
//! `perf_sample__fprintf_brstack` and `print_bstack_flags`; type and speculation are printed
//! since 6.1 or so, a second letter (`PN`: not taken) since 6.13. With `-F +dso` each address
//! is followed by ` (file)`.

use mepof_address::RuntimeAddress;

use crate::input::text::{decimal_digits, hexadecimal};
use crate::{BranchEntry, BranchKind, Speculation};

/// Linux's PATH_MAX.
pub(super) const MAX_FILE: usize = 4096;

/// What one entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A branch that was taken.
    Taken(BranchEntry),
    /// A conditional branch that fell through: a recorder of instructions, not of branches,
    /// lists those too.
    NotTaken,
}

/// The entry that `text`, which begins with `0x`, begins with, and what follows it.
pub(super) fn entry(text: &[u8]) -> Option<(Entry, &[u8])> {
    let (from, rest) = hexadecimal(text.strip_prefix(b"0x")?)?;
    let (to, rest) = match rest.strip_prefix(b"/0x") {
        Some(to) => hexadecimal(to)?,
        None => hexadecimal(past_parenthesis(rest)?.strip_prefix(b"/0x")?)?,
    };
    let (from, to) = (RuntimeAddress(from), RuntimeAddress(to));
    let branch = BranchEntry { from, to, ..BranchEntry::default() };
    match rest {
        [b' ', b'(', ..] | [b'(', ..] => flags(branch, past_parenthesis(rest)?),
        _ => flags(branch, rest),
    }
}

/// What follows ` (file)`, which stands before a slash; `file` may have blanks and parentheses.
fn past_parenthesis(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b" (").or_else(|| text.strip_prefix(b"("))?;
    let near = inside.get(..MAX_FILE).unwrap_or(inside);
    let end = memchr::memmem::find(near, b")/")?;
    inside.get(end + 1..)
}

/// `branch` with what the flags before the next blank say, and what follows them.
pub(super) fn flags(mut branch: BranchEntry, text: &[u8]) -> Option<(Entry, &[u8])> {
    const SLASHES: u64 = u64::from_le_bytes([b'/', 0, b'/', 0, b'/', 0, b'/', 0]);
    const AT_SLASHES: u64 = 0x00ff_00ff_00ff_00ff;
    if let Some((&characters, rest)) = text.split_first_chunk::<8>() {
        // As nearly all are: `/P/-/-/` and cycles.
        let word = u64::from_le_bytes(characters);
        if word & AT_SLASHES == SLASHES {
            branch.mispredicted = match characters {
                [_, b'P', ..] => Some(false),
                [_, b'M', ..] => Some(true),
                _ => None,
            };
            // The cycles, at most four digits, and neither type nor speculation.
            if let Some((&characters, _)) = rest.split_first_chunk::<8>() {
                let word = u64::from_le_bytes(characters);
                let digits = decimal_digits(word);
                let after = word.checked_shr(8 * digits).unwrap_or_default();
                let skipped = match after.to_le_bytes() {
                    [b' ', ..] => Some(digits),
                    [b'/', b'/', b'-', b' ', ..] => Some(digits + 3),
                    _ => None,
                };
                if let Some(skipped) = skipped {
                    return Some((Entry::Taken(branch), rest.get(skipped as usize..)?));
                }
            }
            let (token, rest) = token(rest);
            let mut fields = token.split(|&byte| byte == b'/').skip(1);
            kind_and_speculation(&mut branch, &mut fields);
            return Some((Entry::Taken(branch), rest));
        }
    }
    let (token, rest) = token(text);
    let mut fields = token.split(|&byte| byte == b'/');
    if fields.next() != Some(b"") {
        return None; // the address went on
    }
    let prediction = fields.next().unwrap_or_default();
    branch.mispredicted = match prediction {
        [b'P', ..] => Some(false),
        [b'M', ..] => Some(true),
        _ => None,
    };
    let mut fields = fields.skip(3); // transaction, abort, cycles
    kind_and_speculation(&mut branch, &mut fields);
    let entry = if prediction.contains(&b'N') { Entry::NotTaken } else { Entry::Taken(branch) };
    Some((entry, rest))
}

/// The characters up to the next blank, and the rest.
pub(super) fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr2(b' ', b'\t', text).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

/// Names: Linux 6.12, tools/perf/util/branch.c.
fn kind_and_speculation<'a>(branch: &mut BranchEntry, fields: &mut impl Iterator<Item = &'a [u8]>) {
    branch.kind = match fields.next().unwrap_or_default() {
        b"COND" => BranchKind::Conditional,
        b"UNCOND" | b"IND" => BranchKind::Jump,
        b"CALL" | b"IND_CALL" | b"COND_CALL" => BranchKind::Call,
        b"RET" | b"COND_RET" => BranchKind::Return,
        b"SYSCALL" | b"IRQ" | b"SERROR" | b"FAULT_ALGN" | b"FAULT_DATA" | b"FAULT_INST" => {
            BranchKind::Entry
        }
        b"SYSRET" | b"ERET" => BranchKind::Exit,
        _ => BranchKind::Unknown,
    };
    let speculation = fields.next().unwrap_or_default();
    branch.speculation = match speculation.trim_ascii_end() {
        b"SPEC_WRONG_PATH" => Speculation::WrongPath,
        b"NON_SPEC_CORRECT_PATH" | b"SPEC_CORRECT_PATH" => Speculation::Correct,
        _ => Speculation::Unknown,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Option<BranchEntry> {
        match entry(text.as_bytes())? {
            (Entry::Taken(branch), rest) if rest.is_empty() || rest.starts_with(b" ") => {
                Some(branch)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_entry_of_old_perf_has_no_type() {
        let branch = taken("0xffffffff81000010/0xffffffff81000020/P/-/-/0 ").unwrap();
        assert_eq!(branch.from, RuntimeAddress(0xffff_ffff_8100_0010));
        assert_eq!(branch.to, RuntimeAddress(0xffff_ffff_8100_0020));
        assert_eq!(branch.mispredicted, Some(false));
        assert_eq!(taken("0x10/0x20/M/X/A/123").unwrap().mispredicted, Some(true));
        assert_eq!(taken("0x10/0x20/-/-/-/0").unwrap().mispredicted, None);
    }

    #[test]
    fn type_and_speculation_are_read() {
        let branch = taken("0x10/0x20/P/-/-/1/COND/SPEC_WRONG_PATH ").unwrap();
        assert_eq!(branch.kind, BranchKind::Conditional);
        assert_eq!(branch.speculation, Speculation::WrongPath);
        let branch = taken("0x10/0x20/P/-/-/12//NON_SPEC_CORRECT_PATH").unwrap();
        assert_eq!(branch.kind, BranchKind::Unknown);
        assert_eq!(branch.speculation, Speculation::Correct);
        assert_eq!(taken("0x10/0x20/P/-/-/1/RET/-").unwrap().kind, BranchKind::Return);
    }

    #[test]
    fn a_file_after_each_address_is_skipped() {
        let text = "0x10 ([kernel.kallsyms])/0x20 (/opt/a (b) c)/M/-/-/0 0x30/0x40/P/-/-/0";
        let branch = taken(text).unwrap();
        assert_eq!((branch.from.0, branch.to.0), (0x10, 0x20));
        assert_eq!(branch.mispredicted, Some(true));
    }

    #[test]
    fn a_branch_that_fell_through_is_told_apart() {
        assert_eq!(entry(b"0x10/0x20/PN/-/-/0/COND/-").unwrap().0, Entry::NotTaken);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "0x",
            "0x10",
            "0x10/",
            "0x10/20/P/-/-/0",
            "0x/0x20/P/-/-/0",
            "0x10/0x/P/-/-/0",
            "0x10/0xg/P/-/-/0",
            "0x10/0x20g/P/-/-/0",
            "0x00000000000000010/0x20/P/-/-/0",
            "0x10/0x00000000000000020/P/-/-/0",
            "0x10 (a/0x20/P/-/-/0",
            "10/20",
        ] {
            assert_eq!(entry(text.as_bytes()), None, "{text}");
        }
    }
}
