//! The functions and inlined calls of a unit.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use gimli::{Abbreviation, AttributeValue, Dwarf, EntriesRaw, Unit, UnitOffset};

use super::abbreviation::sound;
use super::origin::{Named, Origin, Origins};
use super::section::Reader;

/// A function, or a call that was inlined.
pub struct Node {
    /// What it was inlined into, as an index of a node; `None` for a function that stands alone.
    pub parent: Option<u32>,
    pub origin: Origin,
    /// Where in its parent it was called.
    pub call_line: u32,
    pub call_discriminator: u32,
}

/// Addresses that belong to a node, unless an interval of a later node covers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    pub start: u64,
    pub node: u32,
    pub end: u64,
}

/// A function and all its ranges.
pub struct Subprogram {
    pub name: u32,
    pub ranges: Vec<Range<u64>>,
}

/// What is wanted of a unit.
pub struct Wish<'a> {
    /// Addresses, sorted.
    pub asked: &'a [u64],
    /// Whether a range is one of code that the binary has: the linker may have dropped it.
    pub is_code: &'a (dyn Fn(&Range<u64>) -> bool + Sync),
}

impl Wish<'_> {
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let after = self.asked.partition_point(|address| *address < range.start);
        self.asked.get(after).is_some_and(|address| *address < range.end)
    }

    /// Whether an address that was asked for belongs to `unit`. Each of its ranges takes one from
    /// `ranges_left`, of which all units have some together: they may share one long list.
    pub fn covers_unit<'d>(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        unit: &Unit<Reader<'d>>,
        ranges_left: &AtomicUsize,
    ) -> gimli::Result<bool> {
        let mut entries = unit.entries_raw(None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(false) };
        let attributes = Attributes::read(&mut entries, sound(abbreviation)?)?;
        let before = ranges_left.load(Ordering::Relaxed);
        let (mut covers, mut left) = (false, before);
        let read = attributes.ranges(dwarf, unit, &mut left, |range| covers |= self.covers(&range));
        let used = before - left;
        // It cannot fail: what is taken is at most what is there.
        let _ = ranges_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            Some(all.saturating_sub(used))
        });
        read.map(|()| covers)
    }
}

/// What a unit has.
#[derive(Default)]
pub struct Entries {
    pub nodes: Vec<Node>,
    pub intervals: Vec<Interval>,
    pub subprograms: Vec<Subprogram>,
    /// What the functions cover that were asked for.
    pub wanted: Vec<Range<u64>>,
    /// Whether the unit could not be read to its end.
    pub damaged: bool,
    /// Bytes of the unit.
    pub size: usize,
    /// Whether GCC compiled it.
    pub by_gcc: bool,
}

/// What an entry's attributes say.
#[derive(Default)]
struct Attributes<'d> {
    named: Named<'d>,
    low: Option<AttributeValue<Reader<'d>>>,
    high: Option<AttributeValue<Reader<'d>>>,
    ranges: Option<AttributeValue<Reader<'d>>>,
    sibling: Option<UnitOffset>,
    call_line: u32,
    call_discriminator: u32,
}

impl<'d> Attributes<'d> {
    fn read(
        entries: &mut EntriesRaw<'_, '_, Reader<'d>>,
        abbreviation: &Abbreviation,
    ) -> gimli::Result<Self> {
        let mut all = Self::default();
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_low_pc => all.low = Some(value),
                gimli::DW_AT_high_pc => all.high = Some(value),
                gimli::DW_AT_ranges => all.ranges = Some(value),
                gimli::DW_AT_sibling => {
                    if let AttributeValue::UnitRef(offset) = value {
                        all.sibling = Some(offset);
                    }
                }
                gimli::DW_AT_call_line => {
                    all.call_line = value.udata_value().unwrap_or(0) as u32;
                }
                gimli::DW_AT_GNU_discriminator => {
                    all.call_discriminator = value.udata_value().unwrap_or(0) as u32;
                }
                name => {
                    all.named.note(name, value);
                }
            }
        }
        Ok(all)
    }

    /// The ranges that are not empty. Each takes one from `left`, and it is an error when
    /// nothing is left.
    fn ranges(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        unit: &Unit<Reader<'d>>,
        left: &mut usize,
        mut take: impl FnMut(Range<u64>),
    ) -> gimli::Result<()> {
        let address = |value| dwarf.attr_address(unit, value);
        if let (Some(low), Some(high)) = (self.low, self.high) {
            let start = address(low)?;
            let end = match high.udata_value() {
                Some(size) => start.and_then(|start| start.checked_add(size)),
                None => address(high)?,
            };
            if let Some((start, end)) = start.zip(end).filter(|(start, end)| start < end) {
                take(start..end);
            }
            return Ok(());
        }
        let Some(value) = self.ranges else { return Ok(()) };
        let Some(mut list) = dwarf.attr_ranges(unit, value)? else { return Ok(()) };
        while let Some(range) = list.next()? {
            *left = left.checked_sub(1).ok_or(gimli::Error::UnsupportedOffset)?;
            if range.begin < range.end {
                take(range.begin..range.end);
            }
        }
        Ok(())
    }
}

/// Reads a unit's entries.
pub struct Walk<'a, 'd> {
    dwarf: &'a Dwarf<Reader<'d>>,
    unit: &'a Unit<Reader<'d>>,
    origins: Origins<'a, 'd>,
    wish: &'a Wish<'a>,
    /// How many more ranges there may be: many entries may share one long list of them.
    ranges_left: usize,
    found: Entries,
}

impl<'a, 'd> Walk<'a, 'd> {
    pub fn new(
        dwarf: &'a Dwarf<Reader<'d>>,
        unit: &'a Unit<Reader<'d>>,
        origins: Origins<'a, 'd>,
        wish: &'a Wish<'a>,
    ) -> Self {
        let ranges_left = unit.header.unit_length().max(4096);
        Self { dwarf, unit, origins, wish, ranges_left, found: Entries::default() }
    }

    /// Reads all entries.
    pub fn run(mut self) -> Entries {
        self.found.by_gcc = self.is_by_gcc().unwrap_or_default();
        self.found.damaged = self.entries().is_err();
        self.found.size = self.unit.header.unit_length();
        self.found.wanted.sort_unstable_by_key(|range| range.start);
        self.found.wanted.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        self.found
    }

    /// Whether GCC compiled the unit.
    fn is_by_gcc(&self) -> gimli::Result<bool> {
        let mut entries = self.unit.entries();
        let Some((_, root)) = entries.next_dfs()? else { return Ok(false) };
        let Some(producer) = root.attr_value(gimli::DW_AT_producer)? else { return Ok(false) };
        let name = self.dwarf.attr_string(self.unit, producer)?.slice();
        Ok(name.starts_with(b"GNU ") && !name.starts_with(b"GNU AS "))
    }

    fn entries(&mut self) -> gimli::Result<()> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(None)?;
        let mut base = 0; // depth at which `entries` began
        let mut open: Vec<(isize, Option<u32>)> = Vec::new(); // functions around, with depths
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = base + entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let abbreviation = sound(abbreviation)?;
            while open.last().is_some_and(|(outer, _)| *outer >= depth) {
                open.pop();
            }
            let around = open.last().and_then(|(_, node)| *node);
            let mut skip_to = None;
            match abbreviation.tag() {
                gimli::DW_TAG_subprogram => {
                    let attributes = Attributes::read(&mut entries, abbreviation)?;
                    let node = self.subprogram(&attributes)?;
                    open.push((depth, node));
                    if node.is_none() {
                        skip_to = attributes.sibling;
                    }
                }
                gimli::DW_TAG_inlined_subroutine if around.is_some() => {
                    let attributes = Attributes::read(&mut entries, abbreviation)?;
                    open.push((depth, Some(self.inlined(&attributes, around)?)));
                }
                // Only these have children that are functions or inlined calls.
                gimli::DW_TAG_compile_unit
                | gimli::DW_TAG_partial_unit
                | gimli::DW_TAG_skeleton_unit
                | gimli::DW_TAG_namespace
                | gimli::DW_TAG_lexical_block
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_module => entries.skip_attributes(abbreviation.attributes())?,
                _ if abbreviation.has_children() => {
                    skip_to = sibling(&mut entries, abbreviation)?;
                }
                _ => entries.skip_attributes(abbreviation.attributes())?,
            }
            // A sibling that lies behind would never end.
            if let Some(sibling) = skip_to.filter(|sibling| *sibling > offset) {
                if sibling >= entries.next_offset() && abbreviation.has_children() {
                    entries = unit.entries_raw(Some(sibling))?;
                    base = depth;
                }
            }
        }
        Ok(())
    }

    /// The node of a function if it covers addresses that were asked for.
    fn subprogram(&mut self, attributes: &Attributes<'d>) -> gimli::Result<Option<u32>> {
        let mut ranges = Vec::new();
        self.ranges(attributes, |range| ranges.push(range))?;
        ranges.retain(|range| (self.wish.is_code)(range));
        if ranges.is_empty() {
            return Ok(None);
        }
        let origin = self.origins.resolve(self.unit, &attributes.named);
        let wanted = ranges.iter().any(|range| self.wish.covers(range));
        let node = wanted.then(|| self.node(None, origin, attributes));
        if let Some(node) = node {
            self.found.wanted.extend(ranges.iter().cloned());
            let interval =
                |range: &Range<u64>| Interval { start: range.start, node, end: range.end };
            self.found.intervals.extend(ranges.iter().map(interval));
        }
        if let Some(name) = origin.name {
            self.found.subprograms.push(Subprogram { name, ranges });
        }
        Ok(node)
    }

    fn inlined(&mut self, attributes: &Attributes<'d>, parent: Option<u32>) -> gimli::Result<u32> {
        let origin = self.origins.resolve(self.unit, &attributes.named);
        let node = self.node(parent, origin, attributes);
        let mut intervals = std::mem::take(&mut self.found.intervals);
        let outcome = self.ranges(attributes, |range| {
            intervals.push(Interval { start: range.start, node, end: range.end });
        });
        self.found.intervals = intervals;
        outcome.map(|()| node)
    }

    fn node(&mut self, parent: Option<u32>, origin: Origin, attributes: &Attributes<'_>) -> u32 {
        let index = self.found.nodes.len() as u32;
        self.found.nodes.push(Node {
            parent,
            origin,
            call_line: attributes.call_line,
            call_discriminator: attributes.call_discriminator,
        });
        index
    }

    /// The ranges of an entry that are not empty.
    fn ranges(
        &mut self,
        attributes: &Attributes<'d>,
        take: impl FnMut(Range<u64>),
    ) -> gimli::Result<()> {
        attributes.ranges(self.dwarf, self.unit, &mut self.ranges_left, take)
    }
}

/// Where an entry's next sibling is, if it says so.
fn sibling(
    entries: &mut EntriesRaw<'_, '_, Reader<'_>>,
    abbreviation: &Abbreviation,
) -> gimli::Result<Option<UnitOffset>> {
    let attributes = abbreviation.attributes();
    let is_sibling =
        |attribute: &gimli::AttributeSpecification| attribute.name() == gimli::DW_AT_sibling;
    if !attributes.iter().any(is_sibling) {
        entries.skip_attributes(attributes)?;
        return Ok(None);
    }
    let mut sibling = None;
    for specification in attributes {
        let attribute = entries.read_attribute(*specification)?;
        if let (gimli::DW_AT_sibling, AttributeValue::UnitRef(offset)) =
            (attribute.name(), attribute.value())
        {
            sibling = Some(offset);
        }
    }
    Ok(sibling)
}
