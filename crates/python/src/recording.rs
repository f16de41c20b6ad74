//! Branch records: convert, draw.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_binary::{Binary, BinaryError, read_bb_address_maps};
use mepof_convert::{ConvertError, Image, Places, ProfileOptions, Quality, Reason, Recording, Request, Verdict};
use mepof_layout::{BlockMap, Layout, LayoutOptions, Symbols, bolt, count, propeller};
use mepof_trace::input::Format;
use mepof_trace::output::unsymbolized;
use mepof_trace::{Space, TraceError};
use serde::Serialize;

use crate::fault::Fault;
use crate::output::{Files, beside};
use crate::profiles::Form;

/// What branch records are converted to, by the names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An AutoFDO profile.
    Profile(Form),
    /// Propeller's `cc_profile` and `ld_profile`.
    Propeller,
    /// BOLT's `fdata`.
    Bolt,
    /// BOLT's pre-aggregated branches and ranges.
    BoltPreaggregated,
    /// llvm-profgen's unsymbolized text.
    Unsymbolized,
}

const TRACE_TARGETS: [(&str, Target); 4] = [
    ("propeller", Target::Propeller),
    ("bolt", Target::Bolt),
    ("bolt-preaggregated", Target::BoltPreaggregated),
    ("unsymbolized", Target::Unsymbolized),
];

impl Target {
    pub fn names() -> impl Iterator<Item = &'static str> {
        Form::names().chain(TRACE_TARGETS.iter().map(|&(name, _)| name))
    }

    pub fn named(name: &str) -> Option<Self> {
        let of_trace = || TRACE_TARGETS.iter().find(|(known, _)| *known == name);
        Form::named(name).map(Self::Profile).or_else(|| of_trace().map(|&(_, target)| target))
    }
}

/// The names of [`Space`]s on the command line.
pub(crate) const SPACES: [(&str, Space); 3] =
    [("kernel", Space::Kernel), ("guest", Space::GuestKernel), ("user", Space::User)];

/// Where branch records are, and what they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub binary: PathBuf,
    pub modules: Vec<PathBuf>,
    pub inputs: Vec<PathBuf>,
    pub format: Option<Format>,
    pub kallsyms: Option<PathBuf>,
    pub space: Space,
    pub events: Vec<String>,
}

impl Records {
    pub fn request<'a>(
        &'a self,
        cancelled: &'a AtomicBool,
        progress: &'a AtomicU64,
    ) -> Request<'a> {
        Request {
            binary: &self.binary,
            modules: &self.modules,
            inputs: &self.inputs,
            format: self.format,
            space: self.space,
            events: &self.events,
            kallsyms: self.kallsyms.as_deref(),
            cancelled,
            progress,
        }
    }
}

/// How to convert.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    pub target: Target,
    pub output: PathBuf,
    pub places: Places,
    pub allow_poor: bool,
}

/// What a conversion gave.
#[derive(Debug, Serialize)]
pub(crate) struct Converted {
    outputs: Vec<PathBuf>,
    /// What speaks against it, for people.
    reasons: Vec<String>,
    verdict: Verdict,
}

impl From<TraceError> for Fault {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Cancelled => Self::Interrupted,
            other => Self::input(other),
        }
    }
}

impl From<BinaryError> for Fault {
    fn from(error: BinaryError) -> Self {
        Self::input(error)
    }
}

impl From<ConvertError> for Fault {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Trace(error) => error.into(),
            ConvertError::Cancelled => Self::Interrupted,
            // A gate, not a mistake.
            poor @ ConvertError::Poor(_) => Self::work(poor),
            other => Self::input(other),
        }
    }
}

pub(crate) fn convert(
    records: &Records,
    conversion: &Conversion,
    cancelled: &AtomicBool,
    progress: &AtomicU64,
) -> Result<Converted, Fault> {
    let recording = Recording::read(&records.request(cancelled, progress))?;
    // The verdict is that of the profile, whatever is written: all targets rest on the same data.
    let converted = mepof_convert::autofdo(&recording, ProfileOptions { places: conversion.places, ..ProfileOptions::default() }, true)?;
    let verdict = converted.verdict;
    let reasons = verdict.reasons.iter().map(Reason::to_string).collect();
    if verdict.quality == Quality::Poor && !conversion.allow_poor {
        return Ok(Converted { outputs: Vec::new(), reasons, verdict });
    }
    let mut files = Files::default();
    match conversion.target {
        Target::Profile(form) => {
            files.write(&conversion.output, |out| form.write(&converted.profile, out))?;
        }
        target => {
            for (number, image) in recording.images.iter().enumerate() {
                let path = if number == 0 {
                    conversion.output.clone()
                } else {
                    beside(&conversion.output, &stem(image.binary.path()))
                };
                write_image(target, image, &path, &mut files)?;
            }
        }
    }
    let outputs = files.paths();
    files.write_document(&beside(&conversion.output, "verdict.json"), &verdict)?;
    files.publish(cancelled)?;
    Ok(Converted { outputs, reasons, verdict })
}

/// Writes what `target` is of one binary.
fn write_image(target: Target, image: &Image, path: &Path, files: &mut Files) -> Result<(), Fault> {
    let (binary, trace) = (&image.binary, &image.trace);
    match target {
        Target::Profile(_) => Ok(()),
        Target::Propeller => write_propeller(image, path, files),
        Target::Bolt => {
            let symbols = symbols(binary)?;
            files.write(path, |out| written(bolt::write_fdata(out, binary, &symbols, trace)))
        }
        Target::BoltPreaggregated => {
            files.write(path, |out| written(bolt::write_branches(out, trace)))
        }
        Target::Unsymbolized => {
            let base = binary.executable_base();
            files.write(path, |out| written(unsymbolized::write(trace, base, out)))
        }
    }
}

fn write_propeller(image: &Image, path: &Path, files: &mut Files) -> Result<(), Fault> {
    let functions = read_bb_address_maps(&image.binary)?;
    let map = BlockMap::new(&functions);
    let graph = count(&map, &image.trace);
    let layout = Layout::new(&map, &graph, &[], &LayoutOptions::default());
    let symbols = symbols(&image.binary)?;
    let profile = propeller::Profile::new(&layout, &symbols, propeller::ProfileOptions::default());
    files.write(&beside(path, "cc_profile"), |out| written(profile.write_cc_profile(out)))?;
    files.write(&beside(path, "ld_profile"), |out| written(profile.write_ld_profile(out)))
}

fn symbols(binary: &Binary) -> Result<Symbols, Fault> {
    Ok(Symbols::read(binary, |_| None)?)
}

fn written(outcome: io::Result<()>) -> Result<(), Fault> {
    outcome.map_err(Fault::work)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
