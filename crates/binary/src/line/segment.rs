//! Stretches of addresses that have one inline stack each.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::entry::{Entries, Interval};
use super::name::NameId;
use super::row::Span;

/// A source location within one function of an inline stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function.
    pub function: NameId,
    /// Lines from the function's declaration (`DW_AT_decl_line`) to the location; negative when
    /// the location is above it, and when it is line 0, which stands for no line in particular.
    /// AutoFDO keeps the low 16 bits.
    pub line_offset: i32,
    /// The DWARF discriminator, all of its bits.
    pub discriminator: u32,
}

/// How many frames a unit may have, however small it is. One that is larger may have a frame for
/// each of its bytes; real ones have one for about twenty.
const MIN_FRAMES: usize = 1 << 16;

/// Addresses with one inline stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    start: u64,
    size: u32,
    stack: u32,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size.into())
    }
}

/// Segments by address, and their stacks.
#[derive(Debug, Default)]
pub struct Segments {
    segments: Vec<Segment>,
    frames: Vec<Frame>,
    /// Where each stack ends in `frames`; it begins where the one before ends.
    ends: Vec<u32>,
}

impl Segments {
    /// The stack at `address`, the outermost function first.
    pub fn frames(&self, address: u64) -> &[Frame] {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        after
            .checked_sub(1)
            .and_then(|index| self.segments.get(index))
            .filter(|segment| address < segment.end())
            .and_then(|segment| {
                let index = segment.stack as usize;
                let end = *self.ends.get(index)? as usize;
                let start = match index.checked_sub(1) {
                    Some(before) => *self.ends.get(before)? as usize,
                    None => 0,
                };
                self.frames.get(start..end)
            })
            .unwrap_or_default()
    }

    /// The segments of a unit: what `entries` say of functions, and `spans` of lines. Names are
    /// provisional ids. Also says whether all fitted: calls that are nested without end would make
    /// each stack longer than the last.
    pub fn of_unit(mut entries: Entries, spans: &[Span]) -> (Self, bool) {
        let limit = entries.size.max(MIN_FRAMES);
        let mut complete = true;
        let pieces = pieces(std::mem::take(&mut entries.intervals));
        let mut all = Self::default();
        let mut known: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        let mut add = |start: u64, end: u64, node: u32, line: u32, discriminator: u32| {
            let stack = *known.entry((node, line, discriminator)).or_insert_with(|| {
                let first = all.frames.len();
                if first < limit {
                    push_stack(&mut all.frames, first, &entries, node, line, discriminator);
                } else {
                    complete = false;
                }
                all.ends.push(all.frames.len() as u32);
                (all.ends.len() - 1) as u32
            });
            let size = u32::try_from(end - start).unwrap_or(u32::MAX);
            match all.segments.last_mut() {
                Some(last) if last.stack == stack && last.end() == start => {
                    last.size = last.size.saturating_add(size);
                }
                _ => all.segments.push(Segment { start, size, stack }),
            }
        };
        let mut spans = spans.iter().peekable();
        for piece in &pieces {
            let mut position = piece.start;
            while position < piece.end {
                while spans.next_if(|span| span.end <= position).is_some() {}
                let (end, line, discriminator) = match spans.peek() {
                    Some(span) if span.start <= position => {
                        (span.end.min(piece.end), span.line, span.discriminator)
                    }
                    Some(span) => (span.start.min(piece.end), 0, 0),
                    None => (piece.end, 0, 0),
                };
                add(position, end, piece.node, line, discriminator);
                position = end;
            }
        }
        (all, complete)
    }

    /// Takes over the segments of another unit; `order` has the final id of each provisional one.
    pub fn append(&mut self, other: Self, order: &[NameId]) {
        let first_stack = self.ends.len() as u32;
        let first_frame = self.frames.len() as u32;
        self.frames.extend(other.frames.into_iter().map(|frame| Frame {
            function: order.get(frame.function.0 as usize).copied().unwrap_or(frame.function),
            ..frame
        }));
        self.ends.extend(other.ends.into_iter().map(|end| end + first_frame));
        self.segments.extend(
            other
                .segments
                .into_iter()
                .map(|segment| Segment { stack: segment.stack + first_stack, ..segment }),
        );
    }

    /// Sorts what units added. Where two units claim an address, the earlier one has it.
    pub fn finish(&mut self) {
        self.frames.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.segments.shrink_to_fit();
        if self.segments.is_sorted_by(|a, b| a.end() <= b.start) {
            return;
        }
        self.segments.sort_by_key(|segment| segment.start);
        if self.segments.is_sorted_by(|a, b| a.end() <= b.start) {
            return;
        }
        // The later a node, the more it counts; units count the other way round.
        let last = self.ends.len() as u32;
        let intervals = self
            .segments
            .iter()
            .map(|segment| Interval {
                start: segment.start,
                node: last - segment.stack,
                end: segment.end(),
            })
            .collect();
        self.segments = pieces(intervals)
            .into_iter()
            .map(|piece| Segment {
                start: piece.start,
                size: u32::try_from(piece.end - piece.start).unwrap_or(u32::MAX),
                stack: last - piece.node,
            })
            .collect();
    }
}

/// Appends the stack of `node` with a line in it; stacks begin at `first` meanwhile.
fn push_stack(
    frames: &mut Vec<Frame>,
    first: usize,
    entries: &Entries,
    node: u32,
    line: u32,
    discriminator: u32,
) {
    let (mut current, mut line, mut discriminator) = (Some(node), line, discriminator);
    while let Some(node) = current.and_then(|index| entries.nodes.get(index as usize)) {
        match node.origin.name {
            Some(name) => frames.push(Frame {
                function: NameId(name),
                line_offset: line.wrapping_sub(node.origin.line) as i32,
                discriminator,
            }),
            // What was inlined into the function has no name cannot be attributed.
            None => frames.truncate(first),
        }
        (current, line, discriminator) = (node.parent, node.call_line, node.call_discriminator);
    }
    if let Some(stack) = frames.get_mut(first..) {
        stack.reverse();
    }
}

/// Cuts intervals so that none overlaps another: at each address, that of the latest node stays.
fn pieces(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut pieces: Vec<Interval> = Vec::with_capacity(intervals.len());
    let mut open: BinaryHeap<(u32, u64)> = BinaryHeap::new(); // nodes with ends
    let mut position = 0;
    let mut close = |open: &mut BinaryHeap<(u32, u64)>, position: &mut u64, limit: u64| {
        while let Some(&(node, end)) = open.peek() {
            let to = end.min(limit);
            if *position < to {
                match pieces.last_mut() {
                    Some(last) if last.node == node && last.end == *position => last.end = to,
                    _ => pieces.push(Interval { start: *position, node, end: to }),
                }
                *position = to;
            }
            if end > limit {
                break;
            }
            open.pop();
        }
    };
    for interval in intervals {
        close(&mut open, &mut position, interval.start);
        position = interval.start;
        open.push((interval.node, interval.end));
    }
    close(&mut open, &mut position, u64::MAX);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(intervals: &[(u64, u64, u32)]) -> Vec<(u64, u64, u32)> {
        let interval = |&(start, end, node)| Interval { start, node, end };
        pieces(intervals.iter().map(interval).collect())
            .into_iter()
            .map(|piece| (piece.start, piece.end, piece.node))
            .collect()
    }

    #[test]
    fn an_inlined_call_is_cut_out_of_its_caller() {
        let cut = cut(&[(0, 100, 0), (10, 40, 1), (20, 30, 2), (60, 70, 1)]);
        let expected = [
            (0, 10, 0),
            (10, 20, 1),
            (20, 30, 2),
            (30, 40, 1),
            (40, 60, 0),
            (60, 70, 1),
            (70, 100, 0),
        ];
        assert_eq!(cut, expected);
    }

    #[test]
    fn of_overlapping_functions_the_later_one_has_the_code() {
        assert_eq!(cut(&[(0, 20, 0), (10, 30, 1)]), [(0, 10, 0), (10, 30, 1)]);
        assert_eq!(cut(&[(0, 20, 1), (10, 30, 0)]), [(0, 20, 1), (20, 30, 0)]);
        assert_eq!(cut(&[(0, 20, 0), (0, 20, 1)]), [(0, 20, 1)]);
    }
}
