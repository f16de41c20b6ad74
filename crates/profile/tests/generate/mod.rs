//! Random profiles that every form can hold, the same on every run.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use mepof_profile::{FunctionProfile, LineLocation, LineSamples, Profile};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// What a generated profile is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines, as of a build without probes.
    Lines,
    /// Pseudo probes and their checksums.
    Probes,
    /// Probes, and attributes that say what to inline.
    Preinlined,
}

/// `count` profiles, not more than a few dozen functions each.
pub fn profiles(kind: Kind, count: usize) -> Vec<Profile> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = profile(kind);
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// A profile of `kind`.
pub fn profile(kind: Kind) -> impl Strategy<Value = Profile> {
    btree_map(name(), function(kind), 0..12).prop_map(move |mut functions| {
        for function in functions.values_mut() {
            if kind != Kind::Lines {
                // Without one, a function has no probes.
                function.checksum = function.checksum.or(Some(1));
            }
        }
        Profile { functions, probe_based: kind != Kind::Lines, ..Profile::default() }
            .checked_for_probes()
    })
}

trait CheckedForProbes {
    fn checked_for_probes(self) -> Self;
}

impl CheckedForProbes for Profile {
    /// Nothing can be told from an empty profile.
    fn checked_for_probes(mut self) -> Self {
        self.probe_based &= !self.functions.is_empty();
        self
    }
}

fn name() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![
        8 => "[a-e]{1,2}",
        1 => Just("local.__uniq.123456".to_owned()),
        1 => Just("_ZN3foo3barEv.llvm.77".to_owned()),
        1 => Just("ns::call(int, char const*)".to_owned()),
        1 => Just("große".to_owned()),
    ]
    .prop_map(Arc::from)
}

/// Small enough that the sums of a profile do not overflow.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..20_u64, 0..100_000_u64, 0..1_u64 << 48]
}

fn location() -> impl Strategy<Value = LineLocation> {
    let offset = prop_oneof![0..20_u32, 65_530..65_536_u32];
    let discriminator = prop_oneof![3 => Just(0), 2 => 1..9_u32, 1 => any::<u32>()];
    (offset, discriminator)
        .prop_map(|(offset, discriminator)| LineLocation::new(offset, discriminator))
}

fn line() -> impl Strategy<Value = LineSamples> {
    let targets = prop_oneof![3 => Just(BTreeMap::new()), 1 => btree_map(name(), count(), 0..4)];
    (count(), targets).prop_map(|(count, targets)| LineSamples { count, targets })
}

fn function(kind: Kind) -> impl Strategy<Value = FunctionProfile> {
    let leaf = copy(kind, Just(BTreeMap::new()).boxed());
    let nested = leaf.prop_recursive(4, 24, 4, move |inner| {
        let callees = btree_map(name(), inner, 1..3);
        copy(kind, btree_map(location(), callees, 0..4).boxed())
    });
    (nested, count()).prop_map(|(function, head)| FunctionProfile { head, ..function })
}

type Inlined = BTreeMap<LineLocation, BTreeMap<Arc<str>, FunctionProfile>>;

fn copy(kind: Kind, inlined: BoxedStrategy<Inlined>) -> BoxedStrategy<FunctionProfile> {
    let checksum = match kind {
        Kind::Lines => Just(None).boxed(),
        _ => proptest::option::of(1..u64::MAX).boxed(),
    };
    let attributes = match kind {
        Kind::Preinlined => (0..8_u32).boxed(),
        _ => Just(0).boxed(),
    };
    let body = vec((location(), line()), 0..6).prop_map(|lines| lines.into_iter().collect());
    (count(), checksum, attributes, body, inlined)
        .prop_map(|(total, checksum, attributes, body, inlined)| FunctionProfile {
            total,
            head: 0,
            checksum,
            attributes,
            body,
            inlined,
        })
        .boxed()
}
