//! Prints the inline stacks of addresses, and what it took to find them.
//!
//! `symbolize BINARY` asks for the start of every function and prints only what it took;
//! `symbolize BINARY -` reads addresses from standard input, one hexadecimal number a line, and
//! prints a line for each: the address and its frames, the outermost first, as
//! `name:offset.discriminator`.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, Symbolizer};

type Failure = Box<dyn std::error::Error>;

fn asked(binary: &Binary, listed: bool) -> Result<Vec<ImageAddress>, Failure> {
    if !listed {
        return Ok(binary.functions().iter().map(|function| function.addresses.start).collect());
    }
    let mut addresses = Vec::new();
    for line in io::stdin().lock().lines() {
        addresses
            .push(ImageAddress(u64::from_str_radix(line?.trim().trim_start_matches("0x"), 16)?));
    }
    Ok(addresses)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("usage: symbolize BINARY [-]")?;
    let listed = arguments.next().is_some();
    let start = Instant::now();
    let binary = Binary::open(Path::new(&path))?;
    let opened = start.elapsed();
    let addresses = asked(&binary, listed)?;
    let start = Instant::now();
    let symbolizer = Symbolizer::new(&binary, &addresses)?;
    let prepared = start.elapsed();

    let mut output = io::BufWriter::new(io::stdout().lock());
    let mut known = 0;
    for address in &addresses {
        let frames = symbolizer.frames(*address);
        known += usize::from(!frames.is_empty());
        if listed {
            write!(output, "{address}")?;
            for frame in frames {
                let name = symbolizer.names().get(frame.function).map_or("?", |name| name);
                write!(output, " {name}:{}.{}", frame.line_offset, frame.discriminator)?;
            }
            writeln!(output)?;
        }
    }
    output.flush()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    eprintln!(
        "{known} of {} addresses known, {} names, {} ranges; opened in {opened:.2?}, prepared in \
         {prepared:.2?}; {} units damaged, {} without their main part; {peak}",
        addresses.len(),
        symbolizer.names().iter().len(),
        symbolizer.subprograms().ranges().len(),
        symbolizer.damaged_units(),
        symbolizer.missing_split_units(),
    );
    Ok(())
}
