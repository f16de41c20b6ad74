//! How fast text of `perf script` is read: `read_speed make FILE MIB` writes some,
//! `read_speed parse|aggregate FILE THREADS` reads it.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use mepof_address::RuntimeAddress;
use mepof_trace::input::{Options, perf_script};
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

/// A walk through a made-up kernel: 200,000 branches with two targets each, of which a few are
/// taken most of the time.
fn make(path: &Path, size: u64) -> Result<(), Box<dyn Error>> {
    const BRANCHES: u64 = 200_000;
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    let mut state = 1_u64;
    let mut random = move || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = 0;
    let mut stack = vec![(TEXT, TEXT); 32];
    while written < size {
        for _ in 0..8 {
            // Cubed: the first tenth of the branches gets nearly half of the visits.
            let uniform = (random() >> 11) as f64 / (1_u64 << 53) as f64;
            let branch = (uniform.powi(3) * BRANCHES as f64) as u64;
            let scattered = branch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let target = scattered.wrapping_mul(random() % 2 + 3) & 0xff_ffff;
            stack.rotate_right(1);
            if let Some(newest) = stack.first_mut() {
                *newest = (TEXT + scattered, TEXT + target);
            }
        }
        let mut line = format!(" {:x} ", TEXT + (random() & 0xff_ffff));
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
        threads,
        cancelled: &cancelled,
        progress: &progress,
    };
    let size = std::fs::metadata(path)?.len();
    let started = Instant::now();
    let facts: Facts = perf_script::read(path, &options, &mut sink)?;
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
    Ok(())
}
