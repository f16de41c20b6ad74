//! Symbols by their names, for branch stacks that have names in place of addresses.

use std::fmt::Debug;

use mepof_address::RuntimeAddress;
use rustc_hash::FxHashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedSymbol {
    /// One symbol.
    One {
        /// Its first byte.
        start: RuntimeAddress,
        /// Bytes up to the end of it and of the padding behind it.
        size: u64,
    },
    /// Several symbols, at different addresses.
    Several,
}

/// Says where the symbols of a binary are. Threads ask at the same time.
pub trait SymbolAddresses: Debug + Sync {
    /// The symbol called `name`; `None` if there is none.
    fn symbol(&self, name: &[u8]) -> Option<NamedSymbol>;
}

/// Symbols by their names.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    symbols: FxHashMap<Box<[u8]>, NamedSymbol>,
}

impl SymbolTable {
    /// Adds a symbol of `size` bytes. The same name at the same address is the same symbol, with
    /// the larger of its sizes.
    pub fn add(&mut self, name: &[u8], start: RuntimeAddress, size: u64) {
        let one = NamedSymbol::One { start, size };
        match self.symbols.get_mut(name) {
            None => {
                self.symbols.insert(name.into(), one);
            }
            Some(NamedSymbol::One { start: known, size: widest }) if *known == start => {
                *widest = size.max(*widest);
            }
            Some(known) => *known = NamedSymbol::Several,
        }
    }
}

impl SymbolAddresses for SymbolTable {
    fn symbol(&self, name: &[u8]) -> Option<NamedSymbol> {
        self.symbols.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_at_two_addresses_is_ambiguous() {
        let mut table = SymbolTable::default();
        for (name, start, size) in
            [("a", 0x10, 4), ("b", 0x20, 4), ("a", 0x30, 4), ("b", 0x20, 8), ("a", 0x10, 4)]
        {
            table.add(name.as_bytes(), RuntimeAddress(start), size);
        }
        assert_eq!(table.symbol(b"a"), Some(NamedSymbol::Several));
        let one = NamedSymbol::One { start: RuntimeAddress(0x20), size: 8 };
        assert_eq!(table.symbol(b"b"), Some(one));
        assert_eq!(table.symbol(b"c"), None);
    }
}
