use super::{Block, Jump, Score};

/// Runs of more blocks are not moved.
const RUN: usize = 4;

/// Moves runs of up to [`RUN`] blocks to where the score gains most, until no move gains or
/// `budget` jumps have been scored. The first block stays first.
pub(super) fn refine(
    blocks: &[Block],
    jumps: &[Jump],
    score: &Score,
    mut budget: usize,
    order: &mut Vec<u32>,
) {
    let mut places = vec![(0, 0); blocks.len()];
    let mut tried = order.clone();
    let mut best_score = score.ordered(blocks, jumps, order, &mut places);
    let cost = jumps.len() + order.len();
    loop {
        let mut best_move = None;
        for (from, run, to) in moves(order.len()) {
            let Some(left) = budget.checked_sub(cost) else { return };
            budget = left;
            tried.clone_from(order);
            move_run(&mut tried, from, run, to);
            let found = score.ordered(blocks, jumps, &tried, &mut places);
            // Beyond rounding, so that equal orders do not take turns.
            if found > best_score * (1.0 + 1e-9) {
                best_score = found;
                best_move = Some((from, run, to));
            }
        }
        let Some((from, run, to)) = best_move else { return };
        move_run(order, from, run, to);
    }
}

/// Moves of the run at `from` so that it ends up at `to`, none of which touches the first block.
fn moves(blocks: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (1..=RUN.min(blocks)).flat_map(move |run| {
        let last = blocks.saturating_sub(run);
        (1..=last).flat_map(move |from| {
            (1..=last).filter(move |&to| to != from).map(move |to| (from, run, to))
        })
    })
}

fn move_run(order: &mut [u32], from: usize, run: usize, to: usize) {
    if let Some(part) = order.get_mut(from.min(to)..from.max(to) + run) {
        if from < to { part.rotate_left(run) } else { part.rotate_right(run) }
    }
}
