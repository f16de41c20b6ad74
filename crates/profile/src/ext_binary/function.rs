use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cursor::Cursor;
use crate::{FunctionProfile, LineLocation, MAX_INLINE_DEPTH, Profile, ReadError};

/// The names that everything after the name table refers to by number.
pub(super) struct NameTable<N>(pub(super) Vec<N>);

impl<N> NameTable<N> {
    pub(super) fn name(&self, cursor: &mut Cursor<'_>) -> Result<&N, ReadError> {
        let beyond = cursor.malformed("a name index is beyond the name table");
        let index = usize::try_from(cursor.uleb("a name index")?).ok();
        index.and_then(|index| self.0.get(index)).ok_or(beyond)
    }
}

/// Reads functions one after the other up to the end of `cursor`.
pub(super) fn read_all(
    cursor: &mut Cursor<'_>,
    names: &NameTable<Arc<str>>,
    virtual_tables: bool,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    let reader = Reader { names, virtual_tables };
    while !cursor.is_at_end() {
        let head = cursor.uleb("a function's head count")?;
        let function = profile.function_mut(names.name(cursor)?);
        function.head = function.head.saturating_add(head);
        reader.body(cursor, function, 0)?;
    }
    Ok(())
}

struct Reader<'a> {
    names: &'a NameTable<Arc<str>>,
    virtual_tables: bool,
}

impl Reader<'_> {
    fn body(
        &self,
        cursor: &mut Cursor<'_>,
        function: &mut FunctionProfile,
        depth: usize,
    ) -> Result<(), ReadError> {
        function.total = function.total.saturating_add(cursor.uleb("a function's total")?);
        // Offset, discriminator, count and the number of targets: a byte each at least.
        for _ in 0..cursor.count(4, "the lines of a function")? {
            let location = read_location(cursor)?;
            function.add_line(location, cursor.uleb("a line's count")?);
            for _ in 0..cursor.count(2, "the targets of a line")? {
                let target = self.names.name(cursor)?;
                let count = cursor.uleb("a target's count")?;
                function.line_mut(location).add_target(target, count);
            }
        }
        for _ in 0..cursor.count(6, "the calls inlined into a function")? {
            if depth >= MAX_INLINE_DEPTH {
                return Err(cursor.malformed("inlined calls nest deeper than 256"));
            }
            let location = read_location(cursor)?;
            let callee = self.names.name(cursor)?;
            self.body(cursor, function.inlined_mut(location, callee), depth + 1)?;
        }
        if self.virtual_tables { skip_virtual_tables(cursor, self.names) } else { Ok(()) }
    }
}

/// Which virtual tables calls went through: of C++ only, not modelled.
pub(super) fn skip_virtual_tables<N>(
    cursor: &mut Cursor<'_>,
    names: &NameTable<N>,
) -> Result<(), ReadError> {
    for _ in 0..cursor.count(3, "the virtual calls of a function")? {
        read_location(cursor)?;
        for _ in 0..cursor.count(2, "the virtual tables of a call")? {
            names.name(cursor)?;
            cursor.uleb("a virtual table's count")?;
        }
    }
    Ok(())
}

pub(super) fn read_location(cursor: &mut Cursor<'_>) -> Result<LineLocation, ReadError> {
    let offset = cursor.uleb_u32("a line offset")?;
    if offset > LineLocation::MAX_OFFSET {
        return Err(cursor.malformed("a line offset exceeds 65535"));
    }
    Ok(LineLocation { offset, discriminator: cursor.uleb_u32("a discriminator")? })
}

/// Appends functions, with the numbers that names have.
pub(super) struct Encoder<'a> {
    pub(super) profile: &'a Profile,
    pub(super) numbers: FxHashMap<&'a Arc<str>, u64>,
}

impl Encoder<'_> {
    pub(super) fn name(&self, name: &Arc<str>, out: &mut Vec<u8>) {
        // Every name of the profile has a number.
        write_uleb(self.numbers.get(name).copied().unwrap_or_default(), out);
    }

    pub(super) fn body(&self, name: &Arc<str>, function: &FunctionProfile, out: &mut Vec<u8>) {
        let order = self.profile.name_order();
        self.name(name, out);
        write_uleb(function.total, out);
        write_count(function.body.len(), out);
        for (&location, line) in &function.body {
            write_location(location, out);
            write_uleb(line.count, out);
            write_count(line.targets.len(), out);
            for (target, count) in line.sorted_targets(order) {
                self.name(target, out);
                write_uleb(count, out);
            }
        }
        write_count(function.inlined.values().map(BTreeMap::len).sum(), out);
        for (location, callee, copy) in function.inlined_calls(order) {
            write_location(location, out);
            self.body(callee, copy, out);
        }
    }
}

pub(super) fn write_location(location: LineLocation, out: &mut Vec<u8>) {
    write_uleb(location.offset.into(), out);
    write_uleb(location.discriminator.into(), out);
}

pub(super) fn write_count(count: usize, out: &mut Vec<u8>) {
    write_uleb(count as u64, out);
}

pub(super) fn write_uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
