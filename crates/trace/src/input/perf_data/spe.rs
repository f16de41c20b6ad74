//! Arm's Statistical Profiling Extension: one operation for each sample, and of those that are
//! taken branches source and target.
//!
//! Sources: Linux 6.12, tools/perf/util/arm-spe-decoder/; Arm Architecture Reference Manual,
//! chapter "Statistical Profiling Extension Sample Record Specification".

use mepof_address::RuntimeAddress;

use super::decoder::Decoder;
use super::feeder::Feeder;
use crate::{BranchEntry, BranchKind, Cause, Sample, Sink, Space, Speculation, Tally};

const PAD: u8 = 0;
const END: u8 = 1;
const TIMESTAMP: u8 = 0x71;
/// The longest packet: two bytes of header and eight of payload.
const MAX_PACKET: usize = 10;

mod event {
    pub(super) const RETIRED: u64 = 1 << 1;
    pub(super) const NOT_TAKEN: u64 = 1 << 6;
    pub(super) const MISPREDICTED: u64 = 1 << 7;
}

/// Class and subclass of a branch, in an operation packet.
mod operation {
    pub(super) const CLASS_BRANCH: u8 = 2;
    pub(super) const CONDITIONAL: u64 = 1;
    /// Of FEAT_SPE_CRR: 1 is a branch with link, 2 a return.
    pub(super) const CALL_RETURN: (u32, u64) = (3, 3);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    Padding,
    /// The end of a record, with the time or without it.
    End,
    /// Index and payload.
    Address(u8, u64),
    Events(u64),
    Operation(u8, u64),
    Other,
}

/// The packet at the front of `bytes` and its length; `None` if it is cut off.
fn packet(bytes: &[u8]) -> Option<Result<(Packet, usize), usize>> {
    let &first = bytes.first()?;
    match first {
        PAD => return Some(Ok((Packet::Padding, 1))),
        END => return Some(Ok((Packet::End, 1))),
        _ => {}
    }
    let extended = first & 0xfc == 0x20;
    let header = if extended { *bytes.get(1)? } else { first };
    let start = 1 + usize::from(extended);
    if extended && header == 0 {
        // Alignment to a power of two of bytes, which is relative to a buffer that is not here.
        return Some(Err(2));
    }
    let length = 1 << (header >> 4 & 3);
    let payload = bytes.get(start..start + length)?;
    let value = payload.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    let index = if extended { (first & 3) << 3 | header & 7 } else { header & 7 };
    let packet = match header {
        TIMESTAMP => Packet::End,
        _ if !extended && header & 0xcf == 0x42 => Packet::Events(value),
        _ if !extended && header & 0xcf == 0x43 => Packet::Other, // data source
        _ if !extended && header & 0xfc == 0x64 => Packet::Other, // context
        _ if !extended && header & 0xfc == 0x48 => Packet::Operation(header & 3, value),
        _ if header & 0xf8 == 0xb0 => Packet::Address(index, value),
        _ if header & 0xf8 == 0x98 => Packet::Other, // counter
        _ => return Some(Err(1)),
    };
    Some(Ok((packet, start + length)))
}

/// An instruction's address: bits 55 to 0, and in the top byte the exception level. The top
/// byte of a kernel's addresses is all ones.
fn instruction_address(payload: u64) -> u64 {
    let address = payload & ((1 << 56) - 1);
    let non_secure = payload >> 63 == 1;
    let level = payload >> 61 & 3;
    if non_secure && matches!(level, 1 | 2) { address | 0xff << 56 } else { address }
}

/// What the packets of one record said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Operation {
    source: Option<u64>,
    target: Option<u64>,
    /// Where the branch before it went (FEAT_SPEv1p2).
    previous_target: Option<u64>,
    events: u64,
    branch: Option<u64>,
    any: bool,
}

impl Operation {
    fn take(&mut self, packet: Packet) {
        self.any |= packet != Packet::Padding;
        match packet {
            Packet::Address(0, value) => self.source = Some(instruction_address(value)),
            Packet::Address(1, value) => self.target = Some(instruction_address(value)),
            Packet::Address(4, value) => self.previous_target = Some(instruction_address(value)),
            Packet::Events(value) => self.events |= value,
            Packet::Operation(operation::CLASS_BRANCH, value) => self.branch = Some(value),
            _ => {}
        }
    }

    /// The taken branch, if it was one that came to be.
    fn taken_branch(&self) -> Option<BranchEntry> {
        let subclass = self.branch?;
        if self.events & event::NOT_TAKEN != 0 || self.events & event::RETIRED == 0 {
            return None;
        }
        let (shift, mask) = operation::CALL_RETURN;
        let kind = match subclass >> shift & mask {
            1 => BranchKind::Call,
            2 => BranchKind::Return,
            _ if subclass & operation::CONDITIONAL != 0 => BranchKind::Conditional,
            _ => BranchKind::Unknown,
        };
        Some(BranchEntry {
            from: RuntimeAddress(self.source?),
            to: RuntimeAddress(self.target?),
            mispredicted: Some(self.events & event::MISPREDICTED != 0),
            speculation: Speculation::Correct,
            kind,
        })
    }
}

/// Decodes the bytes of one `PERF_RECORD_AUXTRACE`, in pieces. Records do not cross from one to
/// the next: the driver wakes perf at ends of records only.
#[derive(Debug, Default)]
pub(crate) struct SpeDecoder {
    cut_off: Vec<u8>,
    operation: Operation,
}

impl SpeDecoder {
    pub(crate) fn read<S: Sink>(
        &mut self,
        bytes: &[u8],
        decoder: &Decoder,
        feeder: &mut Feeder<'_, S>,
    ) {
        let mut tally = Tally::default();
        let mut rest = bytes;
        while !self.cut_off.is_empty() {
            let Some((&next, after)) = rest.split_first() else { break };
            self.cut_off.push(next);
            rest = after;
            let joined = std::mem::take(&mut self.cut_off);
            let used = self.packets(&joined, decoder, feeder.sink, &mut tally);
            self.cut_off = joined.get(used..).unwrap_or_default().to_vec();
        }
        let used = self.packets(rest, decoder, feeder.sink, &mut tally);
        self.cut_off.extend(rest.get(used..).unwrap_or_default().iter().take(MAX_PACKET));
        let counts = feeder.counts_mut();
        counts.samples.merge(&tally);
        counts.entries.passed += tally.used;
        counts.entries.other_side += tally.dropped_for(Cause::UserSpace);
        counts.entries.other_side += tally.dropped_for(Cause::OtherSpace);
    }

    /// Reads whole packets, and says how many bytes they are.
    fn packets<S: Sink>(
        &mut self,
        bytes: &[u8],
        decoder: &Decoder,
        sink: &mut S,
        tally: &mut Tally,
    ) -> usize {
        let mut at = 0;
        while let Some(next) = packet(bytes.get(at..).unwrap_or_default()) {
            match next {
                Ok((packet, length)) => {
                    self.operation.take(packet);
                    if packet == Packet::End {
                        let operation = std::mem::take(&mut self.operation);
                        give(&operation, decoder, sink, tally);
                    }
                    at += length;
                }
                Err(length) => {
                    // The record is lost, but the next one begins after its end.
                    tally.drop(Cause::Malformed, u64::from(self.operation.any));
                    self.operation = Operation::default();
                    at += length;
                }
            }
        }
        at
    }
}

fn give<S: Sink>(operation: &Operation, decoder: &Decoder, sink: &mut S, tally: &mut Tally) {
    let Some(entry) = operation.taken_branch() else {
        return tally.drop(Cause::NoBranches, 1);
    };
    let ours = |address: RuntimeAddress| decoder.filter.is_ours(address.0);
    if !ours(entry.from) && !ours(entry.to) {
        let cause = match decoder.space {
            Space::User => Cause::OtherSpace,
            Space::Kernel | Space::GuestKernel => Cause::UserSpace,
        };
        return tally.drop(cause, 1);
    }
    tally.used += 1;
    let address = Some(entry.from);
    let branches = [BranchEntry {
        from: decoder.filter.seen_from_our_side(entry.from.0),
        to: decoder.filter.seen_from_our_side(entry.to.0),
        ..entry
    }];
    let first = operation.previous_target.map(RuntimeAddress);
    let straight = |&first: &RuntimeAddress| ours(first) && ours(entry.from) && first <= entry.from;
    let first = first.filter(straight);
    // With the range that it ends, a branch says as much as one of a stack.
    let consecutive = first.is_some();
    sink.sample(&Sample { time: None, address, branches: &branches, consecutive, count: 1 });
    if let Some(first) = first {
        sink.range(first, entry.from, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(index: u8, address: u64) -> Vec<u8> {
        let payload = address & ((1 << 56) - 1) | (0x80 | 1 << 5) << 56; // non-secure, EL1
        [vec![0xb0 | index], payload.to_le_bytes().to_vec()].concat()
    }

    #[test]
    fn packets_say_how_long_they_are() {
        let kernel = 0xffff_8000_0800_1234;
        let bytes = address(1, kernel);
        let Some(Ok((Packet::Address(1, payload), 9))) = packet(&bytes) else {
            panic!("{:?}", packet(&bytes))
        };
        assert_eq!(instruction_address(payload), kernel);
        assert_eq!(packet(&bytes[..8]), None);
        assert_eq!(packet(&[0x52, 0x82, 0]), Some(Ok((Packet::Events(0x82), 3))));
        assert_eq!(packet(&[0x4a, 1]), Some(Ok((Packet::Operation(2, 1), 2))));
        // The extended header carries two more bits of the index.
        assert_eq!(
            packet(&[0x21, 0xb4, 7, 0, 0, 0, 0, 0, 0, 0]),
            Some(Ok((Packet::Address(12, 7), 10)))
        );
    }
}
