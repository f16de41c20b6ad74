use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_machine::{CodeKind, Machine};
use object::elf;
use object::read::elf::{ElfFile, FileHeader, Sym};
use object::{Object, ObjectSymbol};

use super::section::{Section, SectionHeader};

/// A function of the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As the symbol table calls it, suffixes such as `.llvm.123`, `.cold` and `.__part.1`
    /// included. Where several symbols share an address: the global one, then by name.
    pub name: String,
    /// What it covers. A symbol without a size reaches to the next one, or to the section's end.
    pub addresses: Range<ImageAddress>,
    /// Whether this is where calls go, not a part that was split off.
    pub is_entry: bool,
}

/// A symbol that lies in code: of a function, or a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSymbol<'a> {
    /// As the symbol table calls it.
    pub name: &'a [u8],
    /// Its first byte.
    pub address: ImageAddress,
    /// Bytes; 0 if the symbol table does not say.
    pub size: u64,
}

/// How good a symbol's claim to be the function at its address is; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Global,
    Weak,
    Local,
    /// Code without a function's type: entry code that assembly defines.
    Untyped,
}

struct Symbol<'a> {
    address: u64,
    claim: Claim,
    name: &'a [u8],
    size: u64,
}

/// What the symbol table says about code.
pub struct Symbols<'a> {
    symbols: Vec<Symbol<'a>>,
    code_kinds: Vec<(ImageAddress, CodeKind)>,
}

impl<'a> Symbols<'a> {
    pub fn read<Elf: FileHeader<Endian = object::Endianness>>(
        machine: Machine,
        file: &ElfFile<'a, Elf>,
        headers: &[SectionHeader],
    ) -> Self {
        let endian = file.endian();
        let relocatable = file.elf_header().e_type(endian) == elf::ET_REL;
        let mut symbols = Vec::new();
        let mut code_kinds = Vec::new();
        // A stripped program still has its dynamic symbols.
        let table = if file.elf_symbol_table().is_empty() {
            file.dynamic_symbols()
        } else {
            file.symbols()
        };
        for symbol in table {
            let header = symbol.section_index().and_then(|index| headers.get(index.0));
            let Some(header) = header.filter(|header| header.is_code()) else { continue };
            let Ok(name) = symbol.name_bytes() else { continue };
            let base = if relocatable { header.address } else { 0 };
            let raw = symbol.elf_symbol();
            let mut address = base.wrapping_add(symbol.address());
            let local = raw.st_bind() == elf::STB_LOCAL;
            let claim = match raw.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => match raw.st_bind() {
                    elf::STB_LOCAL => Claim::Local,
                    elf::STB_WEAK => Claim::Weak,
                    _ => Claim::Global,
                },
                elf::STT_NOTYPE => {
                    if let Some(kind) = machine.mapping_symbol(name) {
                        code_kinds.push((ImageAddress(address), kind));
                        continue;
                    }
                    if name.is_empty() || (raw.st_size(endian).into() == 0 && is_mark(name)) {
                        continue;
                    }
                    Claim::Untyped
                }
                _ => continue,
            };
            if local && name.starts_with(b".L") {
                continue;
            }
            if claim != Claim::Untyped {
                address &= !machine.mode_bit();
            }
            symbols.push(Symbol { address, claim, name, size: raw.st_size(endian).into() });
        }
        code_kinds.sort_unstable();
        code_kinds.dedup_by_key(|(address, _)| *address);
        Self { symbols, code_kinds }
    }

    pub fn into_code_kinds(self) -> Vec<(ImageAddress, CodeKind)> {
        self.code_kinds
    }

    /// The functions, by address. One that lies within another is cut out of it.
    pub fn functions(&self, sections: &[Section]) -> Vec<Function> {
        let mut typed: Vec<&Symbol<'_>> = self.symbols.iter().collect();
        typed.sort_unstable_by(|a, b| {
            // Of the same claim, one with a size before one without.
            let key = |symbol: &Symbol<'_>| (symbol.address, symbol.claim, symbol.size == 0);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(b.name))
        });
        typed.dedup_by_key(|symbol| symbol.address);
        // Labels within a function are not functions.
        let mut covered = 0;
        typed.retain(|symbol| {
            let inner = symbol.claim == Claim::Untyped && symbol.address < covered;
            if symbol.claim != Claim::Untyped {
                covered = covered.max(symbol.address.saturating_add(symbol.size));
            }
            !inner
        });

        let mut functions = Vec::with_capacity(typed.len());
        let mut open: Vec<(&Symbol<'_>, u64)> = Vec::new(); // around the current one, with ends
        let mut position = 0; // up to where addresses are given out
        let mut sections = sections.iter().peekable();
        for (index, symbol) in typed.iter().enumerate() {
            while sections.next_if(|section| section.addresses.end.0 <= symbol.address).is_some() {}
            let Some(section) =
                sections.peek().filter(|section| section.addresses.start.0 <= symbol.address)
            else {
                continue;
            };
            close(&mut functions, &mut open, &mut position, symbol.address);
            let limit = section.addresses.end.0;
            let end = if symbol.size == 0 {
                typed.get(index + 1).map_or(limit, |next| next.address.min(limit))
            } else {
                symbol.address.saturating_add(symbol.size).min(limit)
            };
            position = symbol.address;
            open.push((symbol, end));
        }
        close(&mut functions, &mut open, &mut position, u64::MAX);
        functions
    }
}

/// Gives addresses up to `limit` to the functions that are open, the innermost first.
fn close(
    functions: &mut Vec<Function>,
    open: &mut Vec<(&Symbol<'_>, u64)>,
    position: &mut u64,
    limit: u64,
) {
    while let Some((symbol, end)) = open.last() {
        let to = (*end).min(limit);
        if *position < to {
            let name = String::from_utf8_lossy(symbol.name).into_owned();
            functions.push(Function {
                // What follows an inner function is not an entry of the outer one.
                is_entry: *position == symbol.address && !is_part(&name),
                name,
                addresses: ImageAddress(*position)..ImageAddress(to),
            });
            *position = to;
        }
        if *end > limit {
            break;
        }
        open.pop();
    }
}

/// Whether a symbol without type and size marks a boundary, as linker scripts define them.
fn is_mark(name: &[u8]) -> bool {
    const MARKS: [&[u8]; 8] = [
        b"_text",
        b"_stext",
        b"_etext",
        b"_sinittext",
        b"_einittext",
        b"__init_begin",
        b"_end",
        b"_start_ro",
    ];
    MARKS.contains(&name)
        || (name.starts_with(b"__")
            && [&b"_start"[..], b"_end", b"_begin", b"_stop"]
                .iter()
                .any(|suffix| name.ends_with(suffix)))
}

/// Whether a function's name says that it is a part of another, or only stands before one:
/// hot-cold splitting and `-fsplit-machine-functions` append `.cold`, basic-block sections
/// `.__part.` and a number, GCC `.cold` and `.part.` and a number (the latter are called, so
/// they count as entries); the kernel's build puts `__pfx_` and `__cfi_` symbols on what stands
/// before a function's entry.
fn is_part(name: &str) -> bool {
    whole_function(name).len() < name.len()
        || name.starts_with("__pfx_")
        || name.starts_with("__cfi_")
}

/// The function that the code called `name` is a part of, or is.
pub fn whole_function(name: &str) -> &str {
    let mut end = 0;
    for (number, suffix) in name.split('.').enumerate() {
        if number > 0 && (suffix == "cold" || suffix == "__part") {
            return name.get(..end - 1).unwrap_or(name);
        }
        end += suffix.len() + 1;
    }
    name
}
