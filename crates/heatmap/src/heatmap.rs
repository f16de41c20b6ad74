use std::cmp::Reverse;
use std::collections::BTreeMap;

use mepof_address::{ImageAddress, Placement, RuntimeAddress};
use mepof_binary::{Binary, Function, Section};
use serde::Serialize;

use crate::HeatCounter;

/// Rows at most: more than a screen has lines.
const MAX_ROWS: usize = 16_384;
/// Functions that are named.
const NAMED_FUNCTIONS: usize = 24;

/// Why there is no heatmap.
#[derive(Debug, thiserror::Error)]
pub enum HeatmapError {
    /// Nothing of the record lies in the binary.
    #[error("nothing that was recorded is in {0}; give the exact build that ran")]
    Nothing(String),
    /// The section that was asked for is not there.
    #[error("{binary} has no section {section} with code; it has {known}")]
    NoSection {
        /// The binary.
        binary: String,
        /// The section.
        section: String,
        /// The sections that there are.
        known: String,
    },
}

/// The columns of a heatmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeAxis {
    /// When the first column begins, in nanoseconds on the input's clock.
    pub start_ns: u64,
    /// Nanoseconds of each column.
    pub column_ns: u64,
}

/// Consecutive rows of one section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectionRows {
    /// The section's name.
    pub name: String,
    /// Its first address.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Its first row.
    pub first_row: usize,
    /// How many rows it has.
    pub rows: usize,
}

/// A function that ran often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotFunction {
    /// Its name.
    pub name: String,
    /// Its first address.
    pub address: u64,
    /// The row of its first address.
    pub row: usize,
    /// Its visits.
    pub visits: u64,
    /// Its share of all visits of the binary, in per cent.
    pub percent: f64,
}

/// How often the parts of one binary ran, over time.
///
/// A *visit* is one granule of code that was run through once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heatmap {
    /// The binary's file.
    pub binary: String,
    /// The columns; `None` if the input has no times, and all visits are in one column.
    pub time: Option<TimeAxis>,
    /// Bytes of code that are counted as one.
    pub granule_bytes: u64,
    /// Bytes of code in a row; the last row of a section may have fewer.
    pub row_bytes: u64,
    /// The sections in which something ran, by address.
    pub sections: Vec<SectionRows>,
    /// The functions with the most visits, those first.
    pub functions: Vec<HotFunction>,
    /// Visits of the binary.
    pub visits: u64,
    /// Visits outside of the binary.
    pub visits_outside: u64,
    /// Visits without a time, which are in no column although there are columns.
    pub visits_untimed: u64,
    /// Ranges that were too long to be true, which are not counted.
    pub implausible_ranges: u64,
    /// The visits of each row, the lowest addresses first, by column.
    pub rows: Vec<Vec<u64>>,
}

impl Heatmap {
    /// What `counter` has of `binary`, which ran at `placement`, in about `rows` rows; of one
    /// `section` alone, if that is given.
    pub fn new(
        counter: &HeatCounter,
        placement: &Placement,
        binary: &Binary,
        section: Option<&str>,
        rows: usize,
    ) -> Result<Self, HeatmapError> {
        let name = binary.path().to_string_lossy().into_owned();
        let wanted = |candidate: &&Section| section.is_none_or(|name| candidate.name == name);
        let sections: Vec<&Section> = binary.sections().iter().filter(wanted).collect();
        if let (true, Some(section)) = (sections.is_empty(), section) {
            let known: Vec<&str> = binary.sections().iter().map(|s| s.name.as_str()).collect();
            let (section, known) = (section.to_owned(), known.join(", "));
            return Err(HeatmapError::NoSection { binary: name, section, known });
        }
        let granule_bytes = counter.granule_bytes();
        let time = counter.time();
        let columns = time.map_or(1, |(_, _, columns)| columns);
        let mut granules: BTreeMap<ImageAddress, Vec<u64>> = BTreeMap::new();
        let (mut outside, mut untimed) = (0u64, 0u64);
        for granule in counter.granules() {
            let mut counts: Vec<u64> = (0..columns).map(|column| granule.at(column)).collect();
            let timed = sum(&counts);
            // A section may begin in the middle of a granule.
            let last = RuntimeAddress(granule.address.0.wrapping_add(granule_bytes - 1));
            let mut images = [granule.address, last].into_iter().filter_map(|address| {
                placement.to_image(address).filter(|&image| section_at(&sections, image).is_some())
            });
            let Some(image) = images.next() else {
                outside = outside.saturating_add(timed).saturating_add(granule.untimed);
                continue;
            };
            match (time, counts.first_mut()) {
                (None, Some(only)) => *only = granule.untimed,
                _ => untimed = untimed.saturating_add(granule.untimed),
            }
            let kept = granules.entry(image).or_insert_with(|| vec![0; columns]);
            kept.iter_mut().zip(&counts).for_each(|(a, b)| *a = a.saturating_add(*b));
        }
        granules.retain(|_, counts| counts.iter().any(|&count| count > 0));
        if granules.is_empty() {
            return Err(HeatmapError::Nothing(name));
        }
        let (row_bytes, sections) = layout(&sections, &granules, granule_bytes, rows);
        let mut map = Self {
            binary: name,
            time: time.map(|(start_ns, column_ns, _)| TimeAxis { start_ns, column_ns }),
            granule_bytes,
            row_bytes,
            functions: Vec::new(),
            visits: granules.values().fold(0, |all, counts| all.saturating_add(sum(counts))),
            visits_outside: outside,
            visits_untimed: untimed,
            implausible_ranges: counter.implausible(),
            rows: vec![vec![0; columns]; sections.iter().map(|section| section.rows).sum()],
            sections,
        };
        for (&address, counts) in &granules {
            let row = map.row_of(address.0).and_then(|row| map.rows.get_mut(row));
            for (kept, count) in row.into_iter().flatten().zip(counts) {
                *kept = kept.saturating_add(*count);
            }
        }
        map.functions = map.hottest(binary, &granules);
        Ok(map)
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The row that `address` lies in.
    pub fn row_of(&self, address: u64) -> Option<usize> {
        let section = self.sections.iter().find(|s| address.wrapping_sub(s.address) < s.size)?;
        let offset = (address - section.address) / self.row_bytes.max(1);
        Some(section.first_row + (offset as usize).min(section.rows.saturating_sub(1)))
    }

    /// The first address of `row`.
    pub fn address_of(&self, row: usize) -> Option<u64> {
        let inside = |s: &&SectionRows| row.wrapping_sub(s.first_row) < s.rows;
        let section = self.sections.iter().find(inside)?;
        let offset = (row - section.first_row) as u64;
        Some(section.address.saturating_add(offset.saturating_mul(self.row_bytes)))
    }

    fn hottest(
        &self,
        binary: &Binary,
        granules: &BTreeMap<ImageAddress, Vec<u64>>,
    ) -> Vec<HotFunction> {
        let mut visits: BTreeMap<ImageAddress, (&Function, u64)> = BTreeMap::new();
        for (&address, counts) in granules {
            // A granule may begin in the padding before the function that it has most of.
            let middle = ImageAddress(address.0.wrapping_add(self.granule_bytes / 2));
            if let Some(function) = binary.function_at(middle) {
                let total = &mut visits.entry(function.addresses.start).or_insert((function, 0)).1;
                *total = total.saturating_add(sum(counts));
            }
        }
        let mut all: Vec<(&Function, u64)> = visits.into_values().collect();
        all.sort_by_key(|&(_, visits)| Reverse(visits)); // stable: by address where equal
        all.truncate(NAMED_FUNCTIONS);
        let named = |(function, visits): (&Function, u64)| HotFunction {
            name: function.name.clone(),
            address: function.addresses.start.0,
            row: self.row_of(function.addresses.start.0).unwrap_or_default(),
            visits,
            percent: 100.0 * visits as f64 / self.visits.max(1) as f64,
        };
        all.into_iter().map(named).collect()
    }
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |total, &count| total.saturating_add(count))
}

fn section_at<'a>(sections: &[&'a Section], address: ImageAddress) -> Option<&'a Section> {
    sections.iter().copied().find(|section| section.addresses.contains(&address))
}

/// The bytes of a row, and the rows of every section in which something ran.
fn layout(
    sections: &[&Section],
    granules: &BTreeMap<ImageAddress, Vec<u64>>,
    granule_bytes: u64,
    rows: usize,
) -> (u64, Vec<SectionRows>) {
    let ran: Vec<&&Section> = sections
        .iter()
        .filter(|section| granules.range(section.addresses.clone()).next().is_some())
        .collect();
    let size =
        |section: &Section| section.addresses.end.0.saturating_sub(section.addresses.start.0);
    let total = ran.iter().fold(0u64, |total, section| total.saturating_add(size(section)));
    let row_bytes = total
        .div_ceil(rows.clamp(1, MAX_ROWS) as u64)
        .max(1)
        .checked_next_multiple_of(granule_bytes)
        .unwrap_or(total);
    let mut first_row = 0;
    let rows = ran.into_iter().map(|section| {
        let rows = size(section).div_ceil(row_bytes).max(1) as usize;
        let (name, address) = (section.name.clone(), section.addresses.start.0);
        let laid = SectionRows { name, address, size: size(section), first_row, rows };
        first_row += rows;
        laid
    });
    (row_bytes, rows.collect())
}
