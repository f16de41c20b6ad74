//! How much closer to the truth inferred block counts are than sampled ones:
//! `inference_accuracy [FUNCTIONS] [SEED]`.
//!
//! Functions are random: blocks in a row, ways apart, loops, returns in the middle, as deep as
//! code is. Each is run a thousand times with random odds at every branch. A sample is a window of
//! so many blocks as ran one after the other, as a branch stack of 16 or 32 entries shows them.
//! The error of counts is the share of them that would have to move to other blocks.

#![allow(clippy::indexing_slicing, reason = "it makes its own data")]

use mepof_convert::inference::{BlockInput, Cfg, EdgeInput, infer};

/// Xorshift64*: the same functions every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound.max(1)
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A function: for each block where it may go on, and how likely in percent the first way is.
#[derive(Default)]
struct Function {
    ways: Vec<Vec<usize>>,
    odds: Vec<u64>,
}

impl Function {
    fn block(&mut self, random: &mut Random) -> usize {
        self.ways.push(Vec::new());
        // Most branches nearly always go the same way.
        self.odds.push(match random.below(3) {
            0 => random.below(10),
            1 => 90 + random.below(11),
            _ => random.below(101),
        });
        self.ways.len() - 1
    }

    /// Code from the block `from` on; gives the block that it ends in.
    fn code(&mut self, from: usize, depth: u64, random: &mut Random) -> usize {
        let mut at = from;
        for _ in 0..1 + random.below(3) {
            at = match random.below(if depth == 0 { 1 } else { 5 }) {
                0 => {
                    let next = self.block(random);
                    self.ways[at].push(next);
                    next
                }
                1 | 2 => {
                    let (one, other) = (self.block(random), self.block(random));
                    self.ways[at].extend([one, other]);
                    let one = self.code(one, depth - 1, random);
                    let after = self.block(random);
                    self.ways[one].push(after);
                    let other = self.code(other, depth - 1, random);
                    if !random.happens(15) {
                        self.ways[other].push(after); // or it returns
                    }
                    after
                }
                3 => {
                    let skipped = self.block(random);
                    let after = self.block(random);
                    self.ways[at].extend([skipped, after]);
                    let end = self.code(skipped, depth - 1, random);
                    self.ways[end].push(after);
                    after
                }
                _ => {
                    let body = self.block(random);
                    self.ways[at].push(body);
                    let end = self.code(body, depth - 1, random);
                    let after = self.block(random);
                    self.ways[end].extend([body, after]);
                    self.odds[end] = random.below(97); // times around: up to 30
                    after
                }
            };
        }
        at
    }

    /// The blocks of a run.
    fn run(&self, random: &mut Random) -> Vec<usize> {
        let mut blocks = vec![0];
        let mut at = 0;
        while let Some(&first) = self.ways[at].first() {
            let others = &self.ways[at][1..];
            at = match others.first() {
                Some(&other) if !random.happens(self.odds[at]) => other,
                _ => first,
            };
            blocks.push(at);
            if blocks.len() > 100_000 {
                break;
            }
        }
        blocks
    }

    fn graph(&self) -> Cfg {
        let edge = |from, to| EdgeInput { from, to, count: Some(0), is_unlikely: false };
        let edges = self.ways.iter().enumerate();
        Cfg {
            blocks: vec![BlockInput { count: Some(0), ..BlockInput::default() }; self.ways.len()],
            edges: edges.flat_map(|(from, to)| to.iter().map(move |&to| edge(from, to))).collect(),
        }
    }
}

/// The share of `found` that would have to move to make it proportional to `truth`.
fn error(found: &[u64], truth: &[u64]) -> f64 {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>().max(1) as f64;
    let (all_found, all_true) = (sum(found), sum(truth));
    let moved = found
        .iter()
        .zip(truth)
        .map(|(&found, &truth)| (found as f64 / all_found - truth as f64 / all_true).abs());
    moved.sum::<f64>() / 2.0
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|number| number.parse().ok());
    let functions = arguments.next().unwrap_or(200);
    let seed = arguments.next().unwrap_or(1);
    println!(
        "blocks a sample, samples | error of blocks: sampled, inferred | of edges | never sampled that ran: sampled, inferred"
    );
    for window in [1, 16, 32] {
        for samples in [1, 10, 100, 1000] {
            let mut random = Random(seed.max(1));
            let mut errors = [0.0; 4];
            let mut missed = [0_u64; 2];
            let mut ran = 0_u64;
            for _ in 0..functions {
                let mut function = Function::default();
                let entry = function.block(&mut random);
                function.code(entry, 4, &mut random);
                let measured = measure(&function, window, samples, &mut random);
                for (sum, error) in errors.iter_mut().zip(measured.errors) {
                    *sum += error / functions as f64;
                }
                missed[0] += measured.missed[0];
                missed[1] += measured.missed[1];
                ran += measured.ran;
            }
            let percent = |part: u64| 100.0 * part as f64 / ran.max(1) as f64;
            let [blocks, inferred_blocks, edges, inferred_edges] = errors.map(|e| 100.0 * e);
            println!(
                "{window:3} {samples:5} | {blocks:5.1} % {inferred_blocks:5.1} % | \
                 {edges:5.1} % {inferred_edges:5.1} % | {:5.1} % {:5.1} %",
                percent(missed[0]),
                percent(missed[1]),
            );
        }
    }
}

struct Measured {
    errors: [f64; 4],
    missed: [u64; 2],
    ran: u64,
}

fn measure(function: &Function, window: usize, samples: usize, random: &mut Random) -> Measured {
    let mut cfg = function.graph();
    let find = |cfg: &Cfg, from: usize, to: usize| {
        cfg.edges.iter().position(|edge| (edge.from, edge.to) == (from, to))
    };
    let mut truth = (vec![0; cfg.blocks.len()], vec![0; cfg.edges.len()]);
    let mut ran: Vec<Option<usize>> = Vec::new(); // `None` between runs
    for _ in 0..1000 {
        ran.extend(function.run(random).into_iter().map(Some));
        ran.push(None);
    }
    let visit = |blocks: &[Option<usize>], counts: &mut (Vec<u64>, Vec<u64>)| {
        for (location, block) in blocks.iter().enumerate() {
            let Some(block) = *block else { continue };
            counts.0[block] += 1;
            if let Some(&Some(next)) = blocks.get(location + 1) {
                if let Some(edge) = find(&cfg, block, next) {
                    counts.1[edge] += 1;
                }
            }
        }
    };
    visit(&ran, &mut truth);
    let mut sampled = (vec![0; truth.0.len()], vec![0; truth.1.len()]);
    for _ in 0..samples {
        let begin = random.below(ran.len() as u64) as usize;
        let end = (begin + window).min(ran.len());
        visit(&ran[begin..end], &mut sampled);
    }
    for (block, &count) in cfg.blocks.iter_mut().zip(&sampled.0) {
        block.count = Some(count);
    }
    for (edge, &count) in cfg.edges.iter_mut().zip(&sampled.1) {
        // A sample of one block says nothing of edges.
        edge.count = (window > 1).then_some(count);
    }
    let found = infer(&cfg);
    let missed = |counts: &[u64]| {
        truth.0.iter().zip(counts).filter(|(truth, count)| **truth > 0 && **count == 0).count()
            as u64
    };
    Measured {
        errors: [
            error(&sampled.0, &truth.0),
            error(&found.blocks, &truth.0),
            error(&sampled.1, &truth.1),
            error(&found.edges, &truth.1),
        ],
        missed: [missed(&sampled.0), missed(&found.blocks)],
        ran: truth.0.iter().filter(|count| **count > 0).count() as u64,
    }
}
