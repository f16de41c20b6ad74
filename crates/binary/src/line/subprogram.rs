//! The functions of debug information and their ranges.

use std::ops::Range;

use mepof_address::ImageAddress;
use rustc_hash::FxHashMap;

use super::entry::Subprogram;
use super::name::{NameId, Names};
use crate::{Binary, BinaryError, whole_function};

/// A range of a function: all of it, or one of the parts that it was split into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubprogramRange {
    /// The function, by its linkage name if it has one.
    pub name: NameId,
    /// What the range covers.
    pub addresses: Range<ImageAddress>,
    /// Whether calls go to its start: it is the only range of its name, or the symbol table has
    /// a symbol of that name there (suffixes that the compiler appends apart).
    pub is_entry: bool,
}

/// The functions of debug information, range by range. This is the table that llvm-profgen
/// loads from subprogram entries (LLVM 22, llvm/tools/llvm-profgen/ProfiledBinary.cpp): functions
/// of the same name are one, and of several ranges with the same start the first counts.
#[derive(Clone, Debug, Default)]
pub struct Subprograms {
    names: Names,
    ranges: Vec<SubprogramRange>,
    by_name: Vec<u32>,
}

impl Subprograms {
    /// `found` in the order of units, with provisional names that `order` translates.
    pub(super) fn new(
        binary: &Binary,
        names: Names,
        found: Vec<Subprogram>,
        order: &[NameId],
    ) -> Result<Self, BinaryError> {
        let mut ranges = Vec::new();
        let mut of_name = vec![0_u32; order.len()]; // ranges of each, those that lose included
        for subprogram in found {
            let Some(name) = order.get(subprogram.name as usize).copied() else { continue };
            for range in subprogram.ranges {
                if let Some(count) = of_name.get_mut(name.0 as usize) {
                    *count += 1;
                }
                let addresses = ImageAddress(range.start)..ImageAddress(range.end);
                ranges.push(SubprogramRange { name, addresses, is_entry: false });
            }
        }
        ranges.sort_by_key(|range| range.addresses.start);
        ranges.dedup_by_key(|range| range.addresses.start);
        let mut split = FxHashMap::default();
        for (index, range) in ranges.iter_mut().enumerate() {
            range.is_entry = of_name.get(range.name.0 as usize) == Some(&1);
            if !range.is_entry {
                split.insert(range.addresses.start, index);
            }
        }
        for (symbol, address) in binary.code_symbols()? {
            let range = split.get(&address).and_then(|index| ranges.get_mut(*index));
            if let Some(range) = range {
                let name = names.get(range.name);
                range.is_entry |= name.is_some_and(|name| name.as_bytes() == canonical(symbol));
            }
        }
        Ok(Self::sorted(names, ranges))
    }

    /// The functions of the symbol table of `binary`, without debug information: a part that
    /// the compiler split off a function is a range of that.
    pub fn of_symbols(binary: &Binary) -> Self {
        let functions = binary.functions();
        let names = Names::of(functions.iter().map(|function| whole_function(&function.name)));
        let ranges = functions.iter().filter_map(|function| {
            let name = names.find(whole_function(&function.name))?;
            let addresses = function.addresses.clone();
            Some(SubprogramRange { name, addresses, is_entry: function.is_entry })
        });
        Self::sorted(names.clone(), ranges.collect())
    }

    fn sorted(names: Names, ranges: Vec<SubprogramRange>) -> Self {
        let mut by_name: Vec<u32> = (0..ranges.len() as u32).collect();
        by_name.sort_by_key(|index| ranges.get(*index as usize).map(|range| range.name));
        Self { names, ranges, by_name }
    }

    /// The names that ranges refer to.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// All ranges, by address.
    pub fn ranges(&self) -> &[SubprogramRange] {
        &self.ranges
    }

    /// The range that covers `address`: of those that begin at or before it, the last one.
    pub fn covering(&self, address: ImageAddress) -> Option<&SubprogramRange> {
        let after = self.ranges.partition_point(|range| range.addresses.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address < range.addresses.end).then_some(range)
    }

    /// The range that begins at `address`.
    pub fn starting_at(&self, address: ImageAddress) -> Option<&SubprogramRange> {
        self.covering(address).filter(|range| range.addresses.start == address)
    }

    /// The ranges of the functions called `name`, by address.
    pub fn of(&self, name: NameId) -> impl Iterator<Item = &SubprogramRange> {
        let range = |index: &u32| self.ranges.get(*index as usize);
        let first = self
            .by_name
            .partition_point(|index| range(index).is_some_and(|range| range.name < name));
        self.by_name
            .get(first..)
            .unwrap_or_default()
            .iter()
            .filter_map(range)
            .take_while(move |range| range.name == name)
    }
}

/// A symbol's name without the suffixes that the compiler appends to that of the source: `.llvm.`
/// and `.part.` with what follows. `.__uniq.` stays: with `-funique-internal-linkage-names`, the
/// linkage name has it too. (LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h,
/// `getCanonicalFnName` for the policy "selected".)
fn canonical(symbol: &[u8]) -> &[u8] {
    [&b".llvm."[..], b".part."].iter().fold(symbol, |name, suffix| {
        let last_dot = name.iter().rposition(|byte| *byte == b'.');
        match last_dot.and_then(|dot| name.split_at_checked(dot + 1)) {
            Some((head, _)) => head.strip_suffix(*suffix).unwrap_or(name),
            None => name,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn what_the_compiler_appended_does_not_count() {
        for (symbol, name) in [
            ("f", "f"),
            ("f.llvm.123", "f"),
            ("f.part.0", "f"),
            ("f.part.0.llvm.9", "f"),
            ("f.llvm.9.cold", "f.llvm.9.cold"),
            ("f.__uniq.5", "f.__uniq.5"),
            ("f.cold", "f.cold"),
        ] {
            assert_eq!(canonical(symbol.as_bytes()), name.as_bytes());
        }
    }
}
