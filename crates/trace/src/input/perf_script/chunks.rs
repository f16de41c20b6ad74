//! Cuts text into runs of whole samples, for threads that take one after another.

use std::io::{self, Read};

use super::line::{Line, MAX_LINE, without_end};
use super::samples::{Found, State};

/// A run of whole samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Where it begins in the input.
    pub(super) offset: u64,
    /// What the lines before it leave open.
    pub(super) state: State,
    /// Bytes that were read for it.
    pub(super) bytes_read: u64,
}

/// Reads an input in chunks.
#[derive(Debug)]
pub(super) struct Chunks<'a, R> {
    input: R,
    size: usize,
    carried: Vec<u8>, // read already, and belonging to the next chunk
    offset: u64,      // of `carried`
    state: State,     // at `carried`
    ended: bool,
    /// What was found in lines that stand between samples: they are not handed out.
    pub(super) found: Found<'a>,
}

impl<'a, R: Read> Chunks<'a, R> {
    /// Chunks of about `size` bytes; for `wanted_events` see [`Found::new`].
    pub(super) fn new(input: R, size: usize, wanted_events: &'a [String]) -> Self {
        Self {
            input,
            size: size.max(1),
            carried: Vec::new(),
            offset: 0,
            state: State::default(),
            ended: false,
            found: Found::new(wanted_events),
        }
    }

    /// What the last chunk leaves open.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Fills `text` with the next chunk; `None` at the end.
    pub(super) fn next(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Chunk>> {
        let mut bytes_read = 0;
        let mut wanted = self.size;
        loop {
            text.clear();
            text.append(&mut self.carried);
            let had = text.len();
            if !self.ended {
                wanted = wanted.max(had.saturating_add(1));
                let missing = (wanted - had) as u64;
                text.reserve_exact(wanted - had);
                let read = self.input.by_ref().take(missing).read_to_end(text)? as u64;
                self.ended = read < missing;
                bytes_read += read;
            }
            let offset = self.offset;
            if text.is_empty() {
                return Ok(None);
            }
            let end = if self.ended { Some(text.len()) } else { after_last_sample(text) };
            if let Some(end) = end {
                self.carry(text, end);
                let chunk = Chunk { offset, state: self.state, bytes_read };
                self.state = State::default();
                return Ok(Some(chunk));
            }
            // No sample ends here. What the lines leave open goes with the next chunk.
            let lines = memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
            let mut at = offset;
            for line in text.get(..lines).unwrap_or_default().split_inclusive(|&b| b == b'\n') {
                self.found.open_line(&mut self.state, Line::of(without_end(line)), at);
                at += line.len() as u64;
            }
            self.carry(text, lines);
            if lines == 0 {
                wanted = self.size.max(had.saturating_mul(2)).max(2);
                if self.carried.len() > MAX_LINE {
                    bytes_read += self.skip_line()?;
                }
            }
        }
    }

    fn carry(&mut self, text: &mut Vec<u8>, end: usize) {
        self.carried.extend_from_slice(text.get(end..).unwrap_or_default());
        text.truncate(end);
        self.offset += end as u64;
    }

    /// Leaves out the line that `carried` holds the beginning of, which counts as malformed.
    fn skip_line(&mut self) -> io::Result<u64> {
        self.found.malformed_line(&mut self.state, self.offset);
        let mut total = 0;
        let mut part = Vec::new();
        loop {
            self.offset += self.carried.len() as u64;
            self.carried.clear();
            let read = self.input.by_ref().take(1 << 16).read_to_end(&mut part)?;
            total += read as u64;
            if let Some(newline) = memchr::memchr(b'\n', &part) {
                self.offset += newline as u64 + 1;
                self.carried.extend_from_slice(part.get(newline + 1..).unwrap_or_default());
                return Ok(total);
            }
            if read == 0 {
                self.ended = true;
                return Ok(total);
            }
            std::mem::swap(&mut self.carried, &mut part);
            part.clear();
        }
    }
}

/// One past the last line that ends a sample.
fn after_last_sample(text: &[u8]) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', text)?;
    loop {
        let before = text.get(..end)?;
        let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        if Line::of(without_end(before.get(start..)?)).ends_sample() {
            return Some(end + 1);
        }
        end = start.checked_sub(1)?;
    }
}
