//! Text with a fact on each line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use mepof_address::RuntimeAddress;

use super::options::Options;
use crate::TraceError;

/// Stands for every address outside of the binary, in text of one binary's addresses. Offsets
/// from the binary's first segment include 0 and 1, so no small number will do.
pub(super) const OUTSIDE: RuntimeAddress = RuntimeAddress(u64::MAX);

/// Contexts and paths have names; a line longer than this is in none of these formats.
const MAX_LINE: u64 = 1 << 20;

/// Gives each line of `input` to `take`, without blanks around it, and its offset; `take` returns
/// how many distinct branches and ranges are held. `path` is for errors.
pub(super) fn each_line<R: Read>(
    input: R,
    path: &Path,
    options: &Options<'_>,
    mut take: impl FnMut(&[u8], u64) -> usize,
) -> Result<(), TraceError> {
    let mut input = BufReader::with_capacity(1 << 18, input);
    let mut text = Vec::new();
    let mut offset = 0;
    for number in 0_u64.. {
        if number % 4096 == 0 && options.cancelled.load(Ordering::Relaxed) {
            return Err(TraceError::Cancelled);
        }
        text.clear();
        let length = input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut text)
            .map_err(|source| TraceError::Io { path: path.to_owned(), source })?;
        if length == 0 {
            break;
        }
        options.progress.fetch_add(length as u64, Ordering::Relaxed);
        if take(text.trim_ascii(), offset) > options.max_distinct {
            let limit = options.max_distinct;
            return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
        }
        offset += length as u64;
    }
    Ok(())
}
