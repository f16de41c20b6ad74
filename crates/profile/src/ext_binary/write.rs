use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::function::{Encoder, write_count, write_location, write_uleb};
use super::section;
use crate::name::{guid, parse_guid};
use crate::names::{checked_names, has_nul};
use crate::{
    ATTRIBUTE_SHOULD_BE_INLINED, Format, FunctionProfile, Profile, Summary, UNIQUE_SUFFIX,
    WriteError,
};

/// How to write an extensible binary profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Write the MD5 hash of each name (8 bytes) instead.
    pub md5_names: bool,
    /// Compress every section.
    pub compress: bool,
    /// Compress the list of symbols, which is large and seldom read.
    pub compress_symbols: bool,
}

/// Writes `profile` in LLVM's extensible binary form, as
/// `llvm-profdata merge --sample --extbinary` would.
///
/// Unlike LLVM's tool, it keeps attributes though none of them says that a call should be inlined.
///
/// # Errors
/// What cannot be written so that a compiler reads the same, and errors of `out`.
pub fn write(profile: &Profile, options: Options, out: &mut impl Write) -> Result<(), WriteError> {
    let names = checked_names(profile, Format::ExtBinary, has_nul)?;
    let nameless = |name: &str| profile.md5_names && parse_guid(name).is_none();
    if let Some(name) = names.iter().find(|name| nameless(name)) {
        return Err(WriteError::Name { name: name.to_string(), format: Format::ExtBinary });
    }
    Ok(out.write_all(&Writer::new(profile, names, options).file()?)?)
}

struct Writer<'a> {
    options: Options,
    encoder: Encoder<'a>,
    names: Vec<&'a Arc<str>>,
    attributes: bool,
    preinlined: bool,
}

struct Section {
    kind: u64,
    flags: u64,
    bytes: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, names: Vec<&'a Arc<str>>, options: Options) -> Self {
        let numbers = names.iter().copied().zip(0..).collect();
        let any = |found: &dyn Fn(&FunctionProfile) -> bool| {
            profile.functions.values().any(|function| function.any(&found))
        };
        Self {
            options,
            encoder: Encoder { profile, numbers },
            names,
            attributes: any(&|function| function.attributes != 0),
            preinlined: any(&|function| function.attributes & ATTRIBUTE_SHOULD_BE_INLINED != 0),
        }
    }

    fn file(&self) -> Result<Vec<u8>, WriteError> {
        let (functions, offsets) = self.functions();
        let symbols = self.symbols();
        // The order of the headers is the order to read in; the sections themselves stand as LLVM
        // comes to write them, offsets after what they point into.
        let headers = [
            self.summary(),
            self.name_table(),
            Section { kind: section::CONTEXT_NAMES, flags: 0, bytes: vec![0] },
            offsets,
            functions,
            symbols,
            self.metadata(),
        ];
        let order = [0, 1, 2, 4, 5, 3, 6];

        let mut file = Vec::new();
        write_uleb(section::EXT_BINARY, &mut file);
        write_uleb(section::VERSION, &mut file);
        file.extend((headers.len() as u64).to_le_bytes());
        let start = file.len() + headers.len() * section::HEADER_SIZE;
        let mut body = Vec::new();
        let mut placed = BTreeMap::new();
        for index in order {
            let Some(section) = headers.get(index) else { continue };
            let compress = self.options.compress
                || (self.options.compress_symbols && section.kind == section::SYMBOLS);
            let offset = start + body.len();
            if compress {
                deflate(&section.bytes, &mut body)?;
            } else {
                body.extend(&section.bytes);
            }
            let flags = section.flags | if compress { section::COMPRESSED } else { 0 };
            placed.insert(
                index,
                [section.kind, flags, offset as u64, (start + body.len() - offset) as u64],
            );
        }
        for number in placed.into_values().flatten() {
            file.extend(number.to_le_bytes());
        }
        file.append(&mut body);
        Ok(file)
    }

    fn summary(&self) -> Section {
        let profile = self.encoder.profile;
        let mut bytes = Vec::new();
        let summary = Summary::of(profile);
        for number in [
            summary.total_count,
            summary.max_count,
            summary.max_function_count,
            summary.counts,
            summary.functions,
            summary.entries.len() as u64,
        ] {
            write_uleb(number, &mut bytes);
        }
        for entry in &summary.entries {
            write_uleb(entry.cutoff.into(), &mut bytes);
            write_uleb(entry.min_count, &mut bytes);
            write_uleb(entry.counts, &mut bytes);
        }
        let flags = [
            (profile.partial, section::SUMMARY_PARTIAL),
            (profile.flow_sensitive, section::SUMMARY_FLOW_SENSITIVE),
            (self.preinlined, section::SUMMARY_PREINLINED),
        ];
        Section { kind: section::SUMMARY, flags: sum(flags), bytes }
    }

    fn name_table(&self) -> Section {
        let mut bytes = Vec::new();
        write_count(self.names.len(), &mut bytes);
        let md5 = self.encoder.profile.md5_names || self.options.md5_names;
        let mut unique = false;
        for name in &self.names {
            if md5 {
                // A name that is a number is a hash already; LLVM's `hashFuncName` has it so.
                let hash = parse_guid(name).unwrap_or_else(|| guid(name));
                bytes.extend(hash.to_le_bytes());
            } else {
                unique |= name.contains(UNIQUE_SUFFIX);
                bytes.extend(name.as_bytes());
                bytes.push(0);
            }
        }
        let flags = [
            (md5, section::NAMES_MD5 | section::NAMES_FIXED_LENGTH),
            (unique, section::NAMES_UNIQUE_SUFFIX),
        ];
        Section { kind: section::NAMES, flags: sum(flags), bytes }
    }

    /// The functions, and where each begins.
    fn functions(&self) -> (Section, Section) {
        let functions = self.encoder.profile.by_total();
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        write_count(functions.len(), &mut offsets);
        for (name, function) in functions {
            self.encoder.name(name, &mut offsets);
            write_count(bytes.len(), &mut offsets);
            write_uleb(function.head, &mut bytes);
            self.encoder.body(name, function, &mut bytes);
        }
        (
            Section { kind: section::FUNCTIONS, flags: 0, bytes },
            Section { kind: section::FUNCTION_OFFSETS, flags: 0, bytes: offsets },
        )
    }

    fn symbols(&self) -> Section {
        let mut symbols: Vec<_> = self.encoder.profile.symbols.iter().collect();
        symbols.sort_unstable();
        symbols.dedup();
        let mut bytes = Vec::new();
        for symbol in symbols {
            bytes.extend(symbol.as_bytes());
            bytes.push(0);
        }
        Section { kind: section::SYMBOLS, flags: 0, bytes }
    }

    fn metadata(&self) -> Section {
        let profile = self.encoder.profile;
        let mut bytes = Vec::new();
        if profile.probe_based || self.attributes {
            for (name, function) in &profile.functions {
                self.function_metadata(name, function, &mut bytes);
            }
        }
        let flags = [
            (profile.probe_based, section::METADATA_PROBES),
            (self.attributes, section::METADATA_ATTRIBUTES),
        ];
        Section { kind: section::METADATA, flags: sum(flags), bytes }
    }

    fn function_metadata(&self, name: &Arc<str>, function: &FunctionProfile, out: &mut Vec<u8>) {
        self.encoder.name(name, out);
        if self.encoder.profile.probe_based {
            write_uleb(function.checksum.unwrap_or(0), out);
        }
        if self.attributes {
            write_uleb(function.attributes.into(), out);
        }
        write_count(function.inlined.values().map(BTreeMap::len).sum(), out);
        for (location, name, callee) in function.inlined_calls(self.encoder.profile.name_order()) {
            write_location(location, out);
            self.function_metadata(name, callee, out);
        }
    }
}

fn sum<const N: usize>(flags: [(bool, u64); N]) -> u64 {
    flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum()
}

/// Appends a compressed section. An empty one stays empty.
fn deflate(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WriteError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    let compressed = encoder.finish()?;
    write_count(bytes.len(), out);
    write_count(compressed.len(), out);
    out.extend(compressed);
    Ok(())
}
