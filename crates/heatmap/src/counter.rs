use std::collections::HashMap;
use std::ops::Range;

use mepof_address::RuntimeAddress;
use mepof_trace::{Sample, Sink, Speculation};

/// Columns of time at most. At least half of them are in use, unless the trace is shorter than
/// so many nanoseconds.
pub const COLUMNS: usize = 256;

/// Granules are cache lines of 64 bytes, at first.
const FINEST_GRANULE: u32 = 6;

/// Granules at most; with [`COLUMNS`] counts of 8 bytes each that makes 64 MiB. A kernel under
/// load runs some ten thousand lines of code.
const MAX_GRANULES: usize = 1 << 15;

/// No function is longer; what claims to have run straight through more is not true.
const MAX_RANGE: u64 = 1 << 16;

/// How often each granule of code was run through, over time.
///
/// With branch stacks that is every granule of every fall-through range; without them the one
/// where a sample was taken. An aggregated input has no time.
#[derive(Clone, Debug, Default)]
pub struct HeatCounter {
    /// By address >> (FINEST_GRANULE + coarser). The input chooses them: the hash has a seed.
    granules: HashMap<u64, Granule>,
    coarser: u32,
    clock: Option<Clock>,
    has_ranges: bool,
    implausible: u64,
}

/// The counts of a granule.
#[derive(Clone, Debug, Default)]
struct Granule {
    /// By bucket of time, modulo [`COLUMNS`]: the span is never longer.
    timed: Option<Box<[u64; COLUMNS]>>,
    untimed: u64,
    /// Of aggregated branches: in use if the input has no ranges.
    targets: u64,
}

/// The span of time so far, and how it is cut: a bucket has 2 to the power of `shift` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    first: u64,
    last: u64,
    shift: u32,
}

/// What a granule holds, for drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GranuleCounts<'a> {
    /// Where it begins.
    pub address: RuntimeAddress,
    timed: Option<&'a [u64; COLUMNS]>,
    first_bucket: u64,
    /// Without a time.
    pub untimed: u64,
}

impl GranuleCounts<'_> {
    /// How often in the `column`th bucket.
    pub fn at(&self, column: usize) -> u64 {
        let slot = (self.first_bucket.wrapping_add(column as u64) % COLUMNS as u64) as usize;
        self.timed.and_then(|counts| counts.get(slot)).copied().unwrap_or_default()
    }
}

impl Clock {
    fn at(time: u64) -> Self {
        Self { first: time, last: time, shift: 0 }
    }

    /// The clock that covers both spans: its buckets are the least that are wide enough.
    fn join(self, other: Self) -> Self {
        let mut joined = Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            shift: self.shift.max(other.shift),
        };
        while joined.columns() > COLUMNS as u64 {
            joined.shift += 1;
        }
        joined
    }

    fn bucket(self, time: u64) -> u64 {
        time >> self.shift
    }

    fn columns(self) -> u64 {
        (self.bucket(self.last) - self.bucket(self.first)).saturating_add(1)
    }
}

impl Granule {
    /// Moves the counts from the buckets of `old` to those of `new`, which are as wide or wider.
    fn rebucket(&mut self, old: Clock, new: Clock) {
        let Some(timed) = &mut self.timed else { return };
        let mut moved = Box::new([0u64; COLUMNS]);
        for bucket in old.bucket(old.first)..=old.bucket(old.last) {
            let wider = bucket >> (new.shift - old.shift);
            add(&mut moved, wider, at(timed, bucket));
        }
        *timed = moved;
    }

    fn merge(&mut self, other: Self) {
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.targets = self.targets.saturating_add(other.targets);
        match (&mut self.timed, other.timed) {
            (Some(ours), Some(theirs)) => {
                for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                    *ours = ours.saturating_add(*theirs);
                }
            }
            (none, theirs) => *none = none.take().or(theirs),
        }
    }
}

fn at(counts: &[u64; COLUMNS], bucket: u64) -> u64 {
    counts.get((bucket % COLUMNS as u64) as usize).copied().unwrap_or_default()
}

fn add(counts: &mut [u64; COLUMNS], bucket: u64, count: u64) {
    if let Some(total) = counts.get_mut((bucket % COLUMNS as u64) as usize) {
        *total = total.saturating_add(count);
    }
}

impl HeatCounter {
    /// Bytes of a granule.
    pub fn granule_bytes(&self) -> u64 {
        1 << (FINEST_GRANULE + self.coarser)
    }

    /// Ranges that were too long, or ended before they began, and were not counted.
    pub fn implausible(&self) -> u64 {
        self.implausible
    }

    /// When the first column begins, on the input's clock, and the width of a column, both in
    /// nanoseconds, and the number of columns; `None` if the input has no times.
    pub(crate) fn time(&self) -> Option<(u64, u64, usize)> {
        let clock = self.clock?;
        let start = clock.bucket(clock.first) << clock.shift;
        Some((start, 1 << clock.shift, clock.columns() as usize))
    }

    /// All granules, in no particular order.
    pub(crate) fn granules(&self) -> impl Iterator<Item = GranuleCounts<'_>> {
        let first_bucket = self.clock.map_or(0, |clock| clock.bucket(clock.first));
        self.granules.iter().map(move |(&index, granule)| GranuleCounts {
            address: RuntimeAddress(index << (FINEST_GRANULE + self.coarser)),
            timed: granule.timed.as_deref(),
            first_bucket,
            untimed: if self.has_ranges {
                granule.untimed
            } else {
                granule.untimed.saturating_add(granule.targets)
            },
        })
    }

    /// Widens the span of time so that it takes in `other`.
    fn widen(&mut self, other: Clock) {
        let Some(old) = self.clock else {
            self.clock = Some(other);
            return;
        };
        let new = old.join(other);
        if new.shift != old.shift {
            self.granules.values_mut().for_each(|granule| granule.rebucket(old, new));
        }
        self.clock = Some(new);
    }

    /// Makes granules twice as large until there are few enough.
    fn bound(&mut self) {
        while self.granules.len() > MAX_GRANULES {
            self.coarsen(self.coarser + 1);
        }
    }

    fn coarsen(&mut self, coarser: u32) {
        let by = coarser.saturating_sub(self.coarser);
        if by > 0 {
            for (index, granule) in std::mem::take(&mut self.granules) {
                self.granules.entry(index >> by).or_default().merge(granule);
            }
            self.coarser = coarser;
        }
    }

    /// The finest granules from `first` to `last`; none if that is not a range.
    fn lines(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) -> Range<u64> {
        let length = last.0.checked_sub(first.0);
        let end = match length {
            Some(length) if length < MAX_RANGE => (last.0 >> FINEST_GRANULE) + 1,
            _ => {
                self.implausible = self.implausible.saturating_add(count);
                0
            }
        };
        (first.0 >> FINEST_GRANULE)..end
    }

    /// Each of the finest granules that a range touches counts once, however coarse they are by
    /// now: so it makes no difference whether they became coarse before it or after it.
    fn ran(&mut self, first: RuntimeAddress, last: RuntimeAddress, time: Option<u64>, count: u64) {
        let Range { start: mut line, end } = self.lines(first, last, count);
        while line < end {
            let index = line >> self.coarser;
            let next = end.min((index + 1) << self.coarser);
            let count = count.saturating_mul(next - line);
            line = next;
            let granule = self.granules.entry(index).or_default();
            match self.clock.zip(time) {
                Some((clock, time)) => {
                    let timed = granule.timed.get_or_insert_with(|| Box::new([0; COLUMNS]));
                    add(timed, clock.bucket(time), count);
                }
                None => granule.untimed = granule.untimed.saturating_add(count),
            }
        }
        self.bound();
    }
}

impl Sink for HeatCounter {
    fn sample(&mut self, sample: &Sample<'_>) {
        if let Some(time) = sample.time {
            self.widen(Clock::at(time));
        }
        if let (true, Some(address)) = (sample.branches.is_empty(), sample.address) {
            self.ran(address, address, sample.time, sample.count);
        }
        let mut newer = None; // the source of the entry that came after this one
        for entry in sample.branches {
            if entry.speculation == Speculation::WrongPath {
                continue;
            }
            if entry.from.0 == 0 || entry.to.0 == 0 {
                newer = None;
                continue;
            }
            let last = newer.filter(|_| sample.consecutive).unwrap_or(entry.to);
            self.ran(entry.to, last, sample.time, sample.count);
            newer = Some(entry.from);
        }
    }

    fn branch(&mut self, _: RuntimeAddress, to: RuntimeAddress, count: u64) {
        for line in self.lines(to, to, count) {
            let granule = self.granules.entry(line >> self.coarser).or_default();
            granule.targets = granule.targets.saturating_add(count);
        }
        self.bound();
    }

    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) {
        self.has_ranges = true;
        self.ran(first, last, None, count);
    }

    fn fork(&self) -> Self {
        Self::default()
    }

    fn merge(&mut self, mut other: Self) {
        self.has_ranges |= other.has_ranges;
        self.implausible = self.implausible.saturating_add(other.implausible);
        let coarser = self.coarser.max(other.coarser);
        self.coarsen(coarser);
        other.coarsen(coarser);
        if let Some(theirs) = other.clock {
            self.widen(theirs);
        }
        if let Some(ours) = self.clock {
            other.widen(ours);
        }
        for (index, granule) in other.granules {
            self.granules.entry(index).or_default().merge(granule);
        }
        self.bound();
    }
}

#[cfg(test)]
mod tests {
    use mepof_trace::BranchEntry;

    use super::*;

    fn sample(counter: &mut HeatCounter, time: Option<u64>, entries: &[(u64, u64)]) {
        let entry = |&(from, to): &(u64, u64)| BranchEntry {
            from: RuntimeAddress(from),
            to: RuntimeAddress(to),
            ..BranchEntry::default()
        };
        let branches: Vec<_> = entries.iter().map(entry).collect();
        let sample =
            Sample { time, address: None, branches: &branches, consecutive: true, count: 1 };
        counter.sample(&sample);
    }

    /// (address, counts by column without the zeros at both ends, untimed), by address.
    fn counts(counter: &HeatCounter) -> Vec<(u64, Vec<u64>, u64)> {
        let columns = counter.time().map_or(0, |(_, _, columns)| columns);
        let mut all: Vec<_> = counter
            .granules()
            .map(|g| (g.address.0, (0..columns).map(|column| g.at(column)).collect(), g.untimed))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_line_of_a_range_that_ran_is_counted() {
        let mut counter = HeatCounter::default();
        sample(&mut counter, Some(5), &[(0x1100, 0x2000), (0x900, 0x1050)]);
        let lines: Vec<u64> = counts(&counter).iter().map(|&(address, ..)| address).collect();
        assert_eq!(lines, [0x1040, 0x1080, 0x10c0, 0x1100, 0x2000]);
    }

    #[test]
    fn columns_widen_as_time_goes_on_and_counts_stay() {
        let mut counter = HeatCounter::default();
        for time in 0..10_000u64 {
            sample(&mut counter, Some(1_000_000 + time * 1000), &[(0x500, 0x1000)]);
        }
        let (start, width, columns) = counter.time().unwrap();
        assert!(start <= 1_000_000 && 1_000_000 < start + width);
        assert!((COLUMNS / 2..=COLUMNS).contains(&columns), "{columns}");
        let [(0x1000, line, 0)] = &counts(&counter)[..] else { panic!() };
        assert_eq!(line.iter().sum::<u64>(), 10_000);
        assert!(line.iter().all(|&count| count > 0));
    }

    #[test]
    fn the_outcome_does_not_depend_on_how_the_input_was_split() {
        let samples: Vec<(u64, u64)> = (0..100_000u64)
            .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20, (n * 977 % 60_000) << 6))
            .collect();
        let all = |samples: &[(u64, u64)]| {
            let mut counter = HeatCounter::default();
            for &(time, to) in samples {
                sample(&mut counter, Some(time), &[(to + 0x1000, to + 0x4000)]);
            }
            counter
        };
        let whole = all(&samples);
        assert!(whole.granule_bytes() > 64, "so many lines are too many");
        for pieces in [2, 7] {
            let mut merged = HeatCounter::default();
            samples.chunks(samples.len() / pieces).rev().for_each(|part| merged.merge(all(part)));
            assert_eq!(merged.time(), whole.time());
            assert_eq!(counts(&merged), counts(&whole));
        }
    }

    #[test]
    fn a_range_counts_the_same_before_and_after_granules_became_coarser() {
        let long = [(0x17ff, 0x9000), (0x900, 0x1000)]; // 32 lines ran, and then another
        let many = |counter: &mut HeatCounter| {
            for line in 0..=MAX_GRANULES as u64 {
                sample(counter, Some(5), &[(1, 0x10_0000 + (line << FINEST_GRANULE))]);
            }
        };
        let (mut before, mut after) = (HeatCounter::default(), HeatCounter::default());
        sample(&mut before, Some(5), &long);
        many(&mut before);
        many(&mut after);
        sample(&mut after, Some(5), &long);
        assert!(before.granule_bytes() > 64);
        assert_eq!(counts(&before), counts(&after));
        let first: u64 = counts(&before).iter().take(16).map(|(_, line, _)| line[0]).sum();
        assert_eq!(first, 32);
    }

    #[test]
    fn hostile_times_and_addresses_cost_bounded_memory() {
        let mut counter = HeatCounter::default();
        for n in 0..60_000u64 {
            let address = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let time = if n % 2 == 0 { u64::MAX - n } else { n };
            sample(&mut counter, Some(time), &[(u64::MAX, address), (address, 0x1000)]);
        }
        assert!(counter.granules.len() <= MAX_GRANULES);
        assert!(counter.time().unwrap().2 <= COLUMNS);
        assert!(counter.implausible() > 0);
    }

    #[test]
    fn an_aggregated_input_has_no_time_and_its_ranges_count_once() {
        let mut counter = HeatCounter::default();
        counter.branch(RuntimeAddress(0x10), RuntimeAddress(0x1000), 7);
        assert_eq!(counts(&counter), [(0x1000, vec![], 7)]);
        counter.range(RuntimeAddress(0x1000), RuntimeAddress(0x1008), 5);
        assert_eq!(counts(&counter), [(0x1000, vec![], 5)]);
        assert_eq!(counter.time(), None);
    }

    #[test]
    fn what_ran_across_a_wrong_path_is_one_range_and_across_a_gap_none() {
        let mut counter = HeatCounter::default();
        sample(&mut counter, None, &[(0x1100, 0x5000), (0, 0), (0x900, 0x1000)]);
        let lines: Vec<u64> = counts(&counter).iter().map(|&(address, ..)| address).collect();
        assert_eq!(lines, [0x1000, 0x5000]);
    }
}
