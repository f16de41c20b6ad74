use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use super::function::{NameTable, read_all, read_location};
use super::section;
use crate::cursor::Cursor;
use crate::name::{guid_name, parse_guid};
use crate::{Format, FunctionProfile, MAX_INLINE_DEPTH, Profile, ReadError};

/// How much larger than its compressed form a section may be. Deflate ends at 1032; profiles,
/// which are mostly small numbers of their own, are at 2 to 10.
const MAX_INFLATION: u64 = 64;

/// What no section may inflate to, however large it is.
const MAX_INFLATED: u64 = 1 << 30;

/// What a section may always inflate to, however small it is.
const MIN_INFLATED: u64 = 1 << 20;

/// The binary form that `bytes` begin like, if one.
pub fn format_of(bytes: &[u8]) -> Option<Format> {
    section::format(Cursor::new(Format::ExtBinary, bytes).uleb("the magic number").ok()?)
}

/// Reads a profile in the extensible or the plain binary form.
///
/// Sections that are compressed (zlib) are inflated one at a time. The summary and the table of
/// offsets are not needed and not looked into. Of profiles with virtual tables, those are left
/// out.
///
/// # Errors
/// Cut off and damaged data, other versions, and context-sensitive profiles, which LLVM converts
/// (`llvm-profdata merge --sample --convert-sample-profile-layout=nest`).
pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let format = format_of(bytes).ok_or(ReadError::UnknownFormat)?;
    let mut cursor = Cursor::new(format, bytes);
    cursor.uleb("the magic number")?;
    let version = cursor.uleb("the version")?;
    if version != section::VERSION {
        return Err(ReadError::Version { format, version, supported: "103" });
    }
    let mut reader = Reader { format, ..Reader::default() };
    if format == Format::Binary {
        reader.plain(&mut cursor)?;
    } else {
        reader.sections(&mut cursor, bytes)?;
    }
    Ok(reader.profile)
}

struct Section {
    kind: u64,
    flags: u64,
    offset: u64,
    size: u64,
}

impl Section {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

struct Reader {
    format: Format,
    profile: Profile,
    names: NameTable,
    virtual_tables: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            format: Format::ExtBinary,
            profile: Profile::default(),
            names: NameTable::default(),
            virtual_tables: false,
        }
    }
}

impl Reader {
    fn plain(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        for _ in 0..5 {
            cursor.uleb("the summary")?;
        }
        for _ in 0..cursor.count(3, "the summary")? {
            for _ in 0..3 {
                cursor.uleb("the summary")?;
            }
        }
        self.names = text_names(cursor)?;
        self.mark_md5();
        read_all(cursor, &self.names, false, &mut self.profile)
    }

    fn sections(&mut self, cursor: &mut Cursor<'_>, file: &[u8]) -> Result<(), ReadError> {
        let count = usize::try_from(cursor.u64("the section headers")?).unwrap_or(usize::MAX);
        if count.saturating_mul(section::HEADER_SIZE) > cursor.remaining() {
            return Err(cursor.truncated("the section headers"));
        }
        let mut sections = Vec::with_capacity(count);
        let mut total = 0_u64;
        for _ in 0..count {
            let section = Section {
                kind: cursor.u64("a section header")?,
                flags: cursor.u64("a section header")?,
                offset: cursor.u64("a section header")?,
                size: cursor.u64("a section header")?,
            };
            total = total.saturating_add(section.size);
            sections.push(section);
        }
        // Headers that share their bytes would have few of them read without end.
        if total > cursor.remaining() as u64 {
            return Err(cursor.truncated("the sections"));
        }
        for section in sections.iter().filter(|section| section.size > 0) {
            let range = usize::try_from(section.offset).ok().and_then(|start| {
                Some(start..start.checked_add(usize::try_from(section.size).ok()?)?)
            });
            let Some(bytes) = range.and_then(|range| file.get(range)) else {
                return Err(cursor.malformed("a section lies beyond the end of the file"));
            };
            if section.has(section::COMPRESSED) {
                self.section(section, &inflate(self.format, bytes)?)?;
            } else {
                self.section(section, bytes)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, section: &Section, bytes: &[u8]) -> Result<(), ReadError> {
        let mut cursor = Cursor::new(self.format, bytes);
        match section.kind {
            section::SUMMARY => {
                if section.has(section::SUMMARY_FULL_CONTEXT) {
                    return Err(self.context_sensitive());
                }
                self.profile.partial = section.has(section::SUMMARY_PARTIAL);
                self.profile.flow_sensitive = section.has(section::SUMMARY_FLOW_SENSITIVE);
                self.virtual_tables = section.has(section::SUMMARY_VTABLES);
                return Ok(());
            }
            section::NAMES => self.name_table(section, &mut cursor)?,
            section::CONTEXT_NAMES => {
                if cursor.uleb("the contexts")? > 0 {
                    return Err(self.context_sensitive());
                }
            }
            section::FUNCTIONS => {
                read_all(&mut cursor, &self.names, self.virtual_tables, &mut self.profile)?;
            }
            section::METADATA => self.metadata(section, &mut cursor)?,
            section::SYMBOLS => self.symbols(section, &mut cursor)?,
            section::FUNCTION_OFFSETS => return Ok(()),
            _ => {
                return Err(ReadError::Unsupported {
                    format: self.format,
                    what: "has a section of an unknown type: a newer LLVM wrote it",
                });
            }
        }
        if cursor.is_at_end() {
            Ok(())
        } else {
            Err(cursor.malformed("a section is longer than its contents"))
        }
    }

    fn context_sensitive(&self) -> ReadError {
        ReadError::Unsupported {
            format: self.format,
            what: "is context-sensitive: convert it with llvm-profdata merge --sample \
                   --convert-sample-profile-layout=nest",
        }
    }

    fn name_table(&mut self, section: &Section, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let before = (!self.names.0.is_empty()).then_some(self.profile.md5_names);
        if section.has(section::NAMES_FIXED_LENGTH) {
            let count = cursor.count(8, "the name table")?;
            let names = (0..count).map(|_| cursor.u64("the name table").map(guid_name));
            self.names = NameTable(names.collect::<Result<_, _>>()?);
            self.profile.md5_names = true;
        } else if section.has(section::NAMES_MD5) {
            let count = cursor.count(1, "the name table")?;
            let names = (0..count).map(|_| cursor.uleb("the name table").map(guid_name));
            self.names = NameTable(names.collect::<Result<_, _>>()?);
            self.profile.md5_names = true;
        } else {
            self.names = text_names(cursor)?;
            self.mark_md5();
        }
        if before.is_some_and(|before| before != self.profile.md5_names) {
            return Err(cursor.malformed("one name table has names and another MD5 hashes"));
        }
        Ok(())
    }

    /// Names that are all numbers are hashes: a tool took them from such a profile.
    fn mark_md5(&mut self) {
        let names = &self.names.0;
        self.profile.md5_names =
            !names.is_empty() && names.iter().all(|name| parse_guid(name).is_some());
    }

    fn symbols(&mut self, section: &Section, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        if section.flags >> 32 != 0 {
            return Err(ReadError::Unsupported {
                format: self.format,
                what: "has a symbol list in a newer LLVM's form",
            });
        }
        let mut symbols: BTreeSet<Arc<str>> = self.profile.symbols.drain(..).collect();
        while !cursor.is_at_end() {
            symbols.insert(text(cursor, "the symbol list")?);
        }
        self.profile.symbols = symbols.into_iter().collect();
        Ok(())
    }

    fn metadata(&mut self, section: &Section, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let metadata = Metadata {
            names: &self.names,
            probes: section.has(section::METADATA_PROBES),
            attributes: section.has(section::METADATA_ATTRIBUTES),
        };
        self.profile.probe_based = metadata.probes;
        while !cursor.is_at_end() {
            let name = self.names.name(cursor)?;
            metadata.read(cursor, self.profile.functions.get_mut(name), 0)?;
        }
        Ok(())
    }
}

struct Metadata<'a> {
    names: &'a NameTable,
    probes: bool,
    attributes: bool,
}

impl Metadata<'_> {
    /// Reads the metadata of a function and of what is inlined into it; of functions that are not
    /// there, into the void.
    fn read(
        &self,
        cursor: &mut Cursor<'_>,
        mut function: Option<&mut FunctionProfile>,
        depth: usize,
    ) -> Result<(), ReadError> {
        if self.probes {
            let checksum = cursor.uleb("a function's checksum")?;
            if let Some(function) = function.as_deref_mut() {
                function.checksum = (checksum != 0).then_some(checksum);
            }
        }
        if self.attributes {
            let attributes = cursor.uleb_u32("a function's attributes")?;
            if let Some(function) = function.as_deref_mut() {
                function.attributes = attributes;
            }
        }
        for _ in 0..cursor.count(4, "the metadata of inlined calls")? {
            if depth >= MAX_INLINE_DEPTH {
                return Err(cursor.malformed("inlined calls nest deeper than 256"));
            }
            let location = read_location(cursor)?;
            let name = self.names.name(cursor)?;
            let callee = function
                .as_deref_mut()
                .and_then(|function| function.inlined.get_mut(&location)?.get_mut(name));
            self.read(cursor, callee, depth + 1)?;
        }
        Ok(())
    }
}

fn text_names(cursor: &mut Cursor<'_>) -> Result<NameTable, ReadError> {
    let count = cursor.count(1, "the name table")?;
    let names = (0..count).map(|_| text(cursor, "the name table"));
    Ok(NameTable(names.collect::<Result<_, _>>()?))
}

fn text(cursor: &mut Cursor<'_>, inside: &'static str) -> Result<Arc<str>, ReadError> {
    let not_text = cursor.malformed("a name is not UTF-8");
    std::str::from_utf8(cursor.zero_terminated(inside)?).map(Arc::from).map_err(|_| not_text)
}

/// What a compressed section holds: its size before and after, then a zlib stream.
fn inflate(format: Format, section: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut cursor = Cursor::new(format, section);
    let size = cursor.uleb("a compressed section")?;
    let compressed = cursor.count(1, "a compressed section")?;
    let limit = (compressed as u64).saturating_mul(MAX_INFLATION).clamp(MIN_INFLATED, MAX_INFLATED);
    if size > limit {
        return Err(
            cursor.malformed("a section claims to inflate more than 64 times or beyond 1 GiB")
        );
    }
    let damaged = cursor.malformed("a section does not inflate to its size");
    let compressed = cursor.take(compressed, "a compressed section")?;
    if !cursor.is_at_end() {
        return Err(cursor.malformed("a section is longer than its contents"));
    }
    let mut inflated = Vec::new();
    let mut stream = flate2::read::ZlibDecoder::new(compressed).take(size.saturating_add(1));
    match stream.read_to_end(&mut inflated) {
        Ok(_) if inflated.len() as u64 == size => Ok(inflated),
        _ => Err(damaged),
    }
}
