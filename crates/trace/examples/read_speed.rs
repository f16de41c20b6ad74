//! How fast an input is read: `read_speed parse|aggregate FILE THREADS`, of any format;
//! `read_speed make FILE MIB` writes text of `perf script`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use mepof_address::RuntimeAddress;
use mepof_trace::input::{self, Options};
use mepof_trace::{Aggregate, Facts, Sample, Sink, Space};

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
        ["make", path, mebibytes] => make(Path::new(path), mebibytes.parse::<u64>()? << 20),
        ["parse", path, threads] => time(Path::new(path), threads.parse()?, Nothing::default()),
        ["aggregate", path, threads] => {
            time(Path::new(path), threads.parse()?, Aggregate::default())
        }
        _ => Err("usage: read_speed make FILE MIB | parse FILE THREADS | aggregate FILE THREADS")?,
    }
}

/// A walk through a made-up kernel: 200,000 branches, each with two locations where it goes and
/// from there straight to the next branch. Popular ones are taken most of the time.
fn make(path: &Path, size: u64) -> Result<(), Box<dyn Error>> {
    const BRANCHES: u64 = 200_000;
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    let mixed = |number: u64| {
        // Stafford's variant 13 of the 64-bit finalizer.
        let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    };
    // Cubed: the first tenth of the branches gets nearly half of the visits.
    let popular = |random: u64| {
        ((random as f64 / u64::MAX as f64).powi(3) * BRANCHES as f64) as u64 % BRANCHES
    };
    let address = |branch| TEXT + (mixed(branch) & 0xff_ffff);
    let mut out = BufWriter::new(File::create(path)?);
    let (mut written, mut step, mut branch) = (0, 0, 0);
    let mut stack = [(TEXT, TEXT); 32];
    while written < size {
        for newest in stack.iter_mut().rev() {
            step += 1;
            let random = mixed(!step);
            // Now and then an interrupt, or code that was not there yet.
            let next = match random % 64 {
                0 => popular(mixed(random)),
                side => popular(mixed(branch * 2 + u64::from(side < 48) + BRANCHES)),
            };
            *newest = (address(branch), address(next) - mixed(next) % 61);
            branch = next;
        }
        let mut line = format!(" {:x} ", address(branch));
        for (from, to) in &stack {
            line += &format!(" {from:#x}/{to:#x}/P/-/-/0 ");
        }
        line.push('\n');
        written += line.len() as u64;
        out.write_all(line.as_bytes())?;
    }
    Ok(out.flush()?)
}

fn time<S: Sink>(path: &Path, threads: usize, mut sink: S) -> Result<(), Box<dyn Error>> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: usize::MAX,
        symbols: None,
        binary: None,
        threads,
        cancelled: &cancelled,
        progress: &progress,
    };
    let size = std::fs::metadata(path)?.len();
    let started = Instant::now();
    let facts: Facts = input::read(path, None, &options, &mut sink)?;
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{:.0} MB/s, {:.1} ns an entry, {} entries, {} distinct, {peak}",
        size as f64 / seconds / 1e6,
        seconds * 1e9 / facts.entries.used as f64,
        facts.entries.used,
        sink.distinct(),
    );
    println!("{}: samples {:?}", facts.format, facts.samples);
    facts.notes.iter().for_each(|note| println!("note: {note}"));
    Ok(())
}
