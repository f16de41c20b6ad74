use proptest::prelude::*;

use super::graph::{Adjacency, numbers};
use super::*;

fn block(count: impl Into<Option<u64>>) -> BlockInput {
    BlockInput { count: count.into(), ..BlockInput::default() }
}

fn edge(from: usize, to: usize, count: impl Into<Option<u64>>) -> EdgeInput {
    EdgeInput { from, to, count: count.into(), is_unlikely: false }
}

/// A graph whose blocks have these counts and whose edges have none.
fn graph(counts: &[Option<u64>], edges: &[(usize, usize)]) -> Cfg {
    Cfg {
        blocks: counts.iter().map(|&count| block(count)).collect(),
        edges: edges.iter().map(|&(from, to)| edge(from, to, None)).collect(),
    }
}

fn known(counts: &[u64]) -> Vec<Option<u64>> {
    counts.iter().copied().map(Some).collect()
}

/// Fails unless as much goes out of every block as comes in, but where the function is entered
/// and left.
fn assert_flow(cfg: &Cfg, found: &Inferred) {
    assert_eq!((found.blocks.len(), found.edges.len()), (cfg.blocks.len(), cfg.edges.len()));
    let graph = Graph::new(cfg);
    for (number, &count) in found.blocks.iter().enumerate() {
        let sum = |edges: &Adjacency| -> u64 {
            edges.of(number).iter().map(|(edge, _)| found.edges[*edge]).sum()
        };
        let (comes_in, goes_out) = (sum(&graph.predecessors), sum(&graph.successors));
        if graph.entries.contains(&number) {
            assert!(comes_in <= count, "block {number}: {comes_in} in, {count}");
        } else {
            assert_eq!(comes_in, count, "into block {number}");
        }
        if graph.exits.iter().any(|(exit, _)| *exit == number) {
            assert!(goes_out <= count, "block {number}: {goes_out} out, {count}");
        } else {
            assert_eq!(goes_out, count, "out of block {number}");
        }
    }
    let mut joined = vec![false; found.blocks.len()];
    let mut ahead: Vec<usize> =
        graph.entries.iter().copied().filter(|&entry| found.blocks[entry] > 0).collect();
    while let Some(block) = ahead.pop() {
        if std::mem::replace(&mut joined[block], true) {
            continue;
        }
        let taken = graph.successors.of(block).iter().filter(|(edge, _)| found.edges[*edge] > 0);
        ahead.extend(taken.map(|(_, to)| to));
    }
    for (number, &count) in found.blocks.iter().enumerate() {
        assert!(joined[number] || count == 0, "block {number} hangs in the air");
    }
}

fn inferred(cfg: &Cfg) -> Inferred {
    let found = infer(cfg);
    assert_flow(cfg, &found);
    assert!(found.is_closest);
    assert_eq!(found, infer(cfg), "the same again");
    found
}

const DIAMOND: [(usize, usize); 4] = [(0, 1), (0, 2), (1, 3), (2, 3)];

#[test]
fn counts_that_agree_stay_and_give_the_edges() {
    let found = inferred(&graph(&known(&[100, 70, 30, 100]), &DIAMOND));
    assert_eq!(found.blocks, [100, 70, 30, 100]);
    assert_eq!(found.edges, [70, 30, 70, 30]);
}

#[test]
fn what_is_not_known_follows_from_the_rest() {
    let found = inferred(&graph(&[Some(100), None, Some(30), None], &DIAMOND));
    assert_eq!(found.blocks, [100, 70, 30, 100]);
}

#[test]
fn a_block_that_samples_missed_is_filled_in() {
    // A line of blocks, one of which no sample fell into.
    let found = inferred(&graph(&known(&[50, 50, 0, 50]), &[(0, 1), (1, 2), (2, 3)]));
    assert_eq!(found.blocks, [50, 50, 50, 50]);
}

#[test]
fn a_count_that_contradicts_the_others_gives_way() {
    let found =
        inferred(&graph(&known(&[100, 100, 130, 100, 100]), &[(0, 1), (1, 2), (2, 3), (3, 4)]));
    assert_eq!(found.blocks, [100; 5]);
}

#[test]
fn ways_of_which_nothing_is_known_share_evenly() {
    // Three ways, one of which goes on in two; and a return in the middle of nothing.
    let edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (3, 6), (5, 4), (6, 4)];
    let counts = [Some(100), None, None, None, Some(100), None, None];
    let found = inferred(&graph(&counts, &edges));
    assert_eq!(found.blocks, [100, 34, 33, 33, 100, 17, 16]);
    let found = inferred(&graph(&[Some(9), None, None], &[(0, 1), (0, 2)]));
    assert_eq!(found.blocks, [9, 5, 4]);
}

#[test]
fn what_comes_in_at_an_entry_is_not_shared_out() {
    // Block 0 is the entry without another one; a loop leads back to it.
    let mut cfg = graph(&[None, Some(5), None], &[(0, 1), (1, 0), (1, 2), (2, 1)]);
    cfg.blocks[1].is_exit = true;
    inferred(&cfg);
    cfg.edges[1].count = Some(3);
    inferred(&cfg);
}

#[test]
fn an_unlikely_way_is_not_shared_with() {
    let mut cfg = graph(&[Some(100), None, None, Some(100)], &DIAMOND);
    cfg.edges[1].is_unlikely = true;
    assert_eq!(inferred(&cfg).blocks, [100, 100, 0, 100]);
}

#[test]
fn a_loop_that_hangs_in_the_air_is_entered_once() {
    // Entry and exit were never sampled, the loop of blocks 1 and 2 was.
    let cfg = graph(&known(&[0, 1000, 1000, 0]), &[(0, 1), (1, 2), (2, 1), (2, 3)]);
    let found = inferred(&cfg);
    assert_eq!(found.blocks, [1, 1001, 1001, 1]);
    assert_eq!(found.edges, [1, 1001, 1000, 1]);
}

#[test]
fn an_endless_loop_keeps_what_it_has() {
    let found = inferred(&graph(&known(&[1, 500, 500]), &[(0, 1), (1, 2), (2, 1)]));
    assert_eq!(found.blocks, [1, 501, 500]);
}

#[test]
fn what_no_entry_leads_to_has_no_count() {
    let cfg = graph(&known(&[10, 10, 99]), &[(0, 1), (2, 1)]);
    let found = inferred(&cfg);
    assert_eq!((found.blocks, found.edges), (vec![10, 10, 0], vec![10, 0]));
    let mut cfg = cfg;
    cfg.blocks[0].is_entry = true;
    cfg.blocks[2].is_entry = true;
    cfg.blocks[1].count = None;
    assert_eq!(inferred(&cfg).blocks, [10, 109, 99]);
}

#[test]
fn a_return_in_the_middle_lets_some_out() {
    let mut cfg = graph(&known(&[100, 40]), &[(0, 1)]);
    cfg.blocks[0].is_exit = true;
    assert_eq!(inferred(&cfg).blocks, [100, 40]);
}

#[test]
fn an_input_of_nonsense_is_survived() {
    assert_eq!(infer(&Cfg::default()), Inferred { is_closest: true, ..Inferred::default() });
    let mut cfg = graph(&known(&[u64::MAX, u64::MAX, 3]), &[(0, 1), (0, 0), (1, 2), (2, 2)]);
    cfg.edges.push(edge(7, 0, 5));
    cfg.edges.push(edge(0, usize::MAX, 5));
    cfg.edges.push(edge(0, 1, u64::MAX));
    let found = inferred(&cfg);
    assert_eq!(found.edges[4..6], [0, 0]);
}

#[test]
fn a_search_that_is_cut_short_still_gives_a_flow() {
    let counts: Vec<Option<u64>> = (0..60).map(|block| Some(block * 7919 % 1000)).collect();
    let edges: Vec<(usize, usize)> =
        (0..59).flat_map(|block| [(block, block + 1), (block, block * 31 % 60)]).collect();
    let cfg = graph(&counts, &edges);
    for steps in [0, 1, 100, 1000, 3000] {
        let found = infer_within(&Graph::new(&cfg), steps);
        assert_flow(&cfg, &found);
        assert!(!found.is_closest, "{steps}");
    }
    inferred(&cfg);
}

#[test]
fn a_long_function_is_done_in_no_time() {
    let blocks = 3_000;
    let counts: Vec<Option<u64>> = (0..blocks as u64).map(|n| Some(n * 7919 % 1009)).collect();
    let edges: Vec<(usize, usize)> =
        (0..blocks - 1).flat_map(|n| [(n, n + 1), (n, (n + 17).min(blocks - 1))]).collect();
    let cfg = graph(&counts, &edges);
    let found = inferred(&cfg);
    assert!(found.blocks.iter().sum::<u64>() > 0);
}

/// A graph of up to 24 blocks where each leads on to one or two others.
fn any_graph() -> impl Strategy<Value = Cfg> {
    (2_usize..24).prop_flat_map(|size| {
        let counts = prop::collection::vec(prop::option::of(0_u64..2000), size);
        let ways =
            prop::collection::vec((0..size, 0..size, prop::option::of(0_u64..2000)), 0..size * 2);
        let flags =
            prop::collection::vec((prop::bool::weighted(0.1), prop::bool::weighted(0.2)), size);
        (counts, ways, flags).prop_map(|(counts, ways, flags)| Cfg {
            blocks: counts
                .into_iter()
                .zip(flags)
                .map(|(count, (is_entry, is_exit))| BlockInput { count, is_entry, is_exit })
                .collect(),
            edges: ways
                .into_iter()
                .map(|(from, to, count)| EdgeInput { from, to, count, is_unlikely: from == 3 })
                .collect(),
        })
    })
}

/// A graph with an exit at its end, and the counts of random runs through it.
fn walked() -> impl Strategy<Value = Cfg> {
    let ways = |size: usize| prop::collection::vec((0..size, 0..size), size);
    (3_usize..20).prop_flat_map(ways).prop_flat_map(|ways| {
        let turns = prop::collection::vec(any::<bool>(), 1..2000);
        (Just(ways), turns).prop_map(|(ways, turns)| walk(&ways, &turns))
    })
}

/// Runs through blocks that lead on to the next one or to another; the last returns. `turns` says
/// which way; when they run out, it is the next one.
fn walk(ways: &[(usize, usize)], turns: &[bool]) -> Cfg {
    let last = ways.len() - 1;
    let mut cfg = graph(&known(&vec![0; ways.len()]), &[]);
    for (from, (other, _)) in ways.iter().enumerate().take(last) {
        cfg.edges.push(edge(from, from + 1, 0));
        cfg.edges.push(edge(from, *other, 0));
    }
    let count = |count: &mut Option<u64>| *count = count.map(|count| count + 1);
    let mut turns = turns.iter();
    while turns.len() > 0 {
        let mut at = 0;
        count(&mut cfg.blocks[0].count);
        while at != last {
            let way = 2 * at + usize::from(*turns.next().unwrap_or(&false));
            count(&mut cfg.edges[way].count);
            at = cfg.edges[way].to;
            count(&mut cfg.blocks[at].count);
        }
    }
    cfg
}

proptest! {
    #[test]
    fn whatever_was_sampled_the_outcome_is_a_flow(cfg in any_graph()) {
        inferred(&cfg);
    }

    #[test]
    fn cutting_the_search_short_never_breaks_the_flow(cfg in any_graph(), steps in 0_u64..500) {
        assert_flow(&cfg, &infer_within(&Graph::new(&cfg), steps));
    }

    #[test]
    fn true_counts_stay_as_they_are(cfg in walked()) {
        let found = inferred(&cfg);
        let blocks: Vec<u64> = cfg.blocks.iter().filter_map(|block| block.count).collect();
        let edges: Vec<u64> = cfg.edges.iter().filter_map(|edge| edge.count).collect();
        prop_assert_eq!((found.blocks, found.edges), (blocks, edges));
    }

    #[test]
    fn counts_of_all_edges_but_one_give_that_one(cfg in walked(), hidden in any::<prop::sample::Index>()) {
        // One that flow could not take another way than.
        let alone = |edge: &&EdgeInput| {
            let ends = |edge: &EdgeInput| (edge.from, edge.to);
            edge.from != edge.to && cfg.edges.iter().filter(|&o| ends(o) == ends(edge)).count() == 1
        };
        let candidates = numbers(&cfg.edges, |edge| alone(&edge));
        prop_assume!(!candidates.is_empty());
        let hidden = candidates[hidden.index(candidates.len())];
        let mut partial = cfg.clone();
        partial.edges[hidden].count = None;
        let found = inferred(&partial);
        prop_assert_eq!(Some(found.edges[hidden]), cfg.edges[hidden].count);
    }

    #[test]
    fn noise_is_not_made_worse(cfg in walked(), noise in prop::collection::vec(0_u64..3, 20)) {
        // A flow that is closest to the samples is at most as far from them as the truth.
        let mut noisy = cfg.clone();
        for (block, noise) in noisy.blocks.iter_mut().zip(&noise) {
            block.count = block.count.map(|count| count + noise);
        }
        let found = inferred(&noisy);
        let distance = |counts: &[Option<u64>], flow: &[u64]| -> u64 {
            counts.iter().zip(flow).map(|(count, flow)| count.unwrap_or_default().abs_diff(*flow)).sum()
        };
        let counts: Vec<Option<u64>> = noisy.blocks.iter().map(|block| block.count).collect();
        let truth: Vec<u64> = cfg.blocks.iter().filter_map(|block| block.count).collect();
        // In costs, which differ by a factor of four at most.
        prop_assert!(distance(&counts, &found.blocks) <= 4 * distance(&counts, &truth));
    }
}
