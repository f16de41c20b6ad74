//! How fast perf.data is read: `perf_data_speed make FILE MIB [zstd]` writes some,
//! `perf_data_speed parse|aggregate FILE THREADS` reads it.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use mepof_address::{Machine, RuntimeAddress};
use mepof_trace::input::{Options, perf_data};
use mepof_trace::output::perf_data::{
    Compression, RecordedEvent, RecordedMapping, RecordedSample, Recording, Writer,
};
use mepof_trace::{Aggregate, BranchEntry, Sample, Sink, Space};

/// Takes everything and keeps a sum, so that nothing is optimised away.
#[derive(Default)]
struct Nothing(u64);

impl Sink for Nothing {
    fn sample(&mut self, sample: &Sample<'_>) {
        for entry in sample.branches {
            self.0 = self.0.wrapping_add(entry.from.0 ^ entry.to.0);
        }
    }
    fn branch(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {}
    fn range(&mut self, _: RuntimeAddress, _: RuntimeAddress, _: u64) {}
    fn fork(&self) -> Self {
        Self::default()
    }
    fn merge(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["make", path, mebibytes] => {
            make(Path::new(path), mebibytes.parse::<u64>()? << 20, Compression::None)
        }
        ["make", path, mebibytes, "zstd"] => {
            make(Path::new(path), mebibytes.parse::<u64>()? << 20, Compression::First)
        }
        ["parse", path, threads] => time(Path::new(path), threads.parse()?, Nothing::default()),
        ["aggregate", path, threads] => {
            time(Path::new(path), threads.parse()?, Aggregate::default())
        }
        _ => Err("usage: perf_data_speed make FILE MIB [zstd] | parse FILE THREADS | \
                  aggregate FILE THREADS")?,
    }
}

/// Stafford's variant 13 of the 64-bit finalizer.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// A walk through a made-up kernel, as in `read_speed`: 200,000 branches, each with two places
/// where it goes and from there straight to the next branch. Popular ones are taken most of
/// the time. `size` is in bytes of records before they are compressed.
fn make(path: &Path, size: u64, compression: Compression) -> Result<(), Box<dyn Error>> {
    const BRANCHES: u64 = 200_000;
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    const DEPTH: usize = 32;
    let popular = |random: u64| {
        ((random as f64 / u64::MAX as f64).powi(3) * BRANCHES as f64) as u64 % BRANCHES
    };
    let address = |branch| TEXT + (mixed(branch) & 0xff_ffff);
    let recording = Recording {
        machine: Some(Machine::X86_64),
        cpu_id: "GenuineIntel,6,143,8".to_owned(),
        kernel_release: "6.12.0".to_owned(),
        branch_depth: Some(DEPTH as u32),
        events: vec![RecordedEvent::kernel_branches(11)],
        ..Recording::default()
    };
    let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut writer = Writer::file(out, recording, compression)?;
    writer.mapping(&RecordedMapping {
        space: Space::Kernel,
        name: "[kernel.kallsyms]_stext",
        start: RuntimeAddress(TEXT),
        size: 0x100_0000,
        offset: TEXT,
        build_id: None,
    })?;
    let mut stack = [BranchEntry::default(); DEPTH];
    let (mut step, mut branch) = (0_u64, 0);
    for sample in 0..size / (96 + 24 * DEPTH as u64) {
        for newest in stack.iter_mut().rev() {
            step += 1;
            let random = mixed(!step);
            let next = match random % 64 {
                0 => popular(mixed(random)),
                side => popular(mixed(branch * 2 + u64::from(side < 48) + BRANCHES)),
            };
            let to = address(next) - mixed(next) % 61;
            *newest = BranchEntry {
                from: RuntimeAddress(address(branch)),
                to: RuntimeAddress(to),
                mispredicted: Some(random % 29 == 0),
                ..BranchEntry::default()
            };
            branch = next;
        }
        writer.sample(&RecordedSample {
            event: 0,
            address: RuntimeAddress(address(branch)),
            space: Space::Kernel,
            time: sample * 1000,
            process: (1, 1),
            cpu: (sample % 8) as u32,
            branches: &stack,
        })?;
    }
    writer.finish()?;
    Ok(())
}

fn time<S: Sink>(path: &Path, threads: usize, mut sink: S) -> Result<(), Box<dyn Error>> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: usize::MAX,
        threads,
        cancelled: &cancelled,
        progress: &progress,
    };
    let size = std::fs::metadata(path)?.len();
    let started = Instant::now();
    let facts = perf_data::read(path, &options, &mut sink)?;
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{:.0} MB/s, {:.2} ns an entry, {} samples, {} distinct, {peak}",
        size as f64 / seconds / 1e6,
        seconds * 1e9 / facts.entries.used as f64,
        facts.samples.used,
        sink.distinct(),
    );
    Ok(())
}
