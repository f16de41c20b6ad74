//! What a line of `perf script` is.
//!
//! Source of the layout: Linux 6.12, tools/perf/builtin-script.c, `process_event`; LLVM 22,
//! llvm/tools/llvm-profgen/PerfReader.cpp for counts of samples that were aggregated.

use memchr::memmem;

use super::entry::{MAX_FILE, token};
use crate::input::text::{decimal, hexadecimal};

/// Bytes of a line that are kept; no hardware's sample is longer. The same whatever
/// the chunks' size, so that the outcome does not depend on it.
pub(super) const MAX_LINE: usize = 16 << 20;

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Has a branch stack, and ends a sample.
    Stack {
        /// What stands before the first entry.
        before: &'a [u8],
        /// From the first entry on.
        entries: &'a [u8],
    },
    /// A branch stack of names without addresses, as `brstacksym` prints.
    Names {
        /// What stands before the flags of the first entry.
        text: &'a [u8],
    },
    /// `PERF_RECORD_…`: what follows the underscore.
    Record(&'a [u8]),
    /// A frame of a call chain. The branch stack stands below the last one.
    Frame,
    /// An instruction between two branches, as `brstackinsn` prints.
    Instruction,
    /// Nothing but blanks.
    Empty,
    /// How many samples the next one stands for.
    Count(&'a [u8]),
    /// A comment.
    Comment,
    /// Binary data.
    Binary,
    /// Anything else: a sample's fields. Frames may follow.
    Fields(&'a [u8]),
}

impl<'a> Line<'a> {
    /// What `line`, which has no newline, is.
    pub(super) fn of(line: &'a [u8]) -> Self {
        if let Some(start) = first_entry(line) {
            let (before, entries) = line.split_at_checked(start).unwrap_or((line, &[]));
            return Self::Stack { before, entries };
        }
        let text = line.trim_ascii_end();
        match text {
            [] => Self::Empty,
            [b'#', ..] => Self::Comment,
            _ if text.iter().any(|&byte| byte < b'\t') => Self::Binary,
            _ if line.strip_suffix(b"\r").unwrap_or(line).iter().all(u8::is_ascii_digit) => {
                Self::Count(text)
            }
            _ => {
                let record = memmem::find(text, RECORD)
                    .and_then(|at| text.get(at.saturating_add(RECORD.len())..));
                if let Some(record) = record {
                    Self::Record(record)
                } else if text.starts_with(b"\t") && memmem::find(text, INSTRUCTION).is_some() {
                    Self::Instruction
                } else if text.first() == Some(&b'\t') {
                    Self::Frame
                } else if memmem::find(text, b"/-/-/").is_some() {
                    Self::Names { text }
                } else {
                    Self::Fields(text)
                }
            }
        }
    }

    /// Whether what comes after the line does not depend on what came before it.
    pub(super) fn ends_sample(self) -> bool {
        matches!(self, Self::Stack { .. } | Self::Names { .. } | Self::Record(_))
    }
}

const RECORD: &[u8] = b"PERF_RECORD_";
const INSTRUCTION: &[u8] = b"\tinsn: ";

/// Where the first entry of a branch stack begins: a token that begins with `0x` and goes on
/// with a slash or a file in parentheses.
fn first_entry(line: &[u8]) -> Option<usize> {
    // As nearly all are: blanks, perhaps the address of the sample and a blank, the entry.
    let mut rest = line.trim_ascii_start();
    if !rest.starts_with(b"0x") {
        rest = hexadecimal(rest).map_or(rest, |(_, after)| after.trim_ascii_start());
    }
    let start = line.len() - rest.len();
    if begins_entry(rest) && (start == 0 || is_blank(line, start - 1)) {
        return Some(start);
    }
    memmem::find_iter(line, b"0x")
        .find(|&at| (at == 0 || is_blank(line, at - 1)) && line.get(at..).is_some_and(begins_entry))
}

fn is_blank(line: &[u8], at: usize) -> bool {
    matches!(line.get(at), Some(b' ' | b'\t'))
}

fn begins_entry(text: &[u8]) -> bool {
    let Some(number) = text.strip_prefix(b"0x") else { return false };
    let after = hexadecimal(number).map_or(number, |(_, after)| after);
    match after {
        [b'/', ..] => true,
        // Only then is it worth looking further.
        [b' ', b'(', ..] | [b'(', ..] => {
            let near = after.get(..MAX_FILE).unwrap_or(after);
            memmem::find(near, b")/0x").is_some()
        }
        // Perhaps an entry that is damaged.
        _ => token(after).0.contains(&b'/'),
    }
}

/// What the fields of a sample say, as far as anyone asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields<'a> {
    /// Nanoseconds.
    pub(super) time: Option<u64>,
    /// The event's name.
    pub(super) event: Option<&'a [u8]>,
    /// Where the sample was taken.
    pub(super) address: Option<u64>,
}

impl<'a> Fields<'a> {
    /// The fields in `text`: time and event end with a colon, the address is the last.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut fields = Self::default();
        let mut last: &[u8] = &[];
        let has_colon = memchr::memchr(b':', text).is_some();
        for token in text.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            if token.is_empty() {
                continue;
            }
            last = token;
            if !has_colon {
                continue;
            }
            if let Some(name) = token.strip_suffix(b":") {
                match seconds(name) {
                    Some(time) => fields.time = Some(time),
                    None if !name.is_empty() => fields.event = Some(name),
                    None => {}
                }
            }
        }
        fields.address = match hexadecimal(last) {
            Some((address, [])) if last.len() >= 6 => Some(address),
            _ => None,
        };
        fields
    }
}

/// Nanoseconds of `SECONDS.FRACTION`, with up to nine digits behind the point.
fn seconds(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text)?;
    let (whole, fraction) = (text.get(..point)?, text.get(point + 1..)?);
    let nine = 9_usize.checked_sub(fraction.len())?;
    let scale = 10_u64.checked_pow(u32::try_from(nine).ok()?)?;
    let fraction = decimal(fraction)?.checked_mul(scale)?;
    decimal(whole)?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// `line` without the newline and a carriage return before it.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(line: &str) -> Option<(&str, &str)> {
        match Line::of(line.as_bytes()) {
            Line::Stack { before, entries } => {
                Some((std::str::from_utf8(before).unwrap(), std::str::from_utf8(entries).unwrap()))
            }
            _ => None,
        }
    }

    #[test]
    fn a_stack_is_found_behind_any_fields() {
        let entries = "0x10/0x20/P/-/-/0 ";
        for before in [
            "",
            " ",
            "\t",
            "          4005dc ",
            " ffffffff81000000 ",
            " ffffffff81000000 do_idle+0x10 ([kernel.kallsyms])  ",
            "swapper     0 [000]  1.5:     1000 cycles:k:  ffffffff81000000  ",
            "my 0xtool 12 0x34 (a): ",
        ] {
            assert_eq!(stack(&format!("{before}{entries}")), Some((before, entries)));
        }
        assert_eq!(
            stack(" ffff 0x10 (a b)/0x20 (c)/P/-/-/0 "),
            Some((" ffff ", "0x10 (a b)/0x20 (c)/P/-/-/0 "))
        );
        assert_eq!(stack(" ffff 0xzz/0x20/P/-/-/0"), Some((" ffff ", "0xzz/0x20/P/-/-/0")));
    }

    #[test]
    fn other_lines_are_told_apart() {
        let of = |line: &'static str| Line::of(line.as_bytes());
        assert_eq!(of("\tffffffff81000000 do_idle+0x10 ([kernel.kallsyms])"), Line::Frame);
        assert_eq!(of("\tffffffff93221e9c\tinsn: c3 \t# PRED"), Line::Instruction);
        assert_eq!(of(""), Line::Empty);
        assert_eq!(of(" \r"), Line::Empty);
        assert_eq!(of("123"), Line::Count(b"123"));
        assert_eq!(of("123\r"), Line::Count(b"123"));
        assert_eq!(of("123 "), Line::Fields(b"123"), "a thread, not a count");
        assert_eq!(of("# captured on"), Line::Comment);
        assert_eq!(of("a\0b"), Line::Binary);
        assert_eq!(of(" ffffffff81000000 "), Line::Fields(b" ffffffff81000000"));
        assert_eq!(of("a PERF_RECORD_LOST lost 5"), Line::Record(b"LOST lost 5"));
        assert!(matches!(of("  do_idle+0x10/do_idle+0x20/P/-/-/0 "), Line::Names { .. }));
    }

    #[test]
    fn fields_are_read_where_they_are() {
        let text = b"swapper     0 [000]  12.000345:     1000 cycles:k:  ffffffff81000000 ";
        let expected = Fields {
            time: Some(12_000_345_000),
            event: Some(b"cycles:k"),
            address: Some(0xffff_ffff_8100_0000),
        };
        assert_eq!(Fields::of(text), expected);
        assert_eq!(Fields::of(b""), Fields::default());
        assert_eq!(Fields::of(b"1.123456789:").time, Some(1_123_456_789));
        for text in ["99999999999999.0:", "1.1234567890:", ".:", "1.:", ":"] {
            assert_eq!(Fields::of(text.as_bytes()).time, None, "{text}");
        }
    }
}
