//! Samples by inline stack, gathered fast and merged across threads.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use mepof_profile::{FunctionProfile, LineLocation};
use rustc_hash::FxHashMap;

/// A function in one inline context: an index into the nodes of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

/// What was counted for one function in one inline context.
#[derive(Clone, Debug)]
pub(crate) struct Node<N> {
    /// Where it was inlined, `None` at the root of a stack.
    pub parent: Option<(NodeId, LineLocation)>,
    pub function: N,
    pub total: u64,
    pub head: u64,
    pub body: FxHashMap<LineLocation, u64>,
    pub targets: FxHashMap<(LineLocation, N), u64>,
}

type Key<N> = (Option<(NodeId, LineLocation)>, N);

/// Samples of functions and of the functions inlined into them. `N` stands for a function's name.
#[derive(Clone, Debug)]
pub(crate) struct Tree<N> {
    nodes: Vec<Node<N>>,
    index: FxHashMap<Key<N>, NodeId>,
}

impl<N> Default for Tree<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), index: FxHashMap::default() }
    }
}

impl<N: Copy + Eq + Hash> Tree<N> {
    /// The node of `function` within `parent`, made if need be.
    pub fn node(&mut self, parent: Option<(NodeId, LineLocation)>, function: N) -> NodeId {
        match self.index.entry((parent, function)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = NodeId(self.nodes.len() as u32);
                self.nodes.push(Node {
                    parent,
                    function,
                    total: 0,
                    head: 0,
                    body: FxHashMap::default(),
                    targets: FxHashMap::default(),
                });
                *entry.insert(id)
            }
        }
    }

    /// Adds to the node of every frame's function: `samples` each to its total.
    pub fn add_total(&mut self, id: NodeId, samples: u64) {
        let mut next = Some(id);
        while let Some(node) = next.and_then(|id| self.get_mut(id)) {
            node.total = node.total.saturating_add(samples);
            next = node.parent.map(|(parent, _)| parent);
        }
    }

    /// The node of the innermost of `frames` (outermost first: the function, and the place in it)
    /// and the place.
    pub fn leaf(
        &mut self,
        frames: impl Iterator<Item = (N, LineLocation)>,
    ) -> Option<(NodeId, LineLocation)> {
        frames.fold(None, |parent, (function, place)| Some((self.node(parent, function), place)))
    }

    pub fn get_mut(&mut self, id: NodeId) -> Option<&mut Node<N>> {
        self.nodes.get_mut(id.0 as usize)
    }

    /// The nodes; each comes after its parent.
    pub fn nodes(&self) -> &[Node<N>] {
        &self.nodes
    }

    /// Takes over `other`: totals, heads and targets add up, and of two counts of the same place
    /// the higher one stays.
    pub fn merge(&mut self, other: Self) {
        let mut moved: Vec<NodeId> = Vec::with_capacity(other.nodes.len());
        for node in other.nodes {
            let parent = node
                .parent
                .and_then(|(parent, location)| Some((*moved.get(position(parent))?, location)));
            let id = self.node(parent, node.function);
            moved.push(id);
            let Some(mine) = self.get_mut(id) else { continue };
            mine.total = mine.total.saturating_add(node.total);
            mine.head = mine.head.saturating_add(node.head);
            for (location, count) in node.body {
                let place = mine.body.entry(location).or_default();
                *place = count.max(*place);
            }
            for (target, count) in node.targets {
                let place = mine.targets.entry(target).or_default();
                *place = place.saturating_add(count);
            }
        }
    }

    /// The tree as profiles by name. Functions whose names are the same (they differed in a suffix
    /// that `name` leaves out) become one.
    pub fn assemble(
        &self,
        mut name: impl FnMut(N) -> Arc<str>,
    ) -> BTreeMap<Arc<str>, FunctionProfile> {
        let mut names: FxHashMap<N, Arc<str>> = FxHashMap::default();
        let mut name = |id: N| names.entry(id).or_insert_with(|| name(id)).clone();
        let mut profiles: Vec<FunctionProfile> =
            self.nodes.iter().map(|node| profile_of(node, &mut name)).collect();
        let mut roots = BTreeMap::new();
        // Children come after their parents: from the end on, each is whole when it is moved.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let Some(profile) = profiles.get_mut(index).map(std::mem::take) else { continue };
            let siblings: &mut BTreeMap<Arc<str>, FunctionProfile> = match node.parent {
                None => &mut roots,
                Some((parent, place)) => match profiles.get_mut(position(parent)) {
                    Some(parent) => parent.inlined.entry(place).or_default(),
                    None => continue,
                },
            };
            match siblings.entry(name(node.function)) {
                btree_map::Entry::Vacant(place) => {
                    place.insert(profile);
                }
                btree_map::Entry::Occupied(mut same) => join(same.get_mut(), profile),
            }
        }
        roots
    }
}

/// The index of a node within [`Tree::nodes`].
fn position(id: NodeId) -> usize {
    id.0 as usize
}

fn profile_of<N: Copy>(node: &Node<N>, name: &mut impl FnMut(N) -> Arc<str>) -> FunctionProfile {
    let mut profile =
        FunctionProfile { total: node.total, head: node.head, ..FunctionProfile::default() };
    for (&location, &count) in &node.body {
        profile.body.entry(location).or_default().count = count;
    }
    for (&(location, callee), &count) in &node.targets {
        let targets = &mut profile.body.entry(location).or_default().targets;
        let calls = targets.entry(name(callee)).or_default();
        *calls = calls.saturating_add(count);
    }
    profile
}

/// Takes `other`, another copy of the same function, over into `profile`, as [`Tree::merge`] does.
fn join(profile: &mut FunctionProfile, other: FunctionProfile) {
    profile.total = profile.total.saturating_add(other.total);
    profile.head = profile.head.saturating_add(other.head);
    for (location, samples) in other.body {
        let place = profile.body.entry(location).or_default();
        place.count = place.count.max(samples.count);
        for (callee, count) in samples.targets {
            let calls = place.targets.entry(callee).or_default();
            *calls = calls.saturating_add(count);
        }
    }
    for (location, callees) in other.inlined {
        let place = profile.inlined.entry(location).or_default();
        for (callee, inlined) in callees {
            join(place.entry(callee).or_default(), inlined);
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
        let body = &mut tree.get_mut(id).unwrap().body;
        body.insert(location, count);
    }

    #[test]
    fn an_inlined_sample_counts_for_every_function_of_its_stack() {
        let mut tree = Tree::default();
        count(&mut tree, &[frame(1, 3), frame(2, 4)], 5);
        count(&mut tree, &[frame(1, 7)], 2);
        let totals: Vec<_> = tree.nodes().iter().map(|node| (node.function, node.total)).collect();
        assert_eq!(totals, [(1, 7), (2, 5)]);
    }

    #[test]
    fn merged_trees_add_totals_and_keep_the_highest_count() {
        let (mut one, mut two) = (Tree::default(), Tree::default());
        count(&mut one, &[frame(9, 1)], 1);
        count(&mut one, &[frame(1, 3), frame(2, 4)], 5);
        count(&mut two, &[frame(1, 3), frame(2, 4)], 8);
        one.merge(two);
        let inlined = &one.nodes()[2];
        assert_eq!((inlined.total, inlined.body.values().max()), (13, Some(&8)));
        assert_eq!(one.nodes().len(), 3);
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
