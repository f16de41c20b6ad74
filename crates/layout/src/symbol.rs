use std::fs::File;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, BinaryError};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};
use rustc_hash::FxHashMap;

/// What a function is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// Its names, as the symbol table has them: the first is the usual one, the others are
    /// aliases.
    pub names: Vec<String>,
    /// The source file of its compile unit, as `DW_AT_name` has it. Clang compares it with the
    /// name of the file that it compiles, and tells functions of the same name apart by it.
    pub module: Option<String>,
    /// If the first name is local to a file: which of all local symbols of that name it is, in
    /// the order of addresses, from 1. BOLT appends it to the name.
    pub local_number: Option<u32>,
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

    /// The names that the symbol table of `binary` has, aliases included. `module` gives the
    /// source file of a function's compile unit, where that is known.
    pub fn read(
        binary: &Binary,
        module: impl Fn(ImageAddress) -> Option<String>,
    ) -> Result<Self, BinaryError> {
        let path = binary.path();
        let file =
            File::open(path).map_err(|source| BinaryError::Io { path: path.to_owned(), source })?;
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).map_err(|error| BinaryError::NotABinary {
            path: path.to_owned(),
            what: format!("not a readable ELF file: {error}"),
        })?;
        let mut functions: FxHashMap<ImageAddress, Vec<Named>> = FxHashMap::default();
        for (address, named) in named(binary, &elf) {
            if named.is_function {
                functions.entry(address).or_default().push(named);
            }
        }
        Ok(Self::new(functions.into_iter().map(|(address, mut all)| {
            all.sort_by(|one, other| {
                let key = |named: &Named| (named.local_number.is_some(), named.is_weak);
                key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
            });
            let local_number = all.first().and_then(|first| first.local_number);
            let mut names: Vec<String> = all.into_iter().map(|named| named.name).collect();
            names.dedup();
            (address, FunctionSymbol { names, module: module(address), local_number })
        })))
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

struct Named {
    name: String,
    is_function: bool,
    is_weak: bool,
    local_number: Option<u32>,
}

/// The symbols of `elf` by address, with local ones numbered as BOLT does it (LLVM 22,
/// `RewriteInstance::discoverFileObjects`): all that are in memory count, data too.
fn named<'d>(
    binary: &Binary,
    elf: &object::File<'d, &'d ReadCache<File>>,
) -> Vec<(ImageAddress, Named)> {
    let mut symbols: Vec<(ImageAddress, bool, Named, bool)> = Vec::new();
    for symbol in elf.symbols() {
        let Ok(name) = symbol.name() else { continue };
        if name.is_empty() || matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section) {
            continue;
        }
        let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
        let Some(section) = section else { continue };
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags & object::elf::SHF_ALLOC == object::elf::SectionFlags(0) {
            continue;
        }
        let mut address = symbol.address();
        if binary.is_relocatable() {
            // Code of a module lies where `Binary` put it, which is by section.
            let offset = section.file_range().map(|(offset, _)| offset);
            let code = binary.sections().iter().find(|code| Some(code.file_offset) == offset);
            let Some(code) = code else { continue };
            address = address.wrapping_add(code.addresses.start.0);
        }
        let is_function = symbol.kind() == SymbolKind::Text;
        let named = Named {
            name: name.to_owned(),
            is_function,
            is_weak: symbol.is_weak(),
            local_number: None,
        };
        symbols.push((ImageAddress(address), !is_function, named, symbol.is_local()));
    }
    symbols.sort_by_key(|&(address, is_data, ..)| (address, is_data));
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    symbols
        .into_iter()
        .map(|(address, _, mut named, is_local)| {
            if is_local {
                let number = numbers.entry(named.name.clone()).or_default();
                *number = number.saturating_add(1);
                named.local_number = Some(*number);
            }
            (address, named)
        })
        .collect()
}
