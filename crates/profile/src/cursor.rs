use crate::{Format, ReadError};

/// Reads bytes front to back; nothing is taken that is not there.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    format: Format,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self { format, bytes, at: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn malformed(&self, what: &'static str) -> ReadError {
        ReadError::Malformed { format: self.format, what, offset: self.at }
    }

    pub(crate) fn truncated(&self, inside: &'static str) -> ReadError {
        ReadError::Truncated { format: self.format, inside, offset: self.at }
    }

    pub(crate) fn take(
        &mut self,
        length: usize,
        inside: &'static str,
    ) -> Result<&'a [u8], ReadError> {
        let Some(taken) = self.rest().get(..length) else {
            return Err(self.truncated(inside));
        };
        self.at += length;
        Ok(taken)
    }

    /// The bytes up to the next zero, which is skipped.
    pub(crate) fn zero_terminated(&mut self, inside: &'static str) -> Result<&'a [u8], ReadError> {
        let length = self.rest().iter().position(|&byte| byte == 0);
        let Some(taken) = length.and_then(|length| self.rest().get(..length)) else {
            return Err(self.truncated(inside));
        };
        self.at += taken.len() + 1;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, inside: &'static str) -> Result<[u8; N], ReadError> {
        let taken = self.take(N, inside)?;
        taken.try_into().map_err(|_| self.truncated(inside))
    }

    pub(crate) fn u32(&mut self, inside: &'static str) -> Result<u32, ReadError> {
        self.array(inside).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, inside: &'static str) -> Result<u64, ReadError> {
        self.array(inside).map(u64::from_le_bytes)
    }

    /// An unsigned LEB128 number of up to 64 bits. Like LLVM, it accepts zeros that pad it.
    pub(crate) fn uleb(&mut self, inside: &'static str) -> Result<u64, ReadError> {
        let mut value = 0_u64;
        let mut shift = 0_u32;
        loop {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(self.truncated(inside));
            };
            let bits = u64::from(byte & 0x7f);
            let shifted = bits.checked_shl(shift).unwrap_or(0);
            if shifted.checked_shr(shift).unwrap_or(0) != bits {
                return Err(self.malformed("a number exceeds 64 bits"));
            }
            value |= shifted;
            self.at += 1;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
    }

    pub(crate) fn uleb_u32(&mut self, inside: &'static str) -> Result<u32, ReadError> {
        let before = self.malformed("a number exceeds 32 bits");
        u32::try_from(self.uleb(inside)?).map_err(|_| before)
    }

    /// A count of things that take at least `size` bytes each.
    pub(crate) fn count(&mut self, size: usize, inside: &'static str) -> Result<usize, ReadError> {
        let count = usize::try_from(self.uleb(inside)?).unwrap_or(usize::MAX);
        if count.saturating_mul(size) > self.remaining() {
            return Err(self.truncated(inside));
        }
        Ok(count)
    }

    /// Like [`Self::count`], of a 32-bit number.
    pub(crate) fn count_u32(
        &mut self,
        size: usize,
        inside: &'static str,
    ) -> Result<usize, ReadError> {
        let count = usize::try_from(self.u32(inside)?).unwrap_or(usize::MAX);
        if count.saturating_mul(size) > self.remaining() {
            return Err(self.truncated(inside));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uleb(bytes: &[u8]) -> Result<u64, ReadError> {
        Cursor::new(Format::ExtBinary, bytes).uleb("a number")
    }

    #[test]
    fn numbers_of_64_bits_are_read() {
        assert_eq!(uleb(&[0]).unwrap(), 0);
        assert_eq!(uleb(&[0xe5, 0x8e, 0x26]).unwrap(), 624485);
        assert_eq!(uleb(&[0x80, 0x80, 0]).unwrap(), 0);
        let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(uleb(&greatest).unwrap(), u64::MAX);
    }

    #[test]
    fn longer_or_cut_off_numbers_are_errors() {
        let longer = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(matches!(uleb(&longer), Err(ReadError::Malformed { .. })));
        let longest = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
        assert!(matches!(uleb(&longest), Err(ReadError::Malformed { .. })));
        assert!(matches!(uleb(&[0x80]), Err(ReadError::Truncated { .. })));
        assert!(matches!(uleb(&[]), Err(ReadError::Truncated { .. })));
    }
}
