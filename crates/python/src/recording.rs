//! Branch records: convert, draw.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mepof_binary::BinaryError;
use mepof_convert::{
    ConvertError, Inference, ProfileOptions, Quality, Reason, Recording, Request, Verdict,
};
use mepof_layout::{Symbols, bolt};
use mepof_profile::{SuffixElision, canonical_name};
use mepof_trace::input::Format;
use mepof_trace::output::unsymbolized;
use mepof_trace::{ImageTrace, Space, TraceError};
use serde::Serialize;

use crate::fault::Fault;
use crate::output::{Files, beside, is_special};
use crate::profiles::Form;
use crate::{blocks, perf_data};

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
    /// The samples, as perf would have recorded them.
    PerfData,
}

const TRACE_TARGETS: [(&str, Target); 5] = [
    ("propeller", Target::Propeller),
    ("bolt", Target::Bolt),
    ("bolt-preaggregated", Target::BoltPreaggregated),
    ("unsymbolized", Target::Unsymbolized),
    ("perf-data", Target::PerfData),
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

/// The names of [`Inference`]s on the command line.
pub(crate) const INFERENCES: [(&str, Inference); 3] = [
    ("never", Inference::Never),
    ("single", Inference::SingleBranches),
    ("always", Inference::Always),
];

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
    pub options: ProfileOptions,
    /// Names as MD5 hashes.
    pub md5_names: bool,
    /// Whether to name all functions of the binaries, so that those without samples are cold.
    pub symbol_list: bool,
    pub path_cloning: bool,
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
            other => Self::input(other),
        }
    }
}

/// The names of the functions of all binaries, as profiles have them.
fn symbols(recording: &Recording) -> Vec<Arc<str>> {
    let functions = recording.images.iter().flat_map(|image| image.binary.functions());
    let entries = functions.filter(|function| function.is_entry);
    let names =
        entries.map(|function| canonical_name(&function.name, SuffixElision::Selected, true));
    names.collect::<BTreeSet<_>>().into_iter().map(Arc::from).collect()
}

pub(crate) fn convert(
    records: &Records,
    conversion: &Conversion,
    cancelled: &AtomicBool,
    progress: &AtomicU64,
) -> Result<Converted, Fault> {
    several_outputs(records, conversion)?;
    let request = records.request(cancelled, progress);
    let recording = Recording::read(&request)?;
    let reading = Reading { request: &request, recording: &recording };
    let mut files = Files::default();
    let verdict = match conversion.target {
        Target::Profile(form) => {
            let mut converted = mepof_convert::autofdo(&recording, conversion.options)?;
            if conversion.symbol_list {
                converted.profile.symbols = symbols(&recording);
            }
            if is_welcome(&converted.verdict, conversion) {
                files.write(&conversion.output, |out| {
                    form.write(&converted.profile, conversion.md5_names, out)
                })?;
            }
            converted.verdict
        }
        _ => {
            let judged = mepof_convert::judge(&recording)?;
            if is_welcome(&judged.verdict, conversion) {
                write_trace(conversion, &reading, &judged.traces, &mut files)?;
            }
            judged.verdict
        }
    };
    let reasons = verdict.reasons.iter().map(Reason::to_string).collect();
    let outputs = files.paths();
    if is_welcome(&verdict, conversion) {
        files.write_beside(&conversion.output, "verdict.json", &verdict)?;
        files.publish(cancelled)?;
    }
    Ok(Converted { outputs, reasons, verdict })
}

/// Refuses several outputs of one name, or where there is no name to make others from.
fn several_outputs(records: &Records, conversion: &Conversion) -> Result<(), Fault> {
    let Conversion { target, output, .. } = conversion;
    if matches!(target, Target::Profile(_) | Target::PerfData) {
        return Ok(());
    }
    if is_special(output) && (*target == Target::Propeller || !records.modules.is_empty()) {
        let path = output.display();
        return Err(Fault::Input(format!(
            "{path} takes one file, and this makes several: name one"
        )));
    }
    let mut named: BTreeMap<String, &Path> = BTreeMap::new();
    for module in &records.modules {
        let name = stem(module);
        if let Some(other) = named.insert(name.clone(), module) {
            return Err(Fault::Input(format!(
                "{} and {} would both be written to {}: convert one of them by itself",
                other.display(),
                module.display(),
                beside(output, &name).display()
            )));
        }
    }
    Ok(())
}

fn is_welcome(verdict: &Verdict, conversion: &Conversion) -> bool {
    verdict.quality == Quality::Good || conversion.allow_poor
}

/// What was read, and how to read it again.
pub(crate) struct Reading<'a> {
    pub request: &'a Request<'a>,
    pub recording: &'a Recording,
}

impl Reading<'_> {
    pub fn go_on(&self) -> Result<(), Fault> {
        let stop = self.request.cancelled.load(Ordering::Relaxed);
        if stop { Err(Fault::Interrupted) } else { Ok(()) }
    }
}

/// Writes what needs no debug information. `traces` are what of the images' traces can be true.
fn write_trace(
    conversion: &Conversion,
    reading: &Reading<'_>,
    traces: &[ImageTrace],
    files: &mut Files,
) -> Result<(), Fault> {
    if conversion.target == Target::PerfData {
        return perf_data::write(reading, &conversion.output, files);
    }
    for (number, (image, trace)) in reading.recording.images.iter().zip(traces).enumerate() {
        reading.go_on()?;
        let path = if number == 0 {
            conversion.output.clone()
        } else {
            beside(&conversion.output, &stem(image.binary.path()))
        };
        let binary = &image.binary;
        match conversion.target {
            Target::Profile(_) | Target::PerfData => {}
            Target::Propeller => {
                let paths = conversion.path_cloning;
                blocks::write_propeller(reading, number, trace, paths, &path, files)?;
            }
            Target::Bolt => {
                let symbols = Symbols::read(binary, |_| None)?;
                files
                    .write(&path, |out| written(bolt::write_fdata(out, binary, &symbols, trace)))?;
            }
            Target::BoltPreaggregated => {
                files.write(&path, |out| written(bolt::write_branches(out, trace)))?;
            }
            // As recorded: whoever reads it checks it.
            Target::Unsymbolized => {
                let base = binary.executable_base();
                files.write(&path, |out| written(unsymbolized::write(&image.trace, base, out)))?;
            }
        }
    }
    Ok(())
}

pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Fault> {
    outcome.map_err(Fault::work)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
