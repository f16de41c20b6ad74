use super::*;

/// Xorshift: a fixed sequence of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn block(size: u64, count: f64) -> Block {
    Block { size, count }
}

fn jump(source: u32, target: u32, count: f64) -> Jump {
    Jump { source, target, count }
}

fn ordered(blocks: &[Block], jumps: &[Jump]) -> Vec<u32> {
    order(blocks, jumps, &Score::default(), &Limits::default())
}

/// Control flow of a random walk: what enters a block leaves it.
fn random_flow(numbers: &mut Numbers, blocks: usize) -> (Vec<Block>, Vec<Jump>) {
    let mut successors = Vec::new();
    for block in 0..blocks as u64 {
        let next = (block + 1) % blocks as u64;
        let other = 1 + numbers.below(blocks as u64 - 1);
        successors.push((next.max(1), other, numbers.below(101)));
    }
    let mut counts = vec![0_u32; blocks];
    let mut edges = std::collections::BTreeMap::new();
    let mut at = 0_usize;
    for _ in 0..2000 {
        counts[at] += 1;
        let (next, other, bias) = successors[at];
        let to = if numbers.below(100) < bias { next } else { other };
        if at == blocks - 1 {
            at = 0;
            continue; // returned and called again
        }
        *edges.entry((at as u32, to as u32)).or_insert(0.0) += 1.0;
        at = to as usize;
    }
    let blocks = counts.iter().map(|&count| block(4 + numbers.below(120), count.into())).collect();
    let jumps = edges.into_iter().map(|((source, target), count)| jump(source, target, count));
    (blocks, jumps.collect())
}

fn best_of_all(blocks: &[Block], jumps: &[Jump]) -> f64 {
    fn visit(blocks: &[Block], jumps: &[Jump], order: &mut Vec<u32>, fixed: usize, best: &mut f64) {
        if fixed == order.len() {
            *best = best.max(Score::default().of(blocks, jumps, order));
            return;
        }
        for at in fixed..order.len() {
            order.swap(fixed, at);
            visit(blocks, jumps, order, fixed + 1, best);
            order.swap(fixed, at);
        }
    }
    let mut best = 0.0;
    let mut order: Vec<u32> = (0..blocks.len() as u32).collect();
    visit(blocks, jumps, &mut order, 1, &mut best);
    best
}

#[test]
fn the_worth_of_a_jump_falls_with_its_length() {
    let score = Score::default();
    assert_eq!(score.jump(100, 100), 1.0);
    assert_eq!(score.jump(100, 100 + 512), 0.05);
    assert_eq!(score.jump(100 + 320, 100), 0.05);
    assert_eq!(score.jump(0, 1024), 0.0);
    assert_eq!(score.jump(640, 0), 0.0);
    assert_eq!(score.jump(0, u64::MAX), 0.0);
}

#[test]
fn the_hot_branch_falls_through() {
    // 0 branches to 2 nine times of ten; both go on to 3.
    let blocks = [block(16, 10.0), block(16, 1.0), block(16, 9.0), block(16, 10.0)];
    let jumps = [jump(0, 1, 1.0), jump(0, 2, 9.0), jump(1, 3, 1.0), jump(2, 3, 9.0)];
    assert_eq!(ordered(&blocks, &jumps), [0, 2, 3, 1]);
}

#[test]
fn a_loop_is_rotated_so_that_its_hot_edges_fall_through() {
    // 0 → 1 → 2 → 1 …, 1 → 3 at the end: the loop's body falls into its head.
    let blocks = [block(8, 1.0), block(8, 101.0), block(8, 100.0), block(8, 1.0)];
    let jumps = [jump(0, 1, 1.0), jump(1, 2, 100.0), jump(2, 1, 100.0), jump(1, 3, 1.0)];
    let order = ordered(&blocks, &jumps);
    let score = Score::default().of(&blocks, &jumps, &order);
    assert!((score - best_of_all(&blocks, &jumps)).abs() < 1e-9, "{order:?}");
}

#[test]
fn small_functions_are_laid_out_as_well_as_can_be() {
    let (mut best, mut all) = (0, 0);
    let mut numbers = Numbers(0x5eed);
    for round in 0..400 {
        let (blocks, jumps) = random_flow(&mut numbers, 4 + round % 5);
        let found = Score::default().of(&blocks, &jumps, &ordered(&blocks, &jumps));
        let optimum = best_of_all(&blocks, &jumps);
        assert!(found <= optimum + 1e-6);
        all += 1;
        best += u32::from(found >= optimum - 1e-6);
    }
    assert!(best * 100 >= all * 95, "{best} of {all}");
}

#[test]
fn the_outcome_is_a_permutation_that_never_scores_below_the_given_order() {
    let mut numbers = Numbers(77);
    for round in 0..300 {
        let (blocks, jumps) = random_flow(&mut numbers, 3 + round % 60);
        let order = ordered(&blocks, &jumps);
        let given: Vec<u32> = (0..blocks.len() as u32).collect();
        let score = |order: &[u32]| Score::default().of(&blocks, &jumps, order);
        assert!(score(&order) >= score(&given) - 1e-6);
        assert_eq!(order[0], 0);
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, given);
    }
}

#[test]
fn the_order_of_the_jumps_does_not_matter() {
    let mut numbers = Numbers(99);
    for _ in 0..50 {
        let (blocks, mut jumps) = random_flow(&mut numbers, 20);
        let one = ordered(&blocks, &jumps);
        jumps.reverse();
        assert_eq!(one, ordered(&blocks, &jumps));
    }
}

#[test]
fn strange_jumps_do_no_harm() {
    let blocks = [block(0, 0.0), block(u64::MAX, f64::MAX), block(u64::MAX, 1.0), block(1, 1.0)];
    let jumps = [
        jump(0, 9, 5.0), // to a block that does not exist
        jump(9, 0, 5.0),
        jump(1, 1, 1e300),
        jump(1, 2, u64::MAX as f64),
        jump(2, 1, u64::MAX as f64),
        jump(3, 0, 7.0), // back to the entry
        jump(0, 3, 0.0),
        jump(0, 3, f64::NAN),
        jump(0, 1, -1.0),
    ];
    let mut order = ordered(&blocks, &jumps);
    assert_eq!(order[0], 0);
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn large_functions_take_bounded_time() {
    let mut numbers = Numbers(3);
    let (blocks, jumps) = random_flow(&mut numbers, 12_000);
    let wide: Vec<Jump> = (1..12_000).map(|target| jump(0, target, f64::from(target))).collect();
    assert_eq!(ordered(&blocks, &jumps).len(), 12_000);
    assert_eq!(ordered(&blocks, &wide).len(), 12_000);
}
