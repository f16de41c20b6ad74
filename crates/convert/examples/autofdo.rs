//! Converts branch traces to an AutoFDO profile in text, and says what the conversion rests on.
//!
//!     cargo run --release -p mepof-convert --example autofdo VMLINUX OUTPUT INPUT...

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use mepof_convert::{BranchTrace, Inference, ProfileOptions, Request, autofdo};
use mepof_trace::Space;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [binary, output, inputs @ ..] = &arguments[..] else {
        return Err("give a vmlinux, an output file and inputs".into());
    };
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let request = Request {
        binary,
        modules: &[],
        inputs,
        format: None,
        space: Space::Kernel,
        events: &[],
        kallsyms: None,
        cancelled: &cancelled,
        progress: &progress,
    };
    let inference = match std::env::var("INFER").as_deref() {
        Ok("always") => Inference::Always,
        Ok("never") => Inference::Never,
        _ => Inference::default(),
    };
    let begin = Instant::now();
    let recording = BranchTrace::read(&request)?;
    let read = begin.elapsed();
    let converted = autofdo(&recording, ProfileOptions { inference, ..ProfileOptions::default() })?;
    let made = begin.elapsed() - read;
    let mut file = BufWriter::new(File::create(output)?);
    mepof_profile::text::write(&converted.profile, &mut file)?;
    file.flush()?;
    println!("read {read:.2?}, profile {made:.2?}, in all {:.2?}", begin.elapsed());
    println!("{:#?}", converted.verdict);
    Ok(())
}
