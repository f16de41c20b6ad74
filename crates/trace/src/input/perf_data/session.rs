use std::collections::HashMap;
use std::sync::Arc;

use mepof_address::RuntimeAddress;
use mepof_machine::Machine;

use super::attr::{Attr, MAX_EVENTS};
use super::branch::EntryFilter;
use super::cursor::{ByteOrder, Cursor};
use super::decoder::{Decoder, EventDecoder, Header, IdPosition, SampleCounts};
use super::feature::{self, Feature};
use super::format::{EVENT_UPDATE_NAME, attr_flag, auxtrace, misc, record, sample};
use super::images::{Images, MappingRecord};
use super::notes::{self, Seen};
use super::sample::{Layout, word};
use crate::input::options::Options;
use crate::{Cause, Event, Facts, Space, Tally};

/// Ids are one for each event and CPU; the machines with the most have some thousand CPUs.
const MAX_IDS: usize = 1 << 19;

/// Characters of an event's name that are kept.
const MAX_NAME: usize = 256;

#[derive(Clone, Debug)]
struct Announced {
    attr: Attr,
    name: Option<String>,
}

/// What was announced and seen, except samples.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    options: &'a Options<'a>,
    order: ByteOrder,
    events: Vec<Announced>,
    /// The event of each id. The input chooses the ids: the hash has a seed.
    ids: Arc<HashMap<u64, usize>>,
    /// How many more ids are taken, new or not.
    ids_left: usize,
    images: Images,
    machine: Option<Machine>,
    cpu: Option<String>,
    release: Option<String>,
    kernel_base: Option<(String, RuntimeAddress)>,
    kernel_start: Option<RuntimeAddress>,
    decoder: Option<Arc<Decoder>>,
    /// Lost records, and records that could not be read, other than samples.
    dropped: Tally,
    pub(crate) seen: Seen,
}

impl<'a> Session<'a> {
    pub(crate) fn new(options: &'a Options<'a>, order: ByteOrder) -> Self {
        Self {
            options,
            order,
            events: Vec::new(),
            ids: Arc::default(),
            ids_left: MAX_IDS,
            images: Images::default(),
            machine: None,
            cpu: None,
            release: None,
            kernel_base: None,
            kernel_start: None,
            decoder: None,
            dropped: Tally::default(),
            seen: Seen::default(),
        }
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(crate) fn drop(&mut self, cause: Cause, count: u64) {
        self.dropped.drop(cause, count);
    }

    fn kernel_space(&self) -> u64 {
        self.machine.map_or(1 << 63, |machine| machine.kernel_space())
    }

    /// Takes an event that the header or a pipe announces.
    pub(crate) fn announce(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) {
        if self.events.len() >= MAX_EVENTS {
            self.drop(Cause::Malformed, 1);
            return;
        }
        self.decoder = None;
        let index = self.events.len();
        self.events.push(Announced { attr, name: None });
        let all = Arc::make_mut(&mut self.ids);
        for id in ids.take(self.ids_left) {
            self.ids_left -= 1;
            all.insert(id, index);
        }
    }

    /// How many more ids are taken.
    pub(crate) fn ids_left(&self) -> usize {
        self.ids_left
    }

    pub(crate) fn feature(&mut self, feature: Feature) {
        match feature {
            Feature::BuildIds(all) => {
                let user = self.options.space == Space::User;
                let wanted = all
                    .into_iter()
                    .filter(|named| user || named.misc & misc::CPUMODE != misc::USER);
                wanted.for_each(|named| self.images.build_id(named));
            }
            Feature::KernelRelease(release) => self.release = Some(release),
            Feature::Machine(name) => {
                self.machine = Machine::of_uname(&name);
                self.decoder = None;
            }
            Feature::CpuDescription(text) => self.cpu = Some(text),
            Feature::CpuId(text) => self.seen.cpu_id = Some(text),
            Feature::Events(descriptions) => {
                for (position, description) in descriptions.into_iter().enumerate() {
                    let by_id = description.ids.iter().find_map(|id| self.ids.get(id)).copied();
                    let event = self.events.get_mut(by_id.unwrap_or(position));
                    if let Some(event) = event {
                        event.name = Some(description.name);
                    }
                }
                self.decoder = None;
            }
            Feature::Compressed(buffer) => self.seen.compression_buffer = Some(buffer),
            Feature::PmuCapabilities(pairs) => {
                let depth = pairs.iter().filter(|(name, _)| name == "branches");
                self.seen.depth = depth.filter_map(|(_, value)| value.parse().ok()).max();
            }
            Feature::SimpleperfInfo(pairs) => {
                self.seen.simpleperf = true;
                pairs.into_iter().for_each(|(key, value)| self.simpleperf(&key, value));
            }
            Feature::SimpleperfBranchList => self.seen.branch_list = true,
        }
    }

    /// system/extras, `simpleperf/cmd_record.cpp`, `DumpMetaInfoFeature()`.
    fn simpleperf(&mut self, key: &str, value: String) {
        match key {
            "kernel_version" if self.release.is_none() => self.release = Some(value),
            "event_type_info" => {
                // Lines of name, type and config, in the order of the attrs.
                for (event, line) in self.events.iter_mut().zip(value.lines()) {
                    let name = line.split(',').next().unwrap_or_default();
                    event.name = Some(name.chars().take(MAX_NAME).collect());
                }
                self.decoder = None;
            }
            _ => {}
        }
    }

    /// Takes any record that is not a sample. `body` is what follows its header.
    pub(crate) fn record(&mut self, header: Header, body: &[u8]) {
        if self.try_record(header, body).is_none() {
            self.drop(Cause::Malformed, 1);
        }
    }

    fn try_record(&mut self, header: Header, body: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(body, self.order);
        match header.kind {
            record::MMAP | record::MMAP2 => {
                if body.len() < 32 {
                    return None;
                }
                let second = header.kind == record::MMAP2;
                let space = self.kernel_space();
                if let Some(mapping) =
                    MappingRecord::read(header.misc, body, second, self.order, space)
                {
                    self.mapping(mapping);
                }
            }
            record::LOST => {
                cursor.u64()?; // the event's id: but a buffer has all events' records
                self.lost(cursor.u64()?);
            }
            record::LOST_SAMPLES => {
                let count = cursor.u64()?;
                // Those that a filter (`perf record --filter`) left out are not missed.
                if self.concerns_us(body) && header.misc & misc::LOST_TO_FILTER == 0 {
                    self.lost(count);
                }
            }
            record::THROTTLE => self.seen.throttled += 1,
            record::KSYMBOL => self.seen.symbols += 1,
            record::STAT => self.seen.counted = true,
            record::HEADER_ATTR => {
                let (attr, size) = Attr::read(body, self.order)?;
                let order = self.order;
                let ids = body.get(size..)?.chunks_exact(8);
                self.announce(attr, ids.filter_map(|bytes| Cursor::new(bytes, order).u64()));
            }
            record::EVENT_UPDATE => {
                let kind = cursor.u64()?;
                let id = cursor.u64()?;
                if kind == EVENT_UPDATE_NAME {
                    let index = self.ids.get(&id).copied();
                    if let Some(event) = index.and_then(|index| self.events.get_mut(index)) {
                        event.name = Some(cursor.last_string());
                        self.decoder = None;
                    }
                }
            }
            record::HEADER_FEATURE => {
                let bit = cursor.u64()?;
                if feature::is_known(bit) {
                    self.feature(feature::read(bit, cursor.rest(), self.order)?);
                }
            }
            record::HEADER_BUILD_ID => {
                let named = feature::build_id(header.misc, body, self.order)?;
                self.feature(Feature::BuildIds(vec![named]));
            }
            record::AUXTRACE_INFO => self.seen.auxtrace = Some(cursor.u32()?),
            _ => {}
        }
        Some(())
    }

    fn lost(&mut self, count: u64) {
        self.seen.lost = self.seen.lost.saturating_add(count);
        self.drop(Cause::Lost, count);
    }

    /// Whether a record that is not a sample is of an event whose samples are wanted. With
    /// `sample_id_all` and an identifier its last word says.
    fn concerns_us(&mut self, body: &[u8]) -> bool {
        let told = |event: &Announced| {
            event.attr.has(attr_flag::SAMPLE_ID_ALL)
                && event.attr.sample_type & sample::IDENTIFIER != 0
        };
        if self.events.len() < 2 || !self.events.iter().all(told) {
            return true;
        }
        let last = (body.len() / 8).checked_sub(1).and_then(|at| word(body, at, self.order));
        let index = last.and_then(|id| self.ids.get(&id)).copied();
        let decoder = self.decoder();
        index.and_then(|index| decoder.events.get(index)).is_none_or(|event| event.selected)
    }

    fn mapping(&mut self, mapping: MappingRecord) {
        let space = self.options.space;
        if mapping.space() == Space::User && space != Space::User {
            return;
        }
        if mapping.space() == space {
            self.kernel_base = self.kernel_base.take().or_else(|| mapping.reference());
            self.kernel_start = self.kernel_start.or_else(|| mapping.kernel_start());
        }
        self.images.add(mapping);
    }

    /// How to read the samples that follow.
    pub(crate) fn decoder(&mut self) -> Arc<Decoder> {
        if let Some(decoder) = &self.decoder {
            return Arc::clone(decoder);
        }
        let any_stack = self.has_branch_stacks();
        let events = self.events.iter().map(|event| EventDecoder {
            layout: Layout::new(&event.attr, self.order),
            selected: self.is_selected(event, any_stack),
            branch_stack: event.attr.has_branch_stack(),
            consecutive: event.attr.records_any_branch(),
        });
        let events: Vec<_> = events.collect();
        let space = self.options.space;
        let decoder = Arc::new(Decoder {
            order: self.order,
            space,
            filter: EntryFilter::new(self.order, self.kernel_space(), space),
            id_position: id_position(&events),
            events,
            ids: Arc::clone(&self.ids),
        });
        self.seen.unknown_ids = decoder.id_position == IdPosition::Nowhere;
        self.decoder = Some(Arc::clone(&decoder));
        decoder
    }

    fn name(&self, event: &Announced) -> String {
        event.attr.event(event.name.as_deref(), 0).name
    }

    /// Without a choice, every event is taken that has branch stacks, or all if none has, so
    /// that the tally says what is missing.
    fn is_selected(&self, event: &Announced, any_stack: bool) -> bool {
        if self.options.events.is_empty() {
            return event.attr.has_branch_stack() || !any_stack;
        }
        let name = self.name(event);
        let plain = name.rsplit_once(':').map(|(plain, _modifiers)| plain);
        self.options.events.iter().any(|wanted| *wanted == name || Some(&**wanted) == plain)
    }

    /// The events' names if the user asked for some and none of them is here.
    pub(crate) fn events_missed(&self) -> Option<Vec<String>> {
        let missed = !self.options.events.is_empty()
            && !self.events.iter().any(|event| self.is_selected(event, true));
        missed.then(|| self.events.iter().map(|event| self.name(event)).collect())
    }

    pub(crate) fn has_branch_stacks(&self) -> bool {
        self.events.iter().any(|event| event.attr.has_branch_stack())
    }

    pub(crate) fn is_spe(&self) -> bool {
        self.seen.auxtrace == Some(auxtrace::ARM_SPE)
    }

    /// What the file says about itself, once all was read.
    pub(crate) fn finish(mut self, counts: &SampleCounts) -> Facts {
        if self.seen.simpleperf && self.kernel_base.is_none() {
            // simpleperf's kernel mapping begins at _stext: simpleperf/kallsyms.cpp,
            // GetKernelStartAddress().
            self.kernel_base = self.kernel_start.map(|start| ("_stext".to_owned(), start));
        }
        self.seen.kernel_mapping = self.images.has_kernel(self.options.space);
        self.seen.images_refused = self.images.refused;
        let mut samples = counts.samples.clone();
        samples.merge(&self.dropped);
        let mut entries = Tally::default();
        entries.used = counts.entries.passed;
        entries.drop(Cause::OtherSpace, counts.entries.hypervisor);
        let other_side = match self.options.space {
            Space::User => Cause::OtherSpace,
            Space::Kernel | Space::GuestKernel => Cause::UserSpace,
        };
        entries.drop(other_side, counts.entries.other_side);
        let counted = counts.events.iter().copied().chain(std::iter::repeat(0));
        let events = self.events.iter().zip(counted);
        let mut facts = Facts {
            format: "perf.data".to_owned(),
            machine: self.machine,
            cpu: self.cpu,
            kernel_release: self.release,
            events: events
                .map(|(event, count)| event.attr.event(event.name.as_deref(), count))
                .collect(),
            images: self.images.into_images(),
            kernel_base: self.kernel_base,
            samples,
            entries,
            ..Facts::default()
        };
        if self.seen.auxtrace == Some(auxtrace::ARM_SPE) {
            // Its samples are in the trace, and they are branches.
            let spe = |event: &&mut Event| event.name.starts_with("arm_spe");
            facts.events.iter_mut().filter(spe).for_each(|event| event.branch_stack = true);
        }
        let attrs: Vec<Attr> = self.events.iter().map(|event| event.attr).collect();
        facts.notes = notes::notes(&facts, &self.seen, &attrs, counts, self.options.space);
        facts
    }
}

/// Where all events' samples have their id: tools/perf/util/evlist.c,
/// `evlist__valid_sample_type()`.
fn id_position(events: &[EventDecoder]) -> IdPosition {
    let mut positions = events.iter().map(|event| event.layout.id_position());
    match positions.next() {
        Some(_) if events.len() == 1 => IdPosition::Only,
        Some(Some(first)) if positions.all(|position| position == Some(first)) => {
            IdPosition::Word(first)
        }
        _ => IdPosition::Nowhere,
    }
}
