use std::ops::Range;

use mepof_address::ImageAddress;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::clone_path::{by_function, clone_paths};
use crate::ext_tsp::Score;
use crate::function_layout::{FunctionLayout, jumps, lay_out};
use crate::function_order::{CallArc, HotFunction, order_functions};
use crate::{BlockMap, BlockPath, BlockRef, FunctionGraph, LayoutOptions, ProgramGraph};

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
    let positions: Vec<(u64, u64)> = (0..function.nodes.len() as u32)
        .map(|block| {
            let block = map.block(BlockRef { function: function.function, block });
            block.map_or((u64::MAX, 0), |block| {
                (block.address.0, block.address.0.saturating_add(block.size))
            })
        })
        .collect();
    score.placed(&positions, &jumps(function))
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
