use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::{Counts, Graph};

/// Takes a way from an entry to each hot part that none leads to, and from there out, once. Loops
/// of which every sample lies inside are such parts.
pub(super) fn connect(graph: &Graph<'_>, counts: &mut Counts) {
    let blocks = counts.blocks.len();
    let mut joined = vec![false; blocks];
    let entries = graph.entries.iter().copied().filter(|&block| counts.block(block) > 0);
    flood(graph, counts, entries.collect(), &mut joined);
    if (0..blocks).all(|block| joined.get(block) == Some(&true) || counts.block(block) == 0) {
        return;
    }
    let forward = Tree::new(graph, counts, false);
    let backward = Tree::new(graph, counts, true);
    let mut begins = vec![0_u64; blocks];
    for block in 0..blocks {
        if joined.get(block) == Some(&true) || counts.block(block) == 0 {
            continue;
        }
        if let Some(begins) = begins.get_mut(block) {
            *begins += 1;
        }
        let mut ahead = vec![block];
        for tree in [&forward, &backward] {
            let mut on_the_way = block;
            while let Some(next) = tree.next(graph, on_the_way) {
                // What is joined has a way in, which does not shorten its way out.
                if joined.get(next) == Some(&true) {
                    break;
                }
                ahead.push(next);
                on_the_way = next;
            }
        }
        flood(graph, counts, ahead, &mut joined);
    }
    for tree in [&forward, &backward] {
        tree.add(graph, &begins, counts);
    }
    // The block itself lies on both ways.
    for (count, begins) in counts.blocks.iter_mut().zip(begins) {
        *count -= begins;
    }
}

/// Marks the blocks that flow from `ahead` reaches.
fn flood(graph: &Graph<'_>, counts: &Counts, mut ahead: Vec<usize>, joined: &mut [bool]) {
    while let Some(block) = ahead.pop() {
        match joined.get_mut(block) {
            Some(joined) if !*joined => *joined = true,
            _ => continue,
        }
        let taken = graph.successors.of(block).iter().filter(|(edge, _)| counts.edge(*edge) > 0);
        ahead.extend(taken.map(|(_, to)| to));
    }
}

/// The best ways from the entries to all blocks, or from all blocks to the exits.
struct Tree {
    /// By block: the edge that comes before it, or after it when it leads to the exits.
    edge: Vec<Option<usize>>,
    /// The blocks by distance.
    order: Vec<usize>,
    backward: bool,
}

impl Tree {
    fn new(graph: &Graph<'_>, counts: &Counts, backward: bool) -> Self {
        let blocks = counts.blocks.len();
        let mut distances = vec![u64::MAX; blocks];
        let mut tree = Self { edge: vec![None; blocks], order: Vec::new(), backward };
        let mut done = vec![false; blocks];
        let roots: Vec<usize> = if backward {
            graph.exits.iter().map(|(block, _)| *block).collect()
        } else {
            graph.entries.clone()
        };
        let mut ahead: BinaryHeap<Reverse<(u64, usize)>> =
            roots.iter().map(|&block| Reverse((0, block))).collect();
        for &root in &roots {
            if let Some(distance) = distances.get_mut(root) {
                *distance = 0;
            }
        }
        while let Some(Reverse((distance, block))) = ahead.pop() {
            match done.get_mut(block) {
                Some(done) if !*done => *done = true,
                _ => continue,
            }
            tree.order.push(block);
            let edges = if backward { &graph.predecessors } else { &graph.successors };
            for &(edge, to) in edges.of(block) {
                let distance = distance + length(graph, counts, edge);
                if let (Some(known), Some(through)) = (distances.get_mut(to), tree.edge.get_mut(to))
                {
                    if distance < *known {
                        (*known, *through) = (distance, Some(edge));
                        ahead.push(Reverse((distance, to)));
                    }
                }
            }
        }
        tree
    }

    /// The block before `block`, or after it.
    fn next(&self, graph: &Graph<'_>, block: usize) -> Option<usize> {
        let edge = self.edge.get(block).copied().flatten()?;
        if self.backward { graph.target(edge) } else { graph.origin(edge) }
    }

    /// Lets so much as `begins` says run between each block and the root.
    fn add(&self, graph: &Graph<'_>, begins: &[u64], counts: &mut Counts) {
        let mut through = begins.to_vec();
        for &block in self.order.iter().rev() {
            let amount = through.get(block).copied().unwrap_or_default();
            counts.set_block(block, counts.block(block) + amount);
            let Some(edge) = self.edge.get(block).copied().flatten() else { continue };
            counts.set_edge(edge, counts.edge(edge) + amount);
            let next = self.next(graph, block).and_then(|next| through.get_mut(next));
            if let Some(through) = next {
                *through += amount;
            }
        }
    }
}

/// A way along what was taken is better than a much shorter one along what was not; what is
/// unlikely is the last resort.
fn length(graph: &Graph<'_>, counts: &Counts, edge: usize) -> u64 {
    match (counts.edge(edge) > 0, graph.is_unlikely(edge)) {
        (true, _) => 1,
        (false, false) => 1 << 10,
        (false, true) => 1 << 30,
    }
}
