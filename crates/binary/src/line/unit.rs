//! Finds the units that addresses belong to, and reads them.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use gimli::{Dwarf, DwarfPackage, IncompleteLineProgram, Section, Unit, UnitHeader, UnitType};
use mepof_address::ImageAddress;

use super::abbreviation::Tables;
use super::entry::{Entries, Subprogram, Walk, Wish};
use super::name::{Interner, NameId, Names};
use super::origin::{Origins, Units, headers};
use super::section::{self, Reader};
use super::segment::Segments;
use super::{row, split};
use crate::Binary;

/// What a unit had.
#[derive(Default)]
pub struct UnitFound {
    pub segments: Segments,
    pub subprograms: Vec<Subprogram>,
    pub damaged: bool,
    pub missing_split: bool,
    /// Whether GCC compiled it; None where its entries were not read.
    pub by_gcc: Option<bool>,
}

/// Looks for addresses in all units; one thread can look at one unit while another looks at
/// another.
pub struct Search<'a, 'd> {
    binary: &'a Binary,
    dwarf: &'a Dwarf<Reader<'d>>,
    units: Units<'d>,
    package: Option<DwarfPackage<Reader<'a>>>,
    asked: &'a [u64],
    all_subprograms: bool,
    names: Interner,
    /// Whether the list of units itself is damaged.
    cut_short: bool,
    /// How many more bytes of line programs may be run.
    line_bytes_left: AtomicUsize,
    /// How many more ranges of units may be read.
    ranges_left: AtomicUsize,
    /// How many more bytes of a package's units may be looked through.
    split_bytes_left: AtomicUsize,
}

/// How often all of the line table may be run: real units have a program of their own each.
const LINE_TABLE_RUNS: usize = 4;
/// How often all of a package may be looked through: each of its units has its own part.
const PACKAGE_READINGS: usize = 4;

impl<'a, 'd> Search<'a, 'd> {
    /// `asked` is sorted. With `all_subprograms`, units that none of it belongs to are read for
    /// their functions too.
    pub fn new(
        binary: &'a Binary,
        dwarf: &'a Dwarf<Reader<'d>>,
        asked: &'a [u64],
        all_subprograms: bool,
        package: Option<DwarfPackage<Reader<'a>>>,
    ) -> Self {
        let (headers, cut_short) = headers(dwarf);
        let units = Units::new(dwarf, headers);
        let names = Interner::default();
        let lists = [
            dwarf.ranges.debug_ranges().reader().len(),
            dwarf.ranges.debug_rnglists().reader().len(),
        ];
        let ranges = lists.iter().sum::<usize>().saturating_add(units.headers.len());
        let split_bytes = package.as_ref().map_or(usize::MAX, |package| {
            package.debug_info.reader().len().saturating_mul(PACKAGE_READINGS)
        });
        let line_bytes = dwarf.debug_line.reader().len().saturating_mul(LINE_TABLE_RUNS);
        Self {
            binary,
            dwarf,
            units,
            package,
            asked,
            all_subprograms,
            names,
            cut_short,
            line_bytes_left: AtomicUsize::new(line_bytes),
            ranges_left: AtomicUsize::new(ranges),
            split_bytes_left: AtomicUsize::new(split_bytes),
        }
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.units.headers.len()
    }

    /// Whether the list of units is cut short by damage.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// The names that units had; see [`Interner::finish`].
    pub fn into_names(self) -> (Names, Vec<NameId>) {
        self.names.finish()
    }

    /// Reads the unit at `index` if it is asked for.
    pub fn unit(&self, index: usize) -> UnitFound {
        self.read(index).unwrap_or_else(|_| UnitFound { damaged: true, ..UnitFound::default() })
    }

    fn read(&self, index: usize) -> gimli::Result<UnitFound> {
        let Some(header) = self.units.headers.get(index) else { return Ok(UnitFound::default()) };
        if !matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_)) {
            return Ok(UnitFound::default());
        }
        let unit = self.units.tables.unit(self.dwarf, *header)?;
        let is_code = |range: &Range<u64>| self.is_code(range);
        let mut wish = Wish { asked: self.asked, is_code: &is_code };
        if !wish.covers_unit(self.dwarf, &unit, &self.ranges_left)? {
            if !self.all_subprograms {
                return Ok(UnitFound::default());
            }
            wish.asked = &[];
        }
        let mut missing_split = false;
        let entries = match unit.dwo_id {
            Some(id) => {
                let split = self.split_entries(&unit, id, &wish);
                missing_split = split.is_none();
                split
            }
            None => None,
        };
        // Where its main part is missing, a skeleton has something to say itself.
        let entries = entries.unwrap_or_else(|| {
            let origins = Origins::new(self.dwarf, Some(&self.units), &self.names);
            Walk::new(self.dwarf, &unit, origins, &wish).run()
        });
        Ok(self.finish(unit, entries, missing_split))
    }

    /// What the main part of a split unit has, if it is found.
    fn split_entries(
        &self,
        skeleton: &Unit<Reader<'d>>,
        id: gimli::DwoId,
        wish: &Wish<'_>,
    ) -> Option<Entries> {
        if let Some(package) = &self.package {
            let dwarf = package.find_cu(id, self.dwarf).ok()??;
            take(&self.split_bytes_left, dwarf.debug_info.reader().len()).then_some(())?;
            return self.main_part(&dwarf, skeleton, id, wish);
        }
        let file = split::dwo_file(self.binary, self.dwarf, skeleton)?;
        let sections = split::dwo_sections(&file).ok()?;
        let mut dwarf = section::view(&file, &sections);
        dwarf.make_dwo(self.dwarf);
        self.main_part(&dwarf, skeleton, id, wish)
    }

    fn main_part<'x>(
        &self,
        dwarf: &Dwarf<Reader<'x>>,
        skeleton: &Unit<Reader<'x>>,
        id: gimli::DwoId,
        wish: &Wish<'_>,
    ) -> Option<Entries> {
        let (headers, _) = headers(dwarf);
        let tables = Tables::new(dwarf, &headers);
        let other = |header: &UnitHeader<_>| match header.type_() {
            UnitType::SplitCompilation(other) => other != id,
            UnitType::SplitType { .. } | UnitType::Type { .. } => true,
            _ => false, // before DWARF 5 the header does not tell
        };
        for header in headers.into_iter().filter(|header| !other(header)) {
            let mut unit = tables.unit(dwarf, header).ok()?;
            if unit.dwo_id == Some(id) {
                unit.copy_relocated_attributes(skeleton);
                let origins = Origins::new(dwarf, None, &self.names);
                return Some(Walk::new(dwarf, &unit, origins, wish).run());
            }
        }
        None
    }

    fn is_code(&self, range: &Range<u64>) -> bool {
        let sections = self.binary.sections();
        let start = ImageAddress(range.start);
        let after = sections.partition_point(|section| section.addresses.start <= start);
        after
            .checked_sub(1)
            .and_then(|index| sections.get(index))
            .is_some_and(|section| range.end <= section.addresses.end.0)
    }

    /// Brings functions and lines together.
    fn finish(
        &self,
        unit: Unit<Reader<'d>>,
        mut entries: Entries,
        missing_split: bool,
    ) -> UnitFound {
        let subprograms = std::mem::take(&mut entries.subprograms);
        let by_gcc = Some(entries.by_gcc);
        let mut damaged = entries.damaged;
        let mut segments = Segments::default();
        if !entries.wanted.is_empty() {
            let (spans, lines_complete) = match unit.line_program {
                Some(program) if self.is_affordable(&program) => {
                    row::spans(program, &entries.wanted)
                }
                Some(_) => (Vec::new(), false),
                None => (Vec::new(), true),
            };
            let (found, frames_complete) = Segments::of_unit(entries, &spans);
            damaged |= !lines_complete || !frames_complete;
            segments = found;
        }
        UnitFound { segments, subprograms, damaged, missing_split, by_gcc }
    }

    /// Whether a line program may run: not when many units claim the same long one.
    fn is_affordable(&self, program: &IncompleteLineProgram<Reader<'d>>) -> bool {
        let size = program.header().raw_program_buf().len();
        take(&self.line_bytes_left, size)
    }
}

/// Takes `size` from what is `left`, if there is so much.
fn take(left: &AtomicUsize, size: usize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size)).is_ok()
}
