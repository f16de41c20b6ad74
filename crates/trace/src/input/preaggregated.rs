//! BOLT's pre-aggregated text, which `perf2bolt --pa` reads.
//!
//! A line is a branch (`B FROM TO COUNT MISPREDICTED`), a fall-through range (`F`, `f` or
//! `r FIRST LAST COUNT`), both (`T` or `R FROM TO LAST COUNT`), a sample without branches
//! (`S ADDRESS COUNT`) or the name of the event (`E NAME`). An address is hexadecimal, from the
//! beginning of its binary, whose build-id and a colon may precede it; those of the main binary
//! have none, and `X:` stands for any other. Source of the format: LLVM 22,
//! bolt/include/bolt/Profile/DataAggregator.h, and `parseAggregatedLBREntry` in
//! bolt/lib/Profile/DataAggregator.cpp.

use std::io::Read;
use std::path::Path;

use mepof_address::{BuildId, RuntimeAddress};

use super::lines::{OUTSIDE, each_line};
use super::options::Options;
use super::text::{decimal, hexadecimal};
use crate::{Addressing, Cause, Event, Facts, Sink, TraceError};

/// BOLT marks a trace without a branch, or without a range, by one of the highest addresses.
const FIRST_MARK: u64 = u64::MAX - 2;

/// Reads `input`; `path` is for errors.
pub fn parse<R: Read, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let mut facts = Facts {
        format: "BOLT's pre-aggregated text".to_owned(),
        addressing: Addressing::Image,
        ..Facts::default()
    };
    let ours = options.binary.and_then(|binary| binary.build_id);
    each_line(input, path, options, |line, _| {
        match Line::of(line, ours) {
            Some(Line::Empty) => {}
            Some(Line::Event(name)) => add_event(&mut facts, name),
            Some(Line::Sample { count }) => facts.samples.drop(Cause::NoBranches, count),
            Some(Line::Trace { branch, range, count }) => {
                if let Some((from, to)) = branch {
                    sink.branch(from, to, count);
                    facts.entries.used = facts.entries.used.saturating_add(count);
                }
                let is_inverted = |&(first, last): &Pair| first > last && first != OUTSIDE;
                if range.as_ref().is_some_and(is_inverted) {
                    facts.samples.drop(Cause::InvertedRange, 1);
                } else {
                    range.inspect(|&(first, last)| sink.range(first, last, count));
                    facts.samples.used += 1;
                }
            }
            None => facts.samples.drop(Cause::Malformed, 1),
        }
        sink.distinct()
    })?;
    Ok(facts)
}

fn add_event(facts: &mut Facts, name: &[u8]) {
    /// More than anyone records at a time.
    const MAX_EVENTS: usize = 64;
    let name = String::from_utf8_lossy(name).into_owned();
    let is_known = facts.events.iter().any(|event| event.name == name);
    if !is_known && facts.events.len() < MAX_EVENTS {
        facts.events.push(Event { name, branch_stack: true, ..Event::default() });
    }
}

type Pair = (RuntimeAddress, RuntimeAddress);

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Empty,
    Event(&'a [u8]),
    Sample { count: u64 },
    Trace { branch: Option<Pair>, range: Option<Pair>, count: u64 },
}

impl<'a> Line<'a> {
    /// What `text` says; addresses with the build-id `ours` are those of the binary, too.
    fn of(text: &'a [u8], ours: Option<&BuildId>) -> Option<Self> {
        let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let Some(kind) = words.next() else { return Some(Self::Empty) };
        if kind == b"E" {
            return Some(Self::Event(text.get(1..)?.trim_ascii()));
        }
        let words: Vec<&[u8]> = words.take(6).collect();
        let at = |word: &[u8]| address(word, ours);
        Some(match (kind, words.as_slice()) {
            (b"S", [one, count]) => {
                at(one)?;
                Self::Sample { count: decimal(count)? }
            }
            (b"B", [from, to, count, missed]) => {
                decimal(missed)?;
                let branch = Some((at(from)?, at(to)?));
                Self::Trace { branch, range: None, count: decimal(count)? }
            }
            (b"F" | b"f" | b"r", [first, last, count]) => {
                let range = Some((at(first)?, at(last)?));
                Self::Trace { branch: None, range, count: decimal(count)? }
            }
            (b"T" | b"R", [from, to, last, count]) => {
                let branch = (!is_mark(from)).then_some((at(from)?, at(to)?));
                let range = (!is_mark(last)).then_some((at(to)?, at(last)?));
                Self::Trace { branch, range, count: decimal(count)? }
            }
            _ => return None,
        })
    }
}

/// The address that `word` is: [`OUTSIDE`] in another binary, and for 0, with which BOLT says so.
fn address(word: &[u8], ours: Option<&BuildId>) -> Option<RuntimeAddress> {
    let mut parts = word.rsplitn(2, |&byte| byte == b':');
    let (number, rest) = hexadecimal(parts.next()?)?;
    let is_outside = parts.next().is_some_and(|id| {
        let id: Option<BuildId> = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        ours.is_none() || id.as_ref() != ours
    });
    let address = if is_outside || number == 0 { OUTSIDE } else { RuntimeAddress(number) };
    rest.is_empty().then_some(address)
}

/// Whether `word` says that a trace has no branch, or no range.
fn is_mark(word: &[u8]) -> bool {
    hexadecimal(word).is_some_and(|(number, _)| number >= FIRST_MARK)
}

/// Whether `line` is one of this format that has an address, as [`parse`] takes it.
pub(super) fn is_one(line: &[u8]) -> bool {
    matches!(Line::of(line, None), Some(Line::Sample { .. } | Line::Trace { .. }))
}
