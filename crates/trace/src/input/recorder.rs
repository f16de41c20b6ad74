//! The emulated recorder's trace: `docs/recorder-trace.md`.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;

use super::options::Options;
use crate::recorder_trace::{
    Counter, END, FLAG_KERNEL_ONLY, FLAG_SAMPLED, HEADER_SIZE, LARGEST_BODY, MAGIC, RecordType,
    VERSION,
};
use crate::{
    BranchEntry, Cause, Event, Facts, Mapping, Sample, Sink, Space, TraceError, TracedImage,
};

/// Reads `input`; `path` is for errors.
pub fn parse<R: Read, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let mut reader = Reader {
        input: BufReader::with_capacity(1 << 18, input),
        path,
        options,
        offset: 0,
        facts: Facts { format: "recorder trace".to_owned(), ..Facts::default() },
        depth: 0,
        unknown: 0,
        stack: Vec::new(),
        counters: Vec::new(),
        mappings: 0,
        positions: HashMap::new(),
    };
    reader.header()?;
    reader.records(sink)?;
    Ok(reader.facts)
}

struct Reader<'r, R> {
    input: BufReader<R>,
    path: &'r Path,
    options: &'r Options<'r>,
    offset: u64, // of the next byte
    facts: Facts,
    depth: usize, // entries of a stack at most; 0 if exact
    unknown: u64, // records of unknown types
    stack: Vec<BranchEntry>,
    counters: Vec<(Counter, u64)>,
    mappings: usize,
    /// The modules in the facts, by names that the input chooses: the hash has a seed.
    positions: HashMap<String, usize>,
}

/// More than a kernel with all its modules has sections.
const MAX_MAPPINGS: usize = 1 << 18;
const MAX_NAME: usize = 1 << 10;

impl<R: Read> Reader<'_, R> {
    fn header(&mut self) -> Result<(), TraceError> {
        let mut bytes = Vec::new();
        if self.fill(&mut bytes, HEADER_SIZE as u64)? < HEADER_SIZE as u64 {
            return Err(self.corrupt(0, "the header is truncated"));
        }
        let mut header = Fields(&bytes);
        if header.bytes(8) != MAGIC {
            return Err(self.corrupt(0, "this is not a recorder trace"));
        }
        let version = header.u32();
        if version != VERSION {
            let what = format!("the recorder's trace has version {version}; mepof reads {VERSION}");
            return Err(TraceError::Unsupported { path: self.path.to_owned(), what });
        }
        let machine = u16::try_from(header.u32()).ok().and_then(Machine::of_elf);
        if machine.is_none() {
            return Err(self.corrupt(12, "the machine is unknown"));
        }
        self.facts.machine = machine;
        let flags = header.u32();
        if flags & !(FLAG_SAMPLED | FLAG_KERNEL_ONLY) != 0 {
            return Err(self.corrupt(16, "a flag is unknown"));
        }
        self.facts.exact = flags & FLAG_SAMPLED == 0;
        let _vcpus = header.u32();
        let (period, depth, counted) = (header.u64(), header.u32(), header.u32());
        if flags & FLAG_SAMPLED != 0 {
            if !(1..=1024).contains(&depth) {
                return Err(self.corrupt(32, "the branch stack is not 1 to 1024 entries deep"));
            }
            self.depth = depth as usize;
            self.facts.branch_depth = Some(depth);
        }
        let name = match (flags & FLAG_SAMPLED != 0, counted) {
            (false, _) => "every branch",
            (true, 1) => "taken branches",
            (true, 2) => "instructions",
            (true, 3) => "nanoseconds",
            (true, _) => return Err(self.corrupt(36, "the event is unknown")),
        };
        self.facts.events.push(Event {
            name: name.to_owned(),
            period: (period > 0).then_some(period),
            excludes_user: flags & FLAG_KERNEL_ONLY != 0,
            branch_stack: true,
            ..Event::default()
        });
        let base = header.u64();
        let symbol = header.bytes(12);
        let symbol = symbol.split(|&byte| byte == 0).next().unwrap_or_default();
        let symbol = String::from_utf8_lossy(symbol).into_owned();
        let length = header.u32() as usize;
        let build_id = header.bytes(64).get(..length);
        let Some(build_id) = build_id else {
            return Err(self.corrupt(60, "the build-id has more than 64 bytes"));
        };
        if base != 0 && !matches!(&*symbol, "_text" | "_stext") {
            return Err(self.corrupt(48, "the reference symbol is neither _text nor _stext"));
        }
        let base = (base != 0).then_some((symbol, RuntimeAddress(base)));
        let build_id = BuildId::new(build_id).ok();
        if base.is_some() || build_id.is_some() {
            let symbol = base.as_ref().map_or("", |(symbol, _)| symbol);
            self.facts.images.push(TracedImage {
                name: format!("[kernel.kallsyms]{symbol}"),
                space: Space::Kernel,
                build_id,
                mappings: Vec::new(),
            });
        }
        self.facts.kernel_base = base;
        Ok(())
    }

    fn records<S: Sink>(&mut self, sink: &mut S) -> Result<(), TraceError> {
        let mut body = Vec::new();
        let mut count = 0_u64;
        loop {
            if self.options.cancelled.load(Ordering::Relaxed) {
                return Err(TraceError::Cancelled);
            }
            let at = self.offset;
            let had = self.fill(&mut body, 8)?;
            if had < 8 {
                return self.truncated(had > 0);
            }
            let mut head = Fields(&body);
            let (kind, size) = (head.u32(), head.u32());
            if size % 8 != 0 || size > LARGEST_BODY {
                return Err(self.corrupt(at, "no record has this size"));
            }
            if self.fill(&mut body, u64::from(size))? < u64::from(size) {
                return self.truncated(true);
            }
            if kind == END {
                return self.end(&body, count);
            }
            count += 1;
            let good = match RecordType::of(kind) {
                Some(RecordType::Branches) => self.triples(&body, |facts, from, to, count| {
                    sink.branch(RuntimeAddress(from), RuntimeAddress(to), count);
                    facts.entries.used = facts.entries.used.saturating_add(count);
                    facts.samples.used += 1;
                }),
                Some(RecordType::Ranges) => self.triples(&body, |facts, first, last, count| {
                    if first > last {
                        facts.samples.drop(Cause::InvertedRange, 1);
                    } else {
                        sink.range(RuntimeAddress(first), RuntimeAddress(last), count);
                        facts.samples.used += 1;
                    }
                }),
                Some(RecordType::Sample) => self.sample(&body, sink),
                Some(RecordType::Counters) => self.counters(&body),
                Some(RecordType::Mapping) => self.mapping(&body),
                None => {
                    self.unknown += 1;
                    true
                }
            };
            if !good {
                self.facts.samples.drop(Cause::Malformed, 1);
            }
            if sink.distinct() > self.options.max_distinct {
                let limit = self.options.max_distinct;
                return Err(TraceError::TooManyBranches { path: self.path.to_owned(), limit });
            }
        }
    }

    fn triples(&mut self, body: &[u8], mut take: impl FnMut(&mut Facts, u64, u64, u64)) -> bool {
        let triples = body.chunks_exact(24);
        let whole = triples.remainder().is_empty();
        for triple in triples {
            let mut triple = Fields(triple);
            take(&mut self.facts, triple.u64(), triple.u64(), triple.u64());
        }
        whole
    }

    fn sample<S: Sink>(&mut self, body: &[u8], sink: &mut S) -> bool {
        let mut fields = Fields(body);
        let (time, address, _vcpu) = (fields.u64(), fields.u64(), fields.u32());
        let depth = fields.u32() as usize;
        if depth > self.depth || body.len() != 24 + 16 * depth {
            return false;
        }
        self.stack.clear();
        self.stack.extend(fields.0.chunks_exact(16).map(|pair| {
            let mut pair = Fields(pair);
            let (from, to) = (RuntimeAddress(pair.u64()), RuntimeAddress(pair.u64()));
            BranchEntry { from, to, ..BranchEntry::default() }
        }));
        if let Some(event) = self.facts.events.first_mut() {
            event.samples += 1;
        }
        if depth == 0 {
            self.facts.samples.drop(Cause::NoBranches, 1);
            return true;
        }
        self.facts.samples.used += 1;
        self.facts.entries.used = self.facts.entries.used.saturating_add(depth as u64);
        let address = (address != 0).then_some(RuntimeAddress(address));
        let branches = &self.stack;
        sink.sample(&Sample { time: Some(time), address, branches, consecutive: true, count: 1 });
        true
    }

    fn counters(&mut self, body: &[u8]) -> bool {
        let pairs = body.chunks_exact(16);
        let whole = pairs.remainder().is_empty();
        for pair in pairs {
            let mut pair = Fields(pair);
            let (kind, value) = (pair.u64(), pair.u64());
            match Counter::of(kind) {
                Some(Counter::LostBranches) => self.facts.entries.drop(Cause::Lost, value),
                Some(Counter::LostSamples) => self.facts.samples.drop(Cause::Lost, value),
                Some(counter) => {
                    match self.counters.iter_mut().find(|(kind, _)| *kind == counter) {
                        Some((_, total)) => *total = total.saturating_add(value),
                        None => self.counters.push((counter, value)),
                    }
                }
                None => {}
            }
        }
        whole
    }

    fn mapping(&mut self, body: &[u8]) -> bool {
        let mut fields = Fields(body);
        let (start, size, offset) = (fields.u64(), fields.u64(), fields.u64());
        let mut names = fields.0.split(|&byte| byte == 0);
        let name = names.next().unwrap_or_default();
        let section = names.next().unwrap_or_default();
        let good = 1..=MAX_NAME;
        self.mappings += 1;
        if size == 0
            || !good.contains(&name.len())
            || section.len() > MAX_NAME
            || self.mappings > MAX_MAPPINGS
        {
            return false;
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let name = text(name);
        let mapping = Mapping {
            addresses: RuntimeAddress(start)..RuntimeAddress(start.saturating_add(size)),
            offset,
            section: (!section.is_empty()).then(|| text(section)),
        };
        // It is mapped again if it is loaded again, and others may be in between.
        let images = &mut self.facts.images;
        let position = *self.positions.entry(name).or_insert_with_key(|name| {
            let (name, space) = (name.clone(), Space::Kernel);
            images.push(TracedImage { name, space, build_id: None, mappings: Vec::new() });
            images.len() - 1
        });
        if let Some(image) = images.get_mut(position) {
            image.mappings.push(mapping);
        }
        true
    }

    fn end(&mut self, body: &[u8], count: u64) -> Result<(), TraceError> {
        let promised = Fields(body).u64();
        if promised != count || body.len() != 8 {
            self.facts
                .notes
                .push(format!("the trace says that it has {promised} records; it has {count}"));
            self.facts.samples.drop(Cause::Truncated, promised.saturating_sub(count));
        }
        let mut more = Vec::new();
        if self.fill(&mut more, 1)? > 0 {
            self.facts.notes.push("there is data after the end of the trace".to_owned());
        }
        self.finish()
    }

    fn truncated(&mut self, inside: bool) -> Result<(), TraceError> {
        self.facts.samples.drop(Cause::Truncated, u64::from(inside));
        self.facts.notes.push("the trace is truncated: its recorder did not finish".to_owned());
        self.finish()
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        for (counter, value) in std::mem::take(&mut self.counters) {
            if value > 0 {
                self.facts.notes.push(format!("{value} {}", counter.what()));
            }
        }
        if self.unknown > 0 {
            let unknown = self.unknown;
            self.facts.notes.push(format!("{unknown} records of unknown types were skipped"));
        }
        if self.facts.samples.used == 0 && self.facts.samples.dropped_for(Cause::Malformed) > 0 {
            return Err(self.corrupt(HEADER_SIZE as u64, "none of its records can be read"));
        }
        Ok(())
    }

    /// Fills `bytes` with the next `wanted` ones, or with as many as there are.
    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: u64) -> Result<u64, TraceError> {
        bytes.clear();
        let read: io::Result<usize> = self.input.by_ref().take(wanted).read_to_end(bytes);
        let read =
            read.map_err(|source| TraceError::Io { path: self.path.to_owned(), source })? as u64;
        self.offset += read;
        self.options.progress.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }

    fn corrupt(&self, offset: u64, what: &str) -> TraceError {
        TraceError::Corrupt { path: self.path.to_owned(), offset, what: what.to_owned() }
    }
}

/// Fields of bytes; what is missing is zero.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn bytes(&mut self, length: usize) -> &'b [u8] {
        let (bytes, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest;
        bytes
    }

    fn u32(&mut self) -> u32 {
        self.bytes(4).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> u64 {
        self.bytes(8).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
