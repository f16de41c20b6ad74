use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::merge::difference;
use crate::{FunctionProfile, Profile, Summary};

/// LLVM takes a function's similarity below this for zero, and the whole's within it for one.
const EPSILON: f64 = 0.000_005;

/// Why two profiles cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// They measure in different terms.
    #[error(
        "cannot compare these profiles: only one of them has {what}; \
         use profiles of the same kind of build"
    )]
    Mixed {
        /// What one has and the other not.
        what: &'static str,
    },
    /// One has only zeros.
    #[error("the {which} profile has no samples: there is nothing to compare")]
    NoSamples {
        /// `base` or `test`.
        which: &'static str,
    },
}

/// How alike two profiles are. Shares and overlaps lie between 0 and 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// LLVM's program level similarity.
    pub similarity: f64,
    /// The share of execution that both profiles attribute to the same locations.
    pub flow_overlap: f64,
    /// Counts in both, of the greater of both, location by location.
    pub sample_overlap: f64,
    /// The sum of all counts of the base profile.
    pub base_samples: u64,
    /// The sum of all counts of the test profile.
    pub test_samples: u64,
    /// The share of the base profile's samples at locations that the test profile does not have.
    pub base_unique_share: f64,
    /// The share of the test profile's samples at locations that the base profile does not have.
    pub test_unique_share: f64,
    /// Functions in both profiles and in one.
    pub functions: SetOverlap,
    /// Functions that are hot in both profiles and in one.
    pub hot_functions: SetOverlap,
    /// Locations that are hot in both profiles and in one.
    pub hot_lines: SetOverlap,
    /// The functions that set the profiles apart, those that do most first.
    pub differences: Vec<FunctionDifference>,
}

/// How far two sets are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetOverlap {
    /// In both, of those in either. 0 if there are none.
    pub overlap: f64,
    /// In both.
    pub common: u64,
    /// In the base profile only.
    pub base_only: u64,
    /// In the test profile only.
    pub test_only: u64,
}

impl SetOverlap {
    fn new(common: u64, base: u64, test: u64) -> Self {
        let (base_only, test_only) = (base.saturating_sub(common), test.saturating_sub(common));
        let overlap = ratio(common, common + base_only + test_only);
        Self { overlap, common, base_only, test_only }
    }
}

/// A function as two profiles have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionDifference {
    /// Its name.
    pub name: String,
    /// The function's share of the base profile.
    pub base_share: f64,
    /// The function's share of the test profile.
    pub test_share: f64,
    /// LLVM's similarity of the function.
    pub similarity: f64,
    /// How much it takes from the flow overlap: over all functions these add up to what is missing
    /// of 1.
    pub flow_difference: f64,
}

/// Compares `test` with `base`, and lists up to `limit` functions that differ.
///
/// Computes what `llvm-profdata overlap --sample` of LLVM 22 prints
/// (`llvm/tools/llvm-profdata/llvm-profdata.cpp`, `SampleOverlapAggregator`), and the flow overlap
/// beside it. With `b(i)` and `t(i)` the counts at location `i` of the base and of the test
/// profile, `B` and `T` the sums of all counts, and sums over a function `f` (inlined copies
/// included) written `B_f` and `T_f`:
///
/// - internal similarity of a function in both: `1 − ½ Σ_i |b(i)/B_f − t(i)/T_f|`;
/// - similarity of a function: that times `1 − |B_f/B − T_f/T|`; 0 if only one profile has it;
/// - similarity: `Σ_f similarity(f) · ½ (B_f/B + T_f/T)`;
/// - sample overlap: `Σ_i min(b(i), t(i)) / Σ_i max(b(i), t(i))`, which depends on the sizes, so
///   that a profile of twice the length overlaps by half;
/// - flow overlap: `Σ_i min(b(i)/B, t(i)/T)` over all locations of all functions and inlined
///   copies: the share of execution that both profiles attribute to the same locations, whatever
///   their sizes.
///
/// # Errors
/// Profiles of different kinds, and those without samples.
pub fn compare(base: &Profile, test: &Profile, limit: usize) -> Result<Comparison, CompareError> {
    if let Some(what) = difference(base, test) {
        return Err(CompareError::Mixed { what });
    }
    let base_side = Side::new(base);
    let test_side = Side::new(test);
    for (side, which) in [(&base_side, "base"), (&test_side, "test")] {
        if side.samples == 0 {
            return Err(CompareError::NoSamples { which });
        }
    }
    Ok(Comparer { base: base_side, test: test_side, ..Comparer::default() }
        .compare(base, test, limit))
}

/// A profile's own figures.
#[derive(Default)]
struct Side<'a> {
    functions: BTreeMap<&'a Arc<str>, FunctionSamples>,
    samples: u64,
    hot: u64,
}

impl<'a> Side<'a> {
    fn new(profile: &'a Profile) -> Self {
        let hot = Summary::of(profile).hot_threshold();
        let functions: BTreeMap<_, _> = profile
            .functions
            .iter()
            .map(|(name, function)| (name, FunctionSamples::of(function, hot)))
            .collect();
        let samples = functions.values().fold(0, |sum: u64, f| sum.saturating_add(f.sum));
        Self { functions, samples, hot }
    }

    fn share(&self, samples: u64) -> f64 {
        ratio(samples, self.samples)
    }

    fn hot_functions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.functions.iter().filter(|(_, f)| f.max >= self.hot).map(|(name, _)| *name)
    }
}

/// The counts of a function, inlined copies included.
#[derive(Clone, Copy, Default)]
struct FunctionSamples {
    sum: u64,
    max: u64,
    hot_lines: u64,
}

impl FunctionSamples {
    fn of(function: &FunctionProfile, hot: u64) -> Self {
        let mut samples = Self::default();
        samples.add(function, hot);
        samples
    }

    fn add(&mut self, function: &FunctionProfile, hot: u64) {
        for count in function.body.values().map(|line| line.count) {
            self.sum = self.sum.saturating_add(count);
            self.max = self.max.max(count);
            self.hot_lines += u64::from(count >= hot);
        }
        for callee in function.inlined.values().flat_map(BTreeMap::values) {
            self.add(callee, hot);
        }
    }
}

/// A location, or a function as one, by the profiles that have it.
#[derive(Clone, Copy)]
enum Unit {
    Both(u64, u64),
    Base(u64),
    Test(u64),
}

#[derive(Default)]
struct Comparer<'a> {
    base: Side<'a>,
    test: Side<'a>,
    overlap: u64,
    union: u64,
    base_unique: u64,
    test_unique: u64,
    hot_base: u64,
    hot_test: u64,
    hot_common: u64,
}

/// A function in both profiles while its locations are gone through.
struct Matched {
    base: u64,
    test: u64,
    /// `Σ_i |b(i)/B_f − t(i)/T_f|`.
    difference: f64,
    /// `Σ_i min(b(i)/B, t(i)/T)`.
    flow: f64,
}

impl Comparer<'_> {
    fn compare(mut self, base: &Profile, test: &Profile, limit: usize) -> Comparison {
        let mut similarity = 0.0;
        let mut flow_overlap = 0.0;
        let mut common = 0;
        let mut differences = Vec::new();
        for (name, base_function, test_function) in join(&base.functions, &test.functions) {
            let in_base = self.base.functions.get(name).copied().unwrap_or_default();
            let in_test = self.test.functions.get(name).copied().unwrap_or_default();
            let base_share = self.base.share(in_base.sum);
            let test_share = self.test.share(in_test.sum);
            let weight = (base_share + test_share) / 2.0;
            let mut of_function = 0.0;
            let mut flow = 0.0;
            match (base_function, test_function) {
                (Some(base_function), Some(test_function)) => {
                    common += 1;
                    let mut matched = Matched {
                        base: in_base.sum,
                        test: in_test.sum,
                        difference: 0.0,
                        flow: 0.0,
                    };
                    self.function(base_function, test_function, &mut matched);
                    let internal = (2.0 - matched.difference) / 2.0;
                    let internal = if internal.abs() < EPSILON { 0.0 } else { internal };
                    of_function = internal * (1.0 - (base_share - test_share).abs());
                    flow = matched.flow;
                }
                (Some(_), None) => self.unit(Unit::Base(in_base.sum), in_base.hot_lines),
                _ => self.unit(Unit::Test(in_test.sum), in_test.hot_lines),
            }
            similarity += of_function * weight;
            flow_overlap += flow;
            let flow_difference = (weight - flow).max(0.0);
            if flow_difference > 0.0 {
                differences.push(FunctionDifference {
                    name: name.to_string(),
                    base_share,
                    test_share,
                    similarity: of_function,
                    flow_difference,
                });
            }
        }
        differences.sort_by(|a, b| b.flow_difference.total_cmp(&a.flow_difference));
        differences.truncate(limit);
        let functions = (base.functions.len() as u64, test.functions.len() as u64);
        Comparison {
            similarity: if (similarity - 1.0).abs() < EPSILON { 1.0 } else { similarity },
            flow_overlap: flow_overlap.min(1.0),
            sample_overlap: ratio(self.overlap, self.union),
            base_samples: self.base.samples,
            test_samples: self.test.samples,
            base_unique_share: self.base.share(self.base_unique),
            test_unique_share: self.test.share(self.test_unique),
            functions: SetOverlap::new(common, functions.0, functions.1),
            hot_functions: self.hot_functions(),
            hot_lines: SetOverlap::new(self.hot_common, self.hot_base, self.hot_test),
            differences,
        }
    }

    fn hot_functions(&self) -> SetOverlap {
        let hot: std::collections::BTreeSet<_> = self.base.hot_functions().collect();
        let (mut common, mut test) = (0, 0);
        for name in self.test.hot_functions() {
            test += 1;
            common += u64::from(hot.contains(name));
        }
        SetOverlap::new(common, hot.len() as u64, test)
    }

    fn function(&mut self, base: &FunctionProfile, test: &FunctionProfile, matched: &mut Matched) {
        for (_, base, test) in join(&base.body, &test.body) {
            let unit = match (base, test) {
                (Some(base), Some(test)) => Unit::Both(base.count, test.count),
                (Some(base), None) => Unit::Base(base.count),
                (None, test) => Unit::Test(test.map_or(0, |line| line.count)),
            };
            self.unit_in(unit, 1, matched);
        }
        let nobody = BTreeMap::new();
        for (_, base, test) in join(&base.inlined, &test.inlined) {
            for (_, base, test) in join(base.unwrap_or(&nobody), test.unwrap_or(&nobody)) {
                match (base, test) {
                    (Some(base), Some(test)) => self.function(base, test, matched),
                    (Some(base), None) => {
                        let samples = FunctionSamples::of(base, self.base.hot);
                        self.unit_in(Unit::Base(samples.sum), samples.hot_lines, matched);
                    }
                    (None, Some(test)) => {
                        let samples = FunctionSamples::of(test, self.test.hot);
                        self.unit_in(Unit::Test(samples.sum), samples.hot_lines, matched);
                    }
                    (None, None) => {}
                }
            }
        }
    }

    fn unit_in(&mut self, unit: Unit, lines: u64, matched: &mut Matched) {
        let (base, test) = self.unit_counts(unit);
        matched.difference += (ratio(base, matched.base) - ratio(test, matched.test)).abs();
        matched.flow += self.base.share(base).min(self.test.share(test));
        self.unit(unit, lines);
    }

    fn unit_counts(&self, unit: Unit) -> (u64, u64) {
        match unit {
            Unit::Both(base, test) => (base, test),
            Unit::Base(base) => (base, 0),
            Unit::Test(test) => (0, test),
        }
    }

    /// Counts a location, or the `lines` locations of something that only one profile has.
    fn unit(&mut self, unit: Unit, lines: u64) {
        match unit {
            Unit::Both(..) => {}
            Unit::Base(base) => self.base_unique = self.base_unique.saturating_add(base),
            Unit::Test(test) => self.test_unique = self.test_unique.saturating_add(test),
        }
        let (base, test) = self.unit_counts(unit);
        self.overlap = self.overlap.saturating_add(base.min(test));
        self.union = self.union.saturating_add(base.max(test));
        let (base_hot, test_hot) = (base >= self.base.hot, test >= self.test.hot);
        self.hot_base += if base_hot { lines } else { 0 };
        self.hot_test += if test_hot { lines } else { 0 };
        self.hot_common += if base_hot && test_hot { lines } else { 0 };
    }
}

/// All keys of two maps in order, with what each map has.
fn join<'a, K: Ord, V>(
    a: &'a BTreeMap<K, V>,
    b: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    use std::cmp::Ordering;
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let first = if order.is_le() { a.next() } else { None };
        let second = if order.is_ge() { b.next() } else { None };
        let key = first.or(second)?.0;
        Some((key, first.map(|(_, value)| value), second.map(|(_, value)| value)))
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn profile(text: &str) -> Profile {
        text::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_profile_of_twice_the_length_flows_alike() {
        let once = profile("f:30:1\n 1: 10\n 2: g:20\n  1: 20\nh:5:0\n 1: 5\n");
        let twice = profile("f:60:1\n 1: 20\n 2: g:40\n  1: 40\nh:9:0\n 1: 10\n");
        let comparison = compare(&once, &twice, 9).unwrap();
        assert_eq!((comparison.similarity, comparison.sample_overlap), (1.0, 0.5));
        assert!((comparison.flow_overlap - 1.0).abs() < 1e-12);
        assert!(comparison.differences.iter().all(|function| function.flow_difference < 1e-12));
    }

    #[test]
    fn what_differs_is_listed_by_its_part_of_the_difference() {
        let base = profile("f:80:0\n 1: 60\n 2: 20\ng:20:0\n 1: 20\n");
        let test = profile("f:80:0\n 1: 40\n 3: 40\nh:20:0\n 1: 20\n");
        let comparison = compare(&base, &test, 2).unwrap();
        assert!((comparison.flow_overlap - 0.4).abs() < 1e-12);
        let names: Vec<_> = comparison.differences.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
        let whole = compare(&base, &test, 9).unwrap();
        let sum: f64 = whole.differences.iter().map(|f| f.flow_difference).sum();
        assert!((sum + whole.flow_overlap - 1.0).abs() < 1e-12);
        assert_eq!((whole.functions.common, whole.functions.base_only), (1, 1));
    }

    #[test]
    fn nothing_and_other_kinds_are_refused() {
        let base = profile("f:80:0\n 1: 60\n");
        let zero = profile("f:80:0\n 1: 0\n");
        assert_eq!(compare(&base, &zero, 1), Err(CompareError::NoSamples { which: "test" }));
        assert_eq!(compare(&zero, &base, 1), Err(CompareError::NoSamples { which: "base" }));
        let probes = profile("f:80:0\n 1: 60\n !CFGChecksum: 1\n");
        assert!(matches!(compare(&base, &probes, 1), Err(CompareError::Mixed { .. })));
    }
}
