//! The tables of abbreviations, which say what the entries of units look like.

use std::sync::{Arc, OnceLock};

use gimli::{
    Abbreviation, Abbreviations, DebugAbbrev, DebugAbbrevOffset, Dwarf, Reader as _, Section, Unit,
    UnitHeader,
};

use super::section::Reader;

/// Bytes of a table: a unit of a kernel has some hundred, one of a kernel that was optimised as a
/// whole some ten thousand.
const LARGEST_TABLE: usize = 4 << 20;
/// Attributes of an entry. Compilers write up to thirty; some need no byte in the entry, so that
/// their number is not bounded by the size of the unit.
const MAX_ATTRIBUTES: usize = 128;

/// `abbreviation`, or an error if its entries have more attributes than any compiler writes.
pub fn sound(abbreviation: &Abbreviation) -> gimli::Result<&Abbreviation> {
    match abbreviation.attributes().len() {
        0..=MAX_ATTRIBUTES => Ok(abbreviation),
        _ => Err(gimli::Error::UnsupportedOffset),
    }
}

/// Where tables begin.
///
/// A table ends where the next one begins: those of a hostile file may all reach to the end of
/// the section, and each would cost as much as all of them.
pub struct Tables<'d> {
    section: Reader<'d>,
    /// Sorted.
    starts: Vec<Start>,
}

struct Start {
    offset: usize,
    /// Where several units have this table, it is read once and kept.
    shared: Option<OnceLock<gimli::Result<Arc<Abbreviations>>>>,
}

impl<'d> Tables<'d> {
    /// Those that the units with `headers` have.
    pub fn new(dwarf: &Dwarf<Reader<'d>>, headers: &[UnitHeader<Reader<'d>>]) -> Self {
        let mut offsets: Vec<usize> =
            headers.iter().map(|header| header.debug_abbrev_offset().0).collect();
        offsets.sort_unstable();
        let starts = offsets.chunk_by(|one, another| one == another);
        let starts = starts.filter_map(|same| {
            let shared = (same.len() > 1).then(OnceLock::new);
            Some(Start { offset: *same.first()?, shared })
        });
        Self { section: *dwarf.debug_abbrev.reader(), starts: starts.collect() }
    }

    /// Opens the unit with `header`.
    pub fn unit(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        header: UnitHeader<Reader<'d>>,
    ) -> gimli::Result<Unit<Reader<'d>>> {
        let table = self.table(header.debug_abbrev_offset())?;
        // To open it is to read all attributes of its first entry.
        if let Some(first) = header.entries_raw(&table, None)?.read_abbreviation()? {
            sound(first)?;
        }
        Unit::new_with_abbreviations(dwarf, header, table)
    }

    fn table(&self, at: DebugAbbrevOffset) -> gimli::Result<Arc<Abbreviations>> {
        let unknown = gimli::Error::UnsupportedOffset;
        let index = self.starts.binary_search_by_key(&at.0, |start| start.offset);
        let start = index.ok().and_then(|index| Some((index, self.starts.get(index)?)));
        let (index, start) = start.ok_or(unknown)?;
        let next = self.starts.get(index + 1).map_or(usize::MAX, |next| next.offset);
        let end = next.min(self.section.len()).min(start.offset.saturating_add(LARGEST_TABLE));
        let read = || {
            let bytes = self.section.slice().get(start.offset..end).ok_or(unknown)?;
            let table = DebugAbbrev::new(bytes, self.section.endian());
            table.abbreviations(DebugAbbrevOffset(0)).map(Arc::new)
        };
        match &start.shared {
            Some(shared) => shared.get_or_init(read).clone(),
            None => read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, RunTimeEndian, SectionId};

    use super::*;

    const UNIT: u8 = gimli::DW_TAG_compile_unit.0 as u8;

    /// An abbreviation without children, and with so many attributes, which are all true.
    fn abbreviation(code: u8, attributes: usize) -> Vec<u8> {
        let flags = [gimli::DW_AT_prototyped.0 as u8, gimli::DW_FORM_flag_present.0 as u8];
        [vec![code, UNIT, 0], flags.repeat(attributes), vec![0, 0]].concat()
    }

    /// Opens units of one entry: each has the offset of its table, and the entry's code.
    fn open<T>(
        tables: &[u8],
        units: &[(u32, u8)],
        look: impl Fn(&Tables<'_>, &Dwarf<Reader<'_>>, &[UnitHeader<Reader<'_>>]) -> T,
    ) -> T {
        let unit = |&(table, code): &(u32, u8)| {
            // Length, version, kind, bytes of an address; table; entry.
            let head = [&9_u32.to_le_bytes()[..], &[5, 0, 1, 8]].concat();
            [head, table.to_le_bytes().to_vec(), vec![code]].concat()
        };
        let info: Vec<u8> = units.iter().flat_map(unit).collect();
        let section = |id| match id {
            SectionId::DebugInfo => &info[..],
            SectionId::DebugAbbrev => tables,
            _ => &[],
        };
        let load = |id| Ok(EndianSlice::new(section(id), RunTimeEndian::Little));
        let dwarf = Dwarf::load(load).and_then(|dwarf: Dwarf<Reader<'_>>| {
            let (mut headers, mut all) = (Vec::new(), dwarf.units());
            while let Some(header) = all.next()? {
                headers.push(header);
            }
            Ok::<_, gimli::Error>((dwarf, headers))
        });
        let (dwarf, headers) = dwarf.unwrap();
        look(&Tables::new(&dwarf, &headers), &dwarf, &headers)
    }

    #[test]
    fn a_table_ends_where_the_next_one_begins() {
        // One long table, and units that claim to begin in the middle of it.
        let tables: Vec<u8> = (1..=100).flat_map(|code| abbreviation(code, 0)).collect();
        let units: Vec<(u32, u8)> = (0..100).map(|n| (5 * n, n as u8 + 1)).collect();
        open(&tables, &units, |tables, dwarf, headers| {
            for (header, code) in headers.iter().zip(1..) {
                let unit = tables.unit(dwarf, *header).unwrap();
                assert!(unit.abbreviations.get(code).is_some());
                assert!(unit.abbreviations.get(code + 1).is_none(), "that is of the next table");
            }
        });
    }

    #[test]
    fn units_share_a_table() {
        open(&abbreviation(1, 2), &[(0, 1), (0, 1)], |tables, dwarf, headers| {
            let [one, another] = [0, 1].map(|n| tables.unit(dwarf, headers[n]).unwrap());
            assert!(Arc::ptr_eq(&one.abbreviations, &another.abbreviations));
        });
    }

    #[test]
    fn entries_with_endless_attributes_are_refused() {
        for (attributes, is_read) in [(MAX_ATTRIBUTES, true), (MAX_ATTRIBUTES + 1, false)] {
            open(&abbreviation(1, attributes), &[(0, 1)], |tables, dwarf, headers| {
                assert_eq!(tables.unit(dwarf, headers[0]).is_ok(), is_read);
            });
        }
    }
}
