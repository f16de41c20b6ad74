use mepof_address::{ImageAddress, Placement, RuntimeAddress};
use mepof_binary::Block;
use mepof_trace::{Sample, Sink, Speculation};
use rustc_hash::FxHashMap;

use crate::{BlockMap, BlockRef};

/// Blocks of one function that ran one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockPath {
    /// Which function of the block map.
    pub function: u32,
    /// Which of its blocks, in the order that they ran.
    pub blocks: Vec<u32>,
}

/// Blocks of the longest path: where it comes from, three that could be copied, and where it
/// goes.
const LENGTH: usize = 5;
/// Code that runs straight through more blocks is not followed.
const STRAIGHT: u32 = 1024;
/// Calls that a stack of branches is followed through.
const DEPTH: usize = 16;

/// A sink that gathers the paths through functions' blocks: what a block does next often hangs
/// on where control came from, which branches alone do not tell.
///
/// Memory is bounded: when there are more than the given number of distinct paths, those that
/// were seen least are forgotten (and the outcome then does depend on how the input was split).
/// Paths of three to five blocks are kept, each with all shorter ones that it begins with.
#[derive(Clone, Debug)]
pub struct Paths<'a> {
    map: &'a BlockMap<'a>,
    placement: &'a Placement,
    capacity: usize,
    counts: FxHashMap<Key, u64>,
    forgotten: u64,
}

/// A path that borrows its blocks: there are several for each branch of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: u32,
    /// Filled up with zeros.
    blocks: [u32; LENGTH],
    length: u8,
}

impl Key {
    fn new(function: u32, path: &[u32]) -> Self {
        let mut blocks = [0; LENGTH];
        blocks.iter_mut().zip(path).for_each(|(position, &block)| *position = block);
        Self { function, blocks, length: path.len().min(LENGTH) as u8 }
    }

    fn path(&self) -> BlockPath {
        let blocks = self.blocks.iter().take(self.length.into()).copied().collect();
        BlockPath { function: self.function, blocks }
    }
}

/// A function's blocks on the way to the next call or return.
#[derive(Clone, Debug, Default)]
struct Way {
    function: u32,
    blocks: Vec<u32>,
}

impl<'a> Paths<'a> {
    /// Gathers paths through the blocks of `map`, which ran at `placement`; at most `capacity`
    /// of them.
    pub fn new(map: &'a BlockMap<'a>, placement: &'a Placement, capacity: usize) -> Self {
        let counts = FxHashMap::default();
        Self { map, placement, capacity: capacity.max(1), counts, forgotten: 0 }
    }

    /// How often each path ran, sorted.
    pub fn counts(&self) -> Vec<(BlockPath, u64)> {
        let mut counts: Vec<_> =
            self.counts.iter().map(|(key, &count)| (key.path(), count)).collect();
        counts.sort_unstable();
        counts
    }

    /// Counts of paths that were forgotten to stay within memory.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn note(&mut self, way: &Way, count: u64) {
        for start in 0..way.blocks.len() {
            for length in 3..=LENGTH {
                let Some(blocks) = way.blocks.get(start..start + length) else { break };
                let total = self.counts.entry(Key::new(way.function, blocks)).or_default();
                *total = total.saturating_add(count);
            }
        }
        if self.counts.len() > self.capacity {
            self.forget();
        }
    }

    /// Forgets the half of the paths that were seen least.
    fn forget(&mut self) {
        let mut seen: Vec<u64> = self.counts.values().copied().collect();
        let middle = seen.len() / 2;
        let (_, &mut median, _) = seen.select_nth_unstable(middle);
        let forgotten = &mut self.forgotten;
        self.counts.retain(|_, &mut count| {
            if count <= median {
                *forgotten = forgotten.saturating_add(count);
            }
            count > median
        });
    }

    fn image(&self, address: RuntimeAddress) -> Option<ImageAddress> {
        self.placement.to_image(address)
    }

    fn block(&self, at: Option<BlockRef>) -> Option<&'a Block> {
        self.map.block(at?)
    }

    /// The blocks from `first` to `last`, which fall through.
    fn straight(&self, first: ImageAddress, last: ImageAddress) -> Option<(BlockRef, BlockRef)> {
        let (from, to) = (self.map.flat_target(first)?, self.map.flat_covering(last)?);
        let sound = first <= last && from <= to && self.map.run_end(from) >= to;
        let sound = sound && to - from < STRAIGHT;
        Some((self.map.at(from)?, self.map.at(to)?)).filter(|_| sound)
    }
}

/// What follows a stack of branches from its oldest entry on.
struct Follower<'p, 'a> {
    paths: &'p mut Paths<'a>,
    /// The function that runs, innermost last, around it its callers.
    ways: Vec<Way>,
    count: u64,
}

impl Follower<'_, '_> {
    /// Ends all ways: what comes next is not connected with what was.
    fn lose(&mut self) {
        for way in std::mem::take(&mut self.ways) {
            self.paths.note(&way, self.count);
        }
    }

    fn end_one(&mut self) {
        if let Some(way) = self.ways.pop() {
            self.paths.note(&way, self.count);
        }
    }

    /// Code ran straight on from `first`, where a branch had led, to `last`. `resumes` if that
    /// branch came back from a call.
    fn run(&mut self, first: ImageAddress, last: ImageAddress, resumes: bool) {
        if self.paths.map.flat_target(first).is_none() {
            return; // a thunk, or assembly that was called: it will come back
        }
        let Some((from, to)) = self.paths.straight(first, last) else { return self.lose() };
        let known = self.ways.last().is_some_and(|way| way.function == from.function);
        if !known {
            self.lose();
            self.ways.push(Way { function: from.function, blocks: Vec::new() });
        }
        let Some(way) = self.ways.last_mut() else { return };
        // Back in the block that called: it is not entered again. A way that begins there does
        // not know how the block was entered.
        let inside = self.paths.map.flat_start(first).is_none();
        let again = resumes && inside && way.blocks.last() == Some(&from.block);
        if resumes && inside && !again && !way.blocks.is_empty() {
            self.paths.note(way, self.count);
            way.blocks.clear();
        }
        let begin = if again { from.block + 1 } else { from.block };
        way.blocks.extend(begin..=to.block);
    }

    /// A branch was taken.
    fn branch(&mut self, from: Option<ImageAddress>, to: Option<ImageAddress>) -> bool {
        let map = self.paths.map;
        let source = from.and_then(|from| map.covering(from));
        let target = to.and_then(|to| map.target(to));
        let Some(target_at) = target else {
            return false;
        };
        let enters = target_at.block == 0 && map.address(target_at.function) == to;
        if enters {
            if self.ways.len() >= DEPTH {
                self.lose();
            }
            self.ways.push(Way { function: target_at.function, blocks: Vec::new() });
            return false;
        }
        let returns = self.paths.block(source).is_none_or(|block| block.has_return);
        if returns {
            if source.is_some() {
                self.end_one();
            }
            // Tail calls return for those that made them.
            while self.ways.last().is_some_and(|way| way.function != target_at.function) {
                self.end_one();
            }
        }
        returns
    }
}

impl Sink for Paths<'_> {
    fn sample(&mut self, sample: &Sample<'_>) {
        if !sample.consecutive {
            return;
        }
        let mut follower = Follower { count: sample.count, ways: Vec::new(), paths: self };
        let mut landed: Option<(ImageAddress, bool)> = None;
        for entry in sample.branches.iter().rev() {
            if entry.speculation == Speculation::WrongPath {
                continue;
            }
            let (from, to) = (follower.paths.image(entry.from), follower.paths.image(entry.to));
            match (landed, from) {
                (Some((first, resumes)), Some(last)) => follower.run(first, last, resumes),
                (Some(_), None) => follower.lose(),
                (None, Some(source)) if follower.ways.is_empty() => {
                    // The oldest branch: its block is where the way begins.
                    if let Some(at) = follower.paths.map.covering(source) {
                        follower.ways.push(Way { function: at.function, blocks: vec![at.block] });
                    }
                }
                (None, _) => {}
            }
            let resumes = follower.branch(from, to);
            landed = to.map(|to| (to, resumes));
        }
        follower.lose();
    }

    fn branch(&mut self, _from: RuntimeAddress, _to: RuntimeAddress, _count: u64) {}

    fn range(&mut self, _first: RuntimeAddress, _last: RuntimeAddress, _count: u64) {}

    fn fork(&self) -> Self {
        Self::new(self.map, self.placement, self.capacity)
    }

    fn merge(&mut self, other: Self) {
        for (key, count) in other.counts {
            let total = self.counts.entry(key).or_default();
            *total = total.saturating_add(count);
        }
        self.forgotten = self.forgotten.saturating_add(other.forgotten);
        if self.counts.len() > self.capacity {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_map::tests::{block, function};
    use mepof_address::Region;
    use mepof_binary::FunctionBlocks;
    use mepof_trace::BranchEntry;

    const SLIDE: u64 = 0x1_0000;

    /// 0x100 (calls at 0x104), 0x110, 0x120, 0x130 returns; 0x200 a leaf.
    fn program() -> [FunctionBlocks; 2] {
        let blocks = (0..4).map(|at| block(at, 0x100 + u64::from(at) * 0x10, 0x10)).collect();
        [function(blocks), function(vec![block(0, 0x200, 8)])]
    }

    fn placement() -> Placement {
        let (runtime, image) = (RuntimeAddress(SLIDE), ImageAddress(0));
        Placement::new(vec![Region { runtime, image, size: 0x1000 }])
    }

    /// Branches in the order that they were taken.
    fn gathered(capacity: usize, branches: &[(u64, u64)]) -> Vec<(u32, Vec<u32>, u64)> {
        let (functions, placement) = (program(), placement());
        let map = BlockMap::new(&functions);
        let mut paths = Paths::new(&map, &placement, capacity);
        let entry = |&(from, to)| BranchEntry {
            from: RuntimeAddress(SLIDE + from),
            to: RuntimeAddress(SLIDE + to),
            ..BranchEntry::default()
        };
        let stack: Vec<BranchEntry> = branches.iter().rev().map(entry).collect();
        let sample =
            Sample { time: None, address: None, branches: &stack, consecutive: true, count: 2 };
        paths.sample(&sample);
        let mut twice = paths.fork();
        twice.merge(paths);
        twice.counts().into_iter().map(|(p, count)| (p.function, p.blocks, count)).collect()
    }

    #[test]
    fn a_path_follows_branches_and_falling_through() {
        let paths = gathered(100, &[(0x104, 0x120), (0x12c, 0x110), (0x12c, 0x110)]);
        // 0, 2, then 1 and 2 by falling through.
        let expected = [(0, vec![0, 2, 1], 2), (0, vec![0, 2, 1, 2], 2), (0, vec![2, 1, 2], 2)];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_path_goes_on_after_a_call() {
        let paths = gathered(
            100,
            &[(0x124, 0x100), (0x104, 0x200), (0x204, 0x109), (0x114, 0x130), (0x138, 0x900)],
        );
        assert!(paths.contains(&(0, vec![0, 1, 3], 2)), "{paths:?}");
        assert!(paths.iter().all(|(function, ..)| *function == 0));
    }

    #[test]
    fn a_path_goes_on_after_unmapped_code_was_called() {
        let branches =
            [(0x124, 0x100), (0x104, 0x800), (0x804, 0x810), (0x818, 0x109), (0x114, 0x130)];
        let mut branches = branches.to_vec();
        branches.push((0x138, 0x900));
        let paths = gathered(100, &branches);
        assert!(paths.contains(&(0, vec![0, 1, 3], 2)), "{paths:?}");
    }

    #[test]
    fn nothing_is_joined_across_what_is_not_known() {
        assert!(gathered(100, &[(0x104, 0x120), (0x9000, 0x110), (0x114, 0x130)]).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let branches: Vec<(u64, u64)> = (0..50)
            .map(|at| (0x10c + 0x10 * (at * 7 % 4), 0x100 + 0x10 * ((at * at + 1) % 4)))
            .collect();
        assert!(gathered(8, &branches).len() <= 8);
    }
}
