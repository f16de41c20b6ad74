use crate::input::perf_data::cursor::ByteOrder;

/// Numbers in the byte order of the file.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    pub(super) order: ByteOrder,
}

impl Bytes {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// A string with at least one zero after it, to a multiple of `unit` bytes in all.
    pub(super) fn padded_string(&mut self, text: &str, unit: usize) {
        self.bytes.extend(text.as_bytes());
        self.zeros((text.len() + 1).next_multiple_of(unit) - text.len());
    }
}
