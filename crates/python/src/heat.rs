//! Heatmaps of branch traces.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_binary::Binary;
use mepof_convert::{BranchSources, Placed, place, wanted};
use mepof_heatmap::{Caption, HeatCounter, Heatmap, HeatmapError, png, svg};
use mepof_trace::input::{self, MAX_DISTINCT, Options};
use mepof_trace::{LocateError, read_kallsyms};
use serde_json::Value;

use crate::fault::Fault;
use crate::output::Files;
use crate::reading::Records;

/// What a heatmap is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picture {
    Png,
    Svg,
    Json,
}

impl Picture {
    pub const ALL: [(&'static str, Self); 3] =
        [("png", Self::Png), ("svg", Self::Svg), ("json", Self::Json)];
}

/// What to draw.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    pub picture: Picture,
    pub output: PathBuf,
    pub rows: usize,
    pub section: Option<String>,
}

/// Draws which code of the vmlinux ran when, and gives the data without its rows.
pub(crate) fn heatmap(
    records: &Records,
    drawing: &Drawing,
    cancelled: &AtomicBool,
    progress: &AtomicU64,
) -> Result<Value, Fault> {
    let [input] = &records.inputs[..] else {
        return Err(Fault::input("a heatmap takes one input: each input has its own clock"));
    };
    let binary = Binary::open(&records.binary)?;
    let options = Options {
        space: records.space,
        events: &records.events,
        max_distinct: MAX_DISTINCT,
        symbols: None,
        binary: Some(wanted(&binary)),
        threads: 0,
        cancelled,
        progress,
    };
    let mut sink = (HeatCounter::default(), BranchSources::default());
    let facts = input::read(input, records.format, &options, &mut sink)?;
    let (counter, sources) = sink;
    let kallsyms = records.kallsyms.as_deref();
    let text = kallsyms.map(read_kallsyms).transpose()?;
    let Placed { placement, doubt } =
        place(&facts, &binary, records.space, text.as_deref(), &sources).map_err(
            |error| match (&error, kallsyms) {
                (LocateError::HiddenAddresses, Some(kallsyms)) => {
                    Fault::unreadable(kallsyms, error)
                }
                _ => Fault::unreadable(input, error),
            },
        )?;
    let section = drawing.section.as_deref();
    let map = Heatmap::new(&counter, &placement, &binary, section, drawing.rows).map_err(
        |error| match (&error, &doubt) {
            (HeatmapError::Nothing(_), Some(doubt)) => Fault::unreadable(input, doubt),
            _ => Fault::unreadable(input, error),
        },
    )?;
    if let Some(doubt) = doubt.as_ref().filter(|_| map.visits_outside > map.visits) {
        return Err(Fault::unreadable(input, doubt));
    }
    let doubt = match doubt {
        Some(doubt) => Some(doubt.to_string()),
        None => sources.doubt(&binary, &placement)?.map(|reason| reason.to_string()),
    };
    let title = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let caption = Caption { title };
    let mut files = Files::default();
    match drawing.picture {
        Picture::Png => {
            let file = png(&map, &caption).map_err(Fault::work)?;
            files.write(&drawing.output, |out| out.write_all(&file).map_err(Fault::work))?;
        }
        Picture::Svg => {
            let file = svg(&map, &caption).map_err(Fault::work)?;
            files.write(&drawing.output, |out| {
                out.write_all(file.as_bytes()).map_err(Fault::work)
            })?;
        }
        Picture::Json => files.write_document(&drawing.output, &map)?,
    }
    files.publish(cancelled)?;
    let mut summary = serde_json::to_value(&map).map_err(Fault::work)?;
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("rows");
        fields.insert("doubt".to_owned(), doubt.into());
    }
    Ok(summary)
}
