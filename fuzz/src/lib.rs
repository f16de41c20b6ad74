//! What the fuzz targets for readers of branch traces share.

pub mod profile;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_trace::input::Options;
use mepof_trace::{Aggregate, Facts, Space, TraceError};

/// More than any seed has, and less than fills memory.
const MAX_DISTINCT: usize = 1 << 16;

/// Has `parse` read an input into an aggregate with `threads` threads, and looks at the outcome.
pub fn read(
    threads: usize,
    parse: impl FnOnce(&Path, &Options<'_>, &mut Aggregate) -> Result<Facts, TraceError>,
) -> Option<Aggregate> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: MAX_DISTINCT,
        symbols: None,
        binary: None,
        threads,
        cancelled: &cancelled,
        progress: &progress,
    };
    let mut found = Aggregate::default();
    match parse(Path::new("input"), &options, &mut found) {
        Ok(facts) => {
            // The sums must hold, whatever was read.
            assert!(facts.samples.read() >= facts.samples.used);
            assert_eq!(found.len(), found.branches().count() + found.ranges().count());
            Some(found)
        }
        Err(error) => {
            // An error can be printed.
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// The branches and ranges of an aggregate, in order, for comparing.
pub fn sorted(aggregate: &Aggregate) -> [Vec<(u64, u64, u64)>; 2] {
    let mut branches: Vec<_> = aggregate.branches().map(|(a, b, n)| (a.0, b.0, n)).collect();
    let mut ranges: Vec<_> = aggregate.ranges().map(|(a, b, n)| (a.0, b.0, n)).collect();
    branches.sort_unstable();
    ranges.sort_unstable();
    [branches, ranges]
}
