use mepof_address::ImageAddress;
use mepof_binary::Binary;
use rustc_hash::FxHashMap;

/// What a function is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// Its names, as the symbol table has them: the first is the usual one, the others are
    /// aliases.
    pub names: Vec<String>,
    /// The source file of its compile unit, as `DW_AT_name` has it. Clang compares it with the
    /// name of the file that it compiles, and tells functions of the same name apart by it.
    pub module: Option<String>,
    /// Whether the symbol is local to a file.
    pub is_local: bool,
}

/// The names of a binary's functions, of those that did not run too: a name that two functions
/// have says nothing about which of them is meant.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    by_address: FxHashMap<ImageAddress, FunctionSymbol>,
    uses: FxHashMap<String, u32>,
}

impl Symbols {
    /// The names of `functions`, by entry. Of two for one address, the later replaces the
    /// earlier.
    pub fn new(functions: impl IntoIterator<Item = (ImageAddress, FunctionSymbol)>) -> Self {
        let by_address: FxHashMap<_, _> = functions.into_iter().collect();
        let mut uses: FxHashMap<String, u32> = FxHashMap::default();
        for name in by_address.values().flat_map(|symbol| &symbol.names) {
            *uses.entry(name.clone()).or_default() += 1;
        }
        Self { by_address, uses }
    }

    /// The names that the symbol table of `binary` has. `module` gives the source file of a
    /// function's compile unit, where that is known.
    pub fn of(binary: &Binary, module: impl Fn(ImageAddress) -> Option<String>) -> Self {
        Self::new(binary.functions().iter().filter(|function| function.is_entry).map(|function| {
            let address = function.addresses.start;
            let names = vec![function.name.clone()];
            (address, FunctionSymbol { names, module: module(address), is_local: false })
        }))
    }

    /// The function that begins at `address`.
    pub fn at(&self, address: ImageAddress) -> Option<&FunctionSymbol> {
        self.by_address.get(&address)
    }

    /// Whether more than one function has one of `symbol`'s names.
    pub fn is_ambiguous(&self, symbol: &FunctionSymbol) -> bool {
        symbol.names.iter().any(|name| self.uses.get(name).is_some_and(|&uses| uses > 1))
    }

    /// All functions, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ImageAddress, &FunctionSymbol)> {
        self.by_address.iter().map(|(&address, symbol)| (address, symbol))
    }
}
