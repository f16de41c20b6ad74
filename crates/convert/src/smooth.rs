//! Sampled counts, corrected where the control flow contradicts them.

use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_binary::Binary;
use mepof_machine::Flow;
use mepof_trace::{Branch, FallThrough};
use rayon::prelude::*;

use crate::code::Code;
use crate::flow_graph::{Counts, FlowGraph};
use crate::inference::{BlockInput, Cfg, EdgeInput, infer};

/// Counts by block that agree with each other, from `branches` and the ranges between them
/// (`disjoint`, the same without overlaps); without ranges, from single branches. Code that no
/// function of the symbol table covers keeps its ranges.
pub(crate) fn smooth(
    binary: &Binary,
    code: &Code,
    branches: Vec<Branch>,
    ranges: &[FallThrough],
    disjoint: &[FallThrough],
) -> Vec<FallThrough> {
    let mut entered = branches.clone();
    entered.sort_unstable_by_key(|branch| branch.to);
    let mut left = branches;
    left.sort_unstable();
    let functions = binary.functions();
    let inferred = functions.par_iter().flat_map_iter(|function| {
        let addresses = &function.addresses;
        let counts = Counts {
            disjoint: beginning_in(disjoint, addresses),
            ranges: beginning_in(ranges, addresses),
            branches: between(&left, |branch| branch.from, addresses),
            are_single: ranges.is_empty(),
        };
        let entered = between(&entered, |branch| branch.to, addresses);
        let ran = !(counts.disjoint.is_empty() && counts.branches.is_empty() && entered.is_empty());
        if ran { of_function(code, addresses, &counts, entered) } else { Vec::new() }
    });
    let mut all: Vec<FallThrough> = inferred.collect();
    all.extend(disjoint.iter().filter(|range| binary.function_at(range.first).is_none()));
    all.sort_unstable();
    all
}

fn of_function(
    code: &Code,
    addresses: &Range<ImageAddress>,
    counts: &Counts<'_>,
    entered: &[Branch],
) -> Vec<FallThrough> {
    let graph = FlowGraph::new(code, addresses, counts);
    let from_outside = |first: ImageAddress| {
        let begin = entered.partition_point(|branch| branch.to < Some(first));
        let here = entered.iter().skip(begin).take_while(|branch| branch.to == Some(first));
        here.into_iter().any(|branch| !branch.from.is_some_and(|from| addresses.contains(&from)))
    };
    let leaves = |last: ImageAddress| match code.at(last).map(|placed| placed.flow) {
        Some(Flow::Conditional(target) | Flow::Jump(target)) => !addresses.contains(&target),
        Some(Flow::Next | Flow::Call(_) | Flow::IndirectCall) => false,
        Some(Flow::IndirectJump | Flow::Return | Flow::Stop | Flow::System) | None => true,
    };
    let blocks = graph.blocks.iter().enumerate().map(|(index, block)| BlockInput {
        count: block.count,
        is_entry: index == 0 || from_outside(block.first),
        is_exit: leaves(block.last),
    });
    let edges = graph.edges.iter().map(|edge| EdgeInput {
        from: edge.from,
        to: edge.to,
        count: edge.count,
        is_unlikely: false,
    });
    let cfg = Cfg { blocks: blocks.collect(), edges: edges.collect() };
    let inferred = infer(&cfg);
    let counted = graph.blocks.iter().zip(inferred.blocks);
    counted
        .map(|(block, count)| FallThrough { first: block.first, last: block.last, count })
        .collect()
}

/// The ranges, sorted, that begin in `addresses`.
fn beginning_in<'a>(
    ranges: &'a [FallThrough],
    addresses: &Range<ImageAddress>,
) -> &'a [FallThrough] {
    let begin = ranges.partition_point(|range| range.first < addresses.start);
    let end = ranges.partition_point(|range| range.first < addresses.end);
    ranges.get(begin..end).unwrap_or_default()
}

/// The branches, sorted by `side`, that have this side in `addresses`.
fn between<'a>(
    branches: &'a [Branch],
    side: impl Fn(&Branch) -> Option<ImageAddress>,
    addresses: &Range<ImageAddress>,
) -> &'a [Branch] {
    let begin = branches.partition_point(|branch| side(branch) < Some(addresses.start));
    let end = branches.partition_point(|branch| side(branch) < Some(addresses.end));
    branches.get(begin..end).unwrap_or_default()
}
