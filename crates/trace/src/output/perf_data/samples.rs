//! Samples of any input, written to a perf.data as they come.

use std::io::{self, Write};

use mepof_address::RuntimeAddress;

use super::RecordedSample;
use super::recorded::PROCESS;
use super::writer::Writer;
use crate::{BranchEntry, Sample, Sink, Space};

/// The capacity of a record, in entries of a stack.
const MAX_DEPTH: usize = 2000;
/// No branch trace has one stack more often than this, and each takes a record.
const MAX_REPEATS: u64 = 1 << 24;

/// Writes samples of one event and space, in order; so it is read into on one thread.
///
/// A stack with a gap is written as several samples, one for each part: a reader that skips
/// entries without addresses would take what is on the two sides of a gap as consecutive.
/// A stack that was seen several times is written several times.
pub struct Samples<'a, W> {
    writer: Option<&'a mut Writer<W>>,
    event: usize,
    space: Space,
    written: u64,
    failed: Option<io::Error>,
}

impl<'a, W: Write> Samples<'a, W> {
    /// Writes to `writer`, as samples of its event `event`.
    pub fn new(writer: &'a mut Writer<W>, event: usize, space: Space) -> Self {
        Self { writer: Some(writer), event, space, written: 0, failed: None }
    }

    /// How many were written.
    ///
    /// # Errors
    /// Why not all could be; [`io::ErrorKind::InvalidData`] if a stack was seen too often.
    pub fn finish(self) -> io::Result<u64> {
        self.failed.map_or(Ok(self.written), Err)
    }

    fn write(&mut self, sample: &Sample<'_>, address: RuntimeAddress, branches: &[BranchEntry]) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.failed.is_none()) else { return };
        if sample.count > MAX_REPEATS {
            let what =
                format!("one stack was seen {} times, which no perf.data can hold", sample.count);
            self.failed = Some(io::Error::new(io::ErrorKind::InvalidData, what));
            return;
        }
        let recorded = RecordedSample {
            event: self.event,
            address,
            space: self.space,
            time: sample.time.unwrap_or_default(),
            process: (PROCESS, PROCESS),
            cpu: 0,
            branches: branches.get(..MAX_DEPTH).unwrap_or(branches),
        };
        for _ in 0..sample.count {
            if let Err(error) = writer.sample(&recorded) {
                self.failed = Some(error);
                return;
            }
            self.written += 1;
        }
    }
}

impl<W: Write + Send> Sink for Samples<'_, W> {
    fn sample(&mut self, sample: &Sample<'_>) {
        let mut address = sample.address;
        let mut write = |branches: &[BranchEntry]| {
            let Some(newest) = branches.first() else { return };
            // Where the event happened is next to the newest branch of all.
            self.write(sample, address.take().unwrap_or(newest.to), branches);
        };
        if sample.consecutive {
            sample.branches.split(is_gap).for_each(write);
        } else {
            // Single branches: as one stack they would claim the code between them.
            sample.branches.chunks(1).for_each(&mut write);
        }
    }

    fn branch(&mut self, _from: RuntimeAddress, _to: RuntimeAddress, _count: u64) {}

    fn range(&mut self, _first: RuntimeAddress, _last: RuntimeAddress, _count: u64) {}

    fn fork(&self) -> Self {
        Self { writer: None, event: self.event, space: self.space, written: 0, failed: None }
    }

    fn merge(&mut self, other: Self) {
        self.failed = self.failed.take().or(other.failed);
    }
}

fn is_gap(entry: &BranchEntry) -> bool {
    entry.from.0 == 0 && entry.to.0 == 0
}
