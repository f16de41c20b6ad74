//! Writes the seeds of `perf_data` and `branch_list`: `cargo run --example perf-data-seeds` in
//! `fuzz/`.

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;
use mepof_trace::output::perf_data::{
    Compression, PerfHeader, RecordedEvent, RecordedMapping, RecordedSample, Writer,
};
use mepof_trace::{BranchEntry, Space, Speculation};

const TEXT: u64 = 0xffff_ffff_8100_0000;

fn seed(target: &str, name: &str, content: impl AsRef<[u8]>) -> Result<(), Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&directory)?;
    Ok(fs::write(directory.join(name), content)?)
}

fn recording() -> Result<PerfHeader, Box<dyn Error>> {
    let with_everything = RecordedEvent {
        name: "branches:k".to_owned(),
        branches: Some(1 << 1 | 1 << 3 | 1 << 17 | 1 << 19), // index and counters
        ..RecordedEvent::kernel_branches(12)
    };
    Ok(PerfHeader {
        machine: Some(Machine::X86_64),
        cpu: "A CPU".to_owned(),
        cpu_id: "AuthenticAMD,25,17,1".to_owned(),
        kernel_release: "6.12".to_owned(),
        command: vec!["perf".to_owned()],
        branch_depth: Some(16),
        events: vec![RecordedEvent::kernel_branches(11), with_everything],
        build_ids: vec![(Space::Kernel, "[kernel.kallsyms]".to_owned(), BuildId::new(&[7; 20])?)],
    })
}

fn fill<W: std::io::Write>(writer: &mut Writer<W>) -> Result<(), Box<dyn Error>> {
    let id = BuildId::new(&[8; 20])?;
    for (name, space, build_id) in [
        ("[kernel.kallsyms]_stext", Space::Kernel, None),
        ("[nf_tables]", Space::Kernel, Some(&id)),
        ("[guest.kernel.kallsyms.1]_text", Space::GuestKernel, None),
    ] {
        let start = RuntimeAddress(TEXT);
        let mapping =
            RecordedMapping { space, name, start, size: 0x10_0000, offset: TEXT, build_id };
        writer.mapping(&mapping)?;
    }
    let entry = |from, to, speculation| BranchEntry {
        from: RuntimeAddress(from),
        to: RuntimeAddress(to),
        mispredicted: Some(true),
        speculation,
        ..BranchEntry::default()
    };
    let branches = [
        entry(TEXT + 0x30, TEXT + 0x50, Speculation::Correct),
        entry(TEXT + 0x20, TEXT + 0x90, Speculation::WrongPath),
        entry(0x1000, TEXT + 0x10, Speculation::Unknown),
        entry(0, 0, Speculation::Unknown),
    ];
    for event in [0, 1] {
        for space in [Space::Kernel, Space::User, Space::GuestKernel] {
            writer.sample(&RecordedSample {
                event,
                address: RuntimeAddress(TEXT),
                space,
                time: 1,
                process: (1, 1),
                cpu: 0,
                branches: &branches,
            })?;
        }
    }
    Ok(writer.lost(0, 3)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, compression) in [
        ("plain", Compression::None),
        ("compressed", Compression::First),
        ("compressed2", Compression::Second),
    ] {
        let mut file = Writer::file(Cursor::new(Vec::new()), recording()?, compression)?;
        fill(&mut file)?;
        seed("perf_data", name, file.finish()?.into_inner())?;
    }
    let mut pipe = Writer::pipe(Vec::new(), recording()?, Compression::None)?;
    fill(&mut pipe)?;
    // A trace of Arm's SPE: a taken branch.
    let mut trace = vec![0xb0];
    trace.extend((TEXT & 0xff_ffff_ffff_ffff | 5 << 61).to_le_bytes());
    trace.extend([0x42, 2, 0x4a, 1, 0xb1]);
    trace.extend((TEXT + 8 & 0xff_ffff_ffff_ffff | 5 << 61).to_le_bytes());
    trace.push(1);
    pipe.record(70, 0, &[4, 0, 0, 0, 0, 0, 0, 0])?;
    pipe.record(71, 0, &[trace.len() as u64, 0, 0, 0, 0].map(u64::to_le_bytes).concat())?;
    let mut pipe = pipe.finish()?;
    pipe.extend(trace);
    seed("perf_data", "pipe", pipe)?;

    let list = [0x12, 7, 0x0a, 1, 0b101, 0x10, 3, 0x18, 7]; // bits, how many, how often
    let address = [&[0x1a, 12, 0x08, 0x80, 0x20][..], &list].concat();
    let binary = [&[0x12, 20, 0x0a, 2, b'/', b'x', 0x20, 1][..], &address].concat();
    let mut file = b"simpleperf:EtmBranchList\x01\0\0\0\0".to_vec();
    file.extend((binary.len() as u32).to_le_bytes());
    file.extend(&binary);
    seed("branch_list", "new", &file)?;
    let old = [&b"\x0a\x18simpleperf:EtmBranchList"[..], &binary].concat();
    seed("branch_list", "old", old)
}
