use rustc_hash::{FxHashMap, FxHashSet};

use crate::function_layout::{ClonedPath, lay_out};
use crate::{BlockPath, CloneOptions, Edge, FunctionGraph, LayoutOptions, Node};

/// How often paths of one function ran.
pub(crate) type PathCounts<'p> = FxHashMap<&'p [u32], u64>;

/// Paths by function.
pub(crate) fn by_function(paths: &[(BlockPath, u64)]) -> FxHashMap<u32, PathCounts<'_>> {
    let mut functions: FxHashMap<u32, PathCounts<'_>> = FxHashMap::default();
    for (path, count) in paths {
        let counts = functions.entry(path.function).or_default();
        let total = counts.entry(&path.blocks).or_default();
        *total = total.saturating_add(*count);
    }
    functions
}

/// Copies blocks of `graph` along the paths that gain most, as Propeller's path cloning does:
/// what comes along a path's first edge goes to the copies, so that the copies and what is left
/// of the blocks can be laid out for what each of them does next. A path is copied if the layout
/// then scores better by more than the options ask for.
pub(crate) fn clone_paths(
    graph: FunctionGraph,
    paths: &PathCounts<'_>,
    clones: &CloneOptions,
    options: &LayoutOptions,
) -> (FunctionGraph, Vec<ClonedPath>) {
    let original = graph.nodes.len();
    let mut candidates = candidates(&graph, paths, clones);
    let mut current = graph;
    let mut chosen: Vec<Vec<u32>> = Vec::new();
    while chosen.len() < clones.paths && !candidates.is_empty() {
        let plain = lay_out(current.clone(), options);
        let hot = |node: &&Node| node.count >= options.hot_count.max(1);
        let hot_bytes: f64 =
            current.nodes.iter().filter(hot).map(|node| node.size as f64).sum::<f64>().max(1.0);
        let per_byte = plain.score_after / hot_bytes * clones.byte_worth;
        let mut best: Option<(f64, usize, FunctionGraph)> = None;
        for (index, path) in candidates.iter().enumerate() {
            let bytes: f64 = path
                .iter()
                .skip(1)
                .filter_map(|&block| current.nodes.get(block as usize))
                .map(|node| node.size as f64)
                .sum();
            // Each step of the path, and what it no longer meets there, may come to fall
            // through: there is no more to gain, and laying out is what takes time.
            let (from, to) = (path.first().copied(), path.get(1).copied());
            let flow = edge_count(&current, from.unwrap_or(0), to.unwrap_or(0)) as f64;
            let most = 2.0 * flow * path.len() as f64 * options.score.fall_through;
            if most <= bytes * per_byte + clones.min_gain * plain.score_after {
                continue;
            }
            let Some(cloned) = apply(&current, original, path, paths) else { continue };
            let score = lay_out(cloned.clone(), options).score_after;
            let gain = score - plain.score_after - bytes * per_byte;
            let enough = gain > clones.min_gain * plain.score_after && gain > 0.0;
            if enough && best.as_ref().is_none_or(|(known, ..)| gain > *known) {
                best = Some((gain, index, cloned));
            }
        }
        let Some((_, index, cloned)) = best else { break };
        current = cloned;
        let path = candidates.swap_remove(index);
        candidates.retain(|other| agree(&path, other));
        candidates.sort_unstable();
        chosen.push(path);
    }
    let id = |&block: &u32| current.nodes.get(block as usize).map(|node| node.id);
    let chosen = chosen.iter().map(|path| ClonedPath { ids: path.iter().filter_map(id).collect() });
    let chosen = chosen.collect();
    (current, chosen)
}

/// Whether two paths can both be copied: neither must change where the other comes from.
fn agree(one: &[u32], other: &[u32]) -> bool {
    let (Some((from, copied)), Some((other_from, other_copied))) =
        (one.split_first(), other.split_first())
    else {
        return false;
    };
    let same_edge = from == other_from && copied.first() == other_copied.first();
    !same_edge && !copied.contains(other_from) && !other_copied.contains(from)
}

/// Paths that Clang can copy (LLVM 22, `BasicBlockPathCloning.cpp`: no indirect branch but in
/// the last block) and that may be worth it: several blocks lead to the first copied one.
fn candidates(
    graph: &FunctionGraph,
    paths: &PathCounts<'_>,
    clones: &CloneOptions,
) -> Vec<Vec<u32>> {
    let mut sources: FxHashMap<u32, u32> = FxHashMap::default();
    for edge in graph.edges.iter().filter(|edge| edge.count > 0) {
        *sources.entry(edge.target).or_default() += 1;
    }
    let leaves: FxHashSet<u32> = graph.edges.iter().map(|edge| edge.source).collect();
    let node = |block: &u32| graph.nodes.get(*block as usize);
    let is_possible = |path: &[u32]| {
        let Some((from, copied)) = path.split_first() else { return false };
        let distinct: FxHashSet<&u32> = path.iter().collect();
        let copyable = |block: &u32| {
            *block != 0 && node(block).is_some_and(|node| node.clone == 0 && !node.is_landing_pad)
        };
        let connected = |step: &[u32]| match step {
            [source, target] => edge_count(graph, *source, *target) > 0,
            _ => false,
        };
        let last = copied.len().saturating_sub(1);
        distinct.len() == path.len()
            && copied.first().is_some_and(|first| sources.get(first) > Some(&1))
            && copied.iter().all(copyable)
            && path.windows(2).all(connected)
            && std::iter::once(from)
                .chain(copied.iter().take(last))
                .all(|block| node(block).is_some_and(|node| !node.has_indirect_branch))
    };
    let mut found: FxHashSet<&[u32]> = FxHashSet::default();
    for &path in paths.keys() {
        if let Some((last, before)) = path.split_last() {
            found.insert(before);
            if !leaves.contains(last) {
                found.insert(path); // it ends in a block that leaves the function
            }
        }
    }
    // A path of one copied block, its source, and where it goes: at most three are copied.
    let possible = found.into_iter().filter(|path| (2..=4).contains(&path.len()));
    let mut possible: Vec<(u64, Vec<u32>)> = possible
        .filter(|path| is_possible(path))
        .map(|path| {
            let first = path.first().copied().unwrap_or(0);
            let second = path.get(1).copied().unwrap_or(0);
            (edge_count(graph, first, second), path.to_vec())
        })
        .collect();
    possible.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    possible.truncate(clones.tries);
    possible.into_iter().map(|(_, path)| path).collect()
}

fn edge_count(graph: &FunctionGraph, source: u32, target: u32) -> u64 {
    let at = graph.edges.binary_search_by_key(&(source, target), |edge| (edge.source, edge.target));
    at.ok().and_then(|at| graph.edges.get(at)).map_or(0, |edge| edge.count)
}

/// The graph with `path` copied. `original` is the number of blocks that are not copies.
fn apply(
    graph: &FunctionGraph,
    original: usize,
    path: &[u32],
    paths: &PathCounts<'_>,
) -> Option<FunctionGraph> {
    let (&from, copied) = path.split_first()?;
    let mut edges: FxHashMap<(u32, u32), u64> =
        graph.edges.iter().map(|edge| ((edge.source, edge.target), edge.count)).collect();
    let mut nodes = graph.nodes.clone();
    let mut flow = edges.remove(&(from, *copied.first()?))?;
    let mut source = from;
    for (index, &block) in copied.iter().enumerate() {
        let node = nodes.get_mut(block as usize)?;
        node.count = node.count.saturating_sub(flow);
        let copies = graph.nodes.iter().skip(original).filter(|copy| copy.id == node.id).count();
        let copy = Node { clone: copies as u32 + 1, count: flow, ..node.clone() };
        let position = nodes.len() as u32;
        nodes.push(copy);
        edges.insert((source, position), flow);
        source = position;
        // Where those go that came this way.
        let came = path.get(..index + 2)?;
        let next: Vec<(u32, u64)> = graph
            .edges
            .iter()
            .filter(|edge| edge.source == block && (edge.target as usize) < original)
            .map(|edge| (edge.target, seen(paths, came, edge.target)))
            .collect();
        let all: f64 = next.iter().map(|&(_, count)| count as f64).sum();
        if all == 0.0 && !next.is_empty() {
            return None; // not known
        }
        let mut onward = 0;
        for (target, count) in next {
            let moved = (flow as f64 * (count as f64 / all)) as u64;
            if let Some(left) = edges.get_mut(&(block, target)) {
                *left = left.saturating_sub(moved);
            }
            if copied.get(index + 1) == Some(&target) {
                onward = moved;
            } else if moved > 0 {
                edges.insert((position, target), moved);
            }
        }
        flow = onward;
    }
    let mut edges: Vec<Edge> = edges
        .into_iter()
        .filter(|&(_, count)| count > 0)
        .map(|((source, target), count)| Edge { source, target, count })
        .collect();
    edges.sort_unstable();
    Some(FunctionGraph { nodes, edges, ..graph.clone() })
}

fn seen(paths: &PathCounts<'_>, came: &[u32], target: u32) -> u64 {
    let mut path = came.to_vec();
    path.push(target);
    paths.get(path.as_slice()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mepof_address::ImageAddress;

    fn node(id: u32, count: u64) -> Node {
        Node {
            id,
            clone: 0,
            size: 16,
            count,
            has_indirect_branch: false,
            is_landing_pad: false,
            hash: None,
        }
    }

    /// 0 goes to 1 or 2, both to 3, and 3 to 4 or 5, which go back to 0.
    fn diamonds() -> FunctionGraph {
        let edge = |(source, target, count)| Edge { source, target, count };
        let edges = [
            (0, 1, 500),
            (0, 2, 500),
            (1, 3, 500),
            (2, 3, 500),
            (3, 4, 500),
            (3, 5, 500),
            (4, 6, 500),
            (5, 6, 500),
        ];
        FunctionGraph {
            function: 0,
            address: ImageAddress(0),
            entry_count: 1000,
            nodes: (0..7)
                .map(|at| node(10 + at, if [0, 3, 6].contains(&at) { 1000 } else { 500 }))
                .collect(),
            edges: edges.into_iter().map(edge).collect(),
        }
    }

    fn cloned(paths: &[(&[u32], u64)], graph: FunctionGraph) -> (FunctionGraph, Vec<Vec<u32>>) {
        let paths = paths.iter().copied().collect();
        let (graph, chosen) =
            clone_paths(graph, &paths, &CloneOptions::default(), &LayoutOptions::default());
        (graph, chosen.into_iter().map(|path| path.ids).collect())
    }

    #[test]
    fn a_block_that_does_what_its_predecessor_implies_is_copied() {
        let paths: [(&[u32], u64); 2] = [(&[1, 3, 4], 500), (&[2, 3, 5], 500)];
        let (graph, chosen) = cloned(&paths, diamonds());
        assert_eq!(chosen.len(), 1, "{chosen:?}");
        assert_eq!(&chosen[0][1..2], [13]);
        let copy = graph.nodes.last().unwrap();
        assert_eq!((copy.id, copy.clone, copy.count), (13, 1, 500));
        // Each of the two now goes one way only.
        assert_eq!(graph.nodes[3].count, 500);
        assert_eq!(graph.edges.iter().filter(|edge| edge.source == 3).count(), 1);
    }

    #[test]
    fn a_block_too_large_for_what_it_gains_is_not_copied() {
        let paths: [(&[u32], u64); 4] =
            [(&[1, 3, 4], 250), (&[1, 3, 5], 250), (&[2, 3, 4], 250), (&[2, 3, 5], 250)];
        let mut graph = diamonds();
        graph.nodes[3].size = 400;
        let (after, chosen) = cloned(&paths, graph.clone());
        assert!(chosen.is_empty(), "{chosen:?}");
        assert_eq!(after, graph);
    }

    #[test]
    fn what_clang_cannot_copy_is_not_tried() {
        let paths: [(&[u32], u64); 2] = [(&[1, 3, 4], 500), (&[2, 3, 5], 500)];
        let mut graph = diamonds();
        graph.nodes[1].has_indirect_branch = true;
        graph.nodes[2].has_indirect_branch = true;
        assert!(cloned(&paths, graph).1.is_empty());
        let mut graph = diamonds();
        graph.nodes[3].is_landing_pad = true;
        assert!(cloned(&paths, graph).1.is_empty());
    }

    #[test]
    fn paths_that_the_graph_does_not_have_do_no_harm() {
        let paths: [(&[u32], u64); 5] =
            [(&[9, 9, 9], 5), (&[0, 0, 0], 5), (&[3, 1, 2], 5), (&[], 5), (&[u32::MAX, 3, 4], 5)];
        assert!(cloned(&paths, diamonds()).1.is_empty());
    }

    #[test]
    fn paths_that_share_a_source_and_a_copy_do_not_agree() {
        assert!(agree(&[1, 3, 4], &[2, 3, 5]));
        assert!(!agree(&[1, 3, 4], &[1, 3, 5])); // the same edge
        assert!(!agree(&[1, 3, 4], &[3, 5])); // comes from a copied block
        assert!(!agree(&[3, 5], &[1, 3, 4]));
    }
}
