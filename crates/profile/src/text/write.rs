use std::io::Write;
use std::sync::Arc;

use crate::names::checked_names;
use crate::samples::NameOrder;
use crate::{Format, FunctionProfile, LineLocation, Profile, WriteError};

/// Writes `profile` as text, as `llvm-profdata merge --sample --text` would.
///
/// Text cannot say that discriminators are flow-sensitive or that a profile is partial, and holds
/// no list of symbols: those are lost, as with LLVM's tool.
///
/// # Errors
/// What cannot be written so that a compiler reads the same, and errors of `out`.
pub fn write(profile: &Profile, out: &mut impl Write) -> Result<(), WriteError> {
    checked_names(profile, Format::Text, |name| {
        // The reader finds a name by what surrounds it.
        name.is_empty() || name.starts_with([' ', '#', '!']) || name.contains(['\n', '\r', '\0'])
    })?;
    let writer = Writer { order: profile.name_order(), probe_based: profile.probe_based };
    for (name, function) in profile.by_total() {
        writeln!(out, "{name}:{}:{}", function.total, function.head)?;
        writer.function(function, 1, out)?;
    }
    Ok(())
}

struct Writer {
    order: NameOrder,
    probe_based: bool,
}

impl Writer {
    fn function(
        &self,
        function: &FunctionProfile,
        indent: usize,
        out: &mut impl Write,
    ) -> Result<(), WriteError> {
        for (location, line) in &function.body {
            write_location(*location, indent, out)?;
            write!(out, "{}", line.count)?;
            for (target, count) in line.sorted_targets(self.order) {
                write!(out, " {target}:{count}")?;
            }
            writeln!(out)?;
        }
        for (location, name, callee) in function.inlined_calls(self.order) {
            self.inlined(location, name, callee, indent, out)?;
        }
        if self.probe_based {
            writeln!(out, "{:indent$}!CFGChecksum: {}", "", function.checksum.unwrap_or(0))?;
        }
        if function.attributes != 0 {
            writeln!(out, "{:indent$}!Attributes: {}", "", function.attributes)?;
        }
        Ok(())
    }

    fn inlined(
        &self,
        location: LineLocation,
        name: &Arc<str>,
        callee: &FunctionProfile,
        indent: usize,
        out: &mut impl Write,
    ) -> Result<(), WriteError> {
        write_location(location, indent, out)?;
        writeln!(out, "{name}:{}", callee.total)?;
        self.function(callee, indent.saturating_add(1), out)
    }
}

fn write_location(
    location: LineLocation,
    indent: usize,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    write!(out, "{:indent$}{}", "", location.offset)?;
    if location.discriminator > 0 {
        write!(out, ".{}", location.discriminator)?;
    }
    Ok(write!(out, ": ")?)
}
