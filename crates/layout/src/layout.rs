use std::ops::Range;

use mepof_address::ImageAddress;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::clone_path::{by_function, clone_paths};
use crate::ext_tsp::{self, Limits, Score};
use crate::function_order::{CallArc, HotFunction, order_functions};
use crate::{BlockMap, BlockPath, BlockRef, CloneOptions, ClonedPath, FunctionGraph, ProgramGraph};

/// How to lay out a program.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutOptions {
    /// Blocks that ran less often are cold. At least 1.
    pub hot_count: u64,
    /// Blocks at a function's end that together are less dense than this share of the function
    /// become a section of their own, which lies behind the hot sections. `None` keeps a
    /// function's hot blocks in one section, which is what objtool expects of a kernel.
    pub warm_density: Option<f64>,
    /// What jumps are worth.
    pub score: Score,
    /// What bounds the work on one function.
    pub limits: Limits,
    /// When blocks are copied, if there are paths to go by.
    pub clones: CloneOptions,
    /// Parts of the image that the linker keeps apart: a call from one into another has no say
    /// in the order of functions. Empty if there is only one.
    pub regions: Vec<Range<ImageAddress>>,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self {
            hot_count: 1,
            warm_density: None,
            score: Score::default(),
            limits: Limits::default(),
            clones: CloneOptions::default(),
            regions: Vec::new(),
        }
    }
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

/// A section of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRef {
    /// Which of the layout's functions.
    pub function: u32,
    /// Which of its clusters.
    pub cluster: u32,
}

/// Where the hot code of a program goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Functions with hot blocks, by address.
    pub functions: Vec<FunctionLayout>,
    /// All hot sections, in order.
    pub order: Vec<SectionRef>,
}

impl Layout {
    /// Lays out the functions of `graph`. `map` is the one that it was counted on; `paths` are
    /// what [`Paths`](crate::Paths) gathered on it, or nothing.
    pub fn new(
        map: &BlockMap<'_>,
        graph: &ProgramGraph,
        paths: &[(BlockPath, u64)],
        options: &LayoutOptions,
    ) -> Self {
        let paths = by_function(paths);
        let functions: Vec<FunctionLayout> = graph
            .functions
            .par_iter()
            .filter(|function| is_hot(function, options))
            .map(|function| {
                let (graph, cloned) = match paths.get(&function.function) {
                    Some(paths) => clone_paths(function.clone(), paths, &options.clones, options),
                    None => (function.clone(), Vec::new()),
                };
                let mut laid_out = lay_out(graph, options);
                laid_out.cloned = cloned;
                laid_out.score_before = score_in_binary(map, function, &options.score);
                laid_out
            })
            .collect();
        let order = section_order(&functions, graph, &options.regions);
        Self { functions, order }
    }

    /// The scores of the binary's order and of this one.
    pub fn scores(&self) -> (f64, f64) {
        let sum = |score: fn(&FunctionLayout) -> f64| self.functions.iter().map(score).sum();
        (sum(|function| function.score_before), sum(|function| function.score_after))
    }
}

fn is_hot(function: &FunctionGraph, options: &LayoutOptions) -> bool {
    function.nodes.iter().any(|node| node.count >= options.hot_count.max(1))
}

fn score_in_binary(map: &BlockMap<'_>, function: &FunctionGraph, score: &Score) -> f64 {
    let places: Vec<(u64, u64)> = (0..function.nodes.len() as u32)
        .map(|block| {
            let block = map.block(BlockRef { function: function.function, block });
            block.map_or((u64::MAX, 0), |block| {
                (block.address.0, block.address.0.saturating_add(block.size))
            })
        })
        .collect();
    score.placed(&places, &jumps(function))
}

fn jumps(function: &FunctionGraph) -> Vec<ext_tsp::Jump> {
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
        if let Some(place) = hot_of.get_mut(node as usize) {
            *place = index;
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
/// at a place where nothing falls through.
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

fn section_order(
    functions: &[FunctionLayout],
    graph: &ProgramGraph,
    regions: &[Range<ImageAddress>],
) -> Vec<SectionRef> {
    let region = |function: u32| {
        let address = functions.get(function as usize)?.address;
        regions.iter().position(|region| region.contains(&address))
    };
    let index_of: FxHashMap<u32, u32> =
        functions.iter().map(|function| function.graph.function).zip(0..).collect();
    let section = |function: &FunctionLayout, cluster: usize| {
        let nodes = function.clusters.get(cluster).map_or(&[][..], Vec::as_slice);
        let nodes = nodes.iter().filter_map(|&node| function.graph.nodes.get(node as usize));
        nodes.fold(HotFunction { size: 0, weight: 0.0 }, |section, node| HotFunction {
            size: section.size.saturating_add(node.size),
            weight: section.weight + node.count as f64 * node.size as f64,
        })
    };
    let hot: Vec<HotFunction> = functions.iter().map(|function| section(function, 0)).collect();
    let arcs: Vec<CallArc> = graph
        .calls
        .iter()
        .filter_map(|call| {
            let caller = *index_of.get(&call.from.function)?;
            let callee = *index_of.get(&call.to)?;
            if region(caller) != region(callee) {
                return None;
            }
            Some(CallArc { caller, callee, count: call.count as f64 })
        })
        .collect();
    let order = order_functions(&hot, &arcs);
    let hot_sections = order.iter().map(|&function| SectionRef { function, cluster: 0 });
    let warm_sections = order
        .iter()
        .filter(|&&function| {
            functions.get(function as usize).is_some_and(|function| function.clusters.len() > 1)
        })
        .map(|&function| SectionRef { function, cluster: 1 });
    hot_sections.chain(warm_sections).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallEdge, CountTally, Edge, Node};

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

    #[test]
    fn a_call_from_another_region_has_no_say_in_the_order() {
        // 2 is called by 0, mostly, and by 1.
        let functions = vec![graph(0, &[9], &[]), graph(1, &[20], &[]), graph(2, &[8], &[])];
        let call = |function, count| CallEdge {
            from: BlockRef { function, block: 0 },
            to: 2,
            tail: false,
            count,
        };
        let program = ProgramGraph {
            functions,
            calls: vec![call(0, 7), call(1, 1)],
            tally: CountTally::default(),
        };
        let map = BlockMap::new(&[]);
        let order = |regions: Vec<Range<ImageAddress>>| -> Vec<u32> {
            let options = LayoutOptions { regions, ..LayoutOptions::default() };
            let layout = Layout::new(&map, &program, &[], &options);
            layout.order.iter().map(|section| section.function).collect()
        };
        assert_eq!(order(Vec::new()), [1, 0, 2]);
        let init = ImageAddress(0x100)..ImageAddress(0x200);
        assert_eq!(order(vec![init, ImageAddress(0x200)..ImageAddress(0x400)]), [1, 2, 0]);
    }
}
