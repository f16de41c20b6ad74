//! GCC's AutoFDO data, what `gcc -fauto-profile=FILE` reads.
//!
//! GCC 12 and 16, `gcc/auto-profile.cc`; google/autofdo, `profile_writer.cc` and `gcov.cc`. Words of
//! 32 bits, little endian; what is in brackets only version 3 has:
//!
//! ```text
//! file      "adcg" version 0 [summary] names functions modules working-sets
//! summary   0xa8000000 total:u64 max:u64 max-head:u64 counts:u64 functions:u64 16:u64 entry…
//! entry     millionths least:u64 counts:u64
//! names     0xaa000000 length [count string…] count (string [file])…
//! functions 0xac000000 length count (head:u64 [time:u64] function)…
//! function  name lines calls line… (location function)…
//! line      location targets count:u64 (7 name:u64 count:u64)…
//! location  line offset << 16 | discriminator
//! ```
//!
//! Version 3 is that of GCC 16, which has files by which static functions of one name differ, and
//! when each function ran first; version 2 that of GCC 12 to 15, whose strings are counted in bytes;
//! in version 1, of GCC 5 to 11, in words. GCC cuts names at their first dot and sums up the totals
//! itself. Until GCC 13 told apart the blocks of a line (`get_combined_location`), it looked up
//! discriminator 0 alone.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cursor::Cursor;
use crate::names::{checked_names, has_nul};
use crate::samples::merge_into;
use crate::{
    Format, FunctionProfile, LineLocation, MAX_INLINE_DEPTH, Profile, ReadError, Summary,
    WriteError,
};

const MAGIC: u32 = u32::from_le_bytes(*b"adcg");
const SUMMARY: u32 = 0xa800_0000;
const NAMES: u32 = 0xaa00_0000;
const FUNCTIONS: u32 = 0xac00_0000;
const MODULES: u32 = 0xae00_0000;
const WORKING_SETS: u32 = 0xaf00_0000;
const WORKING_SET_COUNT: u32 = 128;
/// The file of a function in whatever file it is.
const ANY_FILE: u32 = u32::MAX;
/// `HIST_TYPE_INDIR_CALL_TOPN`: the targets of a call.
const CALL_TARGETS: u32 = 7;
/// What google/autofdo writes by default, and what LLVM reads.
const VERSION_4_7: u32 = u32::from_le_bytes(*b"*704");

/// For which compilers the form is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// GCC 5 to 11.
    Gcc5,
    /// GCC 12. Later ones read it too, and find less.
    #[default]
    Gcc12,
    /// GCC 13 to 15, which look up discriminators.
    Gcc13,
    /// GCC 16, which does too.
    Gcc16,
}

impl Version {
    fn number(self) -> u32 {
        match self {
            Self::Gcc5 => 1,
            Self::Gcc12 | Self::Gcc13 => 2,
            Self::Gcc16 => 3,
        }
    }
}

/// Whether `bytes` begin as GCC's AutoFDO data do.
pub fn is_gcov(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads GCC's AutoFDO data.
///
/// Totals are the sums of all counts, as GCC computes them. Of several functions by one name
/// (aliases) the first counts; in version 3, where they are those of several files, their sum.
///
/// # Errors
/// Cut off and damaged data and other versions.
pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut cursor = Cursor::new(Format::Gcov, bytes);
    if cursor.u32("the magic number")? != MAGIC {
        return Err(ReadError::UnknownFormat);
    }
    let version = match cursor.u32("the version")? {
        1 | VERSION_4_7 => Version::Gcc5,
        2 => Version::Gcc12,
        3 => Version::Gcc16,
        version => {
            let (version, supported) = (version.into(), "1, 2, 3 and 4.7");
            return Err(ReadError::Version { format: Format::Gcov, version, supported });
        }
    };
    cursor.u32("the header")?;
    if version == Version::Gcc16 {
        skip_summary(&mut cursor)?;
    }
    let names = read_names(&mut cursor, version)?;
    section(&mut cursor, FUNCTIONS, "the functions")?;
    let mut profile = Profile::default();
    for _ in 0..cursor.count_u32(20, "the functions")? {
        let head = cursor.u64("a function's head count")?;
        if version == Version::Gcc16 {
            cursor.u64("when a function ran first")?;
        }
        let name = name(&mut cursor, &names)?;
        let mut function = FunctionProfile { head, ..FunctionProfile::default() };
        read_function(&mut cursor, &names, &mut function, 0)?;
        function.update_total();
        if version == Version::Gcc16 {
            merge_into(&mut profile.functions, &name, &function, 1);
        } else {
            profile.functions.entry(name).or_insert(function);
        }
    }
    if !cursor.is_at_end() {
        section(&mut cursor, MODULES, "the modules")?;
    }
    Ok(profile)
}

fn section(cursor: &mut Cursor<'_>, tag: u32, inside: &'static str) -> Result<(), ReadError> {
    let wrong = cursor.malformed("a section is out of order");
    if cursor.u32(inside)? != tag {
        return Err(wrong);
    }
    // The length, which no reader uses; writers differ in how they count it.
    cursor.u32(inside).map(drop)
}

/// Passes over the summary, which follows from the counts.
fn skip_summary(cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    let wrong = cursor.malformed("a section is out of order");
    if cursor.u32("the summary")? != SUMMARY {
        return Err(wrong);
    }
    cursor.take(5 * 8, "the summary")?;
    for _ in 0..cursor.u64("the summary")? {
        cursor.take(20, "the summary")?;
    }
    Ok(())
}

fn read_names(cursor: &mut Cursor<'_>, version: Version) -> Result<Vec<Arc<str>>, ReadError> {
    section(cursor, NAMES, "the names")?;
    let has_files = version == Version::Gcc16;
    if has_files {
        for _ in 0..cursor.count_u32(4, "the files")? {
            read_string(cursor, version)?;
        }
    }
    let count = cursor.count_u32(4, "the names")?;
    let mut names = Vec::new();
    for _ in 0..count {
        let not_text = cursor.malformed("a name is not UTF-8");
        let name = read_string(cursor, version)?;
        names.push(std::str::from_utf8(name).map(Arc::from).map_err(|_| not_text)?);
        if has_files {
            cursor.u32("a name's file")?;
        }
    }
    Ok(names)
}

fn read_string<'a>(cursor: &mut Cursor<'a>, version: Version) -> Result<&'a [u8], ReadError> {
    let unit = if version == Version::Gcc5 { 4 } else { 1 };
    let length = cursor.count_u32(unit, "a name")?;
    let bytes = cursor.take(length * unit, "a name")?;
    Ok(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
}

fn name(cursor: &mut Cursor<'_>, names: &[Arc<str>]) -> Result<Arc<str>, ReadError> {
    let beyond = cursor.malformed("a name index is beyond the name table");
    let index = usize::try_from(cursor.u32("a name index")?).ok();
    index.and_then(|index| names.get(index)).cloned().ok_or(beyond)
}

fn read_function(
    cursor: &mut Cursor<'_>,
    names: &[Arc<str>],
    function: &mut FunctionProfile,
    depth: usize,
) -> Result<(), ReadError> {
    let lines = cursor.count_u32(16, "the lines of a function")?;
    let calls = cursor.count_u32(16, "the calls inlined into a function")?;
    for _ in 0..lines {
        let location = read_location(cursor)?;
        let targets = cursor.count_u32(20, "the targets of a line")?;
        function.add_line(location, cursor.u64("a line's count")?);
        for _ in 0..targets {
            cursor.u32("a target's kind")?;
            let beyond = cursor.malformed("a name index is beyond the name table");
            let index = usize::try_from(cursor.u64("a target's name")?).ok();
            let target = index.and_then(|index| names.get(index)).ok_or(beyond)?;
            let count = cursor.u64("a target's count")?;
            function.line_mut(location).add_target(target, count);
        }
    }
    for _ in 0..calls {
        if depth >= MAX_INLINE_DEPTH {
            return Err(cursor.malformed("inlined calls nest deeper than 256"));
        }
        let location = read_location(cursor)?;
        let callee = name(cursor, names)?;
        read_function(cursor, names, function.inlined_mut(location, &callee), depth + 1)?;
    }
    Ok(())
}

fn read_location(cursor: &mut Cursor<'_>) -> Result<LineLocation, ReadError> {
    let location = cursor.u32("a location")?;
    Ok(LineLocation { offset: location >> 16, discriminator: location & 0xffff })
}

/// Writes `profile` for GCC.
///
/// Names lose everything from their first dot on, and functions that are then the same are added
/// up: GCC does the first to them on reading, and would lose all but one of the second. Where
/// discriminators are not looked up, the blocks of a line become one, which ran as often as the most
/// frequent of them. Totals are not written.
///
/// # Errors
/// Profiles of builds that were not GCC's, and errors of `out`.
pub fn write(profile: &Profile, version: Version, out: &mut impl Write) -> Result<(), WriteError> {
    check(profile, version)?;
    let mut functions = BTreeMap::new();
    for (name, function) in &profile.functions {
        let mut known = FunctionProfile::default();
        let stripped = match version {
            Version::Gcc5 | Version::Gcc12 => {
                raise_by_line(&mut known, function);
                stripped(&known)
            }
            Version::Gcc13 => stripped(function),
            Version::Gcc16 => {
                add_up_copies(&mut known, function);
                stripped(&known)
            }
        };
        merge_into(&mut functions, &stem(name), &stripped, 1);
    }
    let stripped = Profile { functions, ..Profile::default() };
    // Nothing may have number 0: GCC takes it for none.
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

/// Makes each line of `sum` as frequent as the most frequent of its blocks in `function`.
fn raise_by_line(sum: &mut FunctionProfile, function: &FunctionProfile) {
    let line = |location: &LineLocation| LineLocation { discriminator: 0, ..*location };
    sum.head = sum.head.max(function.head);
    for (location, block) in &function.body {
        let samples = sum.line_mut(line(location));
        samples.count = samples.count.max(block.count);
        for (target, &count) in &block.targets {
            samples.add_target(target, count);
        }
    }
    for (location, callees) in &function.inlined {
        for (name, callee) in callees {
            raise_by_line(sum.inlined_mut(line(location), name), callee);
        }
    }
}

/// Adds the blocks of `function` to those of `sum`, and those that optimisation copied to the block
/// that was copied: GCC 16, `gcc/input.h`. It looks up the numbers that the first blocks had.
fn add_up_copies(sum: &mut FunctionProfile, function: &FunctionProfile) {
    let first = |l: &LineLocation| LineLocation { discriminator: l.discriminator & 0xff, ..*l };
    sum.head = sum.head.max(function.head);
    for (location, block) in &function.body {
        // A block that was unrolled or vectorised stands for several.
        let times = u64::from(location.discriminator >> 8 & 0x7f).max(1);
        let location = first(location);
        sum.add_line(location, block.count.saturating_mul(times));
        for (target, &count) in &block.targets {
            sum.line_mut(location).add_target(target, count);
        }
    }
    for (location, callees) in &function.inlined {
        for (name, callee) in callees {
            add_up_copies(sum.inlined_mut(first(location), name), callee);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    const TEXT: &str = "f:66:3\n 1: 10\n 2.5: 7 g:4 h:3\n 3: g:49\n  1: 40\n  2: h:9\n   65535: 9\n\
                        g:5:2\n 0: 5\n";

    fn written(text: &str, version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        write(&text::read(text.as_bytes()).unwrap(), version, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = text::read(TEXT.as_bytes()).unwrap();
        for version in [Version::Gcc13, Version::Gcc16] {
            assert_eq!(read(&written(TEXT, version)).unwrap(), profile);
        }
    }

    #[test]
    fn compilers_that_look_up_lines_alone_get_the_highest_count_of_each() {
        let text = "f:60:3\n 1: 3\n 1.2: 9 g:4\n 1.4: 5 g:1 h:4\n 2.1: g:20\n  1: 20\n \
                    2.3: g:22\n  1: 12\n  2.1: 10\n";
        let by_line = "f:41:3\n 1: 9 g:5 h:4\n 2: g:30\n  1: 20\n  2: 10\n";
        let mut expected = text::read(by_line.as_bytes()).unwrap();
        expected.functions.values_mut().for_each(FunctionProfile::update_total);
        for version in [Version::Gcc5, Version::Gcc12] {
            assert_eq!(read(&written(text, version)).unwrap(), expected);
        }
    }

    #[test]
    fn blocks_that_optimisation_copied_are_added_up_where_they_can_be_told() {
        // Of block 2, a copy, and what is unrolled four times.
        let text = "f:60:3\n 1.2: 9 g:4\n 1.65538: 5 g:1\n 1.1026: 2\n 3.32769: g:7\n  1: 7\n";
        let expected = "f:29:3\n 1.2: 22 g:5\n 3.1: g:7\n  1: 7\n";
        let mut expected = text::read(expected.as_bytes()).unwrap();
        expected.functions.values_mut().for_each(FunctionProfile::update_total);
        assert_eq!(read(&written(text, Version::Gcc16)).unwrap(), expected);
    }

    #[test]
    fn copies_of_a_function_are_added_up() {
        let text =
            "f.constprop.0:3:1\n 1: 3 g.part.1:2 g:1\nf.isra.0:4:1\n 1: 4\n 2: g.x:2\n  1: 2\n";
        let profile = read(&written(text, Version::Gcc12)).unwrap();
        let expected = "f:9:2\n 1: 7 g:3\n 2: g:2\n  1: 2\n";
        assert_eq!(profile, text::read(expected.as_bytes()).unwrap());
    }

    #[test]
    fn profiles_of_other_compilers_are_refused() {
        let refused = |text: &str| {
            let mut out = Vec::new();
            write(&text::read(text.as_bytes()).unwrap(), Version::Gcc13, &mut out).unwrap_err()
        };
        let error = refused("f:3:1\n 1.65536: 3\n");
        assert!(matches!(error, WriteError::Discriminator { discriminator: 65536, .. }));
        assert!(matches!(refused("f:3:1\n 1: 3\n !CFGChecksum: 1\n"), WriteError::Kind { .. }));
        assert!(matches!(refused("7:3:1\n 1: 3\n"), WriteError::Kind { .. }));
        assert!(matches!(refused(".f:3:1\n 1: 3\n"), WriteError::Name { .. }));
    }

    #[test]
    fn cut_off_data_are_errors_at_every_byte() {
        for version in [Version::Gcc12, Version::Gcc16] {
            let whole = written(TEXT, version);
            let functions_end = whole.len() - 12 - 8 - 12 * 128;
            for length in 0..functions_end {
                assert!(read(&whole[..length]).is_err(), "{length}");
            }
            assert!(read(&whole[..functions_end]).is_ok());
        }
    }

    #[test]
    fn damage_is_told_from_data() {
        let whole = written(TEXT, Version::Gcc12);
        let with = |at: usize, word: u32| {
            let mut damaged = whole.clone();
            damaged[at..at + 4].copy_from_slice(&word.to_le_bytes());
            read(&damaged)
        };
        assert!(matches!(with(0, 1), Err(ReadError::UnknownFormat)));
        assert!(matches!(with(4, 4), Err(ReadError::Version { version: 4, .. })));
        assert!(matches!(with(12, 1), Err(ReadError::Malformed { .. })));
        assert!(matches!(with(20, u32::MAX), Err(ReadError::Truncated { .. })));
        assert!(matches!(with(24, u32::MAX), Err(ReadError::Truncated { .. })));
    }
}
