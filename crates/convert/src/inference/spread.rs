use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Counts, Graph};

/// Blocks that are looked at for each block and edge of the function, at most.
const EFFORT: usize = 16;

/// Splits what runs through blocks that nothing is known of evenly among the ways through them:
/// all ways cost the same, and the search took one.
pub(super) fn spread(graph: &Graph<'_>, counts: &mut Counts) {
    let mut effort = EFFORT * (counts.blocks.len() + counts.edges.len());
    let mut spread_already = FxHashSet::default();
    for root in 0..counts.blocks.len() {
        if is_unknown(graph, root) || counts.block(root) == 0 {
            continue;
        }
        let Some(region) = Region::below(graph, counts, root, &mut effort) else { continue };
        if region.order.iter().any(|block| spread_already.contains(block)) {
            continue;
        }
        spread_already.extend(region.order.iter().copied());
        region.spread(graph, counts);
    }
}

fn is_unknown(graph: &Graph<'_>, block: usize) -> bool {
    !graph.is_entry(block) && graph.cfg.blocks.get(block).is_some_and(|block| block.count.is_none())
}

/// Unknown blocks below a known one, with a single known block below them, or none.
struct Region {
    root: usize,
    below: Option<usize>,
    /// The unknown blocks, each before those that it leads to.
    order: Vec<usize>,
}

impl Region {
    /// `None` if there is nothing to spread, or it would change what is known.
    fn below(graph: &Graph<'_>, counts: &Counts, root: usize, effort: &mut usize) -> Option<Self> {
        let mut region = Self { root, below: None, order: Vec::new() };
        // Depth first, for an order without cycles.
        let mut open: FxHashMap<usize, bool> = FxHashMap::default(); // whether it is on the path
        let mut path = vec![(root, 0)];
        while let Some((block, next)) = path.last_mut() {
            *effort = effort.checked_sub(1)?;
            let Some(&(edge, to)) = graph.successors.of(*block).get(*next) else {
                open.insert(*block, false);
                region.order.push(*block);
                path.pop();
                continue;
            };
            *next += 1;
            let from_root = *block == root;
            if !Self::is_way(graph, counts, edge) {
                if from_root || counts.edge(edge) == 0 {
                    continue;
                }
                return None; // it has to stay as it is
            }
            if is_unknown(graph, to) {
                match open.get(&to) {
                    Some(true) => return None, // a loop
                    Some(false) => {}
                    None => {
                        open.insert(to, true);
                        path.push((to, 0));
                    }
                }
            } else if !from_root && *region.below.get_or_insert(to) != to {
                return None;
            }
        }
        region.order.pop(); // the root
        region.order.reverse();
        // All of it goes on to the same block, or leaves the function at ends without successors.
        let leads_on = |block: usize| {
            let edges = graph.successors.of(block);
            let goes_on: u64 = edges.iter().map(|(edge, _)| counts.edge(*edge)).sum();
            let has_way = edges.iter().any(|(edge, _)| Self::is_way(graph, counts, *edge));
            has_way && goes_on == counts.block(block)
        };
        let is_end = |block: usize| graph.successors.of(block).is_empty();
        let all_alike = match region.below {
            Some(_) => region.order.iter().all(|&block| leads_on(block)),
            None => region.order.iter().all(|&block| is_end(block) || leads_on(block)),
        };
        (!region.order.is_empty() && all_alike).then_some(region)
    }

    /// Whether the count of an edge is free.
    fn is_way(graph: &Graph<'_>, counts: &Counts, edge: usize) -> bool {
        let input = graph.cfg.edges.get(edge);
        input.is_some_and(|input| {
            input.count.is_none() && (!input.is_unlikely || counts.edge(edge) > 0)
        })
    }

    fn spread(&self, graph: &Graph<'_>, counts: &mut Counts) {
        for &block in [self.root].iter().chain(&self.order) {
            if block != self.root {
                let edges = graph.predecessors.of(block).iter();
                let comes_in = edges.map(|(edge, _)| counts.edge(*edge)).sum();
                counts.set_block(block, comes_in);
            }
            let ways: Vec<usize> = graph
                .successors
                .of(block)
                .iter()
                .filter(|&&(edge, to)| {
                    Self::is_way(graph, counts, edge)
                        && (is_unknown(graph, to) || Some(to) == self.below)
                })
                .map(|(edge, _)| *edge)
                .collect();
            let all = if block == self.root {
                ways.iter().map(|&edge| counts.edge(edge)).sum()
            } else {
                counts.block(block)
            };
            let Some(share) = all.checked_div(ways.len() as u64) else { continue };
            let rest = all % ways.len() as u64;
            for (number, &edge) in ways.iter().enumerate() {
                counts.set_edge(edge, share + u64::from((number as u64) < rest));
            }
        }
    }
}
