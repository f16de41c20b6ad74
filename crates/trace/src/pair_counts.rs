use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Counts of pairs of addresses: the hot table of the engine.
///
/// A hash table with open addressing of 16 bytes a pair. Nearly every pair of a kernel fits:
/// the first address has 48 bits that matter, the second lies within 2 GiB of it, and the count
/// stays below 2^48. What does not fit goes to a plain map beside it.
///
/// Each table draws its own seed: an input cannot be made to collide, and a table that is
/// emptied into another does not arrive in that one's order, which linear probing would take
/// quadratic time over.
#[derive(Clone, Debug)]
pub(crate) struct PairCounts {
    slots: Vec<Slot>, // none, or a power of two, of which some are always free
    used: usize,
    seed: u64,
    wide: HashMap<(u64, u64), u64>, // pairs that do not fit into a slot
    overflow: HashMap<(u64, u64), u64>, // to be added to the slot's count
    batch: Vec<(Slot, u64)>,        // slots and hashes, empty between calls
}

/// `first` (48 bits), the distance to `second` (32 bits), the count (48 bits); a count of zero
/// is a free slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    high: u64, // 48 bits of `first`, upper 16 bits of the distance
    low: u64,  // lower 16 bits of the distance, count
}

const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const SMALLEST: usize = 1 << 10;

impl Slot {
    /// The slot of a pair, with no count; `None` if it does not fit.
    fn of(first: u64, second: u64) -> Option<Self> {
        let distance = second.wrapping_sub(first);
        let fits = sign_extended(first << 16, 16) == first
            && sign_extended(distance << 32, 32) == distance;
        fits.then_some(Self {
            high: first << 16 | (distance >> 16 & 0xffff),
            low: distance << COUNT_BITS,
        })
    }

    fn pair(self) -> (u64, u64) {
        let first = sign_extended(self.high, 16);
        let distance = (self.high & 0xffff) << 16 | self.low >> COUNT_BITS;
        (first, first.wrapping_add(sign_extended(distance << 32, 32)))
    }

    fn count(self) -> u64 {
        self.low & COUNT
    }

    fn same_pair(self, other: Self) -> bool {
        self.high == other.high && (self.low ^ other.low) <= COUNT
    }

    fn hash(self, seed: u64) -> u64 {
        // Odd constants: the golden ratio's and one of MurmurHash3's, as good as any.
        let mixed = (self.high ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32 ^ self.low & !COUNT).wrapping_mul(0xff51_afd7_ed55_8ccd)
    }
}

fn sign_extended(value: u64, shift: u32) -> u64 {
    ((value as i64) >> shift) as u64
}

impl Default for PairCounts {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            used: 0,
            seed: RandomState::new().hash_one(0),
            wide: HashMap::default(),
            overflow: HashMap::default(),
            batch: Vec::new(),
        }
    }
}

impl PairCounts {
    /// Distinct pairs.
    pub(crate) fn len(&self) -> usize {
        self.used + self.wide.len()
    }

    /// Adds `count`, which saturates, to the count of a pair.
    pub(crate) fn add(&mut self, first: u64, second: u64, count: u64) {
        match Slot::of(first, second) {
            _ if count == 0 => {}
            Some(pair) => self.add_slot(pair, pair.hash(self.seed), count),
            None => self.add_wide(first, second, count),
        }
    }

    /// Adds `count` to the count of each of `pairs`: [`add`](Self::add), but quicker.
    pub(crate) fn add_all(&mut self, pairs: impl Iterator<Item = (u64, u64)>, count: u64) {
        if count == 0 {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        for (first, second) in pairs {
            match Slot::of(first, second) {
                Some(pair) => batch.push((pair, pair.hash(self.seed))),
                None => self.add_wide(first, second, count),
            }
        }
        // The table is larger than the cache. Loads that nothing depends on wait for memory all
        // at once; the probing below would wait for one after the other.
        let warm = batch.iter().fold(0, |sum, &(_, hash)| {
            sum ^ self.slots.get(self.index(hash)).map_or(0, |slot| slot.low)
        });
        std::hint::black_box(warm);
        for (pair, hash) in batch.drain(..) {
            self.add_slot(pair, hash, count);
        }
        self.batch = batch;
    }

    fn add_wide(&mut self, first: u64, second: u64, count: u64) {
        saturate(self.wide.entry((first, second)).or_default(), count);
    }

    /// Where to look for a pair first.
    fn index(&self, hash: u64) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        hash.checked_shr(mask.leading_zeros()).unwrap_or_default() as usize
    }

    fn add_slot(&mut self, pair: Slot, hash: u64, count: u64) {
        // Three quarters full at most.
        if self.used >= self.slots.len() / 4 * 3 {
            self.grow(self.slots.len() * 2);
        }
        let mask = self.slots.len().wrapping_sub(1);
        let mut index = self.index(hash);
        while let Some(slot) = self.slots.get_mut(index) {
            let held = slot.count();
            if held == 0 {
                *slot = pair;
                self.used += 1;
            }
            if held == 0 || slot.same_pair(pair) {
                if count <= COUNT - held {
                    slot.low += count;
                } else {
                    // A used slot keeps a count above zero.
                    let kept = COUNT - held;
                    slot.low += kept;
                    saturate(self.overflow.entry(pair.pair()).or_default(), count - kept);
                }
                return;
            }
            index = (index + 1) & mask;
        }
    }

    fn grow(&mut self, capacity: usize) {
        let capacity = capacity.max(SMALLEST).next_power_of_two();
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); capacity]);
        self.used = 0;
        // In the order of the old table, which is that of the new one: quick, and as linear
        // a table of twice the size needs no more than the old probes.
        for slot in old.into_iter().filter(|slot| slot.count() > 0) {
            let pair = Slot { low: slot.low & !COUNT, ..slot };
            self.add_slot(pair, pair.hash(self.seed), slot.count());
        }
    }

    /// The pairs and their counts, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let narrow = self.slots.iter().filter(|slot| slot.count() > 0).map(|slot| {
            let (first, second) = slot.pair();
            let more = if slot.count() == COUNT {
                self.overflow.get(&(first, second)).copied().unwrap_or_default()
            } else {
                0
            };
            (first, second, slot.count().saturating_add(more))
        });
        narrow.chain(self.wide.iter().map(|(&(first, second), &count)| (first, second, count)))
    }

    /// Takes over what `other` counted.
    pub(crate) fn merge(&mut self, mut other: Self) {
        if other.used > self.used {
            std::mem::swap(self, &mut other);
        }
        other.iter().for_each(|(first, second, count)| self.add(first, second, count));
    }
}

fn saturate(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sorted(counts: &PairCounts) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<_> = counts.iter().collect();
        all.sort_unstable();
        assert_eq!(all.len(), counts.len());
        all
    }

    /// Pairs of every kind: kernel, user, from one to the other, and hostile.
    fn pairs() -> Vec<(u64, u64)> {
        let interesting = [
            0,
            1,
            0x40_0000,
            0x7fff_ffff_ffff,
            0x8000_0000_0000,
            0xffff_7fff_ffff_ffff,
            0xffff_8000_8000_0000,
            0xffff_ffff_8100_0000,
            0xffff_ffff_c000_0123,
            u64::MAX,
        ];
        interesting.iter().flat_map(|&a| interesting.iter().map(move |&b| (a, b))).collect()
    }

    #[test]
    fn every_pair_of_addresses_comes_back() {
        let mut counts = PairCounts::default();
        let mut expected: Vec<_> = pairs().iter().map(|&(a, b)| (a, b, 7)).collect();
        for (a, b) in pairs() {
            counts.add(a, b, 3);
            counts.add(a, b, 4);
        }
        expected.sort_unstable();
        assert_eq!(sorted(&counts), expected);
    }

    #[test]
    fn counts_saturate() {
        for (a, b) in pairs() {
            let mut counts = PairCounts::default();
            for count in [COUNT - 1, 1, 1, COUNT] {
                counts.add(a, b, count);
            }
            assert_eq!(sorted(&counts), [(a, b, 2 * COUNT + 1)]);
            counts.add(a, b, u64::MAX - 5);
            assert_eq!(sorted(&counts), [(a, b, u64::MAX)]);
        }
        let mut counts = PairCounts::default();
        counts.add(0x10, 0x20, u64::MAX);
        assert_eq!(sorted(&counts), [(0x10, 0x20, u64::MAX)]);
    }

    #[test]
    fn a_count_of_zero_is_nothing() {
        let mut counts = PairCounts::default();
        counts.add(1, 2, 0);
        counts.add(1, u64::MAX / 2, 0);
        assert_eq!(counts.len(), 0);
    }

    #[test]
    fn growing_and_merging_lose_nothing() {
        let mut parts: Vec<_> = (0..3).map(|_| PairCounts::default()).collect();
        let mut expected = BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..200_000_usize {
            // Knuth's MMIX generator.
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let first = 0xffff_ffff_8100_0000 | (state >> 40 & 0xffff);
            let second = first ^ (state >> 60);
            parts[step % 3].add(first, second, state >> 62);
            *expected.entry((first, second)).or_insert(0) += state >> 62;
        }
        expected.retain(|_, count| *count > 0);
        let whole = parts.into_iter().reduce(|mut a, b| {
            a.merge(b);
            a
        });
        let expected: Vec<_> = expected.into_iter().map(|((a, b), count)| (a, b, count)).collect();
        assert_eq!(sorted(&whole.unwrap()), expected);
    }
}
