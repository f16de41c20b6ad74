//! How much of a profile still fits a newer binary.

use std::collections::BTreeMap;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, NameId, Probes, Symbolizer, whole_function};
use mepof_profile::{FunctionProfile, LineLocation, Profile, guid};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::ConvertError;
use crate::autofdo::{canonical, locations};
use crate::code::Code;
use crate::discriminator::{Discriminators, flow_sensitive_base, is_flow_sensitive};

/// What happened to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is where it was, and has all locations that the profile has samples for.
    Unchanged,
    /// It has all locations that the profile has samples for, and is declared somewhere else.
    Moved,
    /// It does not have some of the locations that the profile has samples for.
    Changed,
    /// The function is gone.
    Gone,
}

impl Change {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [Self::Unchanged, Self::Moved, Self::Changed, Self::Gone];
}

/// Functions of one kind of change, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub functions: u64,
    /// Their part of the profile's samples, in per cent.
    pub samples_percent: f64,
}

/// One function of the profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDrift {
    /// Its name.
    pub name: String,
    /// What happened to it.
    pub change: Change,
    /// Its own part of the profile's samples, without what was inlined into it, in per cent.
    pub samples_percent: f64,
    /// The part of these that lies at locations which the binary still has, in per cent.
    pub matched_percent: f64,
}

/// A profile against a newer binary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Functions by what became of them.
    pub changes: BTreeMap<Change, Share>,
    /// The part of all samples that lies at locations which the binary still has, in per cent.
    pub matched_percent: f64,
    /// The functions, those with the most samples first. A function that was inlined counts where
    /// its source is, not where its copies are.
    pub functions: Vec<FunctionDrift>,
}

/// What GCC appends, with a number, to the names of copies that it makes of functions.
const COPIES: [&str; 4] = [".isra", ".constprop", ".part", ".lto_priv"];

/// The function of the source that the one called `name` is, or is a copy or a part of: debug
/// information, and so a profile, has that.
fn of_source(name: &str) -> &str {
    let name = canonical(whole_function(name));
    let copied = name.rsplit_once('.').and_then(|(stem, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        COPIES.iter().find_map(|suffix| stem.strip_suffix(suffix)).filter(|_| is_number)
    });
    copied.map_or(name, of_source)
}

/// Samples by function and location, inlined copies added up.
type Flat = BTreeMap<String, BTreeMap<LineLocation, u64>>;

fn flatten(name: &str, profile: &FunctionProfile, flat: &mut Flat) {
    let locations = flat.entry(of_source(name).to_owned()).or_default();
    // Lines of zero say that code did not run, which is not a sample.
    for (&location, samples) in profile.body.iter().filter(|(_, samples)| samples.count > 0) {
        let count = locations.entry(location).or_default();
        *count = count.saturating_add(samples.count);
    }
    let called = |callees: &BTreeMap<_, FunctionProfile>| callees.values().any(|c| c.total > 0);
    for (&location, _) in profile.inlined.iter().filter(|(_, callees)| called(callees)) {
        locations.entry(location).or_default();
    }
    for callees in profile.inlined.values() {
        callees.iter().for_each(|(name, callee)| flatten(name, callee, flat));
    }
}

/// What a binary has: the locations of each function, and where it begins, from the start of the
/// text.
#[derive(Clone, Debug, Default)]
struct Shapes {
    functions: FxHashMap<String, (FxHashSet<LineLocation>, Option<u64>)>,
    /// The binary or the profile has flow-sensitive discriminators. Only their base, which the
    /// compiler looks up first, comes from the source; the rest says where this build's code
    /// generation put copies.
    base_only: bool,
}

impl Shapes {
    /// A location as it can be compared.
    fn comparable(&self, location: LineLocation) -> LineLocation {
        let LineLocation { offset, discriminator } = location;
        match self.base_only {
            true => LineLocation { offset, discriminator: flow_sensitive_base(discriminator) },
            false => location,
        }
    }

    fn add(&mut self, name: String, location: LineLocation) {
        let location = self.comparable(location);
        self.functions.entry(name).or_default().0.insert(location);
    }

    /// The shapes of those functions of `binary` that `profile` knows.
    pub fn read(binary: &Binary, profile: &Profile) -> Result<Self, ConvertError> {
        let mut flat = Flat::new();
        profile.functions.iter().for_each(|(name, function)| flatten(name, function, &mut flat));
        let name_of = |name: &str| match profile.md5_names {
            true => guid(name).to_string(),
            false => name.to_owned(),
        };
        let base = binary.functions().first().map_or(0, |first| first.addresses.start.0);
        let flow_sensitive = is_flow_sensitive(binary);
        let base_only = flow_sensitive || profile.flow_sensitive;
        let mut shapes = Self { base_only, ..Self::default() };
        let mut starts = Vec::new();
        for function in binary.functions() {
            let name = name_of(of_source(&function.name));
            if flat.contains_key(&name) {
                let start = function.addresses.start;
                starts.push(start);
                let (_, first) = shapes.functions.entry(name).or_default();
                if function.is_entry {
                    first.get_or_insert(start.0.saturating_sub(base));
                }
            }
        }
        let probes = if profile.probe_based { Probes::read(binary)? } else { None };
        match probes {
            Some(probes) => shapes.add_probes(&probes, &name_of),
            None => shapes.add_lines(binary, &starts, flow_sensitive, &name_of)?,
        }
        Ok(shapes)
    }

    fn add_lines(
        &mut self,
        binary: &Binary,
        starts: &[ImageAddress],
        flow_sensitive: bool,
        name_of: &impl Fn(&str) -> String,
    ) -> Result<(), ConvertError> {
        let symbolizer = Symbolizer::new(binary, starts)?;
        let code = Code::new(binary, starts);
        let mut seen: FxHashSet<(NameId, LineLocation)> = FxHashSet::default();
        let discriminators = Discriminators::of(&symbolizer, flow_sensitive);
        for placed in code.all() {
            seen.extend(locations(symbolizer.frames(placed.address), discriminators));
        }
        let mut names: FxHashMap<NameId, String> = FxHashMap::default();
        for (function, location) in seen {
            let name = names.entry(function).or_insert_with(|| {
                symbolizer
                    .names()
                    .get(function)
                    .map(|name| name_of(of_source(name)))
                    .unwrap_or_default()
            });
            self.add(name.clone(), location);
        }
        Ok(())
    }

    fn add_probes(&mut self, probes: &Probes, name_of: &impl Fn(&str) -> String) {
        let names: FxHashMap<u64, String> = probes
            .functions
            .iter()
            .map(|(guid, _, name)| (*guid, name_of(of_source(name))))
            .collect();
        let mut add = |guid: u64, offset: u32, discriminator: u32| {
            if let Some(name) = names.get(&guid) {
                self.add(name.clone(), LineLocation { offset, discriminator });
            }
        };
        for probe in &probes.probes {
            add(probe.guid, probe.index, probe.discriminator);
            probe.inlined_at.iter().for_each(|&(guid, index)| add(guid, index, 0));
        }
    }
}

/// How much of `profile` still fits `new`. `old`, the binary that the profile was made from, shows
/// which functions have moved: an AutoFDO profile does not care, but what goes by address does
/// (branch traces, Propeller's profiles).
pub fn drift(profile: &Profile, old: Option<&Binary>, new: &Binary) -> Result<Drift, ConvertError> {
    let old = old.map(|binary| Shapes::read(binary, profile)).transpose()?;
    Ok(compare(profile, old.as_ref(), &Shapes::read(new, profile)?))
}

/// Compares `profile` with the shapes of the binary that it will be used for, and, to tell what
/// has moved, with those of the binary that it was made from.
fn compare(profile: &Profile, old: Option<&Shapes>, new: &Shapes) -> Drift {
    let mut flat = Flat::new();
    profile.functions.iter().for_each(|(name, function)| flatten(name, function, &mut flat));
    let sum = |locations: &BTreeMap<LineLocation, u64>| -> f64 {
        locations.values().fold(0.0, |sum, &count| sum + count as f64)
    };
    let total: f64 = flat.values().map(sum).sum();
    let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    let mut drift = Drift::default();
    let mut matched_samples = 0.0;
    for (name, locations) in flat {
        let samples = sum(&locations);
        let shape = new.functions.get(&name);
        let has = |location: &LineLocation| {
            shape.is_some_and(|(shape, _)| shape.contains(&new.comparable(*location)))
        };
        // An empty `sum` of floats is -0.0.
        let matched: f64 = locations
            .iter()
            .filter(|(location, _)| has(location))
            .fold(0.0, |sum, (_, &count)| sum + count as f64);
        let start = |shapes: &Shapes| shapes.functions.get(&name).and_then(|(_, start)| *start);
        let change = if shape.is_none() {
            Change::Gone
        } else if !locations.keys().all(has) {
            Change::Changed
        } else if old.is_some_and(|old| start(old) != start(new)) {
            Change::Moved
        } else {
            Change::Unchanged
        };
        let share = drift.changes.entry(change).or_default();
        share.functions += 1;
        share.samples_percent += percent(samples, total);
        matched_samples += matched;
        drift.functions.push(FunctionDrift {
            name,
            change,
            samples_percent: percent(samples, total),
            matched_percent: if samples > 0.0 { percent(matched, samples) } else { 100.0 },
        });
    }
    drift.matched_percent = percent(matched_samples, total);
    drift.functions.sort_by(|a, b| {
        b.samples_percent.total_cmp(&a.samples_percent).then_with(|| a.name.cmp(&b.name))
    });
    drift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(offset: u32) -> LineLocation {
        LineLocation { offset, discriminator: 0 }
    }

    fn shapes(functions: &[(&str, &[u32], u64)]) -> Shapes {
        let functions = functions.iter().map(|&(name, locations, start)| {
            let locations = locations.iter().map(|&offset| location(offset)).collect();
            (name.to_owned(), (locations, Some(start)))
        });
        Shapes { functions: functions.collect(), base_only: false }
    }

    fn profile() -> Profile {
        let text = "a:30:1\n 1: 10\n 2: 20\n 3: b:10\n  1: 10\nc:60:1\n 1: 60\n";
        mepof_profile::read(text.as_bytes()).unwrap().0
    }

    fn changes(drift: &Drift) -> Vec<(&str, Change)> {
        let mut all: Vec<_> = drift.functions.iter().map(|f| (f.name.as_str(), f.change)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_function_that_lost_a_sampled_line_has_changed() {
        let new = shapes(&[("a", &[1, 3], 0), ("b", &[1], 8), ("c", &[1, 2], 16)]);
        let drift = compare(&profile(), None, &new);
        let expected = [("a", Change::Changed), ("b", Change::Unchanged), ("c", Change::Unchanged)];
        assert_eq!(changes(&drift), expected);
        assert_eq!(drift.matched_percent, 80.0);
        assert_eq!(drift.changes[&Change::Changed], Share { functions: 1, samples_percent: 30.0 });
    }

    #[test]
    fn a_lost_inlined_call_is_a_change() {
        let new = shapes(&[("a", &[1, 2], 0), ("b", &[1], 8), ("c", &[1], 16)]);
        assert_eq!(changes(&compare(&profile(), None, &new))[0], ("a", Change::Changed));
    }

    #[test]
    fn a_function_without_a_name_is_gone() {
        let new = shapes(&[("a", &[1, 2, 3], 0), ("b", &[1], 8)]);
        let drift = compare(&profile(), None, &new);
        assert_eq!(drift.changes[&Change::Gone].samples_percent, 60.0);
        assert_eq!(drift.functions[0].name, "c");
    }

    #[test]
    fn what_moved_is_told_by_the_old_binary() {
        let new = shapes(&[("a", &[1, 2, 3], 4), ("b", &[1], 8), ("c", &[1], 16)]);
        let old = shapes(&[("a", &[1, 2, 3], 0), ("b", &[1], 8), ("c", &[1], 16)]);
        let drift = compare(&profile(), Some(&old), &new);
        assert_eq!(changes(&drift)[0], ("a", Change::Moved));
        assert_eq!(drift.matched_percent, 100.0);
    }
}
