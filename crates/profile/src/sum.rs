use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::samples::Merge;
use crate::sorted::Sorted;
use crate::{FunctionProfile, LineLocation, LineSamples};

/// The sum of many profiles, in a form to which files are added without a [`crate::Profile`] of
/// each: names have numbers, and lines lie as they come in files. It holds no checksums and no
/// attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    numbers: FxHashMap<Arc<str>, Number>,
    named: Vec<Named>,
}

/// What a name has in a sum.
pub(crate) type Number = u32;

#[derive(Clone, Debug)]
struct Named {
    name: Arc<str>,
    function: Option<Function>,
    symbol: bool,
}

/// A function, or an inlined copy of one, as [`FunctionProfile`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) total: u64,
    pub(crate) head: u64,
    pub(crate) body: Sorted<LineLocation, Line>,
    pub(crate) inlined: Sorted<(LineLocation, Number), Function>,
    /// The last file that had it; of inlined copies, 0.
    last_input: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) count: u64,
    pub(crate) targets: BTreeMap<Number, u64>,
}

/// A file that is being added to a sum.
#[derive(Debug)]
pub(crate) struct Addition<'a> {
    sum: &'a mut Sum,
    /// By what each count is multiplied.
    pub(crate) weight: u64,
    /// Which file of the sum it is, from 1.
    input: usize,
    /// Whether a counter reached its greatest.
    pub(crate) merge: Merge,
    /// Its functions, inlined copies aside.
    pub(crate) functions: u64,
    /// Their totals together, before weighting.
    pub(crate) total: u64,
}

impl<'a> Addition<'a> {
    pub(crate) fn new(sum: &'a mut Sum, input: usize, weight: u64) -> Self {
        Self { sum, weight, input, merge: Merge::default(), functions: 0, total: 0 }
    }

    /// The number of a name.
    pub(crate) fn number(&mut self, name: &str) -> Number {
        if let Some(&number) = self.sum.numbers.get(name) {
            return number;
        }
        let name: Arc<str> = Arc::from(name);
        // A file of 2^32 names would be too large for memory.
        let number = Number::try_from(self.sum.named.len()).unwrap_or(Number::MAX);
        self.sum.numbers.insert(Arc::clone(&name), number);
        self.sum.named.push(Named { name, function: None, symbol: false });
        number
    }

    /// Notes that the binary had the function.
    pub(crate) fn symbol(&mut self, number: Number) {
        if let Some(named) = self.sum.named.get_mut(number as usize) {
            named.symbol = true;
        }
    }

    /// The function of that name, to be put back by [`Self::put`]; a new one if there is none.
    pub(crate) fn take(&mut self, number: Number) -> Function {
        let named = self.sum.named.get_mut(number as usize);
        let mut function = named.and_then(|named| named.function.take()).unwrap_or_default();
        self.functions += u64::from(function.last_input != self.input);
        function.last_input = self.input;
        function
    }

    pub(crate) fn put(&mut self, number: Number, function: Function) {
        if let Some(named) = self.sum.named.get_mut(number as usize) {
            named.function = Some(function);
        }
    }
}

impl Sum {
    /// Whether nothing has been added.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The functions by name, and the names of all functions that the binaries had.
    pub(crate) fn into_parts(self) -> (BTreeMap<Arc<str>, FunctionProfile>, Vec<Arc<str>>) {
        let names: Vec<Arc<str>> = self.named.iter().map(|named| Arc::clone(&named.name)).collect();
        let (mut functions, mut symbols) = (Vec::new(), Vec::new());
        for named in self.named {
            if let Some(function) = named.function {
                functions.push((Arc::clone(&named.name), function.into_profile(&names)));
            }
            if named.symbol {
                symbols.push(named.name);
            }
        }
        (functions.into_iter().collect(), symbols)
    }
}

impl Function {
    fn into_profile(self, names: &[Arc<str>]) -> FunctionProfile {
        let name = |number: Number| names.get(number as usize).map(Arc::clone).unwrap_or_default();
        let body = self.body.into_sorted().into_iter().map(|(location, line)| {
            let targets = line.targets.into_iter().map(|(target, count)| (name(target), count));
            (location, LineSamples { count: line.count, targets: targets.collect() })
        });
        let mut inlined = BTreeMap::<LineLocation, BTreeMap<_, _>>::new();
        for ((location, callee), copy) in self.inlined.into_sorted() {
            let copies = inlined.entry(location).or_default();
            copies.insert(name(callee), copy.into_profile(names));
        }
        FunctionProfile {
            total: self.total,
            head: self.head,
            body: body.collect(),
            inlined,
            ..FunctionProfile::default()
        }
    }
}
