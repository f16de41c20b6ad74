use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHasher};

/// A function's name, as an index into [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// The function names that debug information mentions: linkage names where there are some.
/// Sorted, so the order of ids is that of the names.
#[derive(Clone, Debug)]
pub struct Names {
    names: Arc<[Arc<str>]>,
}

impl Default for Names {
    fn default() -> Self {
        Self { names: Arc::new([]) }
    }
}

impl Names {
    /// `names`, which may be there several times.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        Self { names: names.into_iter().map(Arc::from).collect() }
    }

    /// The name, as debug information has it.
    pub fn get(&self, id: NameId) -> Option<&Arc<str>> {
        self.names.get(id.0 as usize)
    }

    /// The id of `name`, if debug information mentions it.
    pub fn find(&self, name: &str) -> Option<NameId> {
        let index = self.names.binary_search_by(|probe| (**probe).cmp(name)).ok()?;
        u32::try_from(index).ok().map(NameId)
    }

    /// All names, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.names.iter()
    }
}

/// How many threads can add names at once without waiting is a matter of this.
const SHARDS: usize = 32;

/// Gathers names from several threads. Ids are provisional until [`Interner::finish`].
#[derive(Default)]
pub struct Interner {
    shards: [Mutex<FxHashMap<Arc<str>, u32>>; SHARDS],
    next: AtomicU32,
}

impl Interner {
    /// The provisional id of `name`.
    pub fn intern(&self, name: &[u8]) -> u32 {
        let name = String::from_utf8_lossy(name);
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(name.as_bytes());
        // The map uses the upper bits of the hash as well as the lower ones.
        let Some(shard) = self.shards.get((hash >> 20) as usize % SHARDS) else { return 0 };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = shard.get(&*name) {
            return *id;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        shard.insert(Arc::from(&*name), id);
        id
    }

    /// The names in order, and for each provisional id the final one.
    pub fn finish(self) -> (Names, Vec<NameId>) {
        let mut all: Vec<(Arc<str>, u32)> = self
            .shards
            .into_iter()
            .flat_map(|shard| shard.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        all.sort_unstable();
        let mut order = vec![NameId(0); all.len()];
        for (index, (_, id)) in all.iter().enumerate() {
            if let Some(position) = order.get_mut(*id as usize) {
                *position = NameId(index as u32);
            }
        }
        (Names { names: all.into_iter().map(|(name, _)| name).collect() }, order)
    }
}
