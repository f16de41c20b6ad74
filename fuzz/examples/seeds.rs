//! Writes the seeds of the readers of branch traces: `cargo run --example seeds` in `fuzz/`.

use std::error::Error;
use std::fs;
use std::path::Path;

use mepof_address::RuntimeAddress;
use mepof_machine::Machine;
use mepof_trace::output::recorder::{Counted, Counter, Header, Sampling, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    perf_script()?;
    unsymbolized()?;
    preaggregated()?;
    recorder()
}

fn seed(target: &str, name: &str, content: impl AsRef<[u8]>) -> Result<(), Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&directory)?;
    Ok(fs::write(directory.join(name), content)?)
}

fn perf_script() -> Result<(), Box<dyn Error>> {
    let seed = |name, text: &str| seed("perf_script", name, text);
    let stack = "0xffffffff81000020/0xffffffff81000030/P/-/-/0  \
                 0xffffffff81000010/0xffffffff81000018/M/-/-/12 \n";
    seed("bare", &format!(" ffffffff81000000  {stack} 4005dc 0x1/0x2/P/-/-/0 \n"))?;
    seed(
        "fields",
        &format!("swapper     0 [001]  12.000001:     1000 cycles:k:  ffffffff81000000 {stack}"),
    )?;
    let types = stack.replace("/0 ", "/0/COND/SPEC_WRONG_PATH ").replace("/12", "/12/RET/-");
    seed("types", &format!(" ffffffff81000000 {types} 0x1/0x2/PN/-/-/3//-\n"))?;
    seed("chain", &format!("7\n\n\t  4005dc\n\t  400634 f+0x1 (/a)\n {stack}\n\t 4005dc\n\n"))?;
    seed("files", " ffff 0x10 ([kernel.kallsyms])/0x20 (/opt/a (b) c)/M/-/-/0 \n")?;
    seed(
        "records",
        &format!(
            " a 1 PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x2000000) @ 0xffffffff81000200]: x \
             [kernel.kallsyms]_text\n a 1 PERF_RECORD_MMAP2 7/7: [0x7fd4efb57000(0x4000) @ 0 \
             08:04 1 2]: r-xp /bin/x\n a 1 PERF_RECORD_MMAP2 7/7: [0x7000(0x1000) @ 0x2000 \
             <abcdef01>]: r-xp //anon\n a PERF_RECORD_LOST lost 5\n# comment\n {stack}"
        ),
    )?;
    seed("names", " ffff f+0x10/g+0x20/P/-/-/0 g+0x22/f+0x1/M/-/-/0\r\n")
}

fn unsymbolized() -> Result<(), Box<dyn Error>> {
    let seed = |name, text: &str| seed("unsymbolized", name, text);
    seed("offsets", "2\n10-2F:3\n40-4A:1\n2\n2F->40:7\nFFFFFFFFFFDFF001->10:2\n")?;
    seed("addresses", "1\n0xffffffff81000010-0xffffffff8100002f:3\n0\n")?;
    seed(
        "autofdo",
        "1\n10-20:3\n1\n20:4\n1\n20->0:2\n// build_id: 0x01\n// /a\n\n0\n0\n1\n20->10:1\n",
    )?;
    seed("contexts", "[main:1 @ f]\n  1\n  10-20:3\n  1\n  20->10:1\n[g]\n  0\n  0\n")
}

fn preaggregated() -> Result<(), Box<dyn Error>> {
    let seed = |name, text: &str| seed("preaggregated", name, text);
    seed("legacy", "B 4b196f X:0 2 1\nF 41be50 41BE90 3\nf 10 20 1\nr aabb:10 20 1\n")?;
    seed("traces", "E cycles\nT 4b196f 4b19e0 4b19ef 2\nR 0 20 ffffffffffffffff 1\nS 10 3\n")
}

fn recorder() -> Result<(), Box<dyn Error>> {
    let header = |sampling| Header {
        machine: Machine::X86_64,
        sampling,
        kernel_only: true,
        vcpus: 2,
        kernel_base: Some(("_text".to_owned(), RuntimeAddress(0xffff_ffff_8100_0000))),
        build_id: "0123456789abcdef0123456789abcdef01234567".parse().ok(),
    };
    let mut exact = Writer::new(Vec::new(), &header(None))?;
    exact.branches(&[(0x20, 0x30, 5), (0x40, 0x50, 6)])?;
    exact.ranges(&[(0x30, 0x40, 5)])?;
    exact.mapping(RuntimeAddress(0xffff_ffff_c000_0000), 0x1000, "[nf_tables]", ".text")?;
    exact.counters(&[(Counter::RepIterations, 40), (Counter::LostBranches, 2)])?;
    seed("recorder", "exact", exact.finish()?)?;
    let sampling = Sampling { period: 1009, counted: Counted::TakenBranches, depth: 4 };
    let mut sampled = Writer::new(Vec::new(), &header(Some(sampling)))?;
    sampled.sample(77, 0x60, 1, &[(0x40, 0x50), (0x20, 0x30)])?;
    sampled.sample(78, 0, 0, &[])?;
    seed("recorder", "sampled", sampled.finish()?)
}
