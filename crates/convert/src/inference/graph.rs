use super::network::Change;

/// For what nothing is known of.
pub(super) const UNKNOWN: Change = Change { more: 0, fewer: 0 };
/// For what stays in an endless loop.
const STAY: Change = Change { more: 30, fewer: 0 };

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

/// The part of a control-flow graph that flow can run through.
pub(super) struct Graph<'a> {
    pub(super) cfg: &'a Cfg,
    /// By block: whether an entry leads there.
    pub(super) reached: Vec<bool>,
    /// By number.
    pub(super) entries: Vec<usize>,
    /// Blocks that control can leave the function from, and what that costs.
    pub(super) exits: Vec<(usize, Change)>,
    /// The edges between blocks that are reached, by number.
    pub(super) edges: Vec<usize>,
    pub(super) successors: Adjacency,
    pub(super) predecessors: Adjacency,
}

impl<'a> Graph<'a> {
    pub(super) fn new(cfg: &'a Cfg) -> Self {
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

    pub(super) fn is_entry(&self, block: usize) -> bool {
        self.entries.binary_search(&block).is_ok()
    }

    /// Where an edge leads.
    pub(super) fn target(&self, edge: usize) -> Option<usize> {
        self.cfg.edges.get(edge).map(|edge| edge.to)
    }

    /// Where an edge comes from.
    pub(super) fn origin(&self, edge: usize) -> Option<usize> {
        self.cfg.edges.get(edge).map(|edge| edge.from)
    }

    pub(super) fn is_unlikely(&self, edge: usize) -> bool {
        self.cfg.edges.get(edge).is_some_and(|edge| edge.is_unlikely)
    }
}

/// A flow, as counts.
pub(super) struct Counts {
    pub(super) blocks: Vec<u64>,
    pub(super) edges: Vec<u64>,
}

impl Counts {
    pub(super) fn block(&self, block: usize) -> u64 {
        self.blocks.get(block).copied().unwrap_or_default()
    }

    pub(super) fn edge(&self, edge: usize) -> u64 {
        self.edges.get(edge).copied().unwrap_or_default()
    }

    pub(super) fn set_block(&mut self, block: usize, count: u64) {
        if let Some(kept) = self.blocks.get_mut(block) {
            *kept = count;
        }
    }

    pub(super) fn set_edge(&mut self, edge: usize, count: u64) {
        if let Some(kept) = self.edges.get_mut(edge) {
            *kept = count;
        }
    }
}

/// The numbers of the items that `is` holds for.
pub(super) fn numbers<T>(items: &[T], is: impl Fn(&T) -> bool) -> Vec<usize> {
    items.iter().enumerate().filter(|(_, item)| is(item)).map(|(number, _)| number).collect()
}

/// The edges that leave each block, as numbers, with the block at the other end.
pub(super) struct Adjacency {
    starts: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl Adjacency {
    pub(super) fn new(
        blocks: usize,
        edges: &[usize],
        ends: impl Fn(usize) -> Option<(usize, usize)>,
    ) -> Self {
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
    pub(super) fn of(&self, block: usize) -> &[(usize, usize)] {
        let range = self.starts.get(block).zip(self.starts.get(block + 1));
        range.and_then(|(&from, &to)| self.edges.get(from..to)).unwrap_or_default()
    }

    /// By block: whether `from` leads there.
    pub(super) fn reach(&self, blocks: usize, from: &[usize]) -> Vec<bool> {
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
