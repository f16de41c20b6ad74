//! Decodes all code of a binary and says how fast: `instruction_speed VMLINUX [ROUNDS]`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

use mepof_binary::{Binary, instructions};
use mepof_machine::Flow;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which binary?")?;
    let rounds = arguments.next().map_or(Ok(3), |rounds| rounds.parse::<u32>())?;
    let binary = Binary::open(Path::new(&path))?;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut flows: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut count, mut bytes, mut branches) = (0_u64, 0_u64, 0_u64);
        for section in binary.sections() {
            for (_, instruction) in instructions(&binary, section.addresses.clone()) {
                count += 1;
                bytes += u64::from(instruction.size);
                branches += u64::from(instruction.flow != Flow::Next);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        for section in binary.sections() {
            for (_, instruction) in instructions(&binary, section.addresses.clone()) {
                *flows.entry(name(instruction.flow)).or_default() += 1;
            }
        }
        println!(
            "{count} instructions, {branches} branches, {bytes} bytes of {} in {seconds:.3} s: \
             {:.1} M/s; {flows:?}",
            binary.text_size(),
            count as f64 / seconds / 1e6,
        );
    }
    Ok(())
}

fn name(flow: Flow) -> &'static str {
    match flow {
        Flow::Next => "next",
        Flow::Conditional(_) => "conditional",
        Flow::Jump(_) => "jump",
        Flow::IndirectJump => "indirect jump",
        Flow::Call(_) => "call",
        Flow::IndirectCall => "indirect call",
        Flow::Return => "return",
        Flow::System => "system",
        Flow::Stop => "stop",
    }
}
