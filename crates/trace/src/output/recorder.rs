//! The emulated recorder's trace: `docs/recorder-trace.md`.

use std::io::{self, Write};

use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;

pub use crate::recorder_trace::{Counted, Counter};
use crate::recorder_trace::{
    END, FLAG_KERNEL_ONLY, FLAG_SAMPLED, LARGEST_BODY, MAGIC, RecordType, VERSION,
};

/// The header of a trace.
#[derive(Clone, Debug)]
pub struct Header {
    /// The guest's instruction set.
    pub machine: Machine,
    /// How it was sampled; `None` if every branch was recorded.
    pub sampling: Option<Sampling>,
    /// Whether nothing of user code was recorded.
    pub kernel_only: bool,
    /// Number of vCPUs.
    pub vcpus: u32,
    /// Name, of 11 bytes at most, and run-time address of the reference symbol.
    pub kernel_base: Option<(String, RuntimeAddress)>,
    /// The kernel's build-id, as it is printed.
    pub build_id: Option<BuildId>,
}

/// How a trace was sampled.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Events from one sample to the next.
    pub period: u64,
    /// What an event is.
    pub counted: Counted,
    /// Entries of the branch stack, 1 to 1024.
    pub depth: u32,
}

/// Writes a trace.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace with `header`.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        let machine = u32::from(header.machine.elf_number());
        let sampled = if header.sampling.is_some() { FLAG_SAMPLED } else { 0 };
        let kernel_only = if header.kernel_only { FLAG_KERNEL_ONLY } else { 0 };
        let (period, depth, counted) = header.sampling.map_or((0, 0, 0), |sampling| {
            (sampling.period, sampling.depth, sampling.counted as u32)
        });
        let (symbol, base) =
            header.kernel_base.as_ref().map_or(("", 0), |(symbol, base)| (symbol, base.0));
        let build_id = header.build_id.as_ref().map(BuildId::bytes).unwrap_or_default();
        out.write_all(MAGIC)?;
        for number in [VERSION, machine, sampled | kernel_only, header.vcpus] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(&period.to_le_bytes())?;
        out.write_all(&depth.to_le_bytes())?;
        out.write_all(&counted.to_le_bytes())?;
        out.write_all(&base.to_le_bytes())?;
        out.write_all(&padded::<12>(symbol.as_bytes()))?;
        out.write_all(&(build_id.len() as u32).to_le_bytes())?;
        out.write_all(&padded::<64>(build_id))?;
        Ok(Self { out, records: 0 })
    }

    /// Taken branches: from, to, count.
    pub fn branches(&mut self, branches: &[(u64, u64, u64)]) -> io::Result<()> {
        self.triples(RecordType::Branches, branches)
    }

    /// Fall-through ranges: first, last, count.
    pub fn ranges(&mut self, ranges: &[(u64, u64, u64)]) -> io::Result<()> {
        self.triples(RecordType::Ranges, ranges)
    }

    fn triples(&mut self, kind: RecordType, triples: &[(u64, u64, u64)]) -> io::Result<()> {
        triples.chunks(LARGEST_BODY as usize / 24).try_for_each(|some| {
            let numbers = some.iter().flat_map(|&(one, two, count)| [one, two, count]);
            self.record(kind as u32, &numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
        })
    }

    /// One sample: nanoseconds, the address where it was taken, the vCPU, and the stack, the
    /// newest branch first.
    pub fn sample(
        &mut self,
        time: u64,
        address: u64,
        vcpu: u32,
        stack: &[(u64, u64)],
    ) -> io::Result<()> {
        let mut body = [time.to_le_bytes(), address.to_le_bytes()].concat();
        body.extend([vcpu, stack.len() as u32].iter().flat_map(|number| number.to_le_bytes()));
        body.extend(stack.iter().flat_map(|&(from, to)| [from, to]).flat_map(u64::to_le_bytes));
        self.record(RecordType::Sample as u32, &body)
    }

    /// What was counted beside the records.
    pub fn counters(&mut self, counters: &[(Counter, u64)]) -> io::Result<()> {
        let numbers = counters.iter().flat_map(|&(counter, value)| [counter as u64, value]);
        let body: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.record(RecordType::Counters as u32, &body)
    }

    /// Where a module, or a section of it, ran. Neither name has a zero byte.
    pub fn mapping(
        &mut self,
        start: RuntimeAddress,
        size: u64,
        name: &str,
        section: &str,
    ) -> io::Result<()> {
        let mut body: Vec<u8> = [start.0, size, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        for text in [name, section] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.resize(body.len().next_multiple_of(8), 0);
        self.record(RecordType::Mapping as u32, &body)
    }

    fn record(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&(body.len() as u32).to_le_bytes())?;
        self.out.write_all(body)?;
        self.records += 1;
        Ok(())
    }

    /// Ends the trace.
    pub fn finish(mut self) -> io::Result<W> {
        let records = self.records;
        self.record(END, &records.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// `bytes` and zeros, or as many of `bytes` as fit.
fn padded<const SIZE: usize>(bytes: &[u8]) -> [u8; SIZE] {
    let mut all = [0; SIZE];
    all.iter_mut().zip(bytes).for_each(|(byte, &given)| *byte = given);
    all
}
