use std::io::Read;
use std::sync::Arc;

use super::function::{NameTable, read_all, read_location};
use super::section;
use crate::cursor::Cursor;
use crate::name::parse_guid;
use crate::sum::Addition;
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
    let mut profile = Profile::default();
    let kind = read_into(bytes, &mut profile)?;
    Ok(Profile { functions: profile.functions, symbols: profile.symbols, ..kind })
}

/// Adds a profile to a sum, without a [`Profile`] of it in memory. Gives one that has no functions
/// and no symbols.
///
/// # Errors
/// As of [`read`], and metadata ([`has_metadata`]). The sum then has some of the profile in it.
pub(crate) fn add(bytes: &[u8], sum: &mut Addition<'_>) -> Result<Profile, ReadError> {
    read_into(bytes, sum)
}

/// Whether a file says more of functions than counts; also if it is damaged.
pub(crate) fn has_metadata(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(Format::ExtBinary, bytes);
    match (cursor.uleb("the magic number"), cursor.uleb("the version")) {
        (Ok(section::EXT_BINARY), Ok(_)) => {
            let sections = section_headers(&mut cursor);
            sections.map_or(true, |all| {
                all.iter().any(|each| each.kind == section::METADATA && each.size > 0)
            })
        }
        _ => false, // the plain form has none
    }
}

fn read_into<D: Destination>(bytes: &[u8], into: &mut D) -> Result<Profile, ReadError> {
    let format = format_of(bytes).ok_or(ReadError::UnknownFormat)?;
    let mut cursor = Cursor::new(format, bytes);
    cursor.uleb("the magic number")?;
    let version = cursor.uleb("the version")?;
    if version != section::VERSION {
        return Err(ReadError::Version { format, version, supported: "103" });
    }
    let names = NameTable(Vec::new());
    let kind = Profile::default();
    let mut reader = Reader { format, into, kind, names, virtual_tables: false };
    if format == Format::Binary {
        reader.plain(&mut cursor)?;
    } else {
        reader.sections(&mut cursor, bytes)?;
    }
    Ok(reader.kind)
}

/// Where a profile is read into.
pub(super) trait Destination {
    /// What stands for a name there.
    type Name;

    fn name(&mut self, text: &str) -> Self::Name;

    /// Functions that the binary had.
    fn symbols(&mut self, names: Vec<Self::Name>);

    /// Reads functions one after the other up to the end of `cursor`.
    fn functions(
        &mut self,
        cursor: &mut Cursor<'_>,
        names: &NameTable<Self::Name>,
        virtual_tables: bool,
    ) -> Result<(), ReadError>;

    /// Reads what is said of functions beside their counts, up to the end of `cursor`.
    fn metadata(
        &mut self,
        cursor: &mut Cursor<'_>,
        metadata: &Metadata<'_, Self::Name>,
    ) -> Result<(), ReadError>;
}

impl Destination for Profile {
    type Name = Arc<str>;

    fn name(&mut self, text: &str) -> Arc<str> {
        Arc::from(text)
    }

    fn symbols(&mut self, names: Vec<Arc<str>>) {
        self.symbols.extend(names);
        self.symbols.sort_unstable();
        self.symbols.dedup();
    }

    fn functions(
        &mut self,
        cursor: &mut Cursor<'_>,
        names: &NameTable<Arc<str>>,
        virtual_tables: bool,
    ) -> Result<(), ReadError> {
        read_all(cursor, names, virtual_tables, self)
    }

    fn metadata(
        &mut self,
        cursor: &mut Cursor<'_>,
        metadata: &Metadata<'_, Arc<str>>,
    ) -> Result<(), ReadError> {
        while !cursor.is_at_end() {
            let name = metadata.names.name(cursor)?;
            metadata.read(cursor, self.functions.get_mut(name), 0)?;
        }
        Ok(())
    }
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

struct Reader<'a, D: Destination> {
    format: Format,
    into: &'a mut D,
    /// Of what kind the profile is; without functions and symbols.
    kind: Profile,
    names: NameTable<D::Name>,
    virtual_tables: bool,
}

impl<D: Destination> Reader<'_, D> {
    fn plain(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        for _ in 0..5 {
            cursor.uleb("the summary")?;
        }
        for _ in 0..cursor.count(3, "the summary")? {
            for _ in 0..3 {
                cursor.uleb("the summary")?;
            }
        }
        self.text_names(cursor)?;
        self.into.functions(cursor, &self.names, false)
    }

    fn sections(&mut self, cursor: &mut Cursor<'_>, file: &[u8]) -> Result<(), ReadError> {
        let sections = section_headers(cursor)?;
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
                self.kind.partial = section.has(section::SUMMARY_PARTIAL);
                self.kind.flow_sensitive = section.has(section::SUMMARY_FLOW_SENSITIVE);
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
                self.into.functions(&mut cursor, &self.names, self.virtual_tables)?;
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
        let before = (!self.names.0.is_empty()).then_some(self.kind.md5_names);
        if section.has(section::NAMES_FIXED_LENGTH) {
            let count = cursor.count(8, "the name table")?;
            self.hashes((0..count).map(|_| cursor.u64("the name table")))?;
        } else if section.has(section::NAMES_MD5) {
            let count = cursor.count(1, "the name table")?;
            self.hashes((0..count).map(|_| cursor.uleb("the name table")))?;
        } else {
            self.text_names(cursor)?;
        }
        if before.is_some_and(|before| before != self.kind.md5_names) {
            return Err(cursor.malformed("one name table has names and another MD5 hashes"));
        }
        Ok(())
    }

    fn hashes(
        &mut self,
        hashes: impl Iterator<Item = Result<u64, ReadError>>,
    ) -> Result<(), ReadError> {
        let names = hashes.map(|hash| Ok(self.into.name(&hash?.to_string())));
        self.names = NameTable(names.collect::<Result<_, _>>()?);
        self.kind.md5_names = true;
        Ok(())
    }

    fn text_names(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let count = cursor.count(1, "the name table")?;
        let mut names = Vec::with_capacity(count);
        // Names that are all numbers are hashes: a tool took them from such a profile.
        let mut hashes = count > 0;
        for _ in 0..count {
            let name = text(cursor, "the name table")?;
            hashes = hashes && parse_guid(name).is_some();
            names.push(self.into.name(name));
        }
        self.names = NameTable(names);
        self.kind.md5_names = hashes;
        Ok(())
    }

    fn symbols(&mut self, section: &Section, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        if section.flags >> 32 != 0 {
            return Err(ReadError::Unsupported {
                format: self.format,
                what: "has a symbol list in a newer LLVM's form",
            });
        }
        let mut symbols = Vec::new();
        while !cursor.is_at_end() {
            symbols.push(self.into.name(text(cursor, "the symbol list")?));
        }
        self.into.symbols(symbols);
        Ok(())
    }

    fn metadata(&mut self, section: &Section, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let metadata = Metadata {
            names: &self.names,
            probes: section.has(section::METADATA_PROBES),
            attributes: section.has(section::METADATA_ATTRIBUTES),
        };
        self.kind.probe_based = metadata.probes;
        self.into.metadata(cursor, &metadata)
    }
}

fn section_headers(cursor: &mut Cursor<'_>) -> Result<Vec<Section>, ReadError> {
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
    Ok(sections)
}

pub(super) struct Metadata<'a, N> {
    names: &'a NameTable<N>,
    probes: bool,
    attributes: bool,
}

impl Metadata<'_, Arc<str>> {
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

fn text<'a>(cursor: &mut Cursor<'a>, inside: &'static str) -> Result<&'a str, ReadError> {
    let not_text = cursor.malformed("a name is not UTF-8");
    std::str::from_utf8(cursor.zero_terminated(inside)?).map_err(|_| not_text)
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
