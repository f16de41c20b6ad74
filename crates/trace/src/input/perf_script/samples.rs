//! Puts lines together to samples.

use std::collections::HashMap;

use memchr::memmem;
use mepof_address::RuntimeAddress;

use super::entry::{Entry, entry, token};
use super::line::{Fields, Line, MAX_LINE, without_end};
use super::named::Names;
use super::record::{Mapped, Record, record};
use crate::input::options::Options;
use crate::input::text::decimal;
use crate::{BranchEntry, Cause, Sample, Sink, Tally};

/// What the lines read so far say of the sample that the next line may belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    open: Open,
    count: Option<u64>, // how many samples it stands for
    time: Option<u64>,
    wanted: Option<bool>, // whether it is of an event that was asked for, if the fields say
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    /// The last sample has ended.
    #[default]
    No,
    /// The fields of a sample were the last line.
    Fields,
    /// A frame of a call chain was.
    Frames,
}

/// Distinct mappings and events that are kept; a machine has a few thousand modules and files.
const MAX_MAPPINGS: usize = 1 << 16;
const MAX_EVENTS: usize = 256;
/// Above the offsets in any file with code, below where the kernel and most programs lie.
const MAX_OFFSET: u64 = 1 << 30;
/// The kernel's half of a 64-bit address space.
const KERNEL_HALF: u64 = 1 << 63;
/// Bytes of the names of all mappings together, and of the name of one event.
const MAX_NAME_BYTES: usize = 16 << 20;
const MAX_EVENT_NAME: usize = 256;

/// What was found beside the branches.
#[derive(Clone, Debug, Default)]
pub(super) struct Found<'a> {
    wanted_events: &'a [String], // all, if empty
    /// Samples read, used and dropped.
    pub(super) samples: Tally,
    /// Entries of branch stacks read, used and dropped.
    pub(super) entries: Tally,
    /// Entries that are not taken branches.
    pub(super) not_taken: u64,
    /// Samples whose stack has names in place of addresses.
    pub(super) names: u64,
    /// Samples with such a stack that were used.
    pub(super) names_used: u64,
    /// Samples of the kernel whose branches are at offsets in place of addresses.
    pub(super) offsets: u64,
    /// Lines of code that ran between branches.
    pub(super) instructions: u64,
    /// Names with offsets beyond their symbols.
    pub(super) beyond: u64,
    /// Where the first thing is that could not be read.
    pub(super) first_malformed: Option<u64>,
    /// Mappings, with the position of their first appearance.
    pub(super) mapped: HashMap<MappingKey, (u64, Mapped)>,
    name_bytes: usize, // of `mapped`
    /// Mappings that were too many to keep.
    pub(super) mappings_left_out: u64,
    /// Samples with a branch stack, by event, with the position of the first.
    pub(super) events: HashMap<Vec<u8>, (u64, u64)>,
}

/// Name, first byte, one past the last, offset.
type MappingKey = (String, u64, u64, u64);

impl<'a> Found<'a> {
    /// Nothing yet. Of `wanted_events` samples are taken; of all, if that is empty.
    pub(super) fn new(wanted_events: &'a [String]) -> Self {
        Self { wanted_events, ..Self::default() }
    }

    /// Takes account of a line without branches, at byte `at` of the input.
    pub(super) fn open_line(&mut self, state: &mut State, line: Line<'_>, at: u64) {
        match line {
            Line::Comment => {}
            Line::Frame => state.open = Open::Frames,
            Line::Instruction => {
                self.instructions = self.instructions.saturating_add(1);
                state.open = Open::Frames;
            }
            Line::Empty => {
                // With call chains, an empty line begins a sample, and one without branches ends
                // with it too.
                if state.open == Open::Frames {
                    self.close(state);
                }
            }
            Line::Count(digits) => {
                self.close(state);
                match decimal(digits) {
                    Some(count) if count > 0 => state.count = Some(count),
                    _ => self.malformed(at),
                }
            }
            Line::Record(text) => {
                self.close(state);
                match record(text) {
                    Some(Record::Mapped(mapped)) => self.mapping(mapped, at),
                    Some(Record::Lost(count)) => self.samples.drop(Cause::Lost, count),
                    Some(Record::Other) => {}
                    None => self.malformed(at),
                }
            }
            Line::Binary => self.malformed_line(state, at),
            Line::Fields(text) => {
                if state.open != Open::No {
                    self.close(state);
                }
                self.fields(text, state, at);
                state.open = Open::Fields;
            }
            Line::Names { text } => {
                self.fields(text, state, at);
                state.open = Open::Fields;
                self.names = self.names.saturating_add(1);
                self.close(state);
            }
            // Has branches: see `Samples`.
            Line::Stack { .. } => {}
        }
    }

    /// Takes account of the fields of a sample.
    fn fields<'t>(&mut self, text: &'t [u8], state: &mut State, at: u64) -> Fields<'t> {
        let fields = Fields::of(text);
        state.time = fields.time;
        if let Some(name) = fields.event {
            self.event(name, state.count.unwrap_or(1), at);
            if !self.wanted_events.is_empty() {
                let wanted = self.wanted_events.iter().any(|event| {
                    // With its modifiers or without.
                    name.strip_prefix(event.as_bytes())
                        .is_some_and(|rest| matches!(rest, [] | [b':', ..]))
                });
                state.wanted = Some(wanted);
            }
        }
        fields
    }

    /// Counts a line that cannot be read.
    pub(super) fn malformed_line(&mut self, state: &mut State, at: u64) {
        self.close(state);
        self.malformed(at);
    }

    fn malformed(&mut self, at: u64) {
        self.samples.drop(Cause::Malformed, 1);
        self.first_malformed = Some(self.first_malformed.map_or(at, |first| first.min(at)));
    }

    /// Ends a sample that turned out to have no branches.
    pub(super) fn close(&mut self, state: &mut State) {
        let state = std::mem::take(state);
        match (state.open, state.count) {
            (Open::No, None) => {}
            // A count that no sample follows.
            (Open::No, Some(_)) => self.samples.drop(Cause::Malformed, 1),
            (_, count) => self.samples.drop(Cause::NoBranches, count.unwrap_or(1)),
        }
    }

    fn mapping(&mut self, mapped: Mapped, at: u64) {
        let range = &mapped.mapping.addresses;
        let key = (mapped.name.clone(), range.start.0, range.end.0, mapped.mapping.offset);
        if let Some((first, _)) = self.mapped.get_mut(&key) {
            *first = at.min(*first);
        } else if self.mapped.len() < MAX_MAPPINGS
            && self.name_bytes.saturating_add(mapped.name.len()) <= MAX_NAME_BYTES
        {
            self.name_bytes += mapped.name.len();
            self.mapped.insert(key, (at, mapped));
        } else {
            self.mappings_left_out += 1;
        }
    }

    fn event(&mut self, name: &[u8], count: u64, at: u64) {
        if let Some((first, samples)) = self.events.get_mut(name) {
            *first = at.min(*first);
            *samples = samples.saturating_add(count);
        } else if self.events.len() < MAX_EVENTS && name.len() <= MAX_EVENT_NAME {
            self.events.insert(name.to_vec(), (at, count));
        }
    }

    /// Takes over what `other` found.
    pub(super) fn merge(&mut self, other: Self) {
        self.samples.merge(&other.samples);
        self.entries.merge(&other.entries);
        self.not_taken = self.not_taken.saturating_add(other.not_taken);
        self.names = self.names.saturating_add(other.names);
        self.names_used = self.names_used.saturating_add(other.names_used);
        self.offsets = self.offsets.saturating_add(other.offsets);
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.first_malformed = match (self.first_malformed, other.first_malformed) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
        self.mappings_left_out = self.mappings_left_out.saturating_add(other.mappings_left_out);
        for (_, (at, mapped)) in other.mapped {
            self.mapping(mapped, at);
        }
        for (name, (at, count)) in other.events {
            self.event(&name, count, at);
        }
    }
}

/// Reads chunks of samples into a sink, one after the other.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    stack: Vec<BranchEntry>,
    names: Option<Names<'a>>,
    pub(super) found: Found<'a>,
}

impl<'a> Samples<'a> {
    /// Takes samples as `options` say.
    pub(super) fn new(options: &Options<'a>) -> Self {
        let space = options.space;
        let names = options.symbols.map(|symbols| Names { symbols, space });
        Self { stack: Vec::new(), names, found: Found::new(options.events) }
    }

    /// Reads `text`, which begins at byte `at` of the input; returns what it leaves open.
    pub(super) fn read<S: Sink>(
        &mut self,
        mut text: &[u8],
        mut at: u64,
        mut state: State,
        sink: &mut S,
    ) -> State {
        while !text.is_empty() {
            let end = memchr::memchr(b'\n', text).map_or(text.len(), |newline| newline + 1);
            let (line, rest) = text.split_at_checked(end).unwrap_or((text, &[]));
            if line.len() > MAX_LINE {
                self.found.malformed_line(&mut state, at);
            } else {
                match Line::of(without_end(line)) {
                    Line::Stack { before, entries } => {
                        self.stack(before, entries, at, &mut state, sink);
                    }
                    Line::Names { text } if self.names.is_some() => {
                        self.named_stack(text, at, &mut state, sink);
                    }
                    other => self.found.open_line(&mut state, other, at),
                }
            }
            at += end as u64;
            text = rest;
        }
        state
    }

    /// Reads a line with a branch stack: `entries`, and `before` them other fields.
    fn stack<S: Sink>(
        &mut self,
        before: &[u8],
        entries: &[u8],
        at: u64,
        state: &mut State,
        sink: &mut S,
    ) {
        let Some(mut sample) = self.begin(before, at, state) else { return };
        let count = sample.count;
        self.stack.clear();
        let mut rest = entries;
        let mut malformed = 0_u64;
        loop {
            rest = rest.trim_ascii_start();
            if !rest.starts_with(b"0x") {
                break; // other fields, or the end
            }
            match entry(rest) {
                Some((Entry::Taken(branch), after)) => {
                    self.stack.push(branch);
                    rest = after;
                }
                Some((Entry::NotTaken, after)) => {
                    self.found.not_taken = self.found.not_taken.saturating_add(count);
                    rest = after;
                }
                None => {
                    // A line that was cut or overwritten: what follows is not to be trusted.
                    malformed = 1;
                    rest = token(rest).1;
                    while let Some(blank) = memchr::memmem::find(rest, b" 0x") {
                        malformed += 1;
                        rest = rest.get(blank + 3..).unwrap_or_default();
                    }
                    self.found.first_malformed =
                        Some(self.found.first_malformed.map_or(at, |first| first.min(at)));
                    break;
                }
            }
        }
        let found = &mut self.found;
        let used = (self.stack.len() as u64).saturating_mul(count);
        found.entries.used = found.entries.used.saturating_add(used);
        found.entries.drop(Cause::Malformed, malformed.saturating_mul(count));
        if self.stack.is_empty() {
            let cause = if malformed > 0 { Cause::Malformed } else { Cause::NoBranches };
            found.samples.drop(cause, count);
            return;
        }
        found.samples.used = found.samples.used.saturating_add(count);
        // `brstackoff`, by a perf that has no symbols of the kernel.
        if self.stack.iter().all(|branch| branch.from.0.max(branch.to.0) < MAX_OFFSET)
            && (sample.address.is_some_and(|address| address.0 >= KERNEL_HALF)
                || memmem::find(entries, b"[kernel.kallsyms])").is_some())
        {
            found.offsets = found.offsets.saturating_add(count);
        }
        sample.branches = &self.stack;
        sink.sample(&sample);
    }

    /// Reads `before`, the fields before a branch stack; `None` if the sample is not wanted.
    fn begin(&mut self, before: &[u8], at: u64, state: &mut State) -> Option<Sample<'static>> {
        let mut address = None;
        if !before.trim_ascii_start().is_empty() {
            if state.open != Open::No {
                // That one had no branches; this one has fields of its own.
                self.found.close(state);
            }
            address = self.found.fields(before, state, at).address.map(RuntimeAddress);
        }
        let State { count, time, wanted, .. } = std::mem::take(state);
        let count = count.unwrap_or(1);
        if wanted == Some(false) {
            self.found.samples.drop(Cause::OtherEvent, count);
            return None;
        }
        Some(Sample { time, address, branches: &[], consecutive: true, count })
    }

    /// Reads a line with a branch stack of names.
    fn named_stack<S: Sink>(&mut self, text: &[u8], at: u64, state: &mut State, sink: &mut S) {
        let Some(names) = self.names else { return };
        self.found.names = self.found.names.saturating_add(1);
        let Some((before, mut named, mut rest)) = names.first_entry(text) else {
            let entries = memmem::find_iter(text, b"/-/-/").count() as u64;
            self.found.entries.drop(Cause::Malformed, entries);
            self.found.malformed_line(state, at);
            return;
        };
        let Some(sample) = self.begin(before, at, state) else { return };
        let count = sample.count;
        let found = &mut self.found;
        self.stack.clear();
        let (mut known, mut missing) = (0_u64, None);
        loop {
            found.beyond = found.beyond.saturating_add(named.beyond.saturating_mul(count));
            match (named.entry, named.missing) {
                (Entry::NotTaken, _) => found.not_taken = found.not_taken.saturating_add(count),
                (Entry::Taken(branch), cause) => {
                    // Kept even so: what ran before it and what ran after it are not one range.
                    self.stack.push(branch);
                    match cause {
                        None => known += 1,
                        Some(cause) => found.entries.drop(cause, count),
                    }
                    missing = missing.max(cause);
                }
            }
            rest = rest.trim_ascii_start();
            match names.entry(rest) {
                Some(next) => (named, rest) = next,
                None => {
                    // A line that was cut or overwritten, or other fields.
                    let malformed = memmem::find_iter(rest, b"/-/-/").count() as u64;
                    found.entries.drop(Cause::Malformed, malformed.saturating_mul(count));
                    if malformed > 0 {
                        let first = found.first_malformed.map_or(at, |first| first.min(at));
                        found.first_malformed = Some(first);
                    }
                    break;
                }
            }
        }
        found.entries.used = found.entries.used.saturating_add(known.saturating_mul(count));
        if known == 0 {
            found.samples.drop(missing.unwrap_or(Cause::NoBranches), count);
            return;
        }
        found.samples.used = found.samples.used.saturating_add(count);
        found.names_used = found.names_used.saturating_add(count);
        // The sample's own address is one of run time, those of symbols are not.
        sink.sample(&Sample { address: None, branches: &self.stack, ..sample });
    }
}
