//! AutoFDO profiles: merge, compare, show.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use mepof_binary::Binary;
use mepof_convert::{Drift, drift};
use mepof_profile::{
    AddError, Comparison, Conflict, Format, HotFunction, HotLine, Merger, Profile, Provenance,
    Statistics, compare, read,
};
use serde::Serialize;

use crate::fault::{Fault, damaged, reason};
use crate::output::{Files, Output};

/// Reads the profile at `path`, in whatever form it is.
pub(crate) fn load(path: &Path) -> Result<(Profile, Format), Fault> {
    read(&contents(path)?).map_err(|error| damaged(path, &error))
}

fn contents(path: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|error| Fault::unreadable(path, reason(&error)))
}

/// The sum of profiles; `names` are in the provenance in place of their paths.
fn added(weighted: &[(PathBuf, u64)], names: &[String]) -> Result<Merger, Fault> {
    weighted.iter().enumerate().try_fold(Merger::new(), |merger, (number, (path, weight))| {
        let name = names.get(number).map_or_else(|| path.to_string_lossy(), Into::into);
        merger.add_file(&contents(path)?, &name, None, *weight).map_err(|error| match error {
            AddError::Read(error) => damaged(path, &error),
            AddError::Merge(error) => error.into(),
        })
    })
}

/// What of `other` cannot be added to `like`.
pub(crate) fn conflicts(like: &Path, other: &Path) -> Result<Vec<Conflict>, Fault> {
    let both = [like, other].map(|path| (path.to_owned(), 1));
    Ok(added(&both, &[])?.conflicts().to_vec())
}

/// What came of a merge.
#[derive(Debug, Serialize)]
pub(crate) struct Merged {
    provenance: Provenance,
    conflicts: Vec<Conflict>,
    saturated: Vec<String>,
    statistics: Statistics,
}

pub(crate) fn merge(
    weighted: &[(PathBuf, u64)],
    names: &[String],
    output: &Path,
    write: fn(&Profile, bool, &mut Output) -> Result<(), Fault>,
    like: Option<&Path>,
    cancelled: &AtomicBool,
) -> Result<Merged, Fault> {
    let mut merged = added(weighted, names)?.finish();
    if let Some(like) = like {
        let Profile { flow_sensitive, partial, .. } = load(like)?.0;
        merged.profile = Profile { flow_sensitive, partial, ..merged.profile };
    }
    let mut files = Files::default();
    files.write(output, |out| write(&merged.profile, merged.profile.md5_names, out))?;
    files.write_beside(output, "provenance.json", &merged.provenance)?;
    files.publish(cancelled)?;
    Ok(Merged {
        statistics: Statistics::of(&merged.profile),
        provenance: merged.provenance,
        conflicts: merged.conflicts,
        saturated: merged.saturated,
    })
}

pub(crate) fn compared(base: &Path, test: &Path, limit: usize) -> Result<Comparison, Fault> {
    let (base, test) = (load(base)?.0, load(test)?.0);
    Ok(compare(&base, &test, limit)?)
}

/// What of the profile at `profile` fits the binary `new`.
pub(crate) fn drifted(profile: &Path, new: &Path, old: Option<&Path>) -> Result<Drift, Fault> {
    let profile = load(profile)?.0;
    let old = old.map(Binary::open).transpose()?;
    Ok(drift(&profile, old.as_ref(), &Binary::open(new)?)?)
}

/// What is in a profile.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    format: Format,
    probe_based: bool,
    flow_sensitive: bool,
    md5_names: bool,
    symbols: usize,
    statistics: Statistics,
    functions: Vec<HotFunction>,
    lines: Vec<HotLine>,
}

/// What is in the profile at `path`, with its hottest functions and lines.
pub(crate) fn show(path: &Path, functions: usize, lines: usize) -> Result<Shown, Fault> {
    let (profile, format) = load(path)?;
    Ok(Shown {
        format,
        probe_based: profile.probe_based,
        flow_sensitive: profile.flow_sensitive,
        md5_names: profile.md5_names,
        symbols: profile.symbols.len(),
        statistics: Statistics::of(&profile),
        functions: HotFunction::by_total(&profile, functions),
        lines: HotLine::top(&profile, lines),
    })
}
