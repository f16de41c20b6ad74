use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

/// A location in a function's source: lines from its declaration, or with pseudo probes the probe's
/// number, and which of several paths through the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineLocation {
    /// Lines from the declaration (16 bits of it), or a probe's number.
    pub offset: u32,
    /// The discriminator.
    pub discriminator: u32,
}

impl LineLocation {
    /// The highest offset that compilers look up: they keep 16 bits of the difference.
    pub const MAX_OFFSET: u32 = 0xffff;

    /// A location by its offset and discriminator.
    pub const fn new(offset: u32, discriminator: u32) -> Self {
        Self { offset, discriminator }
    }

    /// The location of `line` in a function declared at line `declaration`, as Clang computes it
    /// (`FunctionSamples::getOffset`): the difference modulo 2^16, so that a line *above* the
    /// declaration, which a macro or an include can bring, becomes a large offset.
    pub const fn from_lines(line: u32, declaration: u32, discriminator: u32) -> Self {
        Self { offset: line.wrapping_sub(declaration) & Self::MAX_OFFSET, discriminator }
    }
}

/// What was counted at a location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSamples {
    /// How often it ran.
    pub count: u64,
    /// The functions called from there, with how often.
    pub targets: BTreeMap<Arc<str>, u64>,
}

impl LineSamples {
    /// Adds calls of `target`.
    pub fn add_target(&mut self, target: &Arc<str>, count: u64) {
        match self.targets.get_mut(target) {
            Some(present) => *present = present.saturating_add(count),
            None => {
                self.targets.insert(Arc::clone(target), count);
            }
        }
    }

    /// The targets, most called first, then by name: the order of every written form.
    pub(crate) fn sorted_targets(&self, order: NameOrder) -> Vec<(&Arc<str>, u64)> {
        let mut targets: Vec<_> = self.targets.iter().map(|(name, &count)| (name, count)).collect();
        targets.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| order.compare(a.0, b.0)));
        targets
    }
}

/// The samples of a function, or of one of its inlined copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionProfile {
    /// Samples in the body, inlined calls included.
    pub total: u64,
    /// How often it was entered. Zero for an inlined copy.
    pub head: u64,
    /// The hash of the control flow, with pseudo probes. Never `Some(0)`: zero means unknown.
    pub checksum: Option<u64>,
    /// Attributes of the call context, as LLVM's `ContextAttributeMask` has them: a sum of the
    /// `ATTRIBUTE_…` constants.
    pub attributes: u32,
    /// Where in the source it ran, and how often.
    pub body: BTreeMap<LineLocation, LineSamples>,
    /// Calls that were inlined there, by callee.
    pub inlined: BTreeMap<LineLocation, BTreeMap<Arc<str>, FunctionProfile>>,
}

/// The call was inlined in the build that was profiled.
pub const ATTRIBUTE_WAS_INLINED: u32 = 1;
/// The call should be inlined: the profile's maker decided so.
pub const ATTRIBUTE_SHOULD_BE_INLINED: u32 = 2;
/// The samples stand in the function's own profile as well, and do not count twice.
pub const ATTRIBUTE_DUPLICATED_INTO_BASE: u32 = 4;

impl FunctionProfile {
    /// What was counted at `location`, made if there is nothing yet.
    pub fn line_mut(&mut self, location: LineLocation) -> &mut LineSamples {
        self.body.entry(location).or_default()
    }

    /// Adds to the count at `location`; the total stays as it is.
    pub fn add_line(&mut self, location: LineLocation, count: u64) {
        let line = self.line_mut(location);
        line.count = line.count.saturating_add(count);
    }

    /// The copy of `callee` inlined at `location`, made if there is none yet.
    pub fn inlined_mut(&mut self, location: LineLocation, callee: &Arc<str>) -> &mut Self {
        entry(self.inlined.entry(location).or_default(), callee)
    }

    /// Adds `other`, each count multiplied by `weight`; everything saturates at `u64::MAX`.
    ///
    /// As LLVM's `FunctionSamples::merge`: a function whose control flow has another checksum is
    /// not the same function, so it is left out, and an inlined copy alone likewise. Attributes
    /// are kept.
    pub fn merge(&mut self, other: &Self, weight: u64) -> Merge {
        if self.checksum.is_none() {
            self.checksum = other.checksum;
        } else if self.checksum != other.checksum {
            return Merge { overflowed: false, mismatched: 1 };
        }
        let mut merge = Merge::default();
        merge.add(&mut self.total, other.total, weight);
        merge.add(&mut self.head, other.head, weight);
        for (location, theirs) in &other.body {
            let ours = self.body.entry(*location).or_default();
            merge.add(&mut ours.count, theirs.count, weight);
            for (target, &count) in &theirs.targets {
                match ours.targets.get_mut(target) {
                    Some(present) => merge.add(present, count, weight),
                    None => {
                        let mut scaled = 0;
                        merge.add(&mut scaled, count, weight);
                        ours.targets.insert(Arc::clone(target), scaled);
                    }
                }
            }
        }
        for (location, callees) in &other.inlined {
            let ours = self.inlined.entry(*location).or_default();
            for (callee, theirs) in callees {
                merge.join(merge_into(ours, callee, theirs, weight));
            }
        }
        merge
    }

    /// Sets the total to the sum of all counts, inlined copies included and set likewise.
    ///
    /// LLVM's `FunctionSamples::updateTotalSamples`, which `llvm-profgen --update-total-samples`
    /// runs. Without it a total counts bytes or instructions, which a line can have many of.
    pub fn update_total(&mut self) {
        let mut total = self.own_count();
        for callee in self.inlined.values_mut().flat_map(BTreeMap::values_mut) {
            callee.update_total();
            total = total.saturating_add(callee.total);
        }
        self.total = total;
    }

    /// Raises the count of each line to the sum of the calls made from there, if it is less.
    ///
    /// LLVM's `FunctionSamples::updateCallsiteSamples`, which `llvm-profgen` runs on every
    /// function: calls are recorded as branches, counts as ranges, and either may be cut off.
    /// Like LLVM's, it leaves inlined copies as they are.
    pub fn update_call_counts(&mut self) {
        for line in self.body.values_mut() {
            let calls = line.targets.values().fold(0_u64, |sum, &count| sum.saturating_add(count));
            line.count = line.count.max(calls);
        }
    }

    /// The sum of the counts of its own lines.
    pub fn own_count(&self) -> u64 {
        self.body.values().fold(0, |sum, line| sum.saturating_add(line.count))
    }

    /// How often it was entered by the first thing in its body, for functions that have no
    /// `head`: LLVM's `FunctionSamples::getHeadSamplesEstimate`. At least 1 if it ran at all.
    pub fn estimated_head(&self) -> u64 {
        let first_line = self.body.first_key_value();
        let first_call = self.inlined.first_key_value();
        let count = match (first_line, first_call) {
            (Some((line, samples)), Some((call, _))) if line < call => samples.count,
            (Some((_, samples)), None) => samples.count,
            (_, Some((_, callees))) => callees
                .values()
                .fold(0, |sum: u64, callee| sum.saturating_add(callee.estimated_head())),
            (None, None) => 0,
        };
        count.max(u64::from(self.total > 0))
    }

    /// Whether `found` is true of it or of a copy inlined into it.
    pub(crate) fn any(&self, found: &impl Fn(&Self) -> bool) -> bool {
        found(self) || self.inlined.values().flat_map(BTreeMap::values).any(|f| f.any(found))
    }

    /// Calls `visit` with every name in it: of targets and of inlined functions.
    pub(crate) fn visit_names<'a>(&'a self, visit: &mut impl FnMut(&'a Arc<str>)) {
        self.body.values().flat_map(|line| line.targets.keys()).for_each(&mut *visit);
        for (name, callee) in self.inlined.values().flatten() {
            visit(name);
            callee.visit_names(visit);
        }
    }

    /// Calls inlined into it, not into those.
    pub(crate) fn inlined_calls(
        &self,
        order: NameOrder,
    ) -> impl Iterator<Item = (LineLocation, &Arc<str>, &Self)> {
        self.inlined.iter().flat_map(move |(&location, callees)| {
            let mut callees: Vec<_> = callees.iter().collect();
            if order == NameOrder::Number {
                callees.sort_by(|a, b| order.compare(a.0, b.0));
            }
            callees.into_iter().map(move |(name, callee)| (location, name, callee))
        })
    }
}

/// What happened to a merge of two functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// A counter reached `u64::MAX` and stayed there.
    pub overflowed: bool,
    /// How many functions, inlined copies among them, were left out because their checksum
    /// differs.
    pub mismatched: usize,
}

impl Merge {
    pub(crate) fn add(&mut self, counter: &mut u64, count: u64, weight: u64) {
        let sum = count.checked_mul(weight).and_then(|scaled| counter.checked_add(scaled));
        self.overflowed |= sum.is_none();
        *counter = sum.unwrap_or(u64::MAX);
    }

    /// Adds what became of another merge.
    pub(crate) fn join(&mut self, other: Self) {
        self.overflowed |= other.overflowed;
        self.mismatched = self.mismatched.saturating_add(other.mismatched);
    }
}

/// The profile of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By function name. In a profile with MD5 names, the decimal GUID stands for the name.
    pub functions: BTreeMap<Arc<str>, FunctionProfile>,
    /// Locations are pseudo probes, not lines.
    pub probe_based: bool,
    /// Discriminators are flow-sensitive (`-enable-fs-discriminator`).
    pub flow_sensitive: bool,
    /// Names are GUIDs.
    pub md5_names: bool,
    /// It covers shared code only, as other programs run it: functions that are missing are not
    /// cold.
    pub partial: bool,
    /// Functions that the binary had, ran or not; empty if not recorded. Functions in here
    /// without samples are cold; those not in here are new.
    pub symbols: Vec<Arc<str>>,
}

impl Profile {
    /// The profile of the function `name`, made if there is none yet.
    pub fn function_mut(&mut self, name: &Arc<str>) -> &mut FunctionProfile {
        entry(&mut self.functions, name)
    }

    /// All totals together.
    pub fn total(&self) -> u64 {
        self.functions.values().fold(0, |sum, f| sum.saturating_add(f.total))
    }

    /// The functions as every written form has them: highest total first, then by name.
    pub fn by_total(&self) -> Vec<(&Arc<str>, &FunctionProfile)> {
        let order = self.name_order();
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by(|a, b| b.1.total.cmp(&a.1.total).then_with(|| order.compare(a.0, b.0)));
        functions
    }

    /// Every name in it, once, in LLVM's order.
    pub(crate) fn names(&self) -> Vec<&Arc<str>> {
        let mut names = FxHashSet::default();
        for (name, function) in &self.functions {
            names.insert(name);
            function.visit_names(&mut |name| {
                names.insert(name);
            });
        }
        let order = self.name_order();
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable_by(|a, b| order.compare(a, b));
        names
    }

    pub(crate) fn name_order(&self) -> NameOrder {
        if self.md5_names { NameOrder::Number } else { NameOrder::Text }
    }
}

/// How LLVM sorts names: text by its bytes, hashes by their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOrder {
    Text,
    Number,
}

impl NameOrder {
    pub(crate) fn compare(self, a: &str, b: &str) -> std::cmp::Ordering {
        match self {
            Self::Text => a.cmp(b),
            // Decimals without leading zeros: the shorter is the smaller.
            Self::Number => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }
}

fn entry<'a>(
    functions: &'a mut BTreeMap<Arc<str>, FunctionProfile>,
    name: &Arc<str>,
) -> &'a mut FunctionProfile {
    functions.entry(Arc::clone(name)).or_default()
}

/// Merges `theirs` into the function `name` of `functions`. A function that is new there takes
/// the attributes along.
pub(crate) fn merge_into(
    functions: &mut BTreeMap<Arc<str>, FunctionProfile>,
    name: &Arc<str>,
    theirs: &FunctionProfile,
    weight: u64,
) -> Merge {
    match functions.get_mut(name) {
        Some(ours) => ours.merge(theirs, weight),
        None => {
            let ours = entry(functions, name);
            ours.attributes = theirs.attributes;
            ours.merge(theirs, weight)
        }
    }
}
