//! Where the symbols of the binaries are, for inputs with names in place of addresses.

use std::sync::OnceLock;

use mepof_address::{ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::input::Wanted;
use mepof_trace::input::perf_script::{NamedSymbol, SymbolAddresses, SymbolTable};

use crate::image::{Image, wanted};

/// Modules have overlapping image addresses: for each, from the second on, addresses are so much
/// higher. No module is that large, and no program's or kernel's addresses lie there.
const MODULE_STRIDE: u64 = 1 << 40;

/// The symbols of all binaries. Most inputs have addresses: nothing is looked up before a name is.
#[derive(Debug)]
pub(crate) struct Symbols<'a> {
    images: &'a [Image],
    table: OnceLock<SymbolTable>,
}

impl<'a> Symbols<'a> {
    /// The symbols of `images`.
    pub(crate) fn new(images: &'a [Image]) -> Self {
        Self { images, table: OnceLock::new() }
    }

    /// The binary whose addresses inputs without mappings have: the first.
    pub(crate) fn wanted(&self) -> Option<Wanted<'a>> {
        self.images.first().map(|image| wanted(&image.binary))
    }
}

impl SymbolAddresses for Symbols<'_> {
    fn symbol(&self, name: &[u8]) -> Option<NamedSymbol> {
        let table = self.table.get_or_init(|| {
            let mut table = SymbolTable::default();
            for (index, image) in self.images.iter().enumerate() {
                add(&mut table, &image.binary, slide(&image.binary, index));
            }
            table
        });
        table.symbol(name)
    }
}

/// Where names of the `index`-th binary are taken to have run.
pub(crate) fn placement(binary: &Binary, index: usize) -> Placement {
    let slide = slide(binary, index);
    let regions = binary.sections().iter().map(|section| Region {
        runtime: RuntimeAddress(section.addresses.start.0.wrapping_add(slide)),
        image: section.addresses.start,
        size: section.addresses.end.0.saturating_sub(section.addresses.start.0),
    });
    Placement::new(regions.collect())
}

fn slide(binary: &Binary, index: usize) -> u64 {
    if binary.is_relocatable() { MODULE_STRIDE.wrapping_mul(index as u64) } else { 0 }
}

/// Adds the symbols of code in `binary`. perf may take the size of a symbol from the symbol
/// table, or from the next symbol, as where it has /proc/kallsyms only: each reaches as far as
/// either says.
fn add(table: &mut SymbolTable, binary: &Binary, slide: u64) {
    // It was read before: there is no error to come.
    let mut symbols = binary.symbols_of_code().unwrap_or_default();
    symbols.sort_unstable_by_key(|symbol| symbol.address);
    let mut next = None;
    for group in symbols.chunk_by(|one, other| one.address == other.address).rev() {
        let Some(start) = group.first().map(|symbol| symbol.address) else { continue };
        let end = section_end(binary, start);
        let next_start = next.unwrap_or(end).min(end);
        for symbol in group {
            let size = next_start.0.saturating_sub(start.0).max(symbol.size);
            table.add(symbol.name, RuntimeAddress(start.0.wrapping_add(slide)), size);
        }
        next = Some(start);
    }
}

/// One past the section that `address` lies in; without one, `address`.
fn section_end(binary: &Binary, address: ImageAddress) -> ImageAddress {
    let sections = binary.sections();
    let after = sections.partition_point(|section| section.addresses.start <= address);
    let section = after.checked_sub(1).and_then(|index| sections.get(index));
    section.map_or(address, |section| section.addresses.end.max(address))
}
