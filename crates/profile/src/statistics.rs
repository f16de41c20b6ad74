use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{FunctionProfile, LineLocation, Profile, Summary};

/// What a quality gate and a terminal want to know of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Functions, inlined copies aside.
    pub functions: u64,
    /// Functions with samples, inlined copies aside.
    pub functions_with_samples: u64,
    /// Inlined copies.
    pub inlined_copies: u64,
    /// Locations in all bodies.
    pub body_lines: u64,
    /// Locations in all bodies that ran.
    pub body_lines_with_samples: u64,
    /// The functions' totals together.
    pub total: u64,
    /// The counts of all locations together.
    pub body_total: u64,
    /// How well sampled the hot functions are.
    pub density: Density,
    /// The lowest count of a hot location ([`Summary::hot_threshold`]).
    pub hot_threshold: u64,
    /// Locations that are hot.
    pub hot_lines: u64,
    /// Functions with a hot location in them or in what is inlined into them.
    pub hot_functions: u64,
}

/// The profile density of `llvm-profgen --show-density`: the lowest number of samples per location
/// among the densest functions that together have `share_percent` of all samples.
///
/// LLVM 22, `llvm/tools/llvm-profgen/ProfileGenerator.cpp`, `calculateDensity`; there, below 50
/// it suggests to sample more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Density {
    /// Samples per location.
    pub samples_per_line: f64,
    /// The share of all samples that is covered at this density or a better one.
    pub share_percent: f64,
}

impl Density {
    /// The share that LLVM takes.
    pub const SHARE_PERCENT: f64 = 99.0;
    /// Below this LLVM suggests more samples.
    pub const ENOUGH: f64 = 50.0;

    /// The density of `profile` at `share_percent` of its samples. 0 for an empty profile.
    pub fn of(profile: &Profile, share_percent: f64) -> Self {
        let mut densities: Vec<(f64, u64)> = Vec::with_capacity(profile.functions.len());
        let mut total = 0_u64;
        for function in profile.functions.values() {
            let (mut samples, mut lines) = (0_u64, 0_u64);
            walk(function, &mut |copy| {
                samples = samples.saturating_add(copy.own_count());
                lines += copy.body.len() as u64;
            });
            if lines > 0 {
                total = total.saturating_add(samples);
                densities.push((samples as f64 / lines as f64, samples));
            }
        }
        densities.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let enough = total as f64 * share_percent / 100.0;
        let (mut seen, mut samples_per_line) = (0_u64, 0.0);
        for (density, samples) in densities {
            if seen as f64 >= enough {
                break;
            }
            seen = seen.saturating_add(samples);
            samples_per_line = density;
        }
        Self { samples_per_line, share_percent }
    }
}

impl Statistics {
    /// The statistics of `profile`.
    pub fn of(profile: &Profile) -> Self {
        let summary = Summary::of(profile);
        let hot = summary.hot_threshold().max(1);
        let mut statistics = Self {
            functions: profile.functions.len() as u64,
            functions_with_samples: 0,
            inlined_copies: 0,
            body_lines: 0,
            body_lines_with_samples: 0,
            total: profile.total(),
            body_total: 0,
            density: Density::of(profile, Density::SHARE_PERCENT),
            hot_threshold: summary.hot_threshold(),
            hot_lines: 0,
            hot_functions: 0,
        };
        for function in profile.functions.values() {
            let (mut copies, mut ran, mut hot_lines) = (0_u64, 0_u64, 0_u64);
            walk(function, &mut |copy| {
                copies += 1;
                statistics.body_lines += copy.body.len() as u64;
                statistics.body_total = statistics.body_total.saturating_add(copy.own_count());
                ran += copy.body.values().filter(|line| line.count > 0).count() as u64;
                hot_lines += copy.body.values().filter(|line| line.count >= hot).count() as u64;
            });
            statistics.inlined_copies += copies.saturating_sub(1);
            statistics.body_lines_with_samples += ran;
            statistics.functions_with_samples += u64::from(ran > 0);
            statistics.hot_lines += hot_lines;
            statistics.hot_functions += u64::from(hot_lines > 0);
        }
        statistics
    }
}

/// A function by how much it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotFunction {
    /// Its name.
    pub name: String,
    /// Its total: samples in its body and in what is inlined into it. 0 if it ran only inlined
    /// into others.
    pub total: u64,
    /// How often it was entered, other than inlined.
    pub head: u64,
    /// The counts of its own lines, in its own body and wherever it is inlined.
    pub own_count: u64,
}

impl HotFunction {
    /// The `limit` functions with the highest totals.
    pub fn by_total(profile: &Profile, limit: usize) -> Vec<Self> {
        Self::top(profile, limit, |function| function.total)
    }

    /// The `limit` functions whose own lines have the highest counts.
    pub fn by_own_count(profile: &Profile, limit: usize) -> Vec<Self> {
        Self::top(profile, limit, |function| function.own_count)
    }

    fn top(profile: &Profile, limit: usize, key: impl Fn(&Self) -> u64) -> Vec<Self> {
        let mut own = BTreeMap::new();
        for (name, function) in &profile.functions {
            count_own(name, function, &mut own);
        }
        let mut functions: Vec<Self> = own
            .into_iter()
            .map(|(name, own_count)| {
                let function = profile.functions.get(name);
                Self {
                    name: name.to_string(),
                    total: function.map_or(0, |function| function.total),
                    head: function.map_or(0, |function| function.head),
                    own_count,
                }
            })
            .collect();
        functions.sort_by_key(|function| Reverse(key(function)));
        functions.truncate(limit);
        functions
    }
}

fn count_own<'a>(
    name: &'a Arc<str>,
    function: &'a FunctionProfile,
    own: &mut BTreeMap<&'a Arc<str>, u64>,
) {
    let count = own.entry(name).or_default();
    *count = count.saturating_add(function.own_count());
    for (name, callee) in function.inlined.values().flatten() {
        count_own(name, callee, own);
    }
}

/// A location by how much it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotLine {
    /// The function that the location is in.
    pub function: String,
    /// Lines from the function's declaration, or the probe's number.
    pub offset: u32,
    /// The discriminator.
    pub discriminator: u32,
    /// How often it ran, in the function's own body and wherever it is inlined.
    pub count: u64,
}

impl HotLine {
    /// The `limit` locations with the highest counts.
    pub fn top(profile: &Profile, limit: usize) -> Vec<Self> {
        let mut lines = BTreeMap::new();
        for (name, function) in &profile.functions {
            count_lines(name, function, &mut lines);
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|&(_, count)| Reverse(count));
        lines.truncate(limit);
        let line = |((function, location), count): ((&Arc<str>, LineLocation), u64)| Self {
            function: function.to_string(),
            offset: location.offset,
            discriminator: location.discriminator,
            count,
        };
        lines.into_iter().map(line).collect()
    }
}

fn count_lines<'a>(
    name: &'a Arc<str>,
    function: &'a FunctionProfile,
    lines: &mut BTreeMap<(&'a Arc<str>, LineLocation), u64>,
) {
    for (&location, line) in &function.body {
        let count = lines.entry((name, location)).or_default();
        *count = count.saturating_add(line.count);
    }
    for (name, callee) in function.inlined.values().flatten() {
        count_lines(name, callee, lines);
    }
}

/// Calls `visit` with the function and every copy inlined into it.
fn walk(function: &FunctionProfile, visit: &mut impl FnMut(&FunctionProfile)) {
    visit(function);
    for callee in function.inlined.values().flat_map(BTreeMap::values) {
        walk(callee, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    const PROFILE: &str = "f:900:3\n 1: 100\n 2: g:500\n  1: 400\n  2: 0\n 3.1: h:20\n  1: 10\n\
                           g:60:5\n 1: 50\nidle:0:0\n 1: 0\n";

    #[test]
    fn everything_is_counted_once() {
        let statistics = Statistics::of(&text::read(PROFILE.as_bytes()).unwrap());
        assert_eq!((statistics.functions, statistics.functions_with_samples), (3, 2));
        assert_eq!(statistics.inlined_copies, 2);
        assert_eq!((statistics.body_lines, statistics.body_lines_with_samples), (6, 4));
        assert_eq!((statistics.total, statistics.body_total), (960, 560));
        assert_eq!((statistics.hot_threshold, statistics.hot_lines), (10, 4));
        assert_eq!(statistics.hot_functions, 2);
    }

    #[test]
    fn own_counts_include_inlined_copies() {
        let profile = text::read(PROFILE.as_bytes()).unwrap();
        let own = HotFunction::by_own_count(&profile, 2);
        assert_eq!((own[0].name.as_str(), own[0].own_count, own[0].total), ("g", 450, 60));
        assert_eq!((own[1].name.as_str(), own[1].own_count), ("f", 100));
        let total = HotFunction::by_total(&profile, 9);
        let names: Vec<_> = total.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["f", "g", "h", "idle"]);
        let lines = HotLine::top(&profile, 1);
        assert_eq!((lines[0].function.as_str(), lines[0].offset, lines[0].count), ("g", 1, 450));
    }

    #[test]
    fn density_is_that_of_the_thinnest_hot_function() {
        let profile = text::read(PROFILE.as_bytes()).unwrap();
        // f: 510 samples on 4 lines; g: 50 on 1.
        assert_eq!(Density::of(&profile, 99.0).samples_per_line, 50.0);
        assert_eq!(Density::of(&profile, 90.0).samples_per_line, 127.5);
        assert_eq!(Density::of(&Profile::default(), 99.0).samples_per_line, 0.0);
    }
}
