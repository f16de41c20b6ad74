use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::compression::Decompressor;
use super::cursor::Cursor;
use super::decoder::Header;
use super::feeder::Feeder;
use super::format::{RECORD_HEADER, record};
use super::session::Session;
use super::spe::SpeDecoder;
use crate::input::options::Options;
use crate::{Cause, Sink, TraceError};

/// Bytes to read at once: more than any record, and less than a second-level cache.
const BLOCK: usize = 512 << 10;

/// Bytes that follow a record but are not counted in its size.
#[derive(Debug, Default)]
struct Payload {
    left: u64,
    is_trace: bool,
}

/// Drives a stream of records through a session and a feeder.
pub(crate) struct Stream<'a, 'o, 'b, 'c, S> {
    path: &'a Path,
    options: &'o Options<'o>,
    session: &'b mut Session<'o>,
    feeder: &'b mut Feeder<'c, S>,
    payload: Payload,
    spe: SpeDecoder,
    decompressor: Option<Decompressor>,
    /// Decompressed bytes that were not looked at yet.
    plain: Vec<u8>,
    plain_filled: usize,
}

impl<'a, 'o, 'b, 'c, S: Sink> Stream<'a, 'o, 'b, 'c, S> {
    pub(crate) fn new(
        path: &'a Path,
        options: &'o Options<'o>,
        session: &'b mut Session<'o>,
        feeder: &'b mut Feeder<'c, S>,
    ) -> Self {
        Self {
            path,
            options,
            session,
            feeder,
            payload: Payload::default(),
            spe: SpeDecoder::default(),
            decompressor: None,
            plain: Vec::new(),
            plain_filled: 0,
        }
    }

    /// Reads the records in `source`, which begins at byte `offset` of the file, to its end.
    pub(crate) fn read(mut self, mut source: impl Read, mut offset: u64) -> Result<(), TraceError> {
        let mut carried = Vec::new();
        loop {
            self.feeder.check(self.path)?;
            let mut block = self.feeder.buffer();
            let filled = self.fill(&mut block, &carried, &mut source)?;
            let fresh = filled.saturating_sub(carried.len());
            self.options.progress.fetch_add(fresh as u64, Ordering::Relaxed);
            let block = Arc::new(block);
            let used = self.walk(&block, filled, Some(offset))?;
            carried.clear();
            carried.extend_from_slice(block.get(used..filled).unwrap_or_default());
            self.feeder.recycle(block);
            offset = offset.saturating_add(used as u64);
            if fresh == 0 {
                break;
            }
        }
        self.finish(carried.len())
    }

    fn fill(
        &self,
        block: &mut Vec<u8>,
        carried: &[u8],
        source: &mut impl Read,
    ) -> Result<usize, TraceError> {
        make_room(block);
        let mut filled = carried.len();
        if let Some(front) = block.get_mut(..filled) {
            front.copy_from_slice(carried);
        }
        while let Some(room) = block.get_mut(filled..).filter(|room| !room.is_empty()) {
            match source.read(room) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(TraceError::Io { path: self.path.to_owned(), source });
                }
            }
        }
        Ok(filled)
    }

    /// Looks at the whole records in the first `filled` bytes of `block`, and says how many
    /// bytes they are. `offset` is the block's position in the file, or nothing for what was
    /// decompressed.
    fn walk(
        &mut self,
        block: &Arc<Vec<u8>>,
        filled: usize,
        offset: Option<u64>,
    ) -> Result<usize, TraceError> {
        let bytes = block.get(..filled).unwrap_or_default();
        let order = self.session.order();
        let mut at = 0;
        let mut samples = None; // where those begin that were not submitted
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.payload.left > 0 && offset.is_some() {
                self.submit(block, samples.take(), at);
                let count = self.take_payload(rest);
                if count == 0 {
                    break;
                }
                at += count;
                continue;
            }
            let Some(header) = Header::read(rest, order) else { break };
            if header.size < RECORD_HEADER {
                self.submit(block, samples.take(), at);
                let what = format!("a record has {} bytes, fewer than its header", header.size);
                return Err(self.corrupt(offset.map(|offset| offset + at as u64), what));
            }
            let Some(whole) = rest.get(..header.size) else { break };
            let body = whole.get(RECORD_HEADER..).unwrap_or_default();
            match header.kind {
                record::SAMPLE => {
                    samples.get_or_insert(at);
                }
                record::COMPRESSED | record::COMPRESSED2 if offset.is_some() => {
                    self.compressed(header.kind, body, offset.unwrap_or_default() + at as u64)?;
                }
                record::AUXTRACE | record::HEADER_TRACING_DATA if offset.is_some() => {
                    self.begin_payload(header.kind, body);
                }
                record::HEADER_ATTR | record::EVENT_UPDATE | record::HEADER_FEATURE => {
                    // Samples before it are read as announced before it.
                    self.submit(block, samples.take(), at);
                    self.session.record(header, body);
                }
                _ => self.session.record(header, body),
            }
            at += header.size;
        }
        self.submit(block, samples, at);
        Ok(at)
    }

    fn submit(&mut self, block: &Arc<Vec<u8>>, from: Option<usize>, to: usize) {
        if let Some(from) = from {
            let decoder = self.session.decoder();
            self.feeder.submit(block, from..to, decoder);
        }
    }

    fn corrupt(&self, offset: Option<u64>, what: String) -> TraceError {
        let what = match offset {
            Some(_) => what,
            None => format!("{what}, in compressed records"),
        };
        TraceError::Corrupt { path: self.path.to_owned(), offset: offset.unwrap_or_default(), what }
    }

    fn begin_payload(&mut self, kind: u32, body: &[u8]) {
        let mut cursor = Cursor::new(body, self.session.order());
        let is_trace = kind == record::AUXTRACE;
        let left = match is_trace {
            true => cursor.u64(),
            // Of a pipe, and padded: tools/perf/util/header.c, perf_event__process_tracing_data().
            false => cursor.u32().map(|size| u64::from(size).next_multiple_of(8)),
        };
        match left {
            Some(left) => {
                self.payload = Payload { left, is_trace };
                self.spe = SpeDecoder::default();
                if is_trace {
                    let bytes = &mut self.session.seen.auxtrace_bytes;
                    *bytes = bytes.saturating_add(left);
                }
            }
            None => self.session.drop(Cause::Malformed, 1),
        }
    }

    /// Uses up as many of `bytes` as belong to the payload.
    fn take_payload(&mut self, bytes: &[u8]) -> usize {
        let count = usize::try_from(self.payload.left).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = bytes.get(..count).unwrap_or_default();
        self.payload.left -= count as u64;
        if self.payload.is_trace && self.session.is_spe() {
            let decoder = self.session.decoder();
            self.spe.read(bytes, &decoder, self.feeder);
        }
        count
    }

    fn compressed(&mut self, kind: u32, body: &[u8], offset: u64) -> Result<(), TraceError> {
        self.session.seen.compressed_records += 1;
        let mut data = body;
        if kind == record::COMPRESSED2 {
            let mut cursor = Cursor::new(body, self.session.order());
            let told = cursor.u64().and_then(|size| cursor.take_u64(size));
            let Some(told) = told else {
                self.session.drop(Cause::Malformed, 1);
                return Ok(());
            };
            data = told;
        }
        let buffer = self.session.seen.compression_buffer;
        let mut decompressor = match self.decompressor.take() {
            Some(known) => known,
            None => Decompressor::new()
                .ok_or_else(|| self.corrupt(Some(offset), "zstd has no memory".to_owned()))?,
        };
        decompressor.begin(data, buffer);
        loop {
            if self.plain_filled >= self.plain.len() {
                self.walk_plain()?;
            }
            let room = self.plain.get_mut(self.plain_filled..).unwrap_or_default();
            match decompressor.read(room) {
                Ok(0) => break,
                Ok(count) => self.plain_filled += count,
                Err(what) => return Err(self.corrupt(Some(offset), what)),
            }
        }
        self.decompressor = Some(decompressor);
        Ok(())
    }

    /// Looks at what was decompressed, keeps the beginning of a record at its end, and makes
    /// room for more.
    fn walk_plain(&mut self) -> Result<usize, TraceError> {
        self.feeder.check(self.path)?;
        let filled = self.plain_filled;
        let block = Arc::new(std::mem::take(&mut self.plain));
        let used = self.walk(&block, filled, None)?;
        let left = block.get(used..filled).unwrap_or_default();
        self.plain = self.feeder.buffer();
        make_room(&mut self.plain);
        self.plain_filled = left.len();
        if let Some(front) = self.plain.get_mut(..left.len()) {
            front.copy_from_slice(left);
        }
        self.feeder.recycle(block);
        Ok(self.plain_filled)
    }

    /// The `left` bytes at the end are not a whole record.
    fn finish(mut self, left: usize) -> Result<(), TraceError> {
        let left_plain = if self.plain_filled > 0 { self.walk_plain()? } else { 0 };
        for cut in [left > 0 || self.payload.left > 0, left_plain > 0] {
            self.session.drop(Cause::Truncated, u64::from(cut));
        }
        Ok(())
    }
}

/// Resizes a buffer for a block and the beginning of a record before it.
fn make_room(buffer: &mut Vec<u8>) {
    const SIZE: usize = BLOCK + u16::MAX as usize;
    if buffer.len() != SIZE {
        *buffer = vec![0; SIZE];
    }
}
