use mepof_address::ImageAddress;
use mepof_binary::{Block, FunctionBlocks};
use rustc_hash::FxHashSet;

/// A block of a [`BlockMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRef {
    /// Which function of the map.
    pub function: u32,
    /// Which of its blocks, in the order of the function's ranges; 0 is the entry.
    pub block: u32,
}

/// Functions that a [`BlockMap`] took and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapTally {
    /// Taken.
    pub used: u64,
    /// Without blocks.
    pub empty: u64,
    /// Blocks out of order, overlapping, twice the same id, or an entry that is not the first.
    pub malformed: u64,
    /// At addresses that belong to another function: folded or damaged.
    pub overlapping: u64,
}

/// A function of a [`BlockMap`].
#[derive(Clone, Debug)]
pub(crate) struct MappedFunction<'a> {
    pub(crate) address: ImageAddress,
    pub(crate) blocks: Vec<&'a Block>,
    /// The flat number of its first block.
    pub(crate) base: u32,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
    flat: u32,
}

/// Finds basic blocks by address. Blocks also have a flat number: blocks that may follow each
/// other by falling through have consecutive ones.
#[derive(Clone, Debug)]
pub struct BlockMap<'a> {
    functions: Vec<MappedFunction<'a>>, // by address
    /// Blocks with code, by address; none overlaps another.
    spans: Vec<Span>,
    /// The first block that begins at an address, also one without code.
    starts: Vec<(u64, u32)>,
    /// By flat number: the last block that is reached by nothing but falling through.
    run_ends: Vec<u32>,
    tally: MapTally,
}

fn end(block: &Block) -> Option<u64> {
    block.address.0.checked_add(block.size)
}

fn is_well_formed(function: &FunctionBlocks) -> bool {
    let mut ids = FxHashSet::default();
    let ordered = function.ranges.iter().all(|range| {
        let mut free_from = range.address.0;
        range.blocks.iter().all(|block| {
            let fits = block.address.0 >= free_from && ids.insert(block.id);
            match end(block) {
                Some(end) if fits => {
                    free_from = end;
                    true
                }
                _ => false,
            }
        })
    });
    let entry = function.ranges.first().and_then(|range| range.blocks.first());
    ordered && entry.is_some_and(|entry| entry.address == function.address)
}

/// Which of `functions` (indices into the map) lie where an earlier one lies.
fn overlapping(functions: &[&FunctionBlocks]) -> FxHashSet<usize> {
    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        for block in function.ranges.iter().flat_map(|range| &range.blocks) {
            // A block without code still claims the byte that it stands before.
            spans.push((block.address.0, end(block).unwrap_or(u64::MAX), index));
        }
    }
    spans.sort_unstable();
    let mut rejected = FxHashSet::default();
    let mut last: Option<(u64, u64, usize)> = None; // the farthest end so far, and whose
    for (start, end, owner) in spans {
        if rejected.contains(&owner) {
            continue;
        }
        if let Some((last_start, last_end, last_owner)) = last {
            let collides = start < last_end || (start == last_start && end == start);
            if collides && owner != last_owner {
                rejected.insert(owner.max(last_owner));
                if owner > last_owner {
                    continue;
                }
                last = None;
            }
        }
        if last.is_none_or(|(_, last_end, _)| end >= last_end) {
            last = Some((start, end, owner));
        }
    }
    rejected
}

impl<'a> BlockMap<'a> {
    /// The map of `functions`, which may come in any order.
    pub fn new(functions: &'a [FunctionBlocks]) -> Self {
        let mut tally = MapTally::default();
        let mut sound: Vec<&FunctionBlocks> = Vec::with_capacity(functions.len());
        for function in functions {
            if function.ranges.iter().all(|range| range.blocks.is_empty()) {
                tally.empty += 1;
            } else if is_well_formed(function) {
                sound.push(function);
            } else {
                tally.malformed += 1;
            }
        }
        sound.sort_by_key(|function| function.address);
        let rejected = overlapping(&sound);
        tally.overlapping = rejected.len() as u64;
        let mut map = Self {
            functions: Vec::with_capacity(sound.len()),
            spans: Vec::new(),
            starts: Vec::new(),
            run_ends: Vec::new(),
            tally,
        };
        for (index, function) in sound.into_iter().enumerate() {
            if !rejected.contains(&index) {
                map.add(function);
            }
        }
        map.tally.used = map.functions.len() as u64;
        map.spans.sort_unstable_by_key(|span| span.start);
        map.starts.sort_unstable();
        map.starts.dedup_by_key(|&mut (address, _)| address);
        map
    }

    fn add(&mut self, function: &'a FunctionBlocks) {
        let base = self.run_ends.len() as u32;
        let mut blocks = Vec::new();
        for range in &function.ranges {
            let first = self.run_ends.len();
            let code_end = range.blocks.iter().filter_map(end).max().unwrap_or(0);
            for block in &range.blocks {
                let flat = self.run_ends.len() as u32;
                self.run_ends.push(flat);
                // A block without code at a range's end shares its address with whatever the
                // linker put next.
                if block.address.0 < code_end {
                    self.starts.push((block.address.0, flat));
                }
                if block.size > 0 {
                    let end = block.address.0.saturating_add(block.size);
                    self.spans.push(Span { start: block.address.0, end, flat });
                }
                blocks.push(block);
            }
            // From the back: a block that falls through ends where the next one's run ends.
            let mut next = None;
            for (block, run_end) in
                range.blocks.iter().zip(self.run_ends.iter_mut().skip(first)).rev()
            {
                if let Some(next) = next.filter(|_| block.can_fall_through) {
                    *run_end = next;
                }
                next = Some(*run_end);
            }
        }
        self.functions.push(MappedFunction { address: function.address, blocks, base });
    }

    /// What was taken and left out.
    pub fn tally(&self) -> MapTally {
        self.tally
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The entry of a function.
    pub fn address(&self, function: u32) -> Option<ImageAddress> {
        self.function(function).map(|function| function.address)
    }

    /// A block as the binary describes it.
    pub fn block(&self, block: BlockRef) -> Option<&'a Block> {
        self.function(block.function)?.blocks.get(block.block as usize).copied()
    }

    /// The block whose code covers `address`.
    pub fn covering(&self, address: ImageAddress) -> Option<BlockRef> {
        self.flat_covering(address).and_then(|flat| self.at(flat))
    }

    /// The block that a branch to `address` goes to: of several blocks there, all but the last
    /// of which are without code, the first.
    pub fn target(&self, address: ImageAddress) -> Option<BlockRef> {
        self.flat_target(address).and_then(|flat| self.at(flat))
    }

    pub(crate) fn function(&self, function: u32) -> Option<&MappedFunction<'a>> {
        self.functions.get(function as usize)
    }

    pub(crate) fn flat_covering(&self, address: ImageAddress) -> Option<u32> {
        let after = self.spans.partition_point(|span| span.start <= address.0);
        let span = self.spans.get(after.checked_sub(1)?)?;
        (address.0 < span.end).then_some(span.flat)
    }

    pub(crate) fn flat_start(&self, address: ImageAddress) -> Option<u32> {
        let at = self.starts.binary_search_by_key(&address.0, |&(start, _)| start).ok()?;
        self.starts.get(at).map(|&(_, flat)| flat)
    }

    pub(crate) fn flat_target(&self, address: ImageAddress) -> Option<u32> {
        self.flat_start(address).or_else(|| self.flat_covering(address))
    }

    /// The last block that is reached from `flat` by nothing but falling through.
    pub(crate) fn run_end(&self, flat: u32) -> u32 {
        self.run_ends.get(flat as usize).copied().unwrap_or(flat)
    }

    pub(crate) fn at(&self, flat: u32) -> Option<BlockRef> {
        let after = self.functions.partition_point(|function| function.base <= flat);
        let function = after.checked_sub(1)?;
        let base = self.functions.get(function)?.base;
        Some(BlockRef { function: function as u32, block: flat - base })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use mepof_binary::BlockRange;

    /// A block that may fall through.
    pub(crate) fn block(id: u32, address: u64, size: u64) -> Block {
        Block {
            id,
            address: ImageAddress(address),
            size,
            has_return: false,
            has_tail_call: false,
            is_landing_pad: false,
            can_fall_through: true,
            has_indirect_branch: false,
            call_ends: Vec::new(),
            hash: None,
        }
    }

    /// A function of one range, whose last block returns.
    pub(crate) fn function(mut blocks: Vec<Block>) -> FunctionBlocks {
        let address = blocks.first().map_or(ImageAddress(0), |block| block.address);
        if let Some(last) = blocks.last_mut() {
            last.can_fall_through = false;
            last.has_return = true;
        }
        FunctionBlocks { address, ranges: vec![BlockRange { address, blocks }] }
    }

    fn found(map: &BlockMap<'_>, address: u64) -> Option<(u32, u32)> {
        map.covering(ImageAddress(address)).map(|at| (at.function, at.block))
    }

    #[test]
    fn blocks_are_found_by_any_of_their_bytes() {
        let functions = [
            function(vec![block(0, 0x200, 8)]),
            function(vec![block(0, 0x100, 16), block(3, 0x110, 4)]),
        ];
        let map = BlockMap::new(&functions);
        assert_eq!(map.address(0), Some(ImageAddress(0x100)));
        assert_eq!(found(&map, 0x10f), Some((0, 0)));
        assert_eq!(found(&map, 0x113), Some((0, 1)));
        assert_eq!(found(&map, 0x207), Some((1, 0)));
        for outside in [0, 0xff, 0x114, 0x208, u64::MAX] {
            assert_eq!(found(&map, outside), None);
        }
    }

    #[test]
    fn a_branch_to_a_block_without_code_goes_there_first() {
        let functions =
            [function(vec![block(0, 0x100, 4), block(1, 0x104, 0), block(2, 0x104, 4)])];
        let map = BlockMap::new(&functions);
        assert_eq!(map.target(ImageAddress(0x104)).map(|at| at.block), Some(1));
        assert_eq!(map.covering(ImageAddress(0x104)).map(|at| at.block), Some(2));
        assert_eq!(map.run_end(0), 2);
    }

    #[test]
    fn a_block_without_code_at_the_end_does_not_hide_the_next_function() {
        let functions = [
            function(vec![block(0, 0x100, 4), block(1, 0x104, 0)]),
            function(vec![block(0, 0x104, 4)]),
        ];
        let map = BlockMap::new(&functions);
        assert_eq!(map.tally().used, 2);
        assert_eq!(map.target(ImageAddress(0x104)), Some(BlockRef { function: 1, block: 0 }));
    }

    #[test]
    fn a_run_ends_where_a_block_cannot_fall_through_or_a_range_ends() {
        let mut split = function(vec![block(0, 0x100, 4), block(1, 0x104, 4), block(2, 0x108, 4)]);
        split.ranges[0].blocks[1].can_fall_through = false;
        split.ranges[0].blocks[2].can_fall_through = true; // says the map, but nothing follows
        let cold = BlockRange { address: ImageAddress(0x10c), blocks: vec![block(3, 0x10c, 4)] };
        split.ranges.push(cold);
        let functions = [split];
        let map = BlockMap::new(&functions);
        assert_eq!([0, 1, 2, 3].map(|flat| map.run_end(flat)), [1, 1, 2, 3]);
    }

    #[test]
    fn contradictory_functions_are_left_out_and_counted() {
        let far = function(vec![block(0, u64::MAX - 2, 8)]); // ends beyond the last address
        let unordered = function(vec![block(0, 0x300, 8), block(1, 0x2f0, 8)]);
        let twice = function(vec![block(0, 0x400, 8), block(0, 0x408, 8)]);
        let inside = function(vec![block(0, 0x500, 8), block(1, 0x504, 8)]);
        let mut elsewhere = function(vec![block(0, 0x600, 8)]);
        elsewhere.address = ImageAddress(0x608);
        let functions = [far, unordered, twice, inside, elsewhere, function(Vec::new())];
        let map = BlockMap::new(&functions);
        assert_eq!(map.tally(), MapTally { malformed: 5, empty: 1, ..MapTally::default() });
        assert!(map.is_empty());
    }

    #[test]
    fn of_two_functions_at_one_place_the_first_stays() {
        let functions = [
            function(vec![block(0, 0x100, 0x40)]),
            function(vec![block(0, 0x120, 8)]),
            function(vec![block(0, 0x100, 0x40)]),
            function(vec![block(0, 0x140, 8)]),
        ];
        let map = BlockMap::new(&functions);
        assert_eq!(map.tally(), MapTally { used: 2, overlapping: 2, ..MapTally::default() });
        assert_eq!(found(&map, 0x124), Some((0, 0)));
    }
}
