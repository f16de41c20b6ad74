//! The counts that a function's blocks and edges most likely had, from what was sampled.
//!
//! Samples miss blocks and contradict one another; what runs through real code does not: as much
//! goes out of a block as came in. The counts of a function with that property that change the
//! sampled ones least are a flow of minimum cost, after Wenlei He, Julián Mestre, Sergey
//! Pupyrev, Lei Wang and Hongtao Yu, "Profile inference revisited", POPL 2022. The costs are those
//! that LLVM 22 found good (llvm/lib/Transforms/Utils/SampleProfileInference.cpp).

mod graph;
mod islands;
mod network;
mod spread;

pub use graph::{BlockInput, Cfg, EdgeInput};
use graph::{Counts, Graph, UNKNOWN};
use network::{Change, Network};

/// Counts that a run of the function may have had.
///
/// As much goes into each block as it counts, and as much out, except what comes in at entries
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
const EDGE: Change = Change { more: 10, fewer: 20 };
const UNLIKELY: Change = Change { more: 1000, fewer: 20 };

/// Steps that the search may take for each block and edge, and in all: a second or so.
const STEPS_PER_PART: u64 = 20_000;
const MAX_STEPS: u64 = 100_000_000;

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
    let steps = parts.saturating_mul(STEPS_PER_PART).min(MAX_STEPS);
    infer_within(&Graph::new(cfg), steps)
}

fn infer_within(graph: &Graph<'_>, steps: u64) -> Inferred {
    let blocks = graph.cfg.blocks.len();
    let parts = (blocks + graph.cfg.edges.len()) as u64;
    let limit = (1_u64 << 62) / (parts + 1);
    let counted = |count: Option<u64>| count.unwrap_or_default().min(limit) as i64;

    // Channels, in this order: blocks that are reached, edges, entries, exits.
    let mut network = Network::new(2 * blocks + 1);
    let reached: Vec<usize> =
        (0..blocks).filter(|&block| graph.reached.get(block) == Some(&true)).collect();
    for &block in &reached {
        let Some(input) = graph.cfg.blocks.get(block) else { continue };
        let change = match input.count {
            None => UNKNOWN,
            Some(_) if graph.is_entry(block) => ENTRY,
            Some(0) => NEVER,
            Some(_) => BLOCK,
        };
        network.channel(way_in(block), way_out(block), counted(input.count), change);
    }
    for &edge in &graph.edges {
        let Some(input) = graph.cfg.edges.get(edge) else { continue };
        let change = match input.count {
            _ if input.is_unlikely => UNLIKELY,
            None => UNKNOWN,
            Some(0) => NEVER,
            Some(_) => EDGE,
        };
        let (from, to) = (way_out(input.from), way_in(input.to));
        network.channel(from, to, counted(input.count), change);
    }
    for &block in &graph.entries {
        network.channel(OUTSIDE, way_in(block), 0, UNKNOWN);
    }
    for &(block, change) in &graph.exits {
        network.channel(way_out(block), OUTSIDE, 0, change);
    }
    let (flows, is_closest) = network.balance(OUTSIDE, steps);

    let mut flows = flows.into_iter().map(|flow| flow.max(0) as u64);
    let mut counts = Counts { blocks: vec![0; blocks], edges: vec![0; graph.cfg.edges.len()] };
    for (&block, flow) in reached.iter().zip(flows.by_ref()) {
        counts.set_block(block, flow);
    }
    for (&edge, flow) in graph.edges.iter().zip(flows) {
        counts.set_edge(edge, flow);
    }
    islands::connect(graph, &mut counts);
    spread::spread(graph, &mut counts);
    Inferred { blocks: counts.blocks, edges: counts.edges, is_closest }
}

#[cfg(test)]
mod tests;
