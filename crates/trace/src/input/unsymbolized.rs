//! llvm-profgen's unsymbolized text.
//!
//! The number of fall-through ranges, a line `FIRST-LAST:COUNT` for each, the number of
//! branches, a line `FROM->TO:COUNT` for each; addresses are hexadecimal, counts decimal. In a
//! context-sensitive profile this repeats under lines `[CONTEXT]`; counts of all contexts add
//! up. Source of the format: LLVM 22, llvm/tools/llvm-profgen/PerfReader.cpp,
//! `UnsymbolizedProfileReader::readSampleCounters`.

use std::io::Read;
use std::path::Path;

use mepof_address::RuntimeAddress;

use super::lines::each_line;
use super::options::{Options, open};
use super::text::{decimal, hexadecimal};
use crate::{Addressing, Cause, Facts, Sink, TraceError};

/// Reads the file at `path`.
pub fn read<S: Sink>(
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    parse(open(path)?, path, options, sink)
}

/// Reads `input`; `path` is for errors.
pub fn parse<R: Read, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let mut facts = Facts { format: "unsymbolized text".to_owned(), ..Facts::default() };
    let mut section = Section::default();
    let mut first_malformed = None;
    each_line(input, path, options, |text, offset| {
        match Line::of(text) {
            Some(Line::Empty) => {}
            Some(Line::Context) => section.contexts += 1,
            Some(Line::Number(number)) => section.begin(number),
            Some(Line::Range { first, last, .. }) if first > last => {
                section.line();
                facts.samples.drop(Cause::InvertedRange, 1);
            }
            Some(Line::Range { first, last, count }) => {
                section.line();
                section.ranges.add(first, last);
                sink.range(RuntimeAddress(first), RuntimeAddress(last), count);
                facts.samples.used += 1;
            }
            Some(Line::Branch { from, to, count }) => {
                section.line();
                section.targets.add(to, to);
                sink.branch(RuntimeAddress(from), RuntimeAddress(to), count);
                facts.samples.used += 1;
                facts.entries.used = facts.entries.used.saturating_add(count);
            }
            None => {
                section.line();
                facts.samples.drop(Cause::Malformed, 1);
                first_malformed.get_or_insert(offset);
            }
        }
        sink.distinct()
    })?;
    if facts.samples.used == 0 {
        let what = "this is not a line of llvm-profgen's unsymbolized text".to_owned();
        return Err(match first_malformed {
            Some(offset) => TraceError::Corrupt { path: path.to_owned(), offset, what },
            None => TraceError::Unsupported {
                path: path.to_owned(),
                what: "it has no branches and no ranges".to_owned(),
            },
        });
    }
    section.say(&mut facts);
    Ok(facts)
}

/// What the lines so far say of the whole.
#[derive(Debug, Default)]
struct Section {
    missing: u64,    // lines that the last number still promises
    disagrees: bool, // whether a number was wrong
    contexts: u64,
    ranges: Bounds,
    targets: Bounds,
}

/// The lowest and the highest of some addresses.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds(Option<(u64, u64)>);

impl Bounds {
    fn add(&mut self, low: u64, high: u64) {
        let (lowest, highest) = self.0.unwrap_or((low, high));
        self.0 = Some((lowest.min(low), highest.max(high)));
    }
}

impl Section {
    fn begin(&mut self, lines: u64) {
        self.disagrees |= self.missing > 0;
        self.missing = lines;
    }

    fn line(&mut self) {
        match self.missing.checked_sub(1) {
            Some(rest) => self.missing = rest,
            None => self.disagrees = true,
        }
    }

    fn say(self, facts: &mut Facts) {
        // Sources may lie outside of the binary, and are then no guide.
        let (lowest, highest) = self.ranges.0.or(self.targets.0).unwrap_or_default();
        facts.addressing = Addressing::ImageOrTextOffset { lowest, highest };
        if self.contexts > 0 {
            let contexts = self.contexts;
            facts.notes.push(format!("counts of {contexts} calling contexts were added up"));
        }
        if self.missing > 0 {
            facts.samples.drop(Cause::Truncated, self.missing);
        }
        if self.disagrees {
            facts.notes.push("the text claims another number of lines than it has".to_owned());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Empty,
    Context,
    Number(u64),
    Range { first: u64, last: u64, count: u64 },
    Branch { from: u64, to: u64, count: u64 },
}

impl Line {
    fn of(text: &[u8]) -> Option<Self> {
        match text {
            [] => return Some(Self::Empty),
            [b'[', .., b']'] => return Some(Self::Context),
            _ if text.iter().all(u8::is_ascii_digit) => return decimal(text).map(Self::Number),
            _ => {}
        }
        let (one, rest) = address(text)?;
        let rest = rest.strip_prefix(b"-")?;
        let branch = rest.strip_prefix(b">");
        let (another, rest) = address(branch.unwrap_or(rest))?;
        let count = decimal(rest.strip_prefix(b":")?)?;
        Some(match branch {
            Some(_) => Self::Branch { from: one, to: another, count },
            None => Self::Range { first: one, last: another, count },
        })
    }
}

fn address(text: &[u8]) -> Option<(u64, &[u8])> {
    hexadecimal(text.strip_prefix(b"0x").unwrap_or(text))
}

/// Whether `line` is one with an address, as [`parse`] takes it.
pub(super) fn is_counted(line: &[u8]) -> bool {
    matches!(Line::of(line.trim_ascii()), Some(Line::Range { .. } | Line::Branch { .. }))
}
