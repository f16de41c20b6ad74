//! The text of `perf script` with branch stacks.
//!
//! A line with a branch stack is a sample, with its other fields before the stack or on the line
//! before; where there are call chains, their frames stand between. Threads take turns at
//! reading a few megabytes of whole samples; each has a sink of its own.
//!
//! Branch stacks of names (`brstacksym`) are read if [`Options::symbols`] says where the names
//! are. A stack keeps its shape: a side without an address is
//! [`OTHER_SIDE`](crate::OTHER_SIDE). An entry without any address counts as dropped
//! for [`Cause::Ambiguous`](crate::Cause::Ambiguous) or
//! [`Cause::OutsideBinary`](crate::Cause::OutsideBinary).

mod chunks;
mod entry;
mod line;
mod named;
mod record;
mod samples;
mod symbol_table;

use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use self::chunks::Chunks;
use self::samples::{Found, Samples};
pub use self::symbol_table::{NamedSymbol, SymbolAddresses, SymbolTable};
use super::gathered::Gathered;
use super::options::Options;
use crate::facts::{Addressing, Event, Facts, Space, TracedImage};
use crate::{Sink, TraceError};

/// Bytes that a thread takes at a time: enough that the turns do not matter, little enough to
/// stop soon and to stay in the cache of most processors.
const CHUNK: usize = 2 << 20;

/// [`Facts::format`] of text with names in place of addresses.
pub const NAMED: &str = "perf script text with names";

/// How to print what this reads best.
const FIELDS: &str = "-F ip,brstack --show-mmap-events";

/// How to record and print what this reads.
const HOW: &str = "record with `perf record -b` or `-j any,k` and print with \
                   `perf script -F ip,brstack --show-mmap-events`";

/// Reads `input`; `path` is for errors.
pub fn parse<R: Read + Send, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let found = parse_in_chunks(input, path, options, sink, CHUNK)?;
    facts(found, path, options)
}

fn parse_in_chunks<'o, R: Read + Send, S: Sink>(
    input: R,
    path: &Path,
    options: &Options<'o>,
    sink: &mut S,
    chunk: usize,
) -> Result<Found<'o>, TraceError> {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    };
    let work = Work {
        chunks: Mutex::new(Chunks::new(input, chunk, options.events)),
        gathered: Gathered::new(sink.fork(), threads, options.max_distinct),
        path,
        options,
        stopped: AtomicBool::new(false),
    };
    let mut found = if threads == 1 {
        work.run(sink)?
    } else {
        let forks: Vec<S> = (0..threads).map(|_| sink.fork()).collect();
        let done = std::thread::scope(|scope| {
            let started: Vec<_> = forks
                .into_iter()
                .map(|mut fork| scope.spawn(|| work.run(&mut fork).map(|found| (found, fork))))
                .collect();
            // A thread that panicked has said so; there is nothing to go on with.
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect::<Vec<Result<_, _>>>()
        });
        let mut all = Found::new(options.events);
        for result in done {
            let (found, fork) = result?;
            all.merge(found);
            sink.merge(fork);
        }
        all
    };
    sink.merge(work.gathered.into_inner());
    let limit = options.max_distinct;
    if sink.distinct() > limit {
        return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
    }
    let chunks = work.chunks.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut state = chunks.state();
    found.merge(chunks.found);
    found.close(&mut state);
    Ok(found)
}

/// What threads share.
struct Work<'w, 'o, R, S> {
    chunks: Mutex<Chunks<'o, R>>,
    gathered: Gathered<S>,
    path: &'w Path,
    options: &'w Options<'o>,
    stopped: AtomicBool,
}

impl<'o, R: Read, S: Sink> Work<'_, 'o, R, S> {
    /// Reads chunks into `sink` until there are no more.
    fn run(&self, sink: &mut S) -> Result<Found<'o>, TraceError> {
        let result = self.run_to_the_end(sink);
        if result.is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        result
    }

    fn run_to_the_end(&self, sink: &mut S) -> Result<Found<'o>, TraceError> {
        let mut samples = Samples::new(self.options);
        let mut text = Vec::new();
        while !self.stopped.load(Ordering::Relaxed) {
            if self.options.cancelled.load(Ordering::Relaxed) {
                return Err(TraceError::Cancelled);
            }
            let chunk = {
                let mut chunks =
                    self.chunks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                chunks
                    .next(&mut text)
                    .map_err(|source| TraceError::Io { path: self.path.to_owned(), source })?
            };
            let Some(chunk) = chunk else { break };
            let mut state = samples.read(&text, chunk.offset, chunk.state, sink);
            samples.found.close(&mut state);
            self.gathered.relieve(sink);
            if self.gathered.has_too_many() {
                let (path, limit) = (self.path.to_owned(), self.options.max_distinct);
                return Err(TraceError::TooManyBranches { path, limit });
            }
            self.options.progress.fetch_add(chunk.bytes_read, Ordering::Relaxed);
        }
        Ok(samples.found)
    }
}

/// What `found` says of the input; an error if there is no branch in it.
fn facts(found: Found<'_>, path: &Path, options: &Options<'_>) -> Result<Facts, TraceError> {
    let without = found.samples.read();
    if found.samples.used == 0 {
        let unsupported = |what: String| TraceError::Unsupported { path: path.to_owned(), what };
        if found.names > 0 && options.symbols.is_some() {
            return Err(unsupported(format!(
                "its branch stacks have names in place of addresses (-F brstacksym), and none of \
                 them is found in the binary: is it the one that ran? Better print addresses: \
                 `perf script {FIELDS}`",
            )));
        }
        if found.names > 0 {
            return Err(unsupported(
                "its branch stacks have names in place of addresses (-F brstacksym); \
                 print them with `perf script -F ip,brstack --show-mmap-events`"
                    .to_owned(),
            ));
        }
        if found.samples.dropped_for(crate::Cause::OtherEvent) > 0 {
            let names: Vec<_> =
                found.events.keys().map(|name| String::from_utf8_lossy(name)).collect();
            return Err(unsupported(format!(
                "it has no branch stacks of the given events; it has {}",
                names.join(", ")
            )));
        }
        if found.samples.dropped_for(crate::Cause::NoBranches) > 0 {
            let what = if found.instructions > 0 {
                format!(
                    "its branches are printed as the code between them (-F brstackinsn); print \
                     addresses: `perf script {FIELDS}`"
                )
            } else {
                format!("none of its {without} samples has a branch stack; {HOW}")
            };
            return Err(unsupported(what));
        }
        if let Some(offset) = found.first_malformed {
            let what = "this is not a line of perf script".to_owned();
            return Err(TraceError::Corrupt { path: path.to_owned(), offset, what });
        }
        return Err(unsupported(format!("it has no samples; {HOW}")));
    }
    let mut facts =
        Facts { format: "perf script text".to_owned(), offsets: found.offsets, ..Facts::default() };
    if found.names_used > 0 {
        if found.names_used < found.samples.used {
            let what = "some of its branch stacks have addresses, others names (-F brstacksym): \
                split them into two files";
            return Err(TraceError::Unsupported { path: path.to_owned(), what: what.to_owned() });
        }
        facts.format = NAMED.to_owned();
        facts.addressing = Addressing::Image;
    }
    if found.beyond > 0 {
        let count = found.beyond;
        facts.notes.push(format!(
            "{count} locations are beyond the ends of their symbols: the binary may be another \
             build"
        ));
    }
    facts.events = events(&found);
    if !options.events.is_empty() && facts.events.is_empty() {
        facts.notes.push(
            "the text does not name events (-F event): samples of all events were used".to_owned(),
        );
    }
    if found.not_taken > 0 {
        let count = found.not_taken;
        facts.notes.push(format!("{count} entries are branches that were not taken"));
    }
    if found.mappings_left_out > 0 {
        let count = found.mappings_left_out;
        facts.notes.push(format!("{count} mappings were too many to keep"));
    }
    facts.images = images(&found);
    facts.kernel_base =
        facts.images.iter().filter(|image| image.space == kernel_space(options.space)).find_map(
            |image| {
                let symbol = image.name.split_once("kernel.kallsyms]")?.1;
                let mapping = image.mappings.first()?;
                matches!(symbol, "_text" | "_stext")
                    .then(|| (symbol.to_owned(), mepof_address::RuntimeAddress(mapping.offset)))
            },
        );
    facts.samples = found.samples;
    facts.entries = found.entries;
    Ok(facts)
}

fn kernel_space(space: Space) -> Space {
    if space == Space::GuestKernel { Space::GuestKernel } else { Space::Kernel }
}

fn events(found: &Found<'_>) -> Vec<Event> {
    let mut events: Vec<_> = found.events.iter().collect();
    events.sort_by_key(|&(name, &(first, _))| (first, name));
    let event = |(name, &(_, samples)): (&Vec<u8>, &(u64, u64))| {
        let name = String::from_utf8_lossy(name).into_owned();
        let modifiers = name.rsplit_once(':').map_or("", |(_, modifiers)| modifiers);
        let modifiers =
            if modifiers.bytes().all(|byte| byte.is_ascii_alphabetic()) { modifiers } else { "" };
        Event {
            excludes_kernel: modifiers.contains('u') && !modifiers.contains('k'),
            excludes_user: modifiers.contains('k') && !modifiers.contains('u'),
            branch_stack: true,
            samples,
            name,
            ..Event::default()
        }
    };
    events.into_iter().map(event).collect()
}

fn images(found: &Found<'_>) -> Vec<TracedImage> {
    let mut mapped: Vec<_> = found.mapped.iter().collect();
    mapped.sort_by_key(|&(key, &(first, _))| (first, key));
    let mut images: Vec<TracedImage> = Vec::new();
    let mut positions = std::collections::HashMap::<_, usize>::new();
    for (_, (_, one)) in mapped {
        let position = *positions.entry((&one.name, one.space)).or_insert(images.len());
        match images.get_mut(position) {
            Some(image) => image.mappings.push(one.mapping.clone()),
            None => images.push(TracedImage {
                name: one.name.clone(),
                space: one.space,
                build_id: one.build_id.clone(),
                mappings: vec![one.mapping.clone()],
            }),
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::{Aggregate, Tally};

    type Outcome = (Vec<(u64, u64, u64)>, Vec<(u64, u64, u64)>, Tally, Tally, u64, usize);

    fn outcome(text: &[u8], chunk: usize, threads: usize) -> Outcome {
        let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let options = Options {
            space: Space::Kernel,
            events: &[],
            max_distinct: 1 << 20,
            symbols: None,
            binary: None,
            threads,
            cancelled: &cancelled,
            progress: &progress,
        };
        let mut sink = Aggregate::default();
        let found = parse_in_chunks(text, Path::new("t"), &options, &mut sink, chunk).unwrap();
        assert_eq!(progress.load(Ordering::Relaxed), text.len() as u64);
        let mut branches: Vec<_> = sink.branches().map(|(a, b, c)| (a.0, b.0, c)).collect();
        let mut ranges: Vec<_> = sink.ranges().map(|(a, b, c)| (a.0, b.0, c)).collect();
        branches.sort_unstable();
        ranges.sort_unstable();
        let first = found.first_malformed.unwrap_or(u64::MAX);
        (branches, ranges, found.samples, found.entries, first, found.mapped.len())
    }

    #[test]
    fn the_outcome_does_not_depend_on_how_the_text_is_cut() {
        let lines = [
            " ffffffff81000000 0x20/0x30/P/-/-/0  0x10/0x18/P/-/-/0 \n",
            " ffffffff81000000 0x40/0x50/M/-/-/0/COND/-  0x30/0x38/P/-/-/0/RET/- \r\n",
            "swapper 0 1.5: 1 cycles:k: \n",
            "\tffffffff81000000 do_idle+0x10 ([kernel.kallsyms])\n",
            " 0x24/0x34/P/-/-/0 \n",
            "7\n",
            "\n",
            " ffffffff81000000 \n",
            "x PERF_RECORD_MMAP -1/0: [0xffffffffc0000000(0x1000) @ 0]: x [nf_tables]\n",
            "x PERF_RECORD_LOST lost 3\n",
            " f+0x1/g+0x2/P/-/-/0 \n",
            " ffff 0xz/0x2/P/-/-/0 0x3/0x4/P/-/-/0\n",
            "# comment\n",
            "\u{1}\n",
        ];
        let mut state = 7_u64;
        for _ in 0..60 {
            let mut text = String::new();
            for _ in 0..40 {
                // Knuth's MMIX generator.
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text += lines[(state >> 33) as usize % lines.len()];
            }
            text.truncate(text.len() - (state >> 60) as usize);
            let whole = outcome(text.as_bytes(), 1 << 20, 1);
            for chunk in [1, 2, 3, 7, 40, 64, 100, 333, 1000] {
                for threads in [1, 3] {
                    assert_eq!(outcome(text.as_bytes(), chunk, threads), whole, "{chunk} {text}");
                }
            }
        }
    }

    #[test]
    fn a_line_longer_than_any_is_left_out() {
        let good = b"0x1/0x2/P/-/-/0\n";
        for middle in [&b"a"[..], b"0x1/0x2/P/-/-/0 "] {
            let long = middle.repeat(line::MAX_LINE / middle.len() + 1);
            let text = [good, &*long, b"\n", good].concat();
            for chunk in [1 << 20, 40 << 20] {
                let (branches, _, samples, ..) = outcome(&text, chunk, 1);
                assert_eq!(branches, [(1, 2, 2)]);
                assert_eq!((samples.used, samples.read()), (2, 3));
            }
            // At the end, and without one.
            let (_, _, samples, ..) = outcome(&[good, &*long].concat(), 1 << 20, 1);
            assert_eq!((samples.used, samples.read()), (1, 2));
        }
    }
}
