//! Converts branch traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_convert::{BranchTrace, Inference, ProfileOptions, Quality, Reason, Verdict};
use mepof_trace::ImageTrace;
use serde::Serialize;

use crate::fault::Fault;
use crate::formats::{self, ImageJob, OutputFormat, Writer};
use crate::output::{Files, beside, is_special};
use crate::reading::{Reading, Records};

/// The names of [`Inference`]s on the command line.
pub(crate) const INFERENCES: [(&str, Inference); 3] = [
    ("never", Inference::Never),
    ("single", Inference::SingleBranches),
    ("always", Inference::Always),
];

/// How to convert.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    pub format: OutputFormat,
    pub output: PathBuf,
    pub options: ProfileOptions,
    /// Names as MD5 hashes.
    pub md5_names: bool,
    pub path_cloning: bool,
    pub allow_poor: bool,
}

/// What a conversion gave.
#[derive(Debug, Serialize)]
pub(crate) struct Converted {
    outputs: Vec<PathBuf>,
    /// Why it is poor, for people.
    reasons: Vec<String>,
    verdict: Verdict,
}

pub(crate) fn convert(
    records: &Records,
    conversion: &Conversion,
    cancelled: &AtomicBool,
    progress: &AtomicU64,
) -> Result<Converted, Fault> {
    unused_options(conversion)?;
    several_outputs(records, conversion)?;
    let request = records.request(cancelled, progress);
    let branch_trace = BranchTrace::read(&request)?;
    let reading = Reading { request: &request, branch_trace: &branch_trace };
    let mut files = Files::default();
    let mut verdict = match conversion.format.writer {
        Writer::Profile(write) => {
            let converted = mepof_convert::autofdo(&branch_trace, conversion.options)?;
            if is_welcome(&converted.verdict, conversion) {
                files.write(&conversion.output, |out| {
                    write(&converted.profile, conversion.md5_names, out)
                })?;
            }
            converted.verdict
        }
        Writer::Image { write, .. } => {
            let judged = mepof_convert::judge(&branch_trace)?;
            if is_welcome(&judged.verdict, conversion) {
                write_images(write, conversion, &reading, &judged.traces, &mut files)?;
            }
            judged.verdict
        }
        Writer::Inputs(write) => {
            let judged = mepof_convert::judge(&branch_trace)?;
            if is_welcome(&judged.verdict, conversion) {
                write(&reading, &conversion.output, &mut files)?;
            }
            judged.verdict
        }
    };
    for (input, name) in verdict.inputs.iter_mut().zip(&records.names) {
        input.path.clone_from(name);
    }
    let reasons = verdict.reasons.iter().map(Reason::to_string).collect();
    let outputs = files.paths();
    if is_welcome(&verdict, conversion) {
        files.write_beside(&conversion.output, "verdict.json", &verdict)?;
        files.publish(cancelled)?;
    }
    Ok(Converted { outputs, reasons, verdict })
}

/// Refuses options that the format would ignore.
fn unused_options(conversion: &Conversion) -> Result<(), Fault> {
    let format = conversion.format;
    for (option, is_given) in [
        ("--md5-names", conversion.md5_names),
        ("--symbol-list", conversion.options.symbol_list),
        ("--path-cloning", conversion.path_cloning),
    ] {
        if is_given && !format.options.contains(&option) {
            let (name, takers) = (format.name, formats::names_with(option).join(", "));
            return Err(Fault::Input(format!(
                "{option} is for {takers}, and {name} has no use for it: leave it out"
            )));
        }
    }
    Ok(())
}

/// Refuses several outputs of one name, or where there is no name to make others from.
fn several_outputs(records: &Records, conversion: &Conversion) -> Result<(), Fault> {
    let Conversion { format, output, .. } = conversion;
    let Writer::Image { several, .. } = format.writer else { return Ok(()) };
    if is_special(output) && (several || !records.modules.is_empty()) {
        let path = output.display();
        return Err(Fault::Input(format!(
            "{path} takes one file, and this format writes several: give the name of a file"
        )));
    }
    let mut named: BTreeMap<String, &Path> = BTreeMap::new();
    for module in &records.modules {
        let name = stem(module);
        if let Some(other) = named.insert(name.clone(), module) {
            return Err(Fault::Input(format!(
                "{} and {} would both be written to {}: convert one of them separately",
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

/// Writes the files of each binary; the modules' names are added to the output's. `traces` are
/// what of the images' traces can be true.
fn write_images(
    write: fn(&ImageJob<'_>, &Path, &mut Files) -> Result<(), Fault>,
    conversion: &Conversion,
    reading: &Reading<'_>,
    traces: &[ImageTrace],
    files: &mut Files,
) -> Result<(), Fault> {
    let images = reading.branch_trace.images.iter();
    for (index, (image, trace)) in images.zip(traces).enumerate() {
        reading.go_on()?;
        let path = if index == 0 {
            conversion.output.clone()
        } else {
            beside(&conversion.output, &stem(image.binary.path()))
        };
        let path_cloning = conversion.path_cloning;
        write(&ImageJob { reading, index, image, trace, path_cloning }, &path, files)?;
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
