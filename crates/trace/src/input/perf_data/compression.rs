//! zstd, by Facebook's own library rather than ruzstd: it decodes several times as fast (see
//! docs/decisions/0007-perf-data.md), returns bytes as soon as there are any (perf never
//! ends its one frame, and ruzstd holds back a window's worth until the frame ends), and has
//! been fuzzed for a decade.

use std::ops::Range;

use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// Most bytes that a stream may look back: what zstd's highest level uses.
const WINDOW_LOG: u32 = 27;
/// Least and most bytes that one record may expand to. perf compresses at most one ring buffer
/// at a time and says how large that is; what a file says is not to be trusted beyond this.
const EXPANSION: Range<u64> = 64 << 20..4 << 30;

/// One stream over all compressed records of a file.
pub(crate) struct Decompressor {
    context: DCtx<'static>,
    input: Vec<u8>,
    at: usize,
    /// Bytes that may still come out of this record.
    allowed: u64,
    may_hold_more: bool,
}

impl Decompressor {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).ok()?;
        Some(Self { context, input: Vec::new(), at: 0, allowed: 0, may_hold_more: false })
    }

    /// Goes on with the `data` of the next record. `buffer` is the size of the recorder's ring
    /// buffer, if the file says.
    pub(crate) fn begin(&mut self, data: &[u8], buffer: Option<u64>) {
        self.input.clear();
        self.input.extend_from_slice(data);
        self.at = 0;
        self.may_hold_more = true;
        self.allowed = buffer.unwrap_or_default().clamp(EXPANSION.start, EXPANSION.end);
    }

    /// Fills `room` as far as the record reaches; 0 if it is used up. An error says what is
    /// wrong.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        let mut produced = 0;
        while produced == 0 && (self.may_hold_more || self.at < self.input.len()) {
            let mut source = InBuffer::around(self.input.get(self.at..).unwrap_or_default());
            let size = room.len();
            let mut target = OutBuffer::around(&mut *room);
            self.context
                .decompress_stream(&mut target, &mut source)
                .map_err(|code| format!("compressed records: {}", get_error_name(code)))?;
            let consumed = source.pos();
            produced = target.pos();
            self.at += consumed;
            self.may_hold_more = produced == size && size > 0;
            if consumed == 0 && produced == 0 {
                break;
            }
        }
        let left = self.allowed.checked_sub(produced as u64);
        self.allowed = left.ok_or("a compressed record expands without end")?;
        Ok(produced)
    }
}
