//! The formats that are written: one file each. Another one is a file and its line in [`ALL`].

mod autofdo;
mod autofdo_text;
mod bolt;
mod bolt_preaggregated;
mod format;
mod functions;
mod gcov;
mod perf_data;
mod propeller;
mod unsymbolized;

pub(crate) use format::{ImageJob, OutputFormat, Writer};

/// All of them, in the order of help texts.
const ALL: [OutputFormat; 11] = [
    autofdo::FORMAT,
    autofdo_text::FORMAT,
    gcov::FORMAT,
    gcov::FORMAT_13,
    gcov::FORMAT_16,
    propeller::FORMAT,
    bolt::FORMAT,
    bolt_preaggregated::FORMAT,
    functions::FORMAT,
    unsymbolized::FORMAT,
    perf_data::FORMAT,
];

/// Their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|format| format.name)
}

/// The names of those that are AutoFDO profiles.
pub(crate) fn profile_names() -> impl Iterator<Item = &'static str> {
    let profiles = ALL.iter().filter(|format| matches!(format.writer, Writer::Profile(_)));
    profiles.map(|format| format.name)
}

/// The names of those that take `option`.
pub(crate) fn names_with(option: &str) -> Vec<&'static str> {
    let takers = ALL.iter().filter(|format| format.options.contains(&option));
    takers.map(|format| format.name).collect()
}

/// The format called `name`.
pub(crate) fn named(name: &str) -> Option<OutputFormat> {
    ALL.into_iter().find(|format| format.name == name)
}
