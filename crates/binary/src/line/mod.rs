//! From addresses to source locations, through all inlined calls.
//!
//! Frames equal those that llvm-profgen asks LLVM's symbolizer for (LLVM 22,
//! llvm/tools/llvm-profgen/ProfiledBinary.cpp and llvm/lib/DebugInfo/DWARF/DWARFContext.cpp):
//! names are linkage names where debug information has them, never the symbol table's; an outer
//! frame's location is where its callee was inlined, the innermost one's is the line table's.

mod abbreviation;
mod entry;
mod name;
mod origin;
mod row;
mod section;
mod segment;
mod source_file;
mod split;
mod subprogram;
mod unit;

use std::path::Path;

use mepof_address::ImageAddress;
use rayon::prelude::*;

use crate::{Binary, BinaryError};
pub use name::{NameId, Names};
pub use section::{KERNEL_LINES, PROGRAM_LINES};
pub use segment::Frame;
use segment::Segments;
pub use source_file::SourceFiles;
pub use subprogram::{SubprogramRange, Subprograms};
use unit::Search;

/// What a [`Symbolizer`] reads in addition to what covers the addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymbolizerOptions<'a> {
    /// Whether [`Symbolizer::subprograms`] has the functions of every unit, rather than
    /// only of those units that an address belongs to.
    pub all_subprograms: bool,
    /// The package (`.dwp`) with split debug information. By default the one beside the binary,
    /// its name with `.dwp` appended, and where there is none, the `.dwo` files.
    pub package: Option<&'a Path>,
}

/// Answers which source location an address belongs to, through all inlined calls.
pub struct Symbolizer {
    names: Names,
    segments: Segments,
    subprograms: Subprograms,
    damaged_units: usize,
    missing_split_units: usize,
    by_gcc: bool,
}

impl Symbolizer {
    /// Reads the debug information of `binary` for the functions that cover `addresses`, in
    /// parallel, and of nothing else; every address of these functions can then be asked for.
    /// Addresses may come in any order. `BinaryError::Missing` if there is no debug information.
    pub fn new(binary: &Binary, addresses: &[ImageAddress]) -> Result<Self, BinaryError> {
        Self::with_options(binary, addresses, SymbolizerOptions::default())
    }

    /// As [`new`](Self::new), with a choice of what else is read.
    pub fn with_options(
        binary: &Binary,
        addresses: &[ImageAddress],
        options: SymbolizerOptions<'_>,
    ) -> Result<Self, BinaryError> {
        let mut asked: Vec<u64> = addresses.iter().map(|address| address.0).collect();
        asked.sort_unstable();
        asked.dedup();
        let sections = section::load(binary)?;
        let dwarf = section::view(binary, &sections);
        let package = split::open_package(binary, options.package)?;
        let package_sections = package.as_ref().map(split::package_sections).transpose()?;
        let package = package
            .as_ref()
            .zip(package_sections.as_ref())
            .map(|(package, sections)| split::view(package, sections))
            .transpose()?;
        let search = Search::new(binary, &dwarf, &asked, options.all_subprograms, package);
        let found: Vec<_> =
            (0..search.len()).into_par_iter().map(|index| search.unit(index)).collect();

        // Where the list of units ends too early, the rest of it counts as one.
        let cut_short = usize::from(search.is_cut_short());
        let damaged_units = cut_short + found.iter().filter(|unit| unit.damaged).count();
        let missing_split_units = found.iter().filter(|unit| unit.missing_split).count();
        if damaged_units > 0 && damaged_units == found.len() + cut_short {
            return Err(BinaryError::Corrupt {
                path: binary.path().to_owned(),
                section: "debug information".to_owned(),
                what: "no unit can be read".to_owned(),
            });
        }
        let (by_gcc, others): (Vec<bool>, Vec<bool>) =
            found.iter().filter_map(|unit| unit.by_gcc).partition(|by_gcc| *by_gcc);
        let by_gcc = by_gcc.len() > others.len();
        let (names, order) = search.into_names();
        let mut subprograms = Vec::new();
        let mut segments = Segments::default();
        for unit in found {
            subprograms.extend(unit.subprograms);
            segments.append(unit.segments, &order);
        }
        segments.finish();
        let subprograms = Subprograms::new(binary, names.clone(), subprograms, &order)?;
        Ok(Self { names, segments, subprograms, damaged_units, missing_split_units, by_gcc })
    }

    /// The functions of `binary` by its symbol table, without debug information: there are no
    /// frames.
    pub fn of_symbols(binary: &Binary) -> Self {
        let subprograms = Subprograms::of_symbols(binary);
        Self {
            names: subprograms.names().clone(),
            segments: Segments::default(),
            subprograms,
            damaged_units: 0,
            missing_split_units: 0,
            by_gcc: false,
        }
    }

    /// The names that frames refer to, sorted.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The inline stack at `address`, the outermost function first; empty where debug
    /// information knows no function. A function without a name ends the stack.
    pub fn frames(&self, address: ImageAddress) -> &[Frame] {
        self.segments.frames(address.0)
    }

    /// The functions of debug information, as far as they were read: see
    /// [`SymbolizerOptions::all_subprograms`].
    pub fn subprograms(&self) -> &Subprograms {
        &self.subprograms
    }

    /// Whether GCC compiled most of the units that were read.
    pub fn is_by_gcc(&self) -> bool {
        self.by_gcc
    }

    /// How many units could not be read to their end because they are damaged.
    pub fn damaged_units(&self) -> usize {
        self.damaged_units
    }

    /// How many units are split and have their main part in a file that was not found.
    pub fn missing_split_units(&self) -> usize {
        self.missing_split_units
    }
}
