//! llvm-profgen's unsymbolized text: see [`crate::input::unsymbolized`].

use std::io::{self, Write};

use mepof_address::ImageAddress;

use crate::ImageTrace;

/// What llvm-profgen writes in place of a source outside of the binary: LLVM 22,
/// llvm/tools/llvm-profgen/PerfReader.h, `ExternalAddr`.
const OUTSIDE: u64 = 1;

/// Writes `trace` in the order and with the digits of llvm-profgen. With a `base`, the linked
/// address of the first executable segment, addresses are offsets from it, as llvm-profgen
/// expects them by default; without, they are for its `--use-offset=0`.
///
/// Branches out of the binary are left out, as they are there: a count needs a location in it.
pub fn write(
    trace: &ImageTrace,
    base: Option<ImageAddress>,
    out: &mut impl Write,
) -> io::Result<()> {
    let base = base.map_or(0, |base| base.0);
    writeln!(out, "{}", trace.ranges.len())?;
    for range in &trace.ranges {
        let (first, last) = (range.first.0.wrapping_sub(base), range.last.0.wrapping_sub(base));
        writeln!(out, "{first:x}-{last:x}:{}", range.count)?;
    }
    let branches = || {
        trace.branches.iter().filter_map(|branch| {
            let from = branch.from.map_or(OUTSIDE, |from| from.0);
            Some((from, branch.to?.0, branch.count))
        })
    };
    writeln!(out, "{}", branches().count())?;
    for (from, to, count) in branches() {
        let (from, to) = (from.wrapping_sub(base), to.wrapping_sub(base));
        writeln!(out, "{from:x}->{to:x}:{count}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Branch, FallThrough};

    #[test]
    fn it_is_written_as_llvm_profgen_does() {
        let at = |address| Some(ImageAddress(address));
        let trace = ImageTrace {
            branches: vec![
                Branch { from: None, to: at(0x20_1010), count: 2, single: 0 },
                Branch { from: at(0x20_10ab), to: None, count: 9, single: 0 },
                Branch { from: at(0x20_10ab), to: at(0x20_1000), count: 3, single: 0 },
            ],
            ranges: vec![FallThrough {
                first: ImageAddress(0x20_1000),
                last: ImageAddress(0x20_10ab),
                count: 7,
            }],
            ..ImageTrace::default()
        };
        let text = |base| {
            let mut out = Vec::new();
            write(&trace, base, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(None), "1\n201000-2010ab:7\n2\n1->201010:2\n2010ab->201000:3\n");
        let offsets = "1\n0-ab:7\n2\nffffffffffdff001->10:2\nab->0:3\n";
        assert_eq!(text(at(0x20_1000)), offsets);
    }
}
