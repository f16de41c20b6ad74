//! The reader.

use std::sync::Arc;

use super::form::{FUNCTIONS, MAGIC, MODULES, NAMES, SUMMARY, VERSION_4_7, Version};
use crate::cursor::Cursor;
use crate::samples::merge_into;
use crate::{Format, FunctionProfile, LineLocation, MAX_INLINE_DEPTH, Profile, ReadError};

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
