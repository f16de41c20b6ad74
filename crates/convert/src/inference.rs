//! The counts that a function's blocks and edges most likely had, from what was sampled.
//!
//! Samples miss blocks and contradict one another; what runs through real code does not: as much
//! goes out of a block as came in. The counts of a function with that property that change the
//! sampled ones least are a flow of minimum cost, after Wenlei He, Julián Mestre, Sergey
//! Pupyrev, Lei Wang and Hongtao Yu, "Profile inference revisited", POPL 2022. The costs are those
//! that LLVM 22 found good (llvm/lib/Transforms/Utils/SampleProfileInference.cpp).

mod islands;
mod network;
mod spread;

use network::{Change, Network};

/// A block of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockInput {
    /// How often it was sampled; `None` where nothing is known.
    pub count: Option<u64>,
    /// Whether control comes into the function here. Without any such block, the first one is.
    pub is_entry: bool,
    /// Whether control may leave the function here. A block without successors always may.
    pub is_exit: bool,
}

/// A way from one block to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeInput {
    /// The block that it leaves, as an index.
    pub from: usize,
    /// The block that it leads to, as an index.
    pub to: usize,
    /// How often it was sampled; `None` where nothing is known.
    pub count: Option<u64>,
    /// Whether it hardly ever is taken: a way to a handler, or what the source calls unlikely.
    pub is_unlikely: bool,
}

/// The control flow of a function and what was sampled of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cfg {
    /// The blocks.
    pub blocks: Vec<BlockInput>,
    /// The edges. One to or from a block that there is not is as if it were not there.
    pub edges: Vec<EdgeInput>,
}

/// Counts that a run of the function may have had.
///
/// As much goes into each block as it counts, and as much out, but for what comes in at entries
/// and leaves at exits. Of a part that no exit can be reached from (an endless loop), some may
/// stay in any of its blocks. A block that no entry leads to has count 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// How often each block ran, in the order of [`Cfg::blocks`].
    pub blocks: Vec<u64>,
    /// How often each edge was taken, in the order of [`Cfg::edges`].
    pub edges: Vec<u64>,
    /// Whether nothing closer to the samples exists. Not so when the search took too long: then
    /// what it had found was completed along shortest paths. It is a flow all the same.
    pub is_closest: bool,
}

// Costs of changing a count by one. More is likelier missing than there by mistake; but how often
// the function was called is known best from below.
const BLOCK: Change = Change { more: 10, fewer: 20 };
const ENTRY: Change = Change { more: 40, fewer: 10 };
/// A block or edge that was never sampled.
const NEVER: Change = Change { more: 11, fewer: 0 };
const UNKNOWN: Change = Change { more: 0, fewer: 0 };
const EDGE: Change = Change { more: 10, fewer: 20 };
const UNLIKELY: Change = Change { more: 1000, fewer: 20 };
/// For what stays in an endless loop.
const STAY: Change = Change { more: 30, fewer: 0 };

/// Steps that the search may take for each block and edge, and in all: a second or so.
const STEPS_PER_PART: u64 = 20_000;
const MOST_STEPS: u64 = 100_000_000;

/// The outside, where control comes from and goes to, is node 0 of the network.
const OUTSIDE: usize = 0;

/// A block is two nodes with a channel between them, which carries the block's count.
fn way_in(block: usize) -> usize {
    2 * block + 1
}

fn way_out(block: usize) -> usize {
    2 * block + 2
}

/// Infers counts of blocks and edges. Samples that agree already come back unchanged (unless hot
/// blocks hang in the air: a way to them is then taken once). Equal input gives equal output. A
/// count beyond 2^62 by the number of blocks and edges is taken for that.
pub fn infer(cfg: &Cfg) -> Inferred {
    let parts = cfg.blocks.len().saturating_add(cfg.edges.len()) as u64;
    let steps = parts.saturating_mul(STEPS_PER_PART).min(MOST_STEPS);
    Graph::new(cfg).infer(steps)
}

/// The part of a control-flow graph that flow can run through.
struct Graph<'a> {
    cfg: &'a Cfg,
    /// By block: whether an entry leads there.
    reached: Vec<bool>,
    /// By number.
    entries: Vec<usize>,
    /// Blocks that control can leave the function from, and what that costs.
    exits: Vec<(usize, Change)>,
    /// The edges between blocks that are reached, by number.
    edges: Vec<usize>,
    successors: Adjacency,
    predecessors: Adjacency,
}

impl<'a> Graph<'a> {
    fn new(cfg: &'a Cfg) -> Self {
        let blocks = cfg.blocks.len();
        let valid = |edge: &EdgeInput| edge.from < blocks && edge.to < blocks;
        let ends = |edge: usize| cfg.edges.get(edge).map(|edge| (edge.from, edge.to));
        let edges: Vec<usize> =
            (0..cfg.edges.len()).filter(|&edge| cfg.edges.get(edge).is_some_and(valid)).collect();
        let successors = Adjacency::new(blocks, &edges, ends);
        let mut entries = numbers(&cfg.blocks, |block| block.is_entry);
        if entries.is_empty() && blocks > 0 {
            entries.push(0);
        }
        let reached = successors.reach(blocks, &entries);
        let is_reached = |block: usize| reached.get(block).copied().unwrap_or_default();
        let edges: Vec<usize> = edges
            .into_iter()
            .filter(|&edge| ends(edge).is_some_and(|(from, _)| is_reached(from)))
            .collect();
        let successors = Adjacency::new(blocks, &edges, ends);
        let predecessors = Adjacency::new(blocks, &edges, |edge| ends(edge).map(|(a, b)| (b, a)));
        let mut exits = Vec::new();
        for (block, input) in cfg.blocks.iter().enumerate() {
            if is_reached(block) && (input.is_exit || successors.of(block).is_empty()) {
                exits.push(block);
            }
        }
        let leaves = predecessors.reach(blocks, &exits);
        let mut exits: Vec<(usize, Change)> =
            exits.into_iter().map(|block| (block, UNKNOWN)).collect();
        let stays = |block: &usize| is_reached(*block) && leaves.get(*block) == Some(&false);
        exits.extend((0..blocks).filter(stays).map(|block| (block, STAY)));
        entries.retain(|&block| is_reached(block));
        Self { cfg, reached, entries, exits, edges, successors, predecessors }
    }

    fn infer(&self, steps: u64) -> Inferred {
        let blocks = self.cfg.blocks.len();
        let parts = (blocks + self.cfg.edges.len()) as u64;
        let limit = (1_u64 << 62) / (parts + 1);
        let counted = |count: Option<u64>| count.unwrap_or_default().min(limit) as i64;

        // Channels, in this order: blocks that are reached, edges, entries, exits.
        let mut network = Network::new(2 * blocks + 1);
        let reached: Vec<usize> =
            (0..blocks).filter(|&block| self.reached.get(block) == Some(&true)).collect();
        for &block in &reached {
            let Some(input) = self.cfg.blocks.get(block) else { continue };
            let change = match input.count {
                None => UNKNOWN,
                Some(_) if self.is_entry(block) => ENTRY,
                Some(0) => NEVER,
                Some(_) => BLOCK,
            };
            network.channel(way_in(block), way_out(block), counted(input.count), change);
        }
        for &edge in &self.edges {
            let Some(input) = self.cfg.edges.get(edge) else { continue };
            let change = match input.count {
                _ if input.is_unlikely => UNLIKELY,
                None => UNKNOWN,
                Some(0) => NEVER,
                Some(_) => EDGE,
            };
            let (from, to) = (way_out(input.from), way_in(input.to));
            network.channel(from, to, counted(input.count), change);
        }
        for &block in &self.entries {
            network.channel(OUTSIDE, way_in(block), 0, UNKNOWN);
        }
        for &(block, change) in &self.exits {
            network.channel(way_out(block), OUTSIDE, 0, change);
        }
        let (flows, is_closest) = network.balance(OUTSIDE, steps);

        let mut flows = flows.into_iter().map(|flow| flow.max(0) as u64);
        let mut counts = Counts { blocks: vec![0; blocks], edges: vec![0; self.cfg.edges.len()] };
        for (&block, flow) in reached.iter().zip(flows.by_ref()) {
            counts.set_block(block, flow);
        }
        for (&edge, flow) in self.edges.iter().zip(flows) {
            counts.set_edge(edge, flow);
        }
        islands::connect(self, &mut counts);
        spread::spread(self, &mut counts);
        Inferred { blocks: counts.blocks, edges: counts.edges, is_closest }
    }

    fn is_entry(&self, block: usize) -> bool {
        self.entries.binary_search(&block).is_ok()
    }

    /// Where an edge leads.
    fn target(&self, edge: usize) -> Option<usize> {
        self.cfg.edges.get(edge).map(|edge| edge.to)
    }

    /// Where an edge comes from.
    fn origin(&self, edge: usize) -> Option<usize> {
        self.cfg.edges.get(edge).map(|edge| edge.from)
    }

    fn is_unlikely(&self, edge: usize) -> bool {
        self.cfg.edges.get(edge).is_some_and(|edge| edge.is_unlikely)
    }
}

/// A flow, as counts.
struct Counts {
    blocks: Vec<u64>,
    edges: Vec<u64>,
}

impl Counts {
    fn block(&self, block: usize) -> u64 {
        self.blocks.get(block).copied().unwrap_or_default()
    }

    fn edge(&self, edge: usize) -> u64 {
        self.edges.get(edge).copied().unwrap_or_default()
    }

    fn set_block(&mut self, block: usize, count: u64) {
        if let Some(kept) = self.blocks.get_mut(block) {
            *kept = count;
        }
    }

    fn set_edge(&mut self, edge: usize, count: u64) {
        if let Some(kept) = self.edges.get_mut(edge) {
            *kept = count;
        }
    }
}

/// The numbers of the items that `is` holds for.
fn numbers<T>(items: &[T], is: impl Fn(&T) -> bool) -> Vec<usize> {
    items.iter().enumerate().filter(|(_, item)| is(item)).map(|(number, _)| number).collect()
}

/// The edges that leave each block, as numbers, with the block at the other end.
struct Adjacency {
    starts: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl Adjacency {
    fn new(blocks: usize, edges: &[usize], ends: impl Fn(usize) -> Option<(usize, usize)>) -> Self {
        let mut by_origin: Vec<(usize, usize, usize)> = edges
            .iter()
            .filter_map(|&edge| ends(edge).map(|(from, to)| (from, edge, to)))
            .collect();
        by_origin.sort_unstable();
        let starts = (0..=blocks)
            .map(|block| by_origin.partition_point(|(from, ..)| *from < block))
            .collect();
        Self { starts, edges: by_origin.into_iter().map(|(_, edge, to)| (edge, to)).collect() }
    }

    /// (Edge, block at its other end), by edge.
    fn of(&self, block: usize) -> &[(usize, usize)] {
        let range = self.starts.get(block).zip(self.starts.get(block + 1));
        range.and_then(|(&from, &to)| self.edges.get(from..to)).unwrap_or_default()
    }

    /// By block: whether `from` leads there.
    fn reach(&self, blocks: usize, from: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; blocks];
        let mut ahead = from.to_vec();
        while let Some(block) = ahead.pop() {
            match reached.get_mut(block) {
                Some(reached) if !*reached => *reached = true,
                _ => continue,
            }
            ahead.extend(self.of(block).iter().map(|(_, to)| to));
        }
        reached
    }
}

#[cfg(test)]
mod tests;
