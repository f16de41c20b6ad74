use mepof_address::ImageAddress;

use crate::ext_tsp;
use crate::{FunctionGraph, LayoutOptions};

/// A path whose blocks, except the first, are copied for control flow that takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonedPath {
    /// The blocks' numbers in the profile.
    pub ids: Vec<u32>,
}

/// Where the blocks of a function go.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionLayout {
    /// Its entry.
    pub address: ImageAddress,
    /// The graph that was laid out, with the copies of blocks that were asked for.
    pub graph: FunctionGraph,
    /// Which paths were copied, in the order that numbers the copies.
    pub cloned: Vec<ClonedPath>,
    /// Sections of blocks, as indices of the graph's nodes, each in order. The first begins
    /// with the entry.
    pub clusters: Vec<Vec<u32>>,
    /// Whether blocks are left over for the cold section.
    pub has_cold: bool,
    /// The score of the binary's order.
    pub score_before: f64,
    /// The score of this order.
    pub score_after: f64,
}

/// The jumps of a function, for its score.
pub(crate) fn jumps(function: &FunctionGraph) -> Vec<ext_tsp::Jump> {
    let jump = |edge: &crate::Edge| ext_tsp::Jump {
        source: edge.source,
        target: edge.target,
        count: edge.count as f64,
    };
    function.edges.iter().map(jump).collect()
}

/// Lays out one function; the score of the binary's order is left at zero.
pub(crate) fn lay_out(graph: FunctionGraph, options: &LayoutOptions) -> FunctionLayout {
    // The entry stays with the hot blocks even if it was not seen: a section of the function's
    // own name must begin with it.
    let hot: Vec<u32> = (0..)
        .zip(&graph.nodes)
        .filter(|&(index, node)| index == 0 || node.count >= options.hot_count.max(1))
        .map(|(index, _)| index)
        .collect();
    let mut hot_of = vec![u32::MAX; graph.nodes.len()];
    let mut blocks = Vec::with_capacity(hot.len());
    for (index, &node) in (0..).zip(&hot) {
        if let Some(position) = hot_of.get_mut(node as usize) {
            *position = index;
        }
        if let Some(node) = graph.nodes.get(node as usize) {
            blocks.push(ext_tsp::Block { size: node.size, count: node.count as f64 });
        }
    }
    let renumber = |node: u32| hot_of.get(node as usize).copied().unwrap_or(u32::MAX);
    let jumps: Vec<ext_tsp::Jump> = jumps(&graph)
        .into_iter()
        .map(|jump| ext_tsp::Jump {
            source: renumber(jump.source),
            target: renumber(jump.target),
            ..jump
        })
        .collect();
    let order = ext_tsp::order(&blocks, &jumps, &options.score, &options.limits);
    let score_after = options.score.of(&blocks, &jumps, &order);
    let warm_from = options
        .warm_density
        .and_then(|share| warm_from(&blocks, &jumps, &order, share))
        .unwrap_or(order.len());
    let (hot_part, warm_part) = order.split_at(warm_from.min(order.len()));
    let nodes = |part: &[u32]| -> Vec<u32> {
        part.iter().filter_map(|&index| hot.get(index as usize).copied()).collect()
    };
    let clusters = [nodes(hot_part), nodes(warm_part)];
    FunctionLayout {
        address: graph.address,
        has_cold: hot.len() < graph.nodes.len(),
        clusters: clusters.into_iter().filter(|cluster| !cluster.is_empty()).collect(),
        graph,
        cloned: Vec::new(),
        score_before: 0.0,
        score_after,
    }
}

/// Where in `order` the blocks begin that together are less dense than `share` of the function,
/// at a position where nothing falls through.
fn warm_from(
    blocks: &[ext_tsp::Block],
    jumps: &[ext_tsp::Jump],
    order: &[u32],
    share: f64,
) -> Option<usize> {
    let executed = |block: &ext_tsp::Block| block.count * block.size as f64;
    let of = |index: &u32| blocks.get(*index as usize);
    let weight: f64 = blocks.iter().map(executed).sum();
    let size: f64 = blocks.iter().map(|block| block.size as f64).sum();
    let falls: rustc_hash::FxHashSet<(u32, u32)> =
        jumps.iter().map(|jump| (jump.source, jump.target)).collect();
    let (mut rest_weight, mut rest_size) = (0.0, 0.0);
    let mut found = None;
    for (at, pair) in order.windows(2).enumerate().rev() {
        let [before, first] = pair else { continue };
        let block = of(first)?;
        rest_weight += executed(block);
        rest_size += block.size as f64;
        if rest_weight * size >= share * weight * rest_size {
            break;
        }
        if !falls.contains(&(*before, *first)) {
            found = Some(at + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Node};

    fn node(id: u32, count: u64) -> Node {
        let (has_indirect_branch, is_landing_pad) = (false, false);
        Node { id, clone: 0, size: 16, count, has_indirect_branch, is_landing_pad, hash: None }
    }

    fn graph(function: u32, counts: &[u64], edges: &[(u32, u32, u64)]) -> FunctionGraph {
        let edge = |&(source, target, count)| Edge { source, target, count };
        FunctionGraph {
            function,
            address: ImageAddress(0x100 * u64::from(function + 1)),
            entry_count: 0,
            nodes: (0..).zip(counts).map(|(id, &count)| node(id, count)).collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    #[test]
    fn blocks_that_did_not_run_are_cold_but_the_entry() {
        let function = graph(0, &[0, 5, 0, 9], &[(3, 1, 5)]);
        let laid_out = lay_out(function, &LayoutOptions::default());
        assert_eq!(laid_out.clusters, [[0, 3, 1]]);
        assert!(laid_out.has_cold);
        let rarely = LayoutOptions { hot_count: 6, ..LayoutOptions::default() };
        let laid_out = lay_out(graph(0, &[9, 5, 9], &[(0, 2, 9)]), &rarely);
        assert_eq!(laid_out.clusters, [[0, 2]]);
    }

    #[test]
    fn warm_blocks_are_cut_off_where_nothing_falls_through() {
        let options = LayoutOptions { warm_density: Some(0.1), ..LayoutOptions::default() };
        let edges = [(0, 1, 1000), (1, 0, 900), (0, 2, 1), (2, 3, 1), (3, 1, 1)];
        let laid_out = lay_out(graph(0, &[1000, 1000, 1, 1], &edges), &options);
        assert_eq!(laid_out.clusters, [[0, 1], [2, 3]]);
        let all_hot = lay_out(graph(0, &[9, 9], &[(0, 1, 9)]), &options);
        assert_eq!(all_hot.clusters, [[0, 1]]);
    }
}
