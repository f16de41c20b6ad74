/// Bytes of a text that are kept: a path has no more (Linux's `PATH_MAX`), and what else is named
/// in a file is shorter.
const MAX_TEXT: usize = 4096;

/// The byte order of the machine that wrote a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// The least significant byte first: x86-64, arm64.
    #[default]
    Little,
    /// The most significant byte first.
    Big,
}

impl ByteOrder {
    /// The word in `bytes`.
    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// Reads numbers and strings off the front of some bytes. Everything is `None` once the bytes
/// do not suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(front)
    }

    /// As [`take`](Self::take), for a length that was read from the file.
    pub(crate) fn take_u64(&mut self, length: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(length).ok()?)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*front)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(self.order.u64(bytes))
    }

    /// A string of a feature section: its length, then its bytes, zeros at the end.
    pub(crate) fn counted_string(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take_u64(length.into()).map(text)
    }

    /// All that is left, up to the first zero.
    pub(crate) fn last_string(&mut self) -> String {
        text(std::mem::take(&mut self.rest))
    }
}

fn text(bytes: &[u8]) -> String {
    until_nul(bytes.get(..MAX_TEXT).unwrap_or(bytes))
}

/// The text before the first zero byte; bytes that are not UTF-8 are replaced.
pub(crate) fn until_nul(bytes: &[u8]) -> String {
    let length = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned()
}
