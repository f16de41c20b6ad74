use std::collections::HashMap;
use std::sync::Arc;

use mepof_address::RuntimeAddress;

use super::branch::{EntryCounts, EntryFilter};
use super::cursor::{ByteOrder, Cursor};
use super::format::{RECORD_HEADER, misc, record};
use super::sample::{Layout, word};
use crate::{BranchEntry, Cause, Sample, Sink, Space, Tally};

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Of the record with its header.
    pub(crate) size: usize,
}

impl Header {
    /// `None` if there are not enough bytes for a header. The size may be nonsense.
    pub(crate) fn read(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, order);
        let kind = cursor.u32()?;
        let misc = cursor.u16()?;
        Some(Self { kind, misc, size: cursor.u16()?.into() })
    }
}

/// How to read the samples of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventDecoder {
    pub(crate) layout: Layout,
    /// Whether its samples are wanted.
    pub(crate) selected: bool,
    /// Whether they have a history of branches.
    pub(crate) branch_stack: bool,
    pub(crate) consecutive: bool,
}

/// Where a sample says which event it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdPosition {
    /// There is one event.
    Only,
    /// At this word.
    Word(usize),
    /// Nowhere: the events differ in their fields and have no identifier.
    Nowhere,
}

/// All that is needed to read samples. It changes only where a pipe announces new events.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    pub(crate) order: ByteOrder,
    pub(crate) space: Space,
    pub(crate) filter: EntryFilter,
    pub(crate) events: Vec<EventDecoder>,
    pub(crate) ids: Arc<HashMap<u64, usize>>,
    pub(crate) id_position: IdPosition,
}

/// What happened to the samples that one thread read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleCounts {
    pub(crate) samples: Tally,
    pub(crate) entries: EntryCounts,
    /// By event.
    pub(crate) events: Vec<u64>,
    /// Of the two sides of a virtual machine: host, guest.
    pub(crate) host_samples: u64,
    pub(crate) guest_samples: u64,
}

impl SampleCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.samples.merge(&other.samples);
        self.entries.merge(&other.entries);
        self.events.resize(self.events.len().max(other.events.len()), 0);
        self.events.iter_mut().zip(&other.events).for_each(|(sum, count)| *sum += count);
        self.host_samples += other.host_samples;
        self.guest_samples += other.guest_samples;
    }
}

/// One thread's share of the work: reads samples out of blocks of whole records.
#[derive(Debug, Default)]
pub(crate) struct SampleReader {
    pub(crate) counts: SampleCounts,
    entries: Vec<BranchEntry>,
}

impl SampleReader {
    /// Gives the samples among the whole records in `bytes` to `sink`.
    pub(crate) fn read<S: Sink>(&mut self, decoder: &Decoder, mut bytes: &[u8], sink: &mut S) {
        self.counts.events.resize(decoder.events.len().max(self.counts.events.len()), 0);
        while let Some(header) = Header::read(bytes, decoder.order) {
            let Some((whole, rest)) = bytes.split_at_checked(header.size.max(RECORD_HEADER)) else {
                break;
            };
            if header.kind == record::SAMPLE {
                let body = whole.get(RECORD_HEADER..).unwrap_or_default();
                if let Err(cause) = self.sample(decoder, header, body, sink) {
                    self.counts.samples.drop(cause, 1);
                }
            }
            bytes = rest;
        }
    }

    fn sample<S: Sink>(
        &mut self,
        decoder: &Decoder,
        header: Header,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), Cause> {
        let index = decoder.event_of(body)?;
        let event = decoder.events.get(index).ok_or(Cause::Malformed)?;
        if let Some(count) = self.counts.events.get_mut(index) {
            *count += 1;
        }
        let guest = matches!(header.misc & misc::CPUMODE, misc::GUEST_KERNEL | misc::GUEST_USER);
        self.counts.guest_samples += u64::from(guest);
        self.counts.host_samples += u64::from(!guest);
        if !event.selected {
            return Err(Cause::OtherEvent);
        }
        if !event.branch_stack {
            return Err(Cause::NoBranches);
        }
        let sample = event.layout.read(body).ok_or(Cause::Malformed)?;
        if guest != (decoder.space == Space::GuestKernel)
            || header.misc & misc::CPUMODE == misc::HYPERVISOR
        {
            return Err(Cause::OtherSpace);
        }
        if sample.entries.is_empty() {
            return Err(Cause::NoBranches);
        }
        decoder.filter.read(sample.entries, &mut self.entries, &mut self.counts.entries);
        if self.entries.is_empty() {
            return Err(match decoder.space {
                Space::User => Cause::OtherSpace,
                Space::Kernel | Space::GuestKernel => Cause::UserSpace,
            });
        }
        sink.sample(&Sample {
            time: sample.time,
            address: sample.ip.map(RuntimeAddress),
            branches: &self.entries,
            consecutive: event.consecutive,
            count: 1,
        });
        self.counts.samples.used += 1;
        Ok(())
    }
}

impl Decoder {
    /// The event that a sample is of, as perf finds it: tools/perf/util/evlist.c,
    /// `evlist__event2evsel()`. An id of zero is the first event's.
    fn event_of(&self, body: &[u8]) -> Result<usize, Cause> {
        match self.id_position {
            IdPosition::Only => Ok(0),
            IdPosition::Nowhere => Err(Cause::Malformed),
            IdPosition::Word(position) => match word(body, position, self.order) {
                None => Err(Cause::Malformed),
                Some(0) => Ok(0),
                Some(id) => self.ids.get(&id).copied().ok_or(Cause::OtherEvent),
            },
        }
    }
}
