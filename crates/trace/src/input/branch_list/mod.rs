//! Branch lists: what `simpleperf inject --output branch-list` makes of an ETM trace.
//!
//! A list says that code ran from an address on, and for each branch instruction on the way
//! whether it was taken. It takes the binary's code to know where that leads, so that a branch
//! list is read in two steps: [`read`] takes it in, and [`Walk`] follows it with a decoder of
//! instructions.
//!
//! Source of the format: Android's system/extras, simpleperf/branch_list.proto and
//! simpleperf/BranchListFile.cpp; what a list means, simpleperf/ETMDecoder.cpp.

mod message;
mod walk;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::options::{Options, open};
use crate::TraceError;

pub use message::{BranchList, LbrData, LbrSample, TakenBits, TracedBinary, TracedKind};
pub use walk::{Step, Walk};

/// What a file begins with. Files before 2024 are one message, whose first field this is.
const MAGIC: &[u8] = b"simpleperf:EtmBranchList";
/// More of one message is not held in memory; simpleperf writes some MiB in each.
const MAX_MESSAGE: u64 = 512 << 20;
/// Bytes that all lists may take in memory.
const MAX_HELD: u64 = 512 << 20;

/// Reads the branch list at `path`.
///
/// # Errors
/// [`TraceError::UnknownFormat`] if it is none, [`TraceError::Corrupt`] if it is damaged.
pub fn read(path: &Path, options: &Options<'_>) -> Result<BranchList, TraceError> {
    let file = open(path)?;
    parse(file, path, options)
}

/// Reads a branch list from `input`; `path` is for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(
    mut input: impl Read,
    path: &Path,
    options: &Options<'_>,
) -> Result<BranchList, TraceError> {
    let corrupt = |offset: u64, what: &str| TraceError::Corrupt {
        path: path.to_owned(),
        offset,
        what: what.to_owned(),
    };
    let mut list = BranchList::default();
    let mut budget = MAX_HELD;
    let too_large = || TraceError::Unsupported {
        path: path.to_owned(),
        what: "it has more lists than fit in memory; record for a shorter time, and convert \
            several files"
            .to_owned(),
    };
    let mut head = take(&mut input, MAGIC.len() as u64, path)?;
    if head != MAGIC {
        // The older form: one message, to the end of the file.
        if head.get(..2) != Some(&[0x0a, MAGIC.len() as u8]) {
            let found = "it does not begin with simpleperf:EtmBranchList".to_owned();
            return Err(TraceError::UnknownFormat { path: path.to_owned(), found });
        }
        head.extend(take(&mut input, MAX_MESSAGE, path)?);
        options.progress.fetch_add(head.len() as u64, Ordering::Relaxed);
        return match message::branch_list(&head, &mut list, &mut budget) {
            Some(()) => Ok(list),
            None if budget == 0 => Err(too_large()),
            None => Err(corrupt(0, "a message contradicts itself")),
        };
    }
    let settings = take(&mut input, 5, path)?;
    let [version @ .., compressed] = settings.as_slice() else {
        return Err(corrupt(MAGIC.len() as u64, "the header is cut off"));
    };
    if version != [1, 0, 0, 0] {
        let what = "this version of the branch list is unknown".to_owned();
        return Err(TraceError::Unsupported { path: path.to_owned(), what });
    }
    let mut offset = MAGIC.len() as u64 + 5;
    loop {
        if options.cancelled.load(Ordering::Relaxed) {
            return Err(TraceError::Cancelled);
        }
        let size = take(&mut input, 4, path)?;
        if size.is_empty() {
            return Ok(list);
        }
        let size = <[u8; 4]>::try_from(size).map_err(|_| corrupt(offset, "it is cut off"))?;
        let size = u64::from(u32::from_le_bytes(size));
        let mut bytes = take(&mut input, size.min(MAX_MESSAGE), path)?;
        if bytes.len() as u64 != size {
            return Err(corrupt(offset, "a message is longer than the file"));
        }
        if *compressed == 1 {
            bytes =
                decompressed(&bytes).ok_or_else(|| corrupt(offset, "the zstd data is damaged"))?;
        }
        if message::branch_list(&bytes, &mut list, &mut budget).is_none() {
            if budget == 0 {
                return Err(too_large());
            }
            return Err(corrupt(offset, "a message contradicts itself"));
        }
        offset += 4 + size;
        options.progress.store(offset, Ordering::Relaxed);
    }
}

fn io(path: &Path, source: std::io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}

fn take(input: &mut impl Read, size: u64, path: &Path) -> Result<Vec<u8>, TraceError> {
    let mut bytes = Vec::new();
    input.take(size).read_to_end(&mut bytes).map_err(|source| io(path, source))?;
    Ok(bytes)
}

/// One zstd frame, if it is no larger than a branch list becomes: 64 times as large.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let limit = bytes.len().saturating_mul(64).saturating_add(1 << 20).min(MAX_MESSAGE as usize);
    let mut context = zstd::zstd_safe::DCtx::try_create()?;
    let mut source = zstd::zstd_safe::InBuffer::around(bytes);
    let (mut all, mut piece) = (Vec::new(), vec![0; 256 << 10]);
    loop {
        let mut target = zstd::zstd_safe::OutBuffer::around(&mut piece[..]);
        let before = source.pos();
        let left = context.decompress_stream(&mut target, &mut source).ok()?;
        let count = target.pos();
        all.extend_from_slice(piece.get(..count)?);
        if left == 0 {
            return Some(all);
        }
        if all.len() > limit || (count == 0 && source.pos() == before) {
            return None;
        }
    }
}
