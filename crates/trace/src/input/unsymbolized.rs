//! llvm-profgen's unsymbolized text, and AutoFDO's.
//!
//! The number of fall-through ranges, a line `FIRST-LAST:COUNT` for each, the number of
//! branches, a line `FROM->TO:COUNT` for each; addresses are hexadecimal, counts decimal. In a
//! context-sensitive profile this repeats under lines `[CONTEXT]`; counts of all contexts add
//! up. Source of the format: LLVM 22, llvm/tools/llvm-profgen/PerfReader.cpp,
//! `UnsymbolizedProfileReader::readSampleCounters`.
//!
//! AutoFDO's text (`create_llvm_prof --profiler=text`), which `simpleperf inject --output autofdo`
//! writes, has the number of sampled addresses and a line `ADDRESS:COUNT` for each before the
//! branches; a target outside of the binary is 0. The comments `// build_id: 0xID` and `// PATH`
//! follow, and then the same of the next binary. Source: simpleperf's cmd_inject.cpp,
//! `AutoFDOWriter::Write`.

use std::io::Read;
use std::path::Path;

use mepof_address::{BuildId, RuntimeAddress};

use super::lines::{OUTSIDE, each_line};
use super::options::{Options, Wanted};
use super::text::{decimal, hexadecimal};
use crate::{Addressing, Cause, Facts, Sink, TraceError, TracedImage};

/// Binaries that an error names.
const MAX_NAMED: usize = 8;

/// Reads `input`; `path` is for errors.
pub fn parse<R: Read, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let mut facts = Facts { format: "unsymbolized text".to_owned(), ..Facts::default() };
    let mut section = Section::default();
    let mut part = Part::new(sink);
    let mut others = Vec::new();
    let mut first_malformed = None;
    each_line(input, path, options, |text, offset| {
        let line = Line::of(text);
        if part.is_complete && !matches!(line, Some(Line::Empty | Line::Comment(_))) {
            std::mem::replace(&mut part, Part::new(sink)).end(
                options,
                sink,
                &mut facts,
                &mut others,
            );
            section.numbers = 0;
        }
        match line {
            Some(Line::Empty) => {}
            Some(Line::Comment(text)) => {
                section.is_autofdo = true;
                part.comment(text);
            }
            Some(Line::Context) => section.context(),
            Some(Line::Number(number)) => section.begin(number),
            Some(Line::Address) => {
                section.line();
                facts.samples.drop(Cause::NoBranches, 1);
            }
            Some(Line::Range { first, last, .. }) if first > last => {
                section.line();
                facts.samples.drop(Cause::InvertedRange, 1);
            }
            Some(Line::Range { first, last, count }) => {
                section.line();
                section.ranges.add(first, last);
                part.sink.range(RuntimeAddress(first), RuntimeAddress(last), count);
                part.lines += 1;
            }
            Some(Line::Branch { from, to, count }) => {
                section.branch();
                section.targets.add(to, to);
                let is_outside = to == 0 && section.is_autofdo;
                let target = if is_outside { OUTSIDE } else { RuntimeAddress(to) };
                part.sink.branch(RuntimeAddress(from), target, count);
                part.lines += 1;
                part.branches = part.branches.saturating_add(count);
            }
            None => {
                section.line();
                facts.samples.drop(Cause::Malformed, 1);
                first_malformed.get_or_insert(offset);
            }
        }
        sink.distinct().saturating_add(part.sink.distinct())
    })?;
    part.end(options, sink, &mut facts, &mut others);
    if facts.samples.used == 0 {
        let what = "this is not a line of llvm-profgen's unsymbolized text".to_owned();
        return Err(match first_malformed {
            Some(offset) => TraceError::Corrupt { path: path.to_owned(), offset, what },
            None => TraceError::Unsupported {
                path: path.to_owned(),
                what: if others.is_empty() {
                    "it has no branches and no ranges".to_owned()
                } else {
                    let others = others.join(", ");
                    format!(
                        "it has nothing of the given binary, only of {others}; give the exact \
                         build that ran"
                    )
                },
            },
        });
    }
    section.say(&mut facts);
    Ok(facts)
}

/// What the text has of one binary.
struct Part<S> {
    sink: S,
    lines: u64,
    branches: u64,
    name: String,
    build_id: Option<BuildId>,
    is_complete: bool,
}

impl<S: Sink> Part<S> {
    fn new(sink: &S) -> Self {
        let sink = sink.fork();
        let (name, build_id) = Default::default();
        Self { sink, lines: 0, branches: 0, name, build_id, is_complete: false }
    }

    /// Of a binary's comments, which follow what there is of it.
    fn comment(&mut self, text: &[u8]) {
        if self.lines == 0 {
            return;
        }
        self.is_complete = true;
        let text = String::from_utf8_lossy(text);
        match text.strip_prefix("build_id:") {
            Some(id) => self.build_id = id.trim().trim_start_matches("0x").parse().ok(),
            None => self.name = text.into_owned(),
        }
    }

    /// Gives all to `sink` if it is of the binary that `options` asks for; `others` are the rest.
    fn end(self, options: &Options<'_>, sink: &mut S, facts: &mut Facts, others: &mut Vec<String>) {
        let Self { name, build_id, .. } = self;
        let is_other = |wanted: Wanted<'_>| !wanted.is(&name, build_id.as_ref());
        if self.is_complete && options.binary.is_some_and(is_other) {
            facts.samples.drop(Cause::OutsideBinary, self.lines);
            if others.len() < MAX_NAMED {
                let id = build_id.map(|id| format!(" ({id})")).unwrap_or_default();
                others.push(name + &id);
            }
            return;
        }
        sink.merge(self.sink);
        facts.samples.used += self.lines;
        facts.entries.used = facts.entries.used.saturating_add(self.branches);
        if self.is_complete {
            let (space, mappings) = (options.space, Vec::new());
            facts.images.push(TracedImage { name, space, build_id, mappings });
        }
    }
}

/// What the lines so far say of the whole.
#[derive(Debug, Default)]
struct Section {
    missing: u64,    // lines that the last number still promises
    disagrees: bool, // whether a number was wrong
    contexts: u64,
    numbers: u64, // of the context or binary
    is_autofdo: bool,
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
    fn context(&mut self) {
        self.contexts += 1;
        self.numbers = 0;
    }

    fn begin(&mut self, lines: u64) {
        self.disagrees |= self.missing > 0;
        self.missing = lines;
        self.numbers += 1;
    }

    /// Of a branch: only AutoFDO's text has them under the third number.
    fn branch(&mut self) {
        self.line();
        self.is_autofdo |= self.numbers == 3;
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
        if self.is_autofdo {
            facts.format = "AutoFDO's text".to_owned();
            facts.addressing = Addressing::Offset;
        }
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
enum Line<'a> {
    Empty,
    Context,
    Comment(&'a [u8]),
    Number(u64),
    Address,
    Range { first: u64, last: u64, count: u64 },
    Branch { from: u64, to: u64, count: u64 },
}

impl<'a> Line<'a> {
    fn of(text: &'a [u8]) -> Option<Self> {
        match text {
            [] => return Some(Self::Empty),
            [b'[', .., b']'] => return Some(Self::Context),
            [b'/', b'/', text @ ..] => return Some(Self::Comment(text.trim_ascii())),
            _ if text.iter().all(u8::is_ascii_digit) => return decimal(text).map(Self::Number),
            _ => {}
        }
        let (one, rest) = address(text)?;
        if let Some(count) = rest.strip_prefix(b":") {
            return decimal(count).map(|_| Self::Address);
        }
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
