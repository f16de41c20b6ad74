//! Which source file code comes from.

use std::ops::Range;

use gimli::Section;
use mepof_address::ImageAddress;

use super::abbreviation::Tables;
use super::origin::headers;
use super::section;
use crate::{Binary, BinaryError};

/// The source files of compile units (`DW_AT_name`, as the compiler was given it), by the code
/// that the units have.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles {
    names: Vec<String>,
    units: Vec<(Range<u64>, u32)>, // by address
}

impl SourceFiles {
    /// Reads the units of `binary`. What is damaged has no name, nor have units whose main part
    /// is in another file. `BinaryError::Missing` if there is no debug information.
    pub fn read(binary: &Binary) -> Result<Self, BinaryError> {
        let sections = section::load(binary)?;
        let dwarf = section::view(binary, &sections);
        // Many units may share one long list of ranges.
        let mut ranges_left = dwarf.debug_info.reader().len();
        let mut found = Self::default();
        let (headers, _) = headers(&dwarf);
        let tables = Tables::new(&dwarf, &headers);
        for header in headers {
            let Ok(unit) = tables.unit(&dwarf, header) else { continue };
            let (Some(name), Ok(mut ranges)) = (unit.name, dwarf.unit_ranges(&unit)) else {
                continue;
            };
            let number = found.names.len() as u32;
            while let Ok(Some(range)) = ranges.next() {
                let Some(left) = ranges_left.checked_sub(1) else { break };
                ranges_left = left;
                if range.begin < range.end {
                    found.units.push((range.begin..range.end, number));
                }
            }
            found.names.push(String::from_utf8_lossy(name.slice()).into_owned());
        }
        found.units.sort_by_key(|(range, _)| range.start);
        Ok(found)
    }

    /// The source file of the code at `address`.
    pub fn at(&self, address: ImageAddress) -> Option<&str> {
        let after = self.units.partition_point(|(range, _)| range.start <= address.0);
        let (range, name) = self.units.get(after.checked_sub(1)?)?;
        let name = self.names.get(*name as usize)?;
        range.contains(&address.0).then_some(name)
    }
}
