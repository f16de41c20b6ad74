use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::{Block, Jump, Limits, Score};

/// A gain below this share of all counts is rounding.
const NOTHING: f64 = 1e-9;

/// Blocks that will lie side by side.
struct Chain {
    blocks: Vec<u32>,
    /// Jumps within.
    jumps: Vec<Jump>,
    score: f64,
    size: u64,
    count: f64,
    /// Links to other chains.
    links: Vec<usize>,
}

/// Two chains with jumps between them.
struct Link {
    chains: [usize; 2],
    jumps: Vec<Jump>,
    /// The best merge of the two, until one of them changes.
    merge: Option<Merge>,
    alive: bool,
}

/// How the chain `first` and another become one.
#[derive(Clone, Copy)]
struct Merge {
    gain: f64,
    first: usize,
    second: usize,
    /// Where `first` is cut.
    cut: usize,
    shape: Shape,
}

/// The order of the two parts of the cut chain (A, B) and the other chain (Y).
#[derive(Clone, Copy)]
enum Shape {
    Aby,
    Ayb,
    Bya,
    Yba,
    Bay,
}

impl Shape {
    /// The shapes of a chain that really is cut. The other chain before an uncut one is the
    /// same as the uncut one after the other.
    const CUT: [Self; 4] = [Self::Ayb, Self::Bya, Self::Yba, Self::Bay];

    fn arrange<'a>(self, a: &'a [u32], b: &'a [u32], y: &'a [u32]) -> [&'a [u32]; 3] {
        match self {
            Self::Aby => [a, b, y],
            Self::Ayb => [a, y, b],
            Self::Bya => [b, y, a],
            Self::Yba => [y, b, a],
            Self::Bay => [b, a, y],
        }
    }
}

struct Merger<'a> {
    blocks: &'a [Block],
    score: &'a Score,
    limits: &'a Limits,
    chains: Vec<Chain>,
    links: Vec<Link>,
    chain_of: Vec<usize>,
    /// Where a block lies in its chain.
    position: Vec<usize>,
    /// Blocks that nothing may come between this one and the next.
    bound: Vec<bool>,
    positions: Vec<(u64, u64)>,
    min_gain: f64,
    /// Placements that may still be tried.
    left: usize,
}

/// Merges chains, at first of one block each, as long as the score gains.
pub(super) fn order(blocks: &[Block], jumps: &[Jump], score: &Score, limits: &Limits) -> Vec<u32> {
    let mut merger = Merger::new(blocks, jumps, score, limits);
    while let Some(merge) = merger.best() {
        merger.apply(merge);
    }
    merger.concatenate()
}

/// Pairs of blocks where the first only goes to the second and the second only comes from the
/// first, as chains. A ring of such blocks is opened where it is entered, at its lowest number.
fn bound_runs(blocks: usize, jumps: &[Jump]) -> Vec<Vec<u32>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Only {
        None,
        One(u32),
        Many,
    }
    let mut next = vec![Only::None; blocks];
    let mut previous = vec![Only::None; blocks];
    let note = |list: &mut Vec<Only>, at: u32, other: u32| {
        if let Some(only) = list.get_mut(at as usize) {
            *only = match *only {
                Only::None => Only::One(other),
                Only::One(same) if same == other => *only,
                _ => Only::Many,
            };
        }
    };
    for jump in jumps.iter().filter(|jump| jump.source != jump.target) {
        note(&mut next, jump.source, jump.target);
        note(&mut previous, jump.target, jump.source);
    }
    let get = |list: &[Only], at: u32| list.get(at as usize).copied().unwrap_or(Only::None);
    let bound_next = |block: u32| match get(&next, block) {
        Only::One(target) if target != 0 && get(&previous, target) == Only::One(block) => {
            Some(target)
        }
        _ => None,
    };
    let mut taken = vec![false; blocks];
    let mut runs = Vec::new();
    let has_bound_previous = |block: u32| match get(&previous, block) {
        Only::One(source) => bound_next(source) == Some(block),
        _ => false,
    };
    let all = 0..blocks as u32;
    let heads = all.clone().filter(|&block| !has_bound_previous(block));
    for head in heads.chain(all) {
        let mut run = Vec::new();
        let mut at = Some(head);
        while let Some(block) = at {
            match taken.get_mut(block as usize) {
                Some(taken) if !*taken => *taken = true,
                _ => break,
            }
            run.push(block);
            at = bound_next(block);
        }
        if !run.is_empty() {
            runs.push(run);
        }
    }
    runs.sort_unstable();
    runs
}

impl<'a> Merger<'a> {
    fn new(blocks: &'a [Block], jumps: &[Jump], score: &'a Score, limits: &'a Limits) -> Self {
        let runs = bound_runs(blocks.len(), jumps);
        let total: f64 = jumps.iter().map(|jump| jump.count).sum();
        let mut merger = Self {
            blocks,
            score,
            limits,
            chains: Vec::with_capacity(runs.len()),
            links: Vec::new(),
            chain_of: vec![0; blocks.len()],
            position: vec![0; blocks.len()],
            bound: vec![false; blocks.len()],
            positions: vec![(0, 0); blocks.len()],
            min_gain: total * NOTHING,
            left: limits.placements,
        };
        for run in runs {
            for &block in run.iter().rev().skip(1) {
                if let Some(bound) = merger.bound.get_mut(block as usize) {
                    *bound = true;
                }
            }
            let of = |block: &u32| blocks.get(*block as usize);
            merger.chains.push(Chain {
                size: run
                    .iter()
                    .filter_map(of)
                    .fold(0, |sum, block| sum.saturating_add(block.size)),
                count: run.iter().filter_map(of).map(|block| block.count).sum(),
                blocks: run,
                jumps: Vec::new(),
                score: 0.0,
                links: Vec::new(),
            });
            merger.number_blocks(merger.chains.len() - 1);
        }
        let mut sorted: Vec<(usize, usize, Jump)> = jumps
            .iter()
            .map(|&jump| (merger.chain_of(jump.source), merger.chain_of(jump.target), jump))
            .map(|(one, other, jump)| (one.min(other), one.max(other), jump))
            .collect();
        sorted.sort_by_key(|&(one, other, jump)| (one, other, jump.source, jump.target));
        for same in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let Some(&(one, other, _)) = same.first() else { continue };
            let between: Vec<Jump> = same.iter().map(|&(_, _, jump)| jump).collect();
            if one == other {
                if let Some(chain) = merger.chains.get_mut(one) {
                    chain.jumps = between;
                }
            } else {
                merger.link(one, other, between);
            }
        }
        for chain in 0..merger.chains.len() {
            merger.rescore(chain);
        }
        for link in 0..merger.links.len() {
            merger.find(link);
        }
        merger
    }

    fn chain_of(&self, block: u32) -> usize {
        self.chain_of.get(block as usize).copied().unwrap_or(0)
    }

    fn link(&mut self, one: usize, other: usize, jumps: Vec<Jump>) {
        let link = self.links.len();
        self.links.push(Link { chains: [one, other], jumps, merge: None, alive: true });
        for chain in [one, other] {
            if let Some(chain) = self.chains.get_mut(chain) {
                chain.links.push(link);
            }
        }
    }

    /// Notes where the chain's blocks are.
    fn number_blocks(&mut self, chain: usize) {
        let Some(blocks) = self.chains.get(chain).map(|chain| &chain.blocks) else { return };
        for (at, &block) in blocks.iter().enumerate() {
            if let Some(position) = self.chain_of.get_mut(block as usize) {
                *position = chain;
            }
            if let Some(position) = self.position.get_mut(block as usize) {
                *position = at;
            }
        }
    }

    fn rescore(&mut self, chain: usize) {
        if let Some(chain) = self.chains.get_mut(chain) {
            let positions = &mut self.positions;
            chain.score = self.score.ordered(self.blocks, &chain.jumps, &chain.blocks, positions);
        }
    }

    /// The merge that gains most; of equal ones that of the earliest chains.
    fn best(&self) -> Option<Merge> {
        let better = |a: &Merge, b: &Merge| {
            a.gain.total_cmp(&b.gain).then_with(|| (b.first, b.second).cmp(&(a.first, a.second)))
        };
        self.links
            .iter()
            .filter(|link| link.alive)
            .filter_map(|link| link.merge)
            .max_by(better)
            .filter(|merge| merge.gain > self.min_gain)
    }

    /// Finds the best merge of a link's chains.
    fn find(&mut self, link: usize) {
        let Some([one, other]) = self.links.get(link).map(|link| link.chains) else { return };
        let mut best: Option<Merge> = None;
        for (first, second) in [(one, other), (other, one)] {
            for (cut, shape) in self.candidates(link, first, second) {
                let Some(gain) = self.gain(link, first, second, cut, shape) else { continue };
                if best.is_none_or(|best| gain > best.gain + self.min_gain) {
                    best = Some(Merge { gain, first, second, cut, shape });
                }
            }
        }
        if let Some(link) = self.links.get_mut(link) {
            link.merge = best;
        }
    }

    fn candidates(&self, link: usize, first: usize, second: usize) -> Vec<(usize, Shape)> {
        let chains = (self.chains.get(first), self.chains.get(second), self.links.get(link));
        let (Some(first), Some(second), Some(link)) = chains else { return Vec::new() };
        let mut candidates = vec![(first.blocks.len(), Shape::Aby)];
        if first.blocks.len() + second.blocks.len() > self.limits.chain {
            return Vec::new();
        }
        let inside = 1..first.blocks.len();
        if first.blocks.len() <= self.limits.split {
            let is_free = |cut: &usize| {
                let before = cut.checked_sub(1).and_then(|at| first.blocks.get(at));
                before.is_none_or(|&block| self.bound.get(block as usize) != Some(&true))
            };
            let free = inside.filter(is_free);
            candidates.extend(free.flat_map(|cut| Shape::CUT.map(|shape| (cut, shape))));
        } else {
            // Where a jump leaves for the other chain's first block, or comes from its last.
            let position = |block: u32| self.position.get(block as usize).copied().unwrap_or(0);
            for jump in &link.jumps {
                if second.blocks.first() == Some(&jump.target) {
                    let cut = position(jump.source) + 1;
                    candidates.extend([(cut, Shape::Ayb), (cut, Shape::Bay)]);
                }
                if second.blocks.last() == Some(&jump.source) {
                    let cut = position(jump.target);
                    candidates.extend([(cut, Shape::Ayb), (cut, Shape::Yba)]);
                }
            }
            candidates.retain(|&(cut, shape)| matches!(shape, Shape::Aby) || inside.contains(&cut));
        }
        candidates
    }

    /// What a merge gains; `None` if it would put something before the entry.
    fn gain(
        &mut self,
        link: usize,
        first: usize,
        second: usize,
        cut: usize,
        shape: Shape,
    ) -> Option<f64> {
        let has_entry = |chain: usize| self.chain_of.first() == Some(&chain);
        let (cut_chain, other) = (self.chains.get(first)?, self.chains.get(second)?);
        self.left = self.left.checked_sub(cut_chain.blocks.len() + other.blocks.len())?;
        let (a, b) = cut_chain.blocks.split_at_checked(cut)?;
        let parts = shape.arrange(a, b, &other.blocks);
        let leader = parts.iter().find_map(|part| part.first())?;
        if (has_entry(first) || has_entry(second)) && *leader != 0 {
            return None;
        }
        let mut address = 0_u64;
        for &block in parts.into_iter().flatten() {
            let end = address.saturating_add(self.blocks.get(block as usize)?.size);
            *self.positions.get_mut(block as usize)? = (address, end);
            address = end;
        }
        // What is within the other chain stays as it is.
        let within = if cut < cut_chain.blocks.len() {
            self.score.placed(&self.positions, &cut_chain.jumps)
        } else {
            cut_chain.score
        };
        let between = self.score.placed(&self.positions, &self.links.get(link)?.jumps);
        Some(within + between - cut_chain.score)
    }

    fn apply(&mut self, merge: Merge) {
        let Some(second) = self.chains.get_mut(merge.second) else { return };
        let gone = std::mem::replace(
            second,
            Chain {
                blocks: Vec::new(),
                jumps: Vec::new(),
                score: 0.0,
                size: 0,
                count: 0.0,
                links: Vec::new(),
            },
        );
        let Some(kept) = self.chains.get_mut(merge.first) else { return };
        let (a, b) = kept.blocks.split_at(merge.cut.min(kept.blocks.len()));
        kept.blocks = merge.shape.arrange(a, b, &gone.blocks).concat();
        kept.size = kept.size.saturating_add(gone.size);
        kept.count += gone.count;
        kept.jumps.extend(gone.jumps);
        // The links of the chain that is gone become links of the one that is kept.
        let mut neighbours: Vec<(usize, usize)> = Vec::new(); // (other chain, link)
        for &link in &kept.links {
            if let Some(Link { chains, alive: true, .. }) = self.links.get(link) {
                neighbours.push((opposite(*chains, merge.first), link));
            }
        }
        let known: FxHashMap<usize, usize> = neighbours.iter().copied().collect();
        for link in gone.links {
            let Some(old) = self.links.get_mut(link).filter(|link| link.alive) else { continue };
            let other = opposite(old.chains, merge.second);
            if other == merge.first {
                old.alive = false;
                let between = std::mem::take(&mut old.jumps);
                kept.jumps.extend(between);
                neighbours.retain(|&(_, known)| known != link);
            } else if let Some(&known) = known.get(&other) {
                old.alive = false;
                let more = std::mem::take(&mut old.jumps);
                if let Some(known) = self.links.get_mut(known) {
                    known.jumps.extend(more);
                }
            } else {
                old.chains = [merge.first, other];
                neighbours.push((other, link));
            }
        }
        kept.links = neighbours.iter().map(|&(_, link)| link).collect();
        self.number_blocks(merge.first);
        self.rescore(merge.first);
        for (_, link) in neighbours {
            self.find(link);
        }
    }

    /// All chains: the entry's, then by density.
    fn concatenate(mut self) -> Vec<u32> {
        self.chains.retain(|chain| !chain.blocks.is_empty());
        let density = |chain: &Chain| chain.count / chain.size.max(1) as f64;
        self.chains.sort_by(|one, other| {
            let entry = |chain: &Chain| chain.blocks.first() != Some(&0);
            entry(one)
                .cmp(&entry(other))
                .then_with(|| density(other).total_cmp(&density(one)))
                .then_with(|| one.blocks.first().cmp(&other.blocks.first()))
        });
        debug_assert!(
            self.chains.iter().map(|chain| chain.blocks.len()).sum::<usize>() == self.blocks.len()
        );
        self.chains.into_iter().flat_map(|chain| chain.blocks).collect()
    }
}

fn opposite(chains: [usize; 2], one: usize) -> usize {
    let [first, second] = chains;
    match first.cmp(&one) {
        Ordering::Equal => second,
        _ => first,
    }
}
