use super::function::{NameTable, read_location, skip_virtual_tables};
use super::read::{Destination, Metadata};
use crate::cursor::Cursor;
use crate::samples::Merge;
use crate::sum::{Addition, Function, Number};
use crate::{MAX_INLINE_DEPTH, ReadError};

impl Destination for Addition<'_> {
    type Name = Number;

    fn name(&mut self, text: &str) -> Number {
        self.number(text)
    }

    fn symbols(&mut self, names: Vec<Number>) {
        names.into_iter().for_each(|number| self.symbol(number));
    }

    fn functions(
        &mut self,
        cursor: &mut Cursor<'_>,
        names: &NameTable<Number>,
        virtual_tables: bool,
    ) -> Result<(), ReadError> {
        let mut adder = Adder { names, virtual_tables, weight: self.weight, merge: self.merge };
        while !cursor.is_at_end() {
            let head = cursor.uleb("a function's head count")?;
            let number = *names.name(cursor)?;
            let mut function = self.take(number);
            adder.merge.add(&mut function.head, head, adder.weight);
            let total = adder.body(cursor, &mut function, 0)?;
            self.total = self.total.saturating_add(total);
            self.put(number, function);
        }
        self.merge = adder.merge;
        Ok(())
    }

    fn metadata(
        &mut self,
        cursor: &mut Cursor<'_>,
        _: &Metadata<'_, Number>,
    ) -> Result<(), ReadError> {
        if cursor.is_at_end() { Ok(()) } else { Err(cursor.malformed("it has metadata")) }
    }
}

/// Adds functions as [`super::function`] reads them.
struct Adder<'a> {
    names: &'a NameTable<Number>,
    virtual_tables: bool,
    weight: u64,
    merge: Merge,
}

impl Adder<'_> {
    /// Gives the function's total, before weighting.
    fn body(
        &mut self,
        cursor: &mut Cursor<'_>,
        function: &mut Function,
        depth: usize,
    ) -> Result<u64, ReadError> {
        let total = cursor.uleb("a function's total")?;
        self.merge.add(&mut function.total, total, self.weight);
        let mut at = 0;
        for _ in 0..cursor.count(4, "the lines of a function")? {
            let line = function.body.entry(&mut at, read_location(cursor)?);
            self.merge.add(&mut line.count, cursor.uleb("a line's count")?, self.weight);
            for _ in 0..cursor.count(2, "the targets of a line")? {
                let target = line.targets.entry(*self.names.name(cursor)?).or_default();
                self.merge.add(target, cursor.uleb("a target's count")?, self.weight);
            }
        }
        function.body.settle();
        let mut at = 0;
        for _ in 0..cursor.count(6, "the calls inlined into a function")? {
            if depth >= MAX_INLINE_DEPTH {
                return Err(cursor.malformed("inlined calls nest deeper than 256"));
            }
            let call = (read_location(cursor)?, *self.names.name(cursor)?);
            self.body(cursor, function.inlined.entry(&mut at, call), depth + 1)?;
        }
        function.inlined.settle();
        if self.virtual_tables {
            skip_virtual_tables(cursor, self.names)?;
        }
        Ok(total)
    }
}
