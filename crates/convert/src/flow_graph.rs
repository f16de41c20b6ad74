//! The control flow of a function's machine code, with what a trace counted.

use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_machine::Flow;
use mepof_trace::{Branch, FallThrough};
use rustc_hash::FxHashMap;

use crate::code::{Code, Placed};

/// Instructions that run one after the other, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first instruction.
    pub first: ImageAddress,
    /// The last instruction.
    pub last: ImageAddress,
    /// Bytes.
    pub size: u64,
    /// How often it ran, if that was recorded.
    pub count: Option<u64>,
}

/// A way from one block to another of the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    /// Whether it is the way to the next block without a jump.
    pub falls_through: bool,
    /// How often it was taken, if that was recorded.
    pub count: Option<u64>,
}

/// A function's blocks, by address, and the ways between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowGraph {
    pub blocks: Vec<Block>,
    pub edges: Vec<Edge>,
}

/// What a trace says about one function, each sorted by address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts<'a> {
    /// Ranges that do not overlap.
    pub disjoint: &'a [FallThrough],
    /// The ranges as recorded.
    pub ranges: &'a [FallThrough],
    /// The branches that begin in the function.
    pub branches: &'a [Branch],
    /// Whether single branches were recorded: nothing is known of what ran between them.
    pub are_single: bool,
}

impl FlowGraph {
    /// The graph of the function at `addresses`: the ways that its instructions name, and those
    /// that were taken, which adds the targets of indirect jumps.
    pub fn new(code: &Code, addresses: &Range<ImageAddress>, counts: &Counts<'_>) -> Self {
        let last = ImageAddress(addresses.end.0.saturating_sub(1));
        let instructions = code.within(addresses.start, last);
        let mut blocks = blocks(instructions, addresses, counts.branches);
        for block in &mut blocks {
            block.count = (!counts.are_single).then(|| highest(counts.disjoint, block));
        }
        let starts: FxHashMap<ImageAddress, usize> =
            blocks.iter().enumerate().map(|(index, block)| (block.first, index)).collect();
        let mut edges: FxHashMap<(usize, usize, bool), u64> = FxHashMap::default();
        for (index, block) in blocks.iter().enumerate() {
            let Some(end) = code.at(block.last) else { continue };
            if let Flow::Conditional(target) | Flow::Jump(target) = end.flow {
                if let Some(&to) = starts.get(&target) {
                    edges.entry((index, to, false)).or_default();
                }
            }
            let goes_on =
                !matches!(end.flow, Flow::Jump(_) | Flow::IndirectJump | Flow::Return | Flow::Stop);
            if goes_on && index + 1 < blocks.len() {
                edges.entry((index, index + 1, true)).or_default();
            }
        }
        for branch in counts.branches {
            let (Some(from), Some(to)) = (branch.from, branch.to) else { continue };
            let jumps = code.at(from).is_some_and(|placed| {
                matches!(placed.flow, Flow::Conditional(_) | Flow::Jump(_) | Flow::IndirectJump)
            });
            let Some(&to) = starts.get(&to).filter(|_| jumps) else { continue };
            if let Some(from) = containing(&blocks, from) {
                let count = edges.entry((from, to, false)).or_default();
                *count = count.saturating_add(branch.count);
            }
        }
        for range in counts.ranges {
            let Some(first) = containing(&blocks, range.first) else { continue };
            let crossed = blocks.iter().enumerate().skip(first + 1);
            for (index, _) in crossed.take_while(|(_, block)| block.first <= range.last) {
                if let Some(count) = edges.get_mut(&(index - 1, index, true)) {
                    *count = count.saturating_add(range.count);
                }
            }
        }
        let mut edges: Vec<Edge> = edges
            .into_iter()
            .map(|((from, to, falls_through), count)| {
                let is_known = !(falls_through && counts.are_single);
                Edge { from, to, falls_through, count: is_known.then_some(count) }
            })
            .collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to, edge.falls_through));
        Self { blocks, edges }
    }
}

/// The block that the instruction at `address` belongs to.
fn containing(blocks: &[Block], address: ImageAddress) -> Option<usize> {
    let index = blocks.partition_point(|block| block.first <= address).checked_sub(1)?;
    blocks.get(index).filter(|block| address <= block.last).map(|_| index)
}

/// The highest count of any range that touches the block: a range may end in its middle, where
/// an interrupt came.
fn highest(disjoint: &[FallThrough], block: &Block) -> u64 {
    let begin = disjoint.partition_point(|range| range.last < block.first);
    let touching = disjoint.iter().skip(begin).take_while(|range| range.first <= block.last);
    touching.map(|range| range.count).max().unwrap_or_default()
}

/// Cuts the instructions of a function where control can come in or go away. A call ends no
/// block: it comes back.
fn blocks(
    instructions: &[Placed],
    addresses: &Range<ImageAddress>,
    branches: &[Branch],
) -> Vec<Block> {
    let named = instructions.iter().filter_map(|placed| match placed.flow {
        Flow::Conditional(target) | Flow::Jump(target) => Some(target),
        _ => None,
    });
    let taken = branches.iter().filter_map(|branch| branch.to);
    let mut starts: Vec<ImageAddress> =
        named.chain(taken).filter(|target| addresses.contains(target)).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut blocks: Vec<Block> = Vec::new();
    let mut begins = true;
    for placed in instructions {
        let size = u64::from(placed.size);
        begins |= starts.binary_search(&placed.address).is_ok();
        match blocks.last_mut().filter(|_| !begins) {
            Some(block) => {
                block.last = placed.address;
                block.size += size;
            }
            None => blocks.push(Block {
                first: placed.address,
                last: placed.address,
                size,
                count: None,
            }),
        }
        begins = matches!(
            placed.flow,
            Flow::Conditional(_) | Flow::Jump(_) | Flow::IndirectJump | Flow::Return | Flow::Stop
        );
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of four bytes each, from address 0 on.
    fn code(flows: &[Flow]) -> Code {
        let location = |(index, &flow): (usize, &Flow)| Placed {
            address: ImageAddress(4 * index as u64),
            size: 4,
            flow,
        };
        Code::of(flows.iter().enumerate().map(location).collect())
    }

    fn at(index: u64) -> ImageAddress {
        ImageAddress(4 * index)
    }

    fn graph(
        flows: &[Flow],
        ranges: &[(u64, u64, u64)],
        branches: &[(u64, u64, u64)],
    ) -> FlowGraph {
        let range = |&(first, last, count)| FallThrough { first: at(first), last: at(last), count };
        let branch = |&(from, to, count)| Branch {
            from: Some(at(from)),
            to: Some(at(to)),
            count,
            single: 0,
        };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        let branches: Vec<_> = branches.iter().map(branch).collect();
        let disjoint = crate::disjoint::disjoint(ranges.iter().copied());
        let counts =
            Counts { disjoint: &disjoint, ranges: &ranges, branches: &branches, are_single: false };
        let end = at(flows.len() as u64);
        FlowGraph::new(&code(flows), &(ImageAddress(0)..end), &counts)
    }

    fn edges(graph: &FlowGraph) -> Vec<(usize, usize, u64)> {
        graph.edges.iter().map(|edge| (edge.from, edge.to, edge.count.unwrap())).collect()
    }

    #[test]
    fn a_branch_ends_a_block_and_its_target_begins_one() {
        let flows = [Flow::Next, Flow::Conditional(at(3)), Flow::Next, Flow::Return];
        let graph = graph(&flows, &[(0, 1, 9), (0, 3, 4), (3, 3, 9)], &[(1, 3, 9)]);
        let spans: Vec<_> =
            graph.blocks.iter().map(|b| (b.first, b.last, b.count.unwrap())).collect();
        assert_eq!(spans, [(at(0), at(1), 13), (at(2), at(2), 4), (at(3), at(3), 13)]);
        assert_eq!(edges(&graph), [(0, 1, 4), (0, 2, 9), (1, 2, 4)]);
    }

    #[test]
    fn a_call_ends_no_block() {
        let flows = [Flow::Next, Flow::Call(ImageAddress(0x1000)), Flow::Next, Flow::Return];
        assert_eq!(graph(&flows, &[], &[]).blocks.len(), 1);
    }

    #[test]
    fn an_indirect_jump_goes_where_it_was_seen_to_go() {
        let flows = [Flow::IndirectJump, Flow::Return, Flow::Return];
        let graph = graph(&flows, &[], &[(0, 2, 5)]);
        assert_eq!(edges(&graph), [(0, 2, 5)]);
    }

    #[test]
    fn a_jump_out_of_the_function_is_no_edge() {
        let flows = [Flow::Jump(ImageAddress(0x1000)), Flow::Return];
        assert_eq!(edges(&graph(&flows, &[], &[(0, 100, 3)])), []);
    }
}
