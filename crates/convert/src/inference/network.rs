//! Flows of minimum cost: successive shortest paths, all paths of equal length at once
//! (Ahuja, Magnanti and Orlin, "Network Flows", sections 9.7 and 9.8; Dinic's algorithm for the
//! paths of equal length).

#![allow(
    clippy::indexing_slicing,
    reason = "the numbers of nodes and arcs are made here, except those of `channel`, \
              which checks them"
)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What it costs to let one more or one fewer through a channel than was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub more: i64,
    pub fewer: i64,
}

/// As much as anybody wants. Sums of all counts stay below (see `infer`).
const UNBOUNDED: i64 = i64::MAX / 2;

/// An arc that flow runs through, one way.
struct Channel {
    from: usize,
    to: usize,
    counted: i64,
    change: Change,
}

/// Nodes with channels between them.
pub struct Network {
    nodes: usize,
    channels: Vec<Channel>,
}

impl Network {
    pub fn new(nodes: usize) -> Self {
        Self { nodes, channels: Vec::new() }
    }

    /// Adds a channel that `counted` went through, which is not negative.
    ///
    /// # Panics
    /// If there are no such nodes.
    pub fn channel(&mut self, from: usize, to: usize, counted: i64, change: Change) {
        assert!(from < self.nodes && to < self.nodes && counted >= 0);
        self.channels.push(Channel { from, to, counted, change });
    }

    /// What goes through each channel when as much comes out of every node as goes in, at the
    /// least cost; and whether it is the least, which it may not be if finding it takes more
    /// than `steps`. From `outside` all nodes must be reached, and it from all of them.
    pub fn balance(&self, outside: usize, steps: u64) -> (Vec<i64>, bool) {
        let (source, sink) = (self.nodes, self.nodes + 1);
        let mut surplus = vec![0_i64; self.nodes];
        for channel in &self.channels {
            surplus[channel.to] += channel.counted;
            surplus[channel.from] -= channel.counted;
        }
        let mut flows: Vec<i64> = self.channels.iter().map(|channel| channel.counted).collect();
        if surplus.iter().all(|&surplus| surplus == 0) {
            return (flows, true);
        }
        // Arcs of what may change: for each channel one for more and one for fewer; then one for
        // each node that is out of balance.
        let mut residual = Residual::new(self.nodes + 2);
        for &Channel { from, to, counted, change } in &self.channels {
            residual.arc(from, to, UNBOUNDED, change.more);
            residual.arc(to, from, counted, change.fewer);
        }
        for (node, &surplus) in surplus.iter().enumerate() {
            if surplus >= 0 {
                residual.arc(source, node, surplus, 0);
            } else {
                residual.arc(node, sink, -surplus, 0);
            }
        }
        let optimal = residual.solve(source, sink, steps);
        for (number, flow) in flows.iter_mut().enumerate() {
            *flow += residual.through(2 * number) - residual.through(2 * number + 1);
        }
        if !optimal {
            let base = 2 * self.channels.len();
            for (node, surplus) in surplus.iter_mut().enumerate() {
                *surplus -= surplus.signum() * residual.through(base + node);
            }
            self.complete(outside, surplus, &mut flows);
        }
        (flows, optimal)
    }

    /// Leads what is too much in a node to `outside`, and what is missing from there, along paths
    /// with the fewest channels.
    fn complete(&self, outside: usize, surplus: Vec<i64>, flows: &mut [i64]) {
        for backward in [false, true] {
            let (order, through) = self.tree(outside, backward);
            // What each node wants of the one before it.
            let mut wanted: Vec<i64> = surplus
                .iter()
                .map(|&surplus| if backward { surplus.max(0) } else { (-surplus).max(0) })
                .collect();
            for &node in order.iter().rev() {
                let Some(channel) = through[node] else { continue };
                flows[channel] += wanted[node];
                let Channel { from, to, .. } = self.channels[channel];
                wanted[if backward { to } else { from }] += wanted[node];
            }
        }
    }

    /// The nodes in the order of their distance from `root`, and the channel that each is reached
    /// through.
    fn tree(&self, root: usize, backward: bool) -> (Vec<usize>, Vec<Option<usize>>) {
        let mut leaving = vec![Vec::new(); self.nodes];
        for (number, channel) in self.channels.iter().enumerate() {
            leaving[if backward { channel.to } else { channel.from }].push(number);
        }
        let mut through = vec![None; self.nodes];
        let mut order = vec![root];
        let mut next = 0;
        while next < order.len() {
            for &number in &leaving[order[next]] {
                let Channel { from, to, .. } = self.channels[number];
                let other = if backward { from } else { to };
                if other != root && through[other].is_none() {
                    through[other] = Some(number);
                    order.push(other);
                }
            }
            next += 1;
        }
        (order, through)
    }
}

/// What can still go along arcs. An arc and its reverse are neighbours.
struct Residual {
    nodes: usize,
    from: Vec<usize>,
    to: Vec<usize>,
    left: Vec<i64>,
    cost: Vec<i64>,
    starts: Vec<usize>, // by node, in `leaving`
    leaving: Vec<usize>,
    potential: Vec<i64>,
    steps: u64, // that may still be made
}

impl Residual {
    fn new(nodes: usize) -> Self {
        Self {
            nodes,
            from: Vec::new(),
            to: Vec::new(),
            left: Vec::new(),
            cost: Vec::new(),
            starts: Vec::new(),
            leaving: Vec::new(),
            potential: vec![0; nodes],
            steps: 0,
        }
    }

    fn arc(&mut self, from: usize, to: usize, capacity: i64, cost: i64) {
        self.from.extend([from, to]);
        self.to.extend([to, from]);
        self.left.extend([capacity, 0]);
        self.cost.extend([cost, -cost]);
    }

    /// What went along the arc that was added as the `number`th.
    fn through(&self, number: usize) -> i64 {
        self.left[2 * number + 1]
    }

    /// Sends as much as possible at the least cost. `false` if `steps` were not enough.
    fn solve(&mut self, source: usize, sink: usize, steps: u64) -> bool {
        self.steps = steps;
        self.index();
        while let Some(distances) = self.distances(source, sink) {
            let reached = distances[sink];
            if reached == i64::MAX {
                return true;
            }
            for (potential, distance) in self.potential.iter_mut().zip(distances) {
                *potential += distance.min(reached);
            }
            while let Some(levels) = self.levels(source, sink) {
                if levels[sink] == u32::MAX {
                    break;
                }
                self.block(source, sink, levels);
            }
            if self.steps == 0 {
                return false;
            }
        }
        false
    }

    fn index(&mut self) {
        self.starts = vec![0; self.nodes + 1];
        for &from in &self.from {
            self.starts[from + 1] += 1;
        }
        for node in 0..self.nodes {
            self.starts[node + 1] += self.starts[node];
        }
        let mut next = self.starts.clone();
        self.leaving = vec![0; self.from.len()];
        for (arc, &from) in self.from.iter().enumerate() {
            self.leaving[next[from]] = arc;
            next[from] += 1;
        }
    }

    /// An arc's cost less what the potentials account for: never negative where something is left.
    fn reduced(&self, arc: usize) -> i64 {
        self.cost[arc] + self.potential[self.from[arc]] - self.potential[self.to[arc]]
    }

    /// Makes a step; `None` if there were too many.
    fn step(&mut self) -> Option<()> {
        self.steps = self.steps.saturating_sub(1);
        (self.steps > 0).then_some(())
    }

    /// Distances from `source` as far as that of `sink`, by reduced costs (Dijkstra).
    fn distances(&mut self, source: usize, sink: usize) -> Option<Vec<i64>> {
        let mut distances = vec![i64::MAX; self.nodes];
        let mut ahead = BinaryHeap::from([Reverse((0_i64, source))]);
        distances[source] = 0;
        while let Some(Reverse((distance, node))) = ahead.pop() {
            if distance > distances[node] {
                continue;
            }
            if node == sink {
                break;
            }
            for position in self.starts[node]..self.starts[node + 1] {
                self.step()?;
                let arc = self.leaving[position];
                let to = self.to[arc];
                let distance = distance + self.reduced(arc);
                if self.left[arc] > 0 && distance < distances[to] {
                    distances[to] = distance;
                    ahead.push(Reverse((distance, to)));
                }
            }
        }
        Some(distances)
    }

    fn is_open(&self, arc: usize) -> bool {
        self.left[arc] > 0 && self.reduced(arc) == 0
    }

    /// How many arcs each node is away from `source`, along shortest paths.
    fn levels(&mut self, source: usize, sink: usize) -> Option<Vec<u32>> {
        let mut levels = vec![u32::MAX; self.nodes];
        let mut ahead = VecDeque::from([source]);
        levels[source] = 0;
        while let Some(node) = ahead.pop_front() {
            if node == sink {
                break;
            }
            for position in self.starts[node]..self.starts[node + 1] {
                self.step()?;
                let arc = self.leaving[position];
                let to = self.to[arc];
                if levels[to] == u32::MAX && self.is_open(arc) {
                    levels[to] = levels[node] + 1;
                    ahead.push_back(to);
                }
            }
        }
        Some(levels)
    }

    /// Sends along shortest paths, from level to level, until each has a full arc.
    fn block(&mut self, source: usize, sink: usize, mut levels: Vec<u32>) {
        let mut next: Vec<usize> = self.starts[..self.nodes].to_vec();
        let mut path: Vec<usize> = Vec::new(); // arcs
        loop {
            let node = path.last().map_or(source, |&arc| self.to[arc]);
            if node == sink {
                let least = path.iter().map(|&arc| self.left[arc]).min().unwrap_or_default();
                for &arc in &path {
                    self.left[arc] -= least;
                    self.left[arc ^ 1] += least;
                }
                // On from where the first arc is full.
                let full = path.iter().position(|&arc| self.left[arc] == 0);
                path.truncate(full.unwrap_or_default());
                continue;
            }
            if self.step().is_none() {
                return;
            }
            if next[node] < self.starts[node + 1] {
                let arc = self.leaving[next[node]];
                let to = self.to[arc];
                if self.is_open(arc) && levels[to] != u32::MAX && levels[to] == levels[node] + 1 {
                    path.push(arc);
                } else {
                    next[node] += 1;
                }
            } else {
                levels[node] = u32::MAX;
                if path.pop().is_none() {
                    return;
                }
            }
        }
    }
}
