use mepof_trace::{Branch, FallThrough, ImageTrace};
use rustc_hash::FxHashMap;

use crate::{BlockMap, BlockRef, CallEdge, CountTally, Edge, FunctionGraph, Node, ProgramGraph};

fn add(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

/// By flat block number.
#[derive(Default)]
struct Counts {
    /// Branches from block to block of one function.
    edges: FxHashMap<(u32, u32), u64>,
    /// Calls: (block, callee's function number, tail call).
    calls: FxHashMap<(u32, u32, bool), u64>,
    /// Entries, by function number.
    entries: FxHashMap<u32, u64>,
    /// Where falling through begins (added) and ends (taken away). 128 bits, so that no sum of
    /// 64-bit counts overflows and what was added can be taken away again.
    falls: Vec<(u32, i128)>,
    /// How often control was at one and the same instruction of a block: a lower bound for the
    /// block's count, which a block that only runs between a return and a call has no other.
    seen: FxHashMap<u32, u64>,
    tally: CountTally,
}

/// Control-flow graphs with counts from `trace`.
///
/// What a branch is follows from where it goes, as in Propeller's `ProgramCfgBuilder`: to a
/// function's entry it is a call or a tail call; from a block that returns, or from unmapped
/// code (assembly, return thunks, other binaries) it is a return; within a function it is an
/// edge. A call that ends a block is followed by a return to the next one, which then is an
/// edge by falling through.
pub fn count(map: &BlockMap<'_>, trace: &ImageTrace) -> ProgramGraph {
    let mut counts = Counts::default();
    let last_sources = last_sources(map, trace);
    for branch in &trace.branches {
        counts.branch(map, &last_sources, branch);
    }
    for range in &trace.ranges {
        counts.range(map, range);
    }
    counts.sightings(map, trace);
    counts.into_graph(map)
}

/// The last address in each block that anything branched from: where its terminator is, if
/// that ever was taken.
fn last_sources(map: &BlockMap<'_>, trace: &ImageTrace) -> FxHashMap<u32, u64> {
    let mut last = FxHashMap::default();
    for from in trace.branches.iter().filter_map(|branch| branch.from) {
        if let Some(flat) = map.flat_covering(from) {
            let address: &mut u64 = last.entry(flat).or_default();
            *address = (*address).max(from.0);
        }
    }
    last
}

impl Counts {
    fn branch(&mut self, map: &BlockMap<'_>, last_sources: &FxHashMap<u32, u64>, branch: &Branch) {
        let count = branch.count;
        let source = branch.from.and_then(|from| map.flat_covering(from));
        let target = branch.to.and_then(|to| map.flat_target(to));
        let (Some(target), Some(to)) = (target, branch.to) else {
            let position =
                if source.is_some() { &mut self.tally.exits } else { &mut self.tally.unmapped };
            return add(position, count);
        };
        let Some(target_at) = map.at(target) else { return };
        let enters = target_at.block == 0 && map.address(target_at.function) == Some(to);
        let at_start = map.flat_start(to).is_some();
        let Some((source, source_at)) = source.and_then(|flat| Some((flat, map.at(flat)?))) else {
            if enters {
                add(&mut self.tally.entries, count);
                add(self.entries.entry(target_at.function).or_default(), count);
            } else {
                self.comes_back(map, target, at_start, count);
            }
            return;
        };
        let block = map.block(source_at);
        if enters {
            let is_last = last_sources.get(&source).copied() == branch.from.map(|from| from.0);
            let tail = is_last && block.is_some_and(|block| block.has_tail_call);
            let kind = if tail { &mut self.tally.tail_calls } else { &mut self.tally.calls };
            add(kind, count);
            add(self.calls.entry((source, target_at.function, tail)).or_default(), count);
            add(self.entries.entry(target_at.function).or_default(), count);
        } else if block.is_some_and(|block| block.has_return) {
            self.comes_back(map, target, at_start, count);
        } else if source_at.function != target_at.function {
            add(&mut self.tally.inside_function, count);
        } else if at_start {
            add(&mut self.tally.edges, count);
            add(self.edges.entry((source, target)).or_default(), count);
        } else {
            add(&mut self.tally.inside_block, count);
        }
    }

    /// A return. Where it meets a block's start, the call ended the block before.
    fn comes_back(&mut self, map: &BlockMap<'_>, target: u32, at_start: bool, count: u64) {
        add(&mut self.tally.returns, count);
        if let Some(caller) = target.checked_sub(1).filter(|_| at_start) {
            if map.run_end(caller) >= target {
                self.fall(caller, target, count);
            }
        }
    }

    fn fall(&mut self, first: u32, last: u32, count: u64) {
        self.falls.push((first, i128::from(count)));
        self.falls.push((last, -i128::from(count)));
    }

    fn range(&mut self, map: &BlockMap<'_>, range: &FallThrough) {
        let sides = (map.flat_target(range.first), map.flat_covering(range.last));
        let (Some(first), Some(last)) = sides else {
            return add(&mut self.tally.unmapped_ranges, range.count);
        };
        if range.first > range.last || first > last || map.run_end(first) < last {
            return add(&mut self.tally.broken_ranges, range.count);
        }
        add(&mut self.tally.ranges, range.count);
        if first < last {
            self.fall(first, last, range.count);
        }
    }

    fn sightings(&mut self, map: &BlockMap<'_>, trace: &ImageTrace) {
        let sources = trace.branches.iter().map(|branch| (branch.from, branch.count));
        self.see(map, sources.filter_map(|(from, count)| Some((from?.0, count))).collect());
        let sound = |range: &&FallThrough| range.first <= range.last;
        let ranges = || trace.ranges.iter().filter(sound);
        self.see(map, ranges().map(|range| (range.first.0, range.count)).collect());
        self.see(map, ranges().map(|range| (range.last.0, range.count)).collect());
    }

    fn see(&mut self, map: &BlockMap<'_>, mut at: Vec<(u64, u64)>) {
        at.sort_unstable();
        for same in at.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(&(address, _)) = same.first() else { continue };
            let count = same.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
            if let Some(flat) = map.flat_covering(mepof_address::ImageAddress(address)) {
                let seen = self.seen.entry(flat).or_default();
                *seen = (*seen).max(count);
            }
        }
    }

    /// Adds the edges of falling through.
    fn fall_through(&mut self) {
        self.falls.sort_unstable_by_key(|&(flat, _)| flat);
        let mut running: i128 = 0;
        let mut block = 0;
        for &(flat, change) in &self.falls {
            while running > 0 && block < flat {
                let count = u64::try_from(running).unwrap_or(u64::MAX);
                add(self.edges.entry((block, block + 1)).or_default(), count);
                block += 1;
            }
            block = flat;
            running += change;
        }
    }

    fn into_graph(mut self, map: &BlockMap<'_>) -> ProgramGraph {
        self.fall_through();
        let mut edges: Vec<_> =
            self.edges.into_iter().map(|((s, t), count)| (s, t, count)).collect();
        edges.sort_unstable();
        let mut entered: FxHashMap<u32, u64> = FxHashMap::default();
        let mut left: FxHashMap<u32, u64> = FxHashMap::default();
        for &(source, target, count) in &edges {
            add(left.entry(source).or_default(), count);
            add(entered.entry(target).or_default(), count);
        }
        let mut touched: Vec<u32> = self.entries.keys().copied().collect();
        let flats = edges.iter().map(|&(source, ..)| source).chain(self.seen.keys().copied());
        touched.extend(flats.filter_map(|flat| map.at(flat)).map(|at| at.function));
        touched.sort_unstable();
        touched.dedup();

        let mut edges = edges.into_iter().peekable();
        let mut functions = Vec::with_capacity(touched.len());
        for function in touched {
            let Some(mapped) = map.function(function) else { continue };
            let entry_count = self.entries.get(&function).copied().unwrap_or(0);
            let of = |counts: &FxHashMap<u32, u64>, flat| counts.get(&flat).copied().unwrap_or(0);
            let node = |(flat, block): (u32, &&mepof_binary::Block)| {
                let entries = if flat == mapped.base { entry_count } else { 0 };
                let entered = of(&entered, flat).saturating_add(entries);
                Node {
                    id: block.id,
                    clone: 0,
                    size: block.size,
                    count: entered.max(of(&left, flat)).max(of(&self.seen, flat)),
                    has_indirect_branch: block.has_indirect_branch,
                    is_landing_pad: block.is_landing_pad,
                    hash: block.hash,
                }
            };
            let after = mapped.base.saturating_add(mapped.blocks.len() as u32);
            let nodes: Vec<Node> = (mapped.base..after).zip(&mapped.blocks).map(node).collect();
            let mut own = Vec::new();
            while let Some((source, target, count)) = edges.next_if(|&(source, ..)| source < after)
            {
                if source >= mapped.base {
                    let (source, target) = (source - mapped.base, target - mapped.base);
                    own.push(Edge { source, target, count });
                }
            }
            if nodes.iter().any(|node| node.count > 0) {
                let address = mapped.address;
                functions.push(FunctionGraph { function, address, entry_count, nodes, edges: own });
            }
        }
        let mut calls: Vec<CallEdge> = self
            .calls
            .into_iter()
            .filter(|&(_, count)| count > 0)
            .filter_map(|((from, to, tail), count)| {
                let from: BlockRef = map.at(from)?;
                Some(CallEdge { from, to, tail, count })
            })
            .collect();
        calls.sort_unstable();
        ProgramGraph { functions, calls, tally: self.tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_map::tests::{block, function};
    use mepof_address::ImageAddress;
    use mepof_binary::FunctionBlocks;

    /// 0x100: entry (call at 0x104), 0x110, 0x118 loop, 0x120 returns; 0x200: a leaf.
    fn program() -> [FunctionBlocks; 2] {
        let mut main = function(vec![
            block(0, 0x100, 0x10),
            block(1, 0x110, 8),
            block(2, 0x118, 8),
            block(3, 0x120, 8),
        ]);
        main.ranges[0].blocks[2].has_tail_call = true;
        [main, function(vec![block(0, 0x200, 8), block(1, 0x208, 8)])]
    }

    fn branch(from: u64, to: u64, count: u64) -> Branch {
        let address = |address| (address != 0).then_some(ImageAddress(address));
        Branch { from: address(from), to: address(to), count, single: 0 }
    }

    fn range(first: u64, last: u64, count: u64) -> FallThrough {
        FallThrough { first: ImageAddress(first), last: ImageAddress(last), count }
    }

    fn counted(branches: Vec<Branch>, ranges: Vec<FallThrough>) -> ProgramGraph {
        let functions = program();
        let map = BlockMap::new(&functions);
        count(&map, &ImageTrace { branches, ranges, ..ImageTrace::default() })
    }

    fn edges(graph: &ProgramGraph, function: usize) -> Vec<(u32, u32, u64)> {
        graph.functions[function]
            .edges
            .iter()
            .map(|edge| (edge.source, edge.target, edge.count))
            .collect()
    }

    fn counts(graph: &ProgramGraph, function: usize) -> Vec<u64> {
        graph.functions[function].nodes.iter().map(|node| node.count).collect()
    }

    #[test]
    fn a_range_is_an_edge_between_each_two_blocks_that_it_crosses() {
        let graph = counted(vec![], vec![range(0x100, 0x11c, 3), range(0x110, 0x124, 2)]);
        assert_eq!(edges(&graph, 0), [(0, 1, 3), (1, 2, 5), (2, 3, 2)]);
        assert_eq!(counts(&graph, 0), [3, 5, 5, 2]);
        assert_eq!(graph.tally.ranges, 5);
    }

    #[test]
    fn a_branch_within_a_function_is_an_edge() {
        let graph = counted(vec![branch(0x11c, 0x118, 7)], vec![]);
        assert_eq!(edges(&graph, 0), [(2, 2, 7)]);
        assert_eq!(counts(&graph, 0), [0, 0, 7, 0]);
    }

    #[test]
    fn calls_returns_and_entries_are_no_edges() {
        let graph = counted(
            vec![
                branch(0x104, 0x200, 5), // call
                branch(0x20c, 0x109, 4), // return into the middle of the calling block
                branch(0, 0x100, 2),     // from another binary
                branch(0x11e, 0x200, 1), // tail call
                branch(0x124, 0, 2),     // return to another binary
            ],
            vec![],
        );
        assert!(edges(&graph, 0).is_empty() && edges(&graph, 1).is_empty());
        let call = |block, tail, count| CallEdge {
            from: BlockRef { function: 0, block },
            to: 1,
            tail,
            count,
        };
        assert_eq!(graph.calls, [call(0, false, 5), call(2, true, 1)]);
        let expected = CountTally {
            calls: 5,
            tail_calls: 1,
            returns: 4,
            entries: 2,
            exits: 2,
            ..CountTally::default()
        };
        assert_eq!(graph.tally, expected);
        assert_eq!((graph.functions[0].entry_count, graph.functions[1].entry_count), (2, 6));
        assert_eq!(counts(&graph, 0), [5, 0, 1, 2]);
    }

    #[test]
    fn a_call_that_ends_a_block_goes_on_in_the_next() {
        let graph = counted(vec![branch(0x10c, 0x200, 5), branch(0x20c, 0x110, 5)], vec![]);
        assert_eq!(edges(&graph, 0), [(0, 1, 5)]);
    }

    #[test]
    fn a_return_through_unmapped_code_is_a_return() {
        let graph = counted(vec![branch(0x900, 0x110, 5), branch(0x900, 0x109, 1)], vec![]);
        assert_eq!(edges(&graph, 0), [(0, 1, 5)]);
        assert_eq!(graph.tally.returns, 6);
    }

    #[test]
    fn a_block_between_a_return_and_a_call_ran() {
        let graph = counted(vec![], vec![range(0x112, 0x114, 9)]);
        assert_eq!(counts(&graph, 0), [0, 9, 0, 0]);
    }

    #[test]
    fn what_contradicts_the_map_is_counted_and_makes_no_edge() {
        let graph = counted(
            vec![
                branch(0x104, 0x11a, 1), // into the middle of a block
                branch(0x104, 0x208, 2), // into the middle of a function
                branch(0x900, 0x904, 4),
            ],
            vec![
                range(0x114, 0x112, 8),  // backwards
                range(0x120, 0x204, 16), // out of a function
                range(0x118, 0x900, 32),
            ],
        );
        assert!(graph.functions.iter().all(|function| function.edges.is_empty()));
        let expected = CountTally {
            inside_block: 1,
            inside_function: 2,
            unmapped: 4,
            broken_ranges: 24,
            unmapped_ranges: 32,
            ..CountTally::default()
        };
        assert_eq!(graph.tally, expected);
        assert!((graph.tally.contradictory() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn counts_saturate() {
        let many = u64::MAX - 1;
        let graph = counted(
            vec![branch(0x11c, 0x118, many), branch(0x11d, 0x118, many)],
            vec![range(0x100, 0x118, many), range(0x100, 0x119, many), range(0x100, 0x114, 1)],
        );
        assert_eq!(edges(&graph, 0), [(0, 1, u64::MAX), (1, 2, u64::MAX), (2, 2, u64::MAX)]);
        assert_eq!(counts(&graph, 0), [u64::MAX, u64::MAX, u64::MAX, 0]);
    }

    #[test]
    fn the_order_of_the_trace_does_not_matter() {
        let branches =
            vec![branch(0x11c, 0x118, 7), branch(0x104, 0x200, 5), branch(0x20c, 0x109, 4)];
        let ranges = vec![range(0x100, 0x11c, 3), range(0x110, 0x124, 2)];
        let reversed = |list: &Vec<Branch>| list.iter().rev().copied().collect();
        let other = counted(reversed(&branches), ranges.iter().rev().copied().collect());
        assert_eq!(counted(branches, ranges), other);
    }
}
