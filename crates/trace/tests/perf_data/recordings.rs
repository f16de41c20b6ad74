//! Recordings to test with, and how to read them back.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{env, fs, process};

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;
use mepof_trace::input::{Options, perf_data};
use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedMapping, RecordedSample, Writer,
};
use mepof_trace::{Aggregate, BranchEntry, Facts, Space, Speculation, TraceError};

pub const TEXT: u64 = 0xffff_ffff_9a00_0000;
pub const MODULE: u64 = 0xffff_ffff_c0a0_0000;
pub const USER: u64 = 0x7f12_3400_1000;

/// A file that goes away with its owner.
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    pub fn new(bytes: &[u8]) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("mepof-perf-{}-{count}.data", process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn build_id(byte: u8) -> BuildId {
    BuildId::new(&[byte; 20]).unwrap()
}

pub fn entry(from: u64, to: u64) -> BranchEntry {
    let (from, to) = (RuntimeAddress(from), RuntimeAddress(to));
    BranchEntry { from, to, mispredicted: Some(false), ..BranchEntry::default() }
}

pub fn wrong_path(from: u64, to: u64) -> BranchEntry {
    BranchEntry { speculation: Speculation::WrongPath, ..entry(from, to) }
}

pub fn recording() -> PerfHeader {
    PerfHeader {
        machine: Some(Machine::X86_64),
        cpu: "Intel(R) Xeon(R) Test".to_owned(),
        cpu_id: "GenuineIntel,6,143,8".to_owned(),
        kernel_release: "6.12.1-test".to_owned(),
        command: vec!["perf".to_owned(), "record".to_owned(), "-b".to_owned()],
        branch_depth: Some(32),
        events: vec![RecordedEvent::kernel_branches(11)],
        build_ids: vec![(Space::Kernel, "[kernel.kallsyms]".to_owned(), build_id(0xab))],
    }
}

pub fn kernel_mapping() -> RecordedMapping<'static> {
    RecordedMapping {
        space: Space::Kernel,
        name: "[kernel.kallsyms]_stext",
        start: RuntimeAddress(TEXT),
        size: 0x120_0000,
        offset: TEXT,
        build_id: None,
    }
}

pub fn sample(branches: &[BranchEntry]) -> RecordedSample<'_> {
    RecordedSample {
        event: 0,
        address: branches.first().map_or(RuntimeAddress(TEXT), |branch| branch.to),
        space: Space::Kernel,
        time: 1_000_000,
        process: (42, 42),
        cpu: 1,
        branches,
    }
}

pub type MemoryWriter = Writer<Cursor<Vec<u8>>>;

/// A file with a kernel mapping, and what `fill` adds.
pub fn file(recording: PerfHeader, fill: impl FnOnce(&mut MemoryWriter)) -> Vec<u8> {
    packed_file(recording, Compression::None, fill)
}

pub fn packed_file(
    recording: PerfHeader,
    compression: Compression,
    fill: impl FnOnce(&mut MemoryWriter),
) -> Vec<u8> {
    let mut writer = Writer::file(Cursor::new(Vec::new()), recording, compression).unwrap();
    writer.mapping(&kernel_mapping()).unwrap();
    fill(&mut writer);
    writer.finish().unwrap().into_inner()
}

pub struct Settings {
    pub space: Space,
    pub events: Vec<String>,
    pub threads: usize,
    pub max_distinct: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { space: Space::Kernel, events: Vec::new(), threads: 1, max_distinct: 1 << 20 }
    }
}

pub fn read_with(bytes: &[u8], settings: &Settings) -> Result<(Facts, Aggregate), TraceError> {
    let file = TemporaryFile::new(bytes);
    read_path(&file.0, settings)
}

pub fn read_path(path: &Path, settings: &Settings) -> Result<(Facts, Aggregate), TraceError> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: settings.space,
        events: &settings.events,
        max_distinct: settings.max_distinct,
        symbols: None,
        binary: None,
        threads: settings.threads,
        cancelled: &cancelled,
        progress: &progress,
    };
    let mut aggregate = Aggregate::default();
    let facts = perf_data::read(path, &options, &mut aggregate)?;
    Ok((facts, aggregate))
}

pub fn read(bytes: &[u8]) -> (Facts, Aggregate) {
    read_with(bytes, &Settings::default()).unwrap()
}

type Counts = Vec<(u64, u64, u64)>;

fn sorted(all: impl Iterator<Item = (RuntimeAddress, RuntimeAddress, u64)>) -> Counts {
    let mut all: Counts = all.map(|(first, second, count)| (first.0, second.0, count)).collect();
    all.sort_unstable();
    all
}

pub fn branches(aggregate: &Aggregate) -> Counts {
    sorted(aggregate.branches())
}

pub fn ranges(aggregate: &Aggregate) -> Counts {
    sorted(aggregate.ranges())
}

/// A note that has all of `words` in it.
pub fn has_note(facts: &Facts, words: &[&str]) -> bool {
    facts.notes.iter().any(|note| words.iter().all(|word| note.contains(word)))
}
