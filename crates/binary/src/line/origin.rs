//! What a function is called and where it is declared, which may be said elsewhere.

use std::sync::{Arc, OnceLock};

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitHeader, UnitOffset, UnitSectionOffset,
};
use rustc_hash::FxHashMap;

use super::abbreviation::{Tables, sound};
use super::name::Interner;
use super::section::Reader;

/// How many references from one entry to the next are followed: an inlined call, its abstract
/// function, that one's declaration, and some more in reserve. They may be a ring.
const MAX_REFERENCES: u32 = 16;

/// A function's name and the line of its declaration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The linkage name if there is one.
    pub name: Option<u32>,
    pub line: u32,
}

/// The headers of all units, and whether the list of them is damaged.
pub fn headers<'d>(dwarf: &Dwarf<Reader<'d>>) -> (Vec<UnitHeader<Reader<'d>>>, bool) {
    let (mut headers, mut units) = (Vec::new(), dwarf.units());
    loop {
        match units.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return (headers, false),
            Err(_) => return (headers, true),
        }
    }
}

/// The units of a file, for references from one to another.
pub struct Units<'d> {
    pub headers: Vec<UnitHeader<Reader<'d>>>,
    pub tables: Tables<'d>,
    opened: Vec<OnceLock<Option<Arc<Unit<Reader<'d>>>>>>,
}

impl<'d> Units<'d> {
    pub fn new(dwarf: &Dwarf<Reader<'d>>, headers: Vec<UnitHeader<Reader<'d>>>) -> Self {
        let opened = headers.iter().map(|_| OnceLock::new()).collect();
        let tables = Tables::new(dwarf, &headers);
        Self { headers, tables, opened }
    }

    /// The unit that has the entry at `offset`, and where that is in it.
    fn find(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        offset: DebugInfoOffset,
    ) -> Option<(Arc<Unit<Reader<'d>>>, UnitOffset)> {
        let section = UnitSectionOffset::DebugInfoOffset(offset);
        let after = self.headers.partition_point(|header| header.offset() <= section);
        let index = after.checked_sub(1)?;
        let header = self.headers.get(index)?;
        let position = offset.to_unit_offset(header)?;
        let unit = self
            .opened
            .get(index)?
            .get_or_init(|| self.tables.unit(dwarf, *header).ok().map(Arc::new))
            .clone()?;
        Some((unit, position))
    }
}

/// Where an attribute's value refers to.
#[derive(Clone, Copy)]
pub enum Reference {
    Here(UnitOffset),
    Elsewhere(DebugInfoOffset),
}

impl Reference {
    pub fn new(value: AttributeValue<Reader<'_>>) -> Option<Self> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Self::Here(offset)),
            AttributeValue::DebugInfoRef(offset) => Some(Self::Elsewhere(offset)),
            _ => None,
        }
    }
}

/// What an entry itself says.
#[derive(Clone, Copy, Default)]
pub struct Named<'d> {
    pub linkage_name: Option<AttributeValue<Reader<'d>>>,
    pub name: Option<AttributeValue<Reader<'d>>>,
    pub line: Option<u32>,
    pub specification: Option<Reference>,
    pub abstract_origin: Option<Reference>,
}

impl<'d> Named<'d> {
    /// Takes note of an attribute; says whether it was one of these.
    pub fn note(&mut self, name: gimli::DwAt, value: AttributeValue<Reader<'d>>) -> bool {
        match name {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.linkage_name = Some(value);
            }
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_decl_line => self.line = value.udata_value().map(|line| line as u32),
            gimli::DW_AT_specification => self.specification = Reference::new(value),
            gimli::DW_AT_abstract_origin => self.abstract_origin = Reference::new(value),
            _ => return false,
        }
        true
    }

    fn read(unit: &Unit<Reader<'d>>, at: UnitOffset) -> Option<Self> {
        let mut named = Self::default();
        let mut entries = unit.entries_raw(Some(at)).ok()?;
        let abbreviation = sound(entries.read_abbreviation().ok()??).ok()?;
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification).ok()?;
            named.note(attribute.name(), attribute.value());
        }
        Some(named)
    }
}

/// Follows references, and remembers where they led.
pub struct Origins<'a, 'd> {
    dwarf: &'a Dwarf<Reader<'d>>,
    units: Option<&'a Units<'d>>,
    names: &'a Interner,
    known: FxHashMap<UnitSectionOffset, Found>,
}

/// What following references has found so far.
#[derive(Clone, Copy, Default)]
struct Found {
    linkage_name: Option<u32>,
    name: Option<u32>,
    line: Option<u32>,
}

impl Found {
    fn or(self, other: Self) -> Self {
        Self {
            linkage_name: self.linkage_name.or(other.linkage_name),
            name: self.name.or(other.name),
            line: self.line.or(other.line),
        }
    }
}

impl<'a, 'd> Origins<'a, 'd> {
    /// `units` are those of the file, if references may lead from one to another.
    pub fn new(
        dwarf: &'a Dwarf<Reader<'d>>,
        units: Option<&'a Units<'d>>,
        names: &'a Interner,
    ) -> Self {
        Self { dwarf, units, names, known: FxHashMap::default() }
    }

    /// The name and the line of the function that `named` is what its own entry says of.
    pub fn resolve(&mut self, unit: &Unit<Reader<'d>>, named: &Named<'d>) -> Origin {
        let found = self.follow(unit, named, MAX_REFERENCES);
        Origin { name: found.linkage_name.or(found.name), line: found.line.unwrap_or(0) }
    }

    fn follow(&mut self, unit: &Unit<Reader<'d>>, named: &Named<'d>, depth: u32) -> Found {
        let intern = |value: Option<AttributeValue<Reader<'d>>>| {
            let text = self.dwarf.attr_string(unit, value?).ok()?;
            Some(self.names.intern(text.slice()))
        };
        let linkage_name = intern(named.linkage_name);
        // Not asked for where there is a linkage name.
        let name = if linkage_name.is_none() { intern(named.name) } else { None };
        let mut found = Found { linkage_name, name, line: named.line };
        for reference in [named.specification, named.abstract_origin].into_iter().flatten() {
            if (found.linkage_name.is_some() && found.line.is_some()) || depth == 0 {
                break;
            }
            found = found.or(self.at(unit, reference, depth - 1));
        }
        found
    }

    fn at(&mut self, unit: &Unit<Reader<'d>>, reference: Reference, depth: u32) -> Found {
        let position = match reference {
            Reference::Here(offset) => offset.to_unit_section_offset(unit),
            Reference::Elsewhere(offset) => UnitSectionOffset::DebugInfoOffset(offset),
        };
        if let Some(found) = self.known.get(&position) {
            return *found;
        }
        // A walk that comes back here has walked in a ring.
        self.known.insert(position, Found::default());
        let found = match reference {
            Reference::Here(offset) => {
                Named::read(unit, offset).map(|named| self.follow(unit, &named, depth))
            }
            Reference::Elsewhere(offset) => self
                .units
                .and_then(|units| units.find(self.dwarf, offset))
                .and_then(|(unit, position)| {
                    let named = Named::read(&unit, position)?;
                    Some(self.follow(&unit, &named, depth))
                }),
        }
        .unwrap_or_default();
        self.known.insert(position, found);
        found
    }
}
