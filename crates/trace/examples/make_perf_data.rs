//! Writes a perf.data with branch stacks, as large as asked for: `make_perf_data FILE MIB
//! [zstd]`. `read_speed` says how fast it is read.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use mepof_address::RuntimeAddress;
use mepof_machine::Machine;
use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedMapping, RecordedSample, Writer,
};
use mepof_trace::{BranchEntry, Space};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let compression = match arguments.get(2).map(String::as_str) {
        None => Compression::None,
        Some("zstd") => Compression::First,
        Some(other) => Err(format!("what is {other}?"))?,
    };
    match arguments.as_slice() {
        [path, mebibytes, ..] => {
            make(Path::new(path), mebibytes.parse::<u64>()? << 20, compression)
        }
        _ => Err("usage: make_perf_data FILE MIB [zstd]")?,
    }
}

/// Stafford's variant 13 of the 64-bit finalizer.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// A walk through a made-up kernel, as in `read_speed`: 200,000 branches, each with two locations
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
    let recording = PerfHeader {
        machine: Some(Machine::X86_64),
        cpu_id: "GenuineIntel,6,143,8".to_owned(),
        kernel_release: "6.12.0".to_owned(),
        branch_depth: Some(DEPTH as u32),
        events: vec![RecordedEvent::kernel_branches(11)],
        ..PerfHeader::default()
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
