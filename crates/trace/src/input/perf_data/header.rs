use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::attr::{Attr, MAX_EVENTS};
use super::cursor::{ByteOrder, Cursor};
use super::feature;
use super::format::{FILE_HEADER, MAGIC, PIPE_HEADER, feature as bits};
use super::session::Session;
use crate::{Cause, TraceError};

/// Sections of a header are small: some MiB for thousands of CPUs. Each is in memory as a whole.
const MAX_SECTION: u64 = 8 << 20;
/// Linux takes no larger event: kernel/events/core.c, `perf_copy_attr()`.
const MAX_ATTR: u64 = 4096;
/// A `perf_file_section`.
const SECTION: u64 = 16;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The header of a file with an index.
#[derive(Clone, Debug)]
pub(crate) struct FileLayout {
    order: ByteOrder,
    attr_size: u64,
    attrs: Section,
    pub(crate) data: Section,
    features: [u64; 4],
}

/// How an input begins.
#[derive(Clone, Debug)]
pub(crate) enum Header {
    /// Records follow, and among them what the header of a file would say.
    Pipe {
        order: ByteOrder,
    },
    File(FileLayout),
}

/// An open input.
pub(crate) struct InputFile<'a, R> {
    path: &'a Path,
    pub(crate) file: R,
    /// Bytes; 0 for a pipe.
    pub(crate) length: u64,
}

impl<'a, R: Read + Seek> InputFile<'a, R> {
    pub(crate) fn new(path: &'a Path, file: R, length: u64) -> Self {
        Self { path, file, length }
    }

    fn io(&self, source: std::io::Error) -> TraceError {
        TraceError::Io { path: self.path.to_owned(), source }
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> TraceError {
        TraceError::Corrupt { path: self.path.to_owned(), offset, what: what.into() }
    }

    /// As many bytes as there are, at most `size`, from where the file stands.
    fn bytes(&mut self, size: u64) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(size).read_to_end(&mut bytes);
        read.map_err(|source| self.io(source))?;
        Ok(bytes)
    }

    /// The bytes of a section that lies within the file.
    fn section(&mut self, section: Section, what: &str) -> Result<Vec<u8>, TraceError> {
        if section.size > MAX_SECTION {
            let what = format!("{what} has {} bytes, more than any perf writes", section.size);
            return Err(self.corrupt(section.offset, what));
        }
        self.front(section, MAX_SECTION, what)
    }

    /// At most the first `most` bytes of a section that lies within the file.
    fn front(&mut self, section: Section, most: u64, what: &str) -> Result<Vec<u8>, TraceError> {
        let end = section.offset.checked_add(section.size);
        if end.is_none_or(|end| end > self.length) {
            let what =
                format!("{what} of {} bytes reaches beyond the end of the file", section.size);
            return Err(self.corrupt(section.offset, what));
        }
        let position = self.file.seek(SeekFrom::Start(section.offset));
        position.map_err(|source| self.io(source))?;
        self.bytes(section.size.min(most))
    }

    /// Tells the session of the events and features in the header.
    pub(crate) fn announce(
        &mut self,
        layout: &FileLayout,
        session: &mut Session<'_>,
    ) -> Result<(), TraceError> {
        let order = layout.order;
        let each = layout.attr_size;
        if !(SECTION + 1..=SECTION + MAX_ATTR).contains(&each) {
            let what = format!("events have {each} bytes, which no perf writes");
            return Err(self.corrupt(layout.attrs.offset, what));
        }
        // One more than are taken: the session counts it as too many.
        let most = each * (MAX_EVENTS as u64 + 1);
        let attrs = self.front(layout.attrs, most, "a table of events")?;
        let each = each as usize;
        for bytes in attrs.chunks_exact(each) {
            let (attr, ids) = bytes.split_at(each - SECTION as usize);
            let Some((attr, _)) = Attr::read(attr, order) else {
                return Err(self.corrupt(layout.attrs.offset, "an event has an unknown size"));
            };
            let ids = match section(&mut Cursor::new(ids, order)) {
                Some(ids) if ids.size > 0 => {
                    self.front(ids, 8 * session.ids_left() as u64, "a table of ids")?
                }
                _ => Vec::new(),
            };
            let ids = ids.chunks_exact(8);
            session.announce(attr, ids.filter_map(|bytes| Cursor::new(bytes, order).u64()));
        }
        // perf fills in the size of the data when it ends; the features come after the data.
        if layout.data.size > 0 {
            self.features(layout, session);
        }
        Ok(())
    }

    /// The features are worth having, but nothing depends on them.
    fn features(&mut self, layout: &FileLayout, session: &mut Session<'_>) {
        let set = (0..bits::BITS).filter(|&bit| {
            let word = usize::try_from(bit / 64).ok().and_then(|word| layout.features.get(word));
            word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
        });
        let mut at = layout.data.offset.saturating_add(layout.data.size);
        let mut damaged = 0;
        for bit in set {
            let entry = Section { offset: at, size: SECTION };
            at = at.saturating_add(SECTION);
            if !feature::is_known(bit) {
                continue;
            }
            let position = self.section(entry, "the table of features");
            let content = position.ok().and_then(|bytes| {
                let content = section(&mut Cursor::new(&bytes, layout.order))?;
                self.section(content, "a feature").ok()
            });
            match content.and_then(|bytes| feature::read(bit, &bytes, layout.order)) {
                Some(feature) => session.feature(feature),
                None => damaged += 1,
            }
        }
        if damaged > 0 {
            session.seen.remarks.push(format!("{damaged} parts of its header could not be read"));
            session.drop(Cause::Truncated, 1);
        }
    }
}

fn section(cursor: &mut Cursor<'_>) -> Option<Section> {
    Some(Section { offset: cursor.u64()?, size: cursor.u64()? })
}

impl Header {
    pub(crate) fn order(&self) -> ByteOrder {
        match self {
            Self::Pipe { order } => *order,
            Self::File(layout) => layout.order,
        }
    }

    /// Reads the header; of a pipe no byte more than that.
    pub(crate) fn read<R: Read + Seek>(input: &mut InputFile<'_, R>) -> Result<Self, TraceError> {
        let start = input.bytes(PIPE_HEADER)?;
        let order = match start.get(..8) {
            Some(magic) if magic == MAGIC.to_le_bytes() => ByteOrder::Little,
            Some(magic) if magic == MAGIC.to_be_bytes() => ByteOrder::Big,
            Some(b"PERFFILE") => {
                return Err(TraceError::Unsupported {
                    path: input.path.to_owned(),
                    what: "this perf.data is of before 2013 (version 1): read it with the perf \
                        that wrote it"
                        .to_owned(),
                });
            }
            _ => {
                let found = match start.as_slice() {
                    [] => "its `data` is empty: end `perf record` by SIGINT, not SIGKILL",
                    _ => "it does not begin with PERFILE2",
                };
                let found = found.to_owned();
                return Err(TraceError::UnknownFormat { path: input.path.to_owned(), found });
            }
        };
        let size = Cursor::new(start.get(8..).unwrap_or_default(), order).u64();
        match size {
            None => return Err(input.corrupt(start.len() as u64, "the header is cut off")),
            Some(PIPE_HEADER) => return Ok(Self::Pipe { order }),
            Some(size) if size < FILE_HEADER => {
                return Err(input.corrupt(8, format!("the header has only {size} bytes")));
            }
            Some(_) => {}
        }
        let rest = input.bytes(FILE_HEADER - PIPE_HEADER)?;
        let layout = FileLayout::read(&rest, order);
        layout
            .map(Self::File)
            .ok_or_else(|| input.corrupt(PIPE_HEADER + rest.len() as u64, "the header is cut off"))
    }
}

impl FileLayout {
    fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, order);
        let attr_size = cursor.u64()?;
        let attrs = section(&mut cursor)?;
        let data = section(&mut cursor)?;
        section(&mut cursor)?; // event types, which no perf since 2013 writes
        let mut features = [0; 4];
        for word in &mut features {
            *word = cursor.u64()?;
        }
        Some(Self { order, attr_size, attrs, data, features })
    }

    /// How many bytes of records to read.
    pub(crate) fn data_size(&self, session: &mut Session<'_>, file_length: u64) -> u64 {
        let there = file_length.saturating_sub(self.data.offset);
        if self.data.size == 0 {
            session.seen.remarks.push(
                "perf did not end properly: the header says neither how much there is nor which \
                 machine it was"
                    .to_owned(),
            );
            return there;
        }
        if self.data.size > there {
            session.seen.remarks.push(format!(
                "the file is truncated: it has {} of {} bytes of records",
                there, self.data.size
            ));
            session.drop(Cause::Truncated, 1);
        }
        self.data.size.min(there)
    }
}
