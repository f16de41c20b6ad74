//! The line table, as far as wanted functions need it.

use std::ops::Range;

use gimli::IncompleteLineProgram;

use super::section::Reader;

/// A stretch of addresses that belongs to one source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub line: u32,
    pub discriminator: u32,
}

/// The lines of the addresses in `wanted`, which is sorted and does not overlap. Spans are
/// sorted by their start; those of a sound table do not overlap. Also says whether
/// the table could be read to its end.
pub fn spans(
    program: IncompleteLineProgram<Reader<'_>>,
    wanted: &[Range<u64>],
) -> (Vec<Span>, bool) {
    let mut spans = Vec::new();
    let mut open: Option<Span> = None;
    let mut sorted = true;
    let mut rows = program.rows();
    let complete = loop {
        let row = match rows.next_row() {
            Ok(Some((_, row))) => row,
            Ok(None) => break true,
            Err(_) => break false,
        };
        let address = row.address();
        if let Some(mut span) = open.take() {
            span.end = address;
            // Of several rows at one address, the last counts.
            if span.start < span.end && is_wanted(wanted, &span) {
                sorted &= spans.last().is_none_or(|last: &Span| last.start <= span.start);
                spans.push(span);
            }
        }
        if !row.end_sequence() {
            open = Some(Span {
                start: address,
                end: address,
                line: row.line().map_or(0, |line| line.get() as u32),
                discriminator: row.discriminator() as u32,
            });
        }
    };
    if !sorted {
        spans.sort_by_key(|span| span.start);
    }
    (spans, complete)
}

fn is_wanted(wanted: &[Range<u64>], span: &Span) -> bool {
    let after = wanted.partition_point(|range| range.end <= span.start);
    wanted.get(after).is_some_and(|range| range.start < span.end)
}
