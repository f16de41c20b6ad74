//! A table of functions, and how much of each ran.

use std::io::{self, Write};

use mepof_binary::Function;
use mepof_convert::{Executed, executed};

use super::format::{OutputFormat, Writer};
use crate::fault::written;

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "functions",
    options: &[],
    writer: Writer::Image {
        several: false,
        write: |job, path, files| {
            let functions = job.image.binary.functions();
            let ran = executed(functions, job.trace);
            files.write(path, |out| written(write(out, functions, &ran)))
        },
    },
};

fn write(out: &mut impl Write, functions: &[Function], ran: &[Executed]) -> io::Result<()> {
    writeln!(out, "address\tsize\texecuted\tbranches\tfunction")?;
    for (function, Executed { bytes, branches }) in functions.iter().zip(ran) {
        let (start, end) = (function.addresses.start.0, function.addresses.end.0);
        let (size, name) = (end - start, &function.name);
        writeln!(out, "{start:x}\t{size}\t{bytes}\t{branches}\t{name}")?;
    }
    Ok(())
}
