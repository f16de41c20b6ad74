//! The writer.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::form::{FUNCTIONS, MAGIC, MODULES, NAMES, SUMMARY, Version};
use crate::names::{checked_names, has_nul};
use crate::samples::merge_into;
use crate::{Format, FunctionProfile, LineLocation, Profile, Summary, WriteError};

const WORKING_SETS: u32 = 0xaf00_0000;
const WORKING_SET_COUNT: u32 = 128;
/// The file of a function in whatever file it is.
const ANY_FILE: u32 = u32::MAX;
/// `HIST_TYPE_INDIR_CALL_TOPN`: the targets of a call.
const CALL_TARGETS: u32 = 7;

/// Writes `profile` for GCC.
///
/// Names lose everything from their first dot on, and functions that are then the same are added
/// up: GCC does the first to them on reading, and would lose all but one of the second. Where
/// discriminators are not looked up, the blocks of a line become one, which ran as often as the most
/// frequent of them. Blocks that were copied or unrolled count for the first one, where they can be
/// told. Totals are not written.
///
/// # Errors
/// Profiles of builds that were not GCC's, and errors of `out`.
pub fn write(profile: &Profile, version: Version, out: &mut impl Write) -> Result<(), WriteError> {
    check(profile, version)?;
    let mut functions = BTreeMap::new();
    for (name, function) in &profile.functions {
        let mut known = FunctionProfile::default();
        regroup(&mut known, function, version);
        merge_into(&mut functions, &stem(name), &stripped(&known), 1);
    }
    let stripped = Profile { functions, ..Profile::default() };
    // Names are numbered from 1: GCC reads number 0 as no name.
    let none = Arc::from("");
    let mut names = stripped.names();
    names.insert(0, &none);
    let mut encoder = Encoder { names: names.iter().copied().zip(0..).collect(), out: Vec::new() };
    encoder.u32(MAGIC);
    encoder.u32(version.number());
    encoder.u32(0);
    if version == Version::Gcc16 {
        encoder.summary(&Summary::of(&stripped));
    }
    encoder.name_table(&names, version);
    encoder.functions(&stripped, version);
    encoder.u32(MODULES);
    encoder.u32(0);
    encoder.u32(0);
    encoder.working_sets(&stripped);
    Ok(out.write_all(&encoder.out)?)
}

fn check(profile: &Profile, version: Version) -> Result<(), WriteError> {
    let format = Format::Gcov;
    for (has, what) in [
        (profile.probe_based, "pseudo probes"),
        (profile.flow_sensitive, "flow-sensitive discriminators"),
        (profile.md5_names, "MD5 names"),
    ] {
        if has {
            return Err(WriteError::Kind { format, what });
        }
    }
    let names = checked_names(profile, format, has_nul)?;
    let nameless = |name: &&Arc<str>| name.is_empty() || name.starts_with('.');
    if let Some(name) = names.into_iter().find(nameless) {
        return Err(WriteError::Name { name: name.to_string(), format });
    }
    if version != Version::Gcc13 {
        return Ok(());
    }
    profile.functions.iter().try_for_each(|(name, function)| check_discriminators(name, function))
}

fn check_discriminators(name: &str, function: &FunctionProfile) -> Result<(), WriteError> {
    let mut locations = function.body.keys().chain(function.inlined.keys());
    if let Some(location) = locations.find(|location| location.discriminator > 0xffff) {
        let (function, discriminator) = (name.to_owned(), location.discriminator);
        return Err(WriteError::Discriminator { function, discriminator });
    }
    function.inlined.values().flatten().try_for_each(|(n, callee)| check_discriminators(n, callee))
}

fn stem(name: &Arc<str>) -> Arc<str> {
    match name.split_once('.') {
        Some((stem, _)) => Arc::from(stem),
        None => Arc::clone(name),
    }
}

/// Adds the blocks of `function` to those of `sum` under the numbers that a version looks up.
fn regroup(sum: &mut FunctionProfile, function: &FunctionProfile, version: Version) {
    let known =
        |l: &LineLocation| LineLocation { discriminator: version.looked_up(l.discriminator), ..*l };
    sum.head = sum.head.max(function.head);
    for (location, block) in &function.body {
        let samples = sum.line_mut(known(location));
        samples.count = version.joined(samples.count, block.count, location.discriminator);
        for (target, &count) in &block.targets {
            samples.add_target(target, count);
        }
    }
    for (location, callees) in &function.inlined {
        for (name, callee) in callees {
            regroup(sum.inlined_mut(known(location), name), callee, version);
        }
    }
}

/// A copy in which all names are cut at their first dot.
fn stripped(function: &FunctionProfile) -> FunctionProfile {
    let mut copy = FunctionProfile {
        head: function.head,
        total: function.total,
        ..FunctionProfile::default()
    };
    for (location, line) in &function.body {
        copy.add_line(*location, line.count);
        for (target, &count) in &line.targets {
            copy.line_mut(*location).add_target(&stem(target), count);
        }
    }
    for (location, callees) in &function.inlined {
        let copies = copy.inlined.entry(*location).or_default();
        for (name, callee) in callees {
            merge_into(copies, &stem(name), &stripped(callee), 1);
        }
    }
    copy
}

struct Encoder<'a> {
    names: FxHashMap<&'a Arc<str>, u32>,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn u32(&mut self, word: u32) {
        self.out.extend(word.to_le_bytes());
    }

    fn u64(&mut self, words: u64) {
        self.out.extend(words.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(count.try_into().unwrap_or(u32::MAX));
    }

    /// Every name of the profile has a number.
    fn number(&self, name: &Arc<str>) -> u32 {
        self.names.get(name).copied().unwrap_or_default()
    }

    /// Puts the words since `start` into the word before.
    fn close(&mut self, start: usize) {
        let words = (self.out.len().saturating_sub(start)).div_ceil(4);
        let words = u32::try_from(words).unwrap_or(u32::MAX).to_le_bytes();
        let length = start.checked_sub(4).and_then(|length| self.out.get_mut(length..start));
        if let Some(length) = length {
            length.copy_from_slice(&words);
        }
    }

    fn summary(&mut self, summary: &Summary) {
        self.u32(SUMMARY);
        self.u64(summary.total_count);
        self.u64(summary.max_count);
        self.u64(summary.max_function_count);
        self.u64(summary.counts);
        self.u64(summary.functions);
        self.u64(summary.entries.len() as u64);
        for entry in &summary.entries {
            self.u32(entry.cutoff);
            self.u64(entry.min_count);
            self.u64(entry.counts);
        }
    }

    fn name_table(&mut self, names: &[&Arc<str>], version: Version) {
        self.u32(NAMES);
        self.u32(0);
        let start = self.out.len();
        if version == Version::Gcc16 {
            self.u32(0);
        }
        self.count(names.len());
        for name in names {
            // With the zero that ends it.
            let length = name.len() + 1;
            let padded = if version == Version::Gcc5 { length.next_multiple_of(4) } else { length };
            self.count(if version == Version::Gcc5 { padded / 4 } else { padded });
            self.out.extend(name.as_bytes());
            self.out.extend(std::iter::repeat_n(0, padded - name.len()));
            if version == Version::Gcc16 {
                self.u32(ANY_FILE);
            }
        }
        self.close(start);
    }

    fn functions(&mut self, profile: &Profile, version: Version) {
        self.u32(FUNCTIONS);
        self.u32(0);
        let start = self.out.len();
        self.count(profile.functions.len());
        for (name, function) in &profile.functions {
            self.u64(function.head);
            if version == Version::Gcc16 {
                self.u64(0);
            }
            self.function(name, function);
        }
        self.close(start);
    }

    fn function(&mut self, name: &Arc<str>, function: &FunctionProfile) {
        self.u32(self.number(name));
        self.count(function.body.len());
        self.count(function.inlined.values().map(BTreeMap::len).sum());
        for (location, line) in &function.body {
            self.location(*location);
            self.count(line.targets.len());
            self.u64(line.count);
            for (target, &count) in &line.targets {
                self.u32(CALL_TARGETS);
                self.u64(self.number(target).into());
                self.u64(count);
            }
        }
        for (location, callees) in &function.inlined {
            for (name, callee) in callees {
                self.location(*location);
                self.function(name, callee);
            }
        }
    }

    fn location(&mut self, location: LineLocation) {
        self.u32(location.offset << 16 | location.discriminator & 0xffff);
    }

    /// For each 129th of all counts, how many locations make up that share and the least of their
    /// counts. GCC stopped reading it with version 5.
    fn working_sets(&mut self, profile: &Profile) {
        let mut counts = Vec::new();
        for function in profile.functions.values() {
            collect_counts(function, &mut counts);
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        self.u32(WORKING_SETS);
        self.u32(3 * WORKING_SET_COUNT);
        let mut counts = counts.into_iter();
        let (mut locations, mut least, mut sum) = (0_u32, 0, 0_u128);
        for bucket in 1..=WORKING_SET_COUNT {
            let share = total * u128::from(bucket) / u128::from(WORKING_SET_COUNT + 1);
            while sum < share {
                let Some(count) = counts.next() else { break };
                locations = locations.saturating_add(1);
                least = count;
                sum += u128::from(count);
            }
            self.u32(locations);
            self.u64(least);
        }
    }
}

fn collect_counts(function: &FunctionProfile, counts: &mut Vec<u64>) {
    counts.extend(function.body.values().map(|line| line.count));
    for callee in function.inlined.values().flat_map(BTreeMap::values) {
        collect_counts(callee, counts);
    }
}
