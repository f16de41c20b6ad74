use std::collections::BTreeMap;

/// Values by key, made to be asked for the same keys in the same order again and again: then no
/// search is needed. Otherwise it is as a map.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<K, V> {
    settled: Vec<(K, V)>,
    /// What has come since; never much less than what is settled, so that settling is seldom.
    fresh: BTreeMap<K, V>,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self { settled: Vec::new(), fresh: BTreeMap::new() }
    }
}

/// How far ahead a key is looked for before a search.
const NEAR: usize = 4;

impl<K: Ord + Copy, V: Default> Sorted<K, V> {
    /// The value of `key`, made if there is none yet. `at` is where the last one was found, at
    /// first 0; call [`Self::settle`] after the last one.
    pub(crate) fn entry(&mut self, at: &mut usize, key: K) -> &mut V {
        let mut ahead = self.settled.get(*at..).unwrap_or_default().iter().take(NEAR);
        let found = match ahead.position(|(present, _)| *present == key) {
            Some(steps) => Some(*at + steps),
            None => self.settled.binary_search_by(|(present, _)| present.cmp(&key)).ok(),
        };
        if let Some(index) = found {
            *at = index + 1;
        }
        match found.and_then(|index| self.settled.get_mut(index)) {
            Some((_, value)) => value,
            None => self.fresh.entry(key).or_default(),
        }
    }

    /// Puts what has come where it is found fast, if that is worth it.
    pub(crate) fn settle(&mut self) {
        if self.fresh.len() > self.settled.len() / 8 {
            self.settled.extend(std::mem::take(&mut self.fresh));
            self.settled.sort_by_key(|(key, _)| *key); // two sorted runs
        }
    }

    /// Everything, in the keys' order.
    pub(crate) fn into_sorted(mut self) -> Vec<(K, V)> {
        self.settled.extend(self.fresh);
        self.settled.sort_by_key(|(key, _)| *key);
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_values_whatever_the_order() {
        let mut sums = Sorted::<u32, u64>::default();
        for order in [[3, 1, 2, 9, 8], [1, 2, 3, 8, 9], [9, 8, 7, 1, 4]] {
            let mut at = 0;
            for key in order {
                *sums.entry(&mut at, key) += u64::from(key);
            }
            sums.settle();
        }
        let expected = [(1, 3), (2, 4), (3, 6), (4, 4), (7, 7), (8, 24), (9, 27)];
        assert_eq!(sums.into_sorted(), expected);
    }

    #[test]
    fn one_key_is_one_value_before_it_settles() {
        let mut sums = Sorted::<u32, u64>::default();
        for _ in 0..2 {
            *sums.entry(&mut 0, 5) += 1;
        }
        assert_eq!(sums.into_sorted(), [(5, 2)]);
    }
}
