use super::attr::Attr;
use super::cursor::{ByteOrder, Cursor};
use super::format::{BRANCH_ENTRY, branch, read_format, sample};

/// Where the fields of one event's samples are: kernel/events/core.c, `perf_output_sample()`.
/// What comes after the branch stack is of no interest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    order: ByteOrder,
    /// Words of fixed position: from the identifier to the period.
    words: usize,
    ip: Option<usize>,
    time: Option<usize>,
    id: Option<usize>,
    sample_type: u64,
    read_format: u64,
    hardware_index: bool,
    counters: bool,
}

/// What a sample says; [`BRANCH_ENTRY`] bytes for each entry, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawSample<'a> {
    pub(crate) ip: Option<u64>,
    pub(crate) time: Option<u64>,
    pub(crate) entries: &'a [u8],
}

impl Layout {
    pub(crate) fn new(attr: &Attr, order: ByteOrder) -> Self {
        const FIXED: [u64; 9] = [
            sample::IDENTIFIER,
            sample::IP,
            sample::TID,
            sample::TIME,
            sample::ADDR,
            sample::ID,
            sample::STREAM_ID,
            sample::CPU,
            sample::PERIOD,
        ];
        let has = |field: u64| attr.sample_type & field != 0;
        let position = |field: u64| {
            let before = FIXED.iter().take_while(|&&other| other != field);
            has(field).then(|| before.filter(|&&other| has(other)).count())
        };
        Self {
            order,
            words: FIXED.iter().filter(|&&field| has(field)).count(),
            ip: position(sample::IP),
            time: position(sample::TIME),
            id: position(sample::IDENTIFIER).or_else(|| position(sample::ID)),
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            hardware_index: attr.branch_sample_type & branch::HW_INDEX != 0,
            counters: attr.branch_sample_type & branch::COUNTERS != 0,
        }
    }

    /// The word of a sample that says which event it belongs to.
    pub(crate) fn id_position(&self) -> Option<usize> {
        self.id
    }

    /// What the record's `body`, the bytes after its header, says; `None` if it is too short.
    pub(crate) fn read<'a>(&self, body: &'a [u8]) -> Option<RawSample<'a>> {
        let (fixed, rest) = body.split_at_checked(self.words * 8)?;
        let word = |position: Option<usize>| {
            position.and_then(|position| word(fixed, position, self.order))
        };
        let mut cursor = Cursor::new(rest, self.order);
        if self.sample_type & sample::READ != 0 {
            self.skip_counts(&mut cursor)?;
        }
        if self.sample_type & sample::CALLCHAIN != 0 {
            let frames = cursor.u64()?;
            cursor.take_u64(frames.checked_mul(8)?)?;
        }
        if self.sample_type & sample::RAW != 0 {
            let bytes = cursor.u32()?;
            cursor.take_u64(bytes.into())?;
        }
        let mut entries: &[u8] = &[];
        if self.sample_type & sample::BRANCH_STACK != 0 {
            let count = cursor.u64()?;
            if self.hardware_index {
                cursor.u64()?;
            }
            entries = cursor.take_u64(count.checked_mul(BRANCH_ENTRY as u64)?)?;
            if self.counters {
                cursor.take_u64(count.checked_mul(8)?)?;
            }
        }
        Some(RawSample { ip: word(self.ip), time: word(self.time), entries })
    }

    fn skip_counts(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        let has = |field: u64| u64::from(self.read_format & field != 0);
        let times = has(read_format::ENABLED) + has(read_format::RUNNING);
        let each = 1 + has(read_format::ID) + has(read_format::LOST);
        let words = if has(read_format::GROUP) != 0 {
            let members = cursor.u64()?;
            members.checked_mul(each)?.checked_add(times)?
        } else {
            times + each
        };
        cursor.take_u64(words.checked_mul(8)?).map(|_| ())
    }
}

/// The `position`-th word of `bytes`.
pub(crate) fn word(bytes: &[u8], position: usize, order: ByteOrder) -> Option<u64> {
    let start = position.checked_mul(8)?;
    Some(order.u64(*bytes.get(start..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn every_field_before_the_branch_stack_is_stepped_over() {
        let attr = Attr {
            sample_type: 0x1_0fff, // all from IP to BRANCH_STACK, and IDENTIFIER
            read_format: read_format::GROUP | read_format::ID | read_format::ENABLED,
            branch_sample_type: branch::HW_INDEX | branch::COUNTERS,
            ..Attr::default()
        };
        let mut body = words(&[0xaaa1, 0x1111, 0x22, 0x3333, 0x44, 0x55, 0x66, 0x77, 0x88]);
        body.extend(words(&[2, 9, 1, 11, 2, 12])); // two members, time, and value and id of each
        body.extend(words(&[1, 0xcafe])); // call chain
        body.extend([12, 0, 0, 0]);
        body.extend([0xee; 12]);
        body.extend(words(&[1, 7, 0xa, 0xb, 0xc, 0x99])); // a stack of one, with a counter
        let sample = Layout::new(&attr, ByteOrder::Little).read(&body);
        let entries = words(&[0xa, 0xb, 0xc]);
        let expected = RawSample { ip: Some(0x1111), time: Some(0x3333), entries: &entries };
        assert_eq!(sample, Some(expected));
        for length in 0..body.len() {
            assert_eq!(Layout::new(&attr, ByteOrder::Little).read(&body[..length]), None);
        }
    }

    #[test]
    fn a_stack_longer_than_its_record_is_no_sample() {
        let attr = Attr { sample_type: sample::BRANCH_STACK, ..Attr::default() };
        let layout = Layout::new(&attr, ByteOrder::Little);
        for count in [1, 2730, u64::MAX / 24 + 1, u64::MAX] {
            assert_eq!(layout.read(&words(&[count, 1, 2])), None);
        }
    }
}
