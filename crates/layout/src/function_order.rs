use rustc_hash::FxHashMap;

/// A function's hot part, as far as the order of functions goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotFunction {
    /// Bytes.
    pub size: u64,
    /// How much ran: bytes of code, each counted as often as it ran.
    pub weight: f64,
}

/// How often one function called another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallArc {
    /// Which function calls.
    pub caller: u32,
    /// Which function is called.
    pub callee: u32,
    /// How often.
    pub count: f64,
}

/// A cluster does not grow beyond this: half of a huge page, as in hfsort.
const CLUSTER_SIZE: u64 = 1 << 20;
/// A callee does not join a caller whose cluster would become this many times less dense.
const DILUTION: f64 = 8.0;
/// A callee only joins a caller that makes at least this share of its calls.
const MIN_SHARE: f64 = 0.1;

struct Cluster {
    functions: Vec<u32>,
    size: u64,
    weight: f64,
}

impl Cluster {
    fn density(&self) -> f64 {
        self.weight / self.size.max(1) as f64
    }
}

/// The order of functions that keeps callers next to what they call, and dense code together.
///
/// G. Ottoni, B. Maher: "Optimizing Function Placement for Large-Scale Data-Center
/// Applications", CGO 2017: call-chain clustering (C3). Functions, the densest first, are
/// appended to the cluster of their likeliest caller; clusters are ordered by density. Densely
/// used code then lies on few pages, and a call tends to stay on its page.
pub fn order_functions(functions: &[HotFunction], arcs: &[CallArc]) -> Vec<u32> {
    let callers = likeliest_callers(functions.len(), arcs);
    let mut clusters: Vec<Cluster> = (0..)
        .zip(functions)
        .map(|(index, function)| Cluster {
            functions: vec![index],
            size: function.size,
            weight: function.weight,
        })
        .collect();
    let mut cluster_of: Vec<usize> = (0..functions.len()).collect();
    let density = |function: u32| {
        functions
            .get(function as usize)
            .map_or(0.0, |function| function.weight / function.size.max(1) as f64)
    };
    let mut densest: Vec<u32> = (0..functions.len() as u32).collect();
    densest.sort_by(|&one, &other| density(other).total_cmp(&density(one)).then(one.cmp(&other)));
    for callee in densest {
        let Some(&caller) = callers.get(&callee) else { continue };
        let cluster = |function: u32| cluster_of.get(function as usize).copied();
        let (Some(into), Some(from)) = (cluster(caller), cluster(callee)) else { continue };
        let (Some(head), Some(tail)) = (clusters.get(into), clusters.get(from)) else { continue };
        let size = head.size.saturating_add(tail.size);
        let weight = head.weight + tail.weight;
        if into == from
            || size > CLUSTER_SIZE
            || head.density() > DILUTION * (weight / size.max(1) as f64)
        {
            continue;
        }
        let Some(tail) = clusters.get_mut(from) else { continue };
        let moved = std::mem::take(&mut tail.functions);
        (tail.size, tail.weight) = (0, 0.0);
        for &function in &moved {
            if let Some(cluster) = cluster_of.get_mut(function as usize) {
                *cluster = into;
            }
        }
        if let Some(head) = clusters.get_mut(into) {
            head.functions.extend(moved);
            (head.size, head.weight) = (size, weight);
        }
    }
    clusters.sort_by(|one, other| {
        other
            .density()
            .total_cmp(&one.density())
            .then_with(|| one.functions.first().cmp(&other.functions.first()))
    });
    clusters.into_iter().flat_map(|cluster| cluster.functions).collect()
}

/// By callee. Calls of a function to itself say nothing about its position.
fn likeliest_callers(functions: usize, arcs: &[CallArc]) -> FxHashMap<u32, u32> {
    let mut sums: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    let mut totals: FxHashMap<u32, f64> = FxHashMap::default();
    let mut sorted: Vec<CallArc> = arcs
        .iter()
        .filter(|arc| {
            let exist = (arc.caller.max(arc.callee) as usize) < functions;
            exist && arc.caller != arc.callee && arc.count > 0.0
        })
        .copied()
        .collect();
    sorted.sort_by(|one, other| {
        let key = |arc: &CallArc| (arc.callee, arc.caller);
        key(one).cmp(&key(other)).then_with(|| one.count.total_cmp(&other.count))
    });
    for arc in &sorted {
        *sums.entry((arc.callee, arc.caller)).or_default() += arc.count;
        *totals.entry(arc.callee).or_default() += arc.count;
    }
    let mut best: FxHashMap<u32, (f64, u32)> = FxHashMap::default();
    for ((callee, caller), count) in sums {
        let known = best.entry(callee).or_insert((count, caller));
        // Of equal callers the first, whatever order the sums come in.
        if count > known.0 || (count == known.0 && caller < known.1) {
            *known = (count, caller);
        }
    }
    best.into_iter()
        .filter(|(callee, (count, _))| {
            totals.get(callee).is_some_and(|total| *count >= MIN_SHARE * total)
        })
        .map(|(callee, (_, caller))| (callee, caller))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hot(size: u64, weight: f64) -> HotFunction {
        HotFunction { size, weight }
    }

    fn arc(caller: u32, callee: u32, count: f64) -> CallArc {
        CallArc { caller, callee, count }
    }

    #[test]
    fn a_callee_follows_its_likeliest_caller() {
        let functions = [hot(100, 10.0), hot(100, 400.0), hot(100, 300.0), hot(100, 200.0)];
        let arcs = [arc(1, 3, 50.0), arc(2, 3, 20.0), arc(0, 2, 1.0)];
        assert_eq!(order_functions(&functions, &arcs), [1, 3, 0, 2]);
    }

    #[test]
    fn dense_functions_come_first() {
        let functions = [hot(1000, 1000.0), hot(10, 500.0), hot(100, 500.0)];
        assert_eq!(order_functions(&functions, &[]), [1, 2, 0]);
    }

    #[test]
    fn a_large_cold_callee_does_not_dilute_a_hot_caller() {
        let functions = [hot(100, 1000.0), hot(100_000, 10.0), hot(100, 500.0)];
        assert_eq!(order_functions(&functions, &[arc(0, 1, 10.0)]), [0, 2, 1]);
    }

    #[test]
    fn a_cluster_stays_within_its_size() {
        let half = CLUSTER_SIZE / 2 + 1;
        let functions = [hot(half, 4e9), hot(half, 1e9), hot(half, 2e9)];
        assert_eq!(order_functions(&functions, &[arc(0, 1, 9.0)]), [0, 2, 1]);
    }

    #[test]
    fn rings_self_calls_and_unknown_functions_do_no_harm() {
        let functions = [hot(0, 0.0), hot(u64::MAX, f64::MAX), hot(u64::MAX, 1.0)];
        let arcs = [
            arc(0, 0, 1.0),
            arc(0, 1, 1.0),
            arc(1, 0, 1.0),
            arc(1, 2, f64::NAN),
            arc(7, 1, 1.0),
            arc(2, u32::MAX, 1.0),
        ];
        let mut order = order_functions(&functions, &arcs);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
        assert!(order_functions(&[], &arcs).is_empty());
    }
}
