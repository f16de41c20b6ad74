//! Samples by inline stack, gathered fast and merged across threads.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use mepof_profile::{FunctionProfile, LineLocation, LineSamples};
use rustc_hash::FxHashMap;

/// A function in one inline context: an index into the nodes of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// A function in one inline context.
#[derive(Clone, Copy, Debug)]
struct Node<N> {
    /// Where it was inlined, `None` at the root of a stack.
    parent: Option<(NodeId, LineLocation)>,
    function: N,
    total: u64,
    head: u64,
}

type Key<N> = (Option<(NodeId, LineLocation)>, N);

/// Samples of functions and of the functions inlined into them. `N` stands for a function's name.
///
/// All counts are in two tables: one for each function would be many times as large.
#[derive(Clone, Debug)]
pub(crate) struct Tree<N> {
    nodes: Vec<Node<N>>, // each after its parent
    index: FxHashMap<Key<N>, NodeId>,
    body: FxHashMap<(NodeId, LineLocation), u64>,
    targets: FxHashMap<(NodeId, LineLocation, N), u64>,
}

impl<N> Default for Tree<N> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            index: FxHashMap::default(),
            body: FxHashMap::default(),
            targets: FxHashMap::default(),
        }
    }
}

impl<N: Copy + Eq + Hash> Tree<N> {
    /// The node of `function` within `parent`, made if need be.
    pub fn node(&mut self, parent: Option<(NodeId, LineLocation)>, function: N) -> NodeId {
        match self.index.entry((parent, function)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = NodeId(self.nodes.len() as u32);
                self.nodes.push(Node { parent, function, total: 0, head: 0 });
                *entry.insert(id)
            }
        }
    }

    /// The node of the innermost of `frames` (outermost first: the function, and the location in
    /// it) and the location.
    pub fn leaf(
        &mut self,
        frames: impl Iterator<Item = (N, LineLocation)>,
    ) -> Option<(NodeId, LineLocation)> {
        frames.fold(None, |parent, (function, location)| {
            Some((self.node(parent, function), location))
        })
    }

    /// Adds to the totals of a node and of all nodes that it was inlined into.
    pub fn add_total(&mut self, id: NodeId, samples: u64) {
        let mut next = Some(id);
        while let Some(node) = next.and_then(|id| self.nodes.get_mut(position(id))) {
            add(&mut node.total, samples);
            next = node.parent.map(|(parent, _)| parent);
        }
    }

    /// Adds to how often a node's function was entered.
    pub fn add_head(&mut self, id: NodeId, count: u64) {
        if let Some(node) = self.nodes.get_mut(position(id)) {
            add(&mut node.head, count);
        }
    }

    /// Adds to the count of a location.
    pub fn add(&mut self, id: NodeId, location: LineLocation, count: u64) {
        add(self.body.entry((id, location)).or_default(), count);
    }

    /// Makes the count of a location at least `count`.
    pub fn raise(&mut self, id: NodeId, location: LineLocation, count: u64) {
        let highest = self.body.entry((id, location)).or_default();
        *highest = count.max(*highest);
    }

    /// Adds to how often `callee` was called from a location.
    pub fn add_calls(&mut self, id: NodeId, location: LineLocation, callee: N, count: u64) {
        add(self.targets.entry((id, location, callee)).or_default(), count);
    }

    /// Takes over `other`: totals, heads and calls add up, and of two counts of the same location
    /// the higher one stays.
    pub fn merge(&mut self, other: Self) {
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        let mut moved: Vec<NodeId> = Vec::with_capacity(other.nodes.len());
        for node in other.nodes {
            let parent = node
                .parent
                .and_then(|(parent, location)| Some((*moved.get(position(parent))?, location)));
            let id = self.node(parent, node.function);
            moved.push(id);
            if let Some(mine) = self.nodes.get_mut(position(id)) {
                add(&mut mine.total, node.total);
                add(&mut mine.head, node.head);
            }
        }
        for ((id, location), count) in other.body {
            if let Some(&id) = moved.get(position(id)) {
                self.raise(id, location, count);
            }
        }
        for ((id, location, callee), count) in other.targets {
            if let Some(&id) = moved.get(position(id)) {
                self.add_calls(id, location, callee, count);
            }
        }
    }

    /// The tree as profiles by name. Functions whose names are the same (they differed in a suffix
    /// that `name` leaves out) become one.
    pub fn assemble(
        self,
        mut name: impl FnMut(N) -> Arc<str>,
    ) -> BTreeMap<Arc<str>, FunctionProfile> {
        let Self { nodes, index, body, targets } = self;
        drop(index);
        let mut names: FxHashMap<N, Arc<str>> = FxHashMap::default();
        let mut name = |id: N| names.entry(id).or_insert_with(|| name(id)).clone();
        let of_node = |node: &Node<N>| FunctionProfile {
            total: node.total,
            head: node.head,
            ..<_>::default()
        };
        let mut profiles: Vec<FunctionProfile> = nodes.iter().map(of_node).collect();
        // In order, maps fill up; at random they stay half empty.
        let mut body: Vec<((NodeId, LineLocation), u64)> = body.into_iter().collect();
        body.sort_unstable();
        for ((id, location), count) in body {
            if let Some(profile) = profiles.get_mut(position(id)) {
                profile.body.insert(location, LineSamples { count, ..LineSamples::default() });
            }
        }
        for ((id, location, callee), count) in targets {
            if let Some(profile) = profiles.get_mut(position(id)) {
                let targets = &mut profile.body.entry(location).or_default().targets;
                add(targets.entry(name(callee)).or_default(), count);
            }
        }
        let mut roots = BTreeMap::new();
        // From the end on, each node has all that was inlined into it when it is moved.
        for node in nodes.iter().rev() {
            let Some(profile) = profiles.pop() else { break };
            let siblings: &mut BTreeMap<Arc<str>, FunctionProfile> = match node.parent {
                None => &mut roots,
                Some((parent, location)) => match profiles.get_mut(position(parent)) {
                    Some(parent) => parent.inlined.entry(location).or_default(),
                    None => continue,
                },
            };
            match siblings.entry(name(node.function)) {
                btree_map::Entry::Vacant(location) => {
                    location.insert(profile);
                }
                btree_map::Entry::Occupied(mut same) => join(same.get_mut(), profile),
            }
        }
        roots
    }
}

fn add(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

/// The index of a node among its tree's.
fn position(id: NodeId) -> usize {
    id.0 as usize
}

/// Takes `other`, another copy of the same function, over into `profile`, as [`Tree::merge`] does.
fn join(profile: &mut FunctionProfile, other: FunctionProfile) {
    add(&mut profile.total, other.total);
    add(&mut profile.head, other.head);
    for (location, samples) in other.body {
        let location = profile.body.entry(location).or_default();
        location.count = location.count.max(samples.count);
        for (callee, count) in samples.targets {
            add(location.targets.entry(callee).or_default(), count);
        }
    }
    for (location, callees) in other.inlined {
        let location = profile.inlined.entry(location).or_default();
        for (callee, inlined) in callees {
            join(location.entry(callee).or_default(), inlined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: u32, offset: u32) -> (u32, LineLocation) {
        (function, LineLocation { offset, discriminator: 0 })
    }

    fn count(tree: &mut Tree<u32>, frames: &[(u32, LineLocation)], count: u64) {
        let (id, location) = tree.leaf(frames.iter().copied()).unwrap();
        tree.add_total(id, count);
        tree.raise(id, location, count);
    }

    #[test]
    fn an_inlined_sample_counts_for_every_function_of_its_stack() {
        let mut tree = Tree::default();
        count(&mut tree, &[frame(1, 3), frame(2, 4)], 5);
        count(&mut tree, &[frame(1, 7)], 2);
        let totals: Vec<_> = tree.nodes.iter().map(|node| (node.function, node.total)).collect();
        assert_eq!(totals, [(1, 7), (2, 5)]);
    }

    #[test]
    fn merged_trees_add_totals_and_keep_the_highest_count() {
        let (mut one, mut two) = (Tree::default(), Tree::default());
        count(&mut one, &[frame(9, 1)], 1);
        count(&mut one, &[frame(1, 3), frame(2, 4)], 5);
        count(&mut two, &[frame(1, 3), frame(2, 4)], 8);
        one.merge(two);
        assert_eq!(one.nodes.len(), 3);
        let profiles = one.assemble(|id| id.to_string().into());
        let inlined = &profiles["1"].inlined[&frame(0, 3).1]["2"];
        assert_eq!((inlined.total, inlined.body[&frame(0, 4).1].count), (13, 8));
    }

    #[test]
    fn functions_of_the_same_name_become_one() {
        let mut tree = Tree::default();
        count(&mut tree, &[frame(1, 3), frame(2, 4)], 5);
        count(&mut tree, &[frame(11, 3), frame(2, 4)], 7);
        let profiles = tree.assemble(|id| format!("f{}", id % 10).into());
        let [(name, profile)] = &profiles.iter().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!((&***name, profile.total), ("f1", 12));
        let inlined = &profile.inlined[&frame(0, 3).1]["f2"];
        assert_eq!((inlined.total, inlined.body[&frame(0, 4).1].count), (12, 7));
    }
}
