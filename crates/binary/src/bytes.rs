/// What is wrong with a section's contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset:#x}")]
pub struct Damage {
    /// Where, in bytes from the start of the section.
    pub offset: usize,
    /// What.
    pub what: String,
}

/// Reads numbers one after the other, and never beyond the end.
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    offset: usize,
    little_endian: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a [u8], little_endian: bool) -> Self {
        Self { data, offset: 0, little_endian }
    }

    pub fn is_at_end(&self) -> bool {
        self.offset >= self.data.len()
    }

    /// Something is wrong at the current offset.
    pub fn damage(&self, what: impl Into<String>) -> Damage {
        Damage { offset: self.offset, what: what.into() }
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let end = self.offset.checked_add(count);
        let taken = end.and_then(|end| self.data.get(self.offset..end));
        let taken = taken.ok_or_else(|| self.damage("cut off"))?;
        self.offset += count;
        Ok(taken)
    }

    /// A number of `size` bytes, at most 8.
    pub fn number(&mut self, size: usize) -> Result<u64, Damage> {
        let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let little_endian = self.little_endian;
        let bytes = self.bytes(size)?;
        Ok(if little_endian {
            bytes.iter().rev().fold(0, shift)
        } else {
            bytes.iter().fold(0, shift)
        })
    }

    pub fn byte(&mut self) -> Result<u8, Damage> {
        self.number(1).map(|byte| byte as u8)
    }

    /// A number in ULEB128.
    pub fn unsigned(&mut self) -> Result<u64, Damage> {
        let start = self.offset;
        let mut value = 0_u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let fits = if shift < 64 { bits << shift >> shift == bits } else { bits == 0 };
            if !fits {
                let what = "a number exceeds 64 bits".to_owned();
                return Err(Damage { offset: start, what });
            }
            if shift < 64 {
                value |= bits << shift;
                shift += 7;
            }
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }

    /// A number in ULEB128 that has 32 bits at most.
    pub fn unsigned32(&mut self) -> Result<u32, Damage> {
        let start = self.offset;
        let value = self.unsigned()?;
        u32::try_from(value)
            .map_err(|_| Damage { offset: start, what: format!("{value:#x} exceeds 32 bits") })
    }

    /// A number in SLEB128. Bits beyond 64 are dropped.
    pub fn signed(&mut self) -> Result<i64, Damage> {
        let mut value = 0_i64;
        let mut shift = 0_u32;
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            if byte < 0x80 {
                if byte & 0x40 != 0 && shift < 64 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(data: &[u8]) -> Cursor<'_> {
        Cursor::new(data, true)
    }

    #[test]
    fn numbers_of_variable_length_are_read_to_their_limits() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0xe5, 0x8e, 0x26], 624_485),
            (&[0x80, 0x80, 0x00], 0),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], u64::MAX),
        ] {
            assert_eq!(cursor(bytes).unsigned(), Ok(value));
        }
        for (bytes, value) in [
            (&[0x7f][..], -1),
            (&[0xc0, 0xbb, 0x78], -123_456),
            (&[0x3f], 63),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], i64::MIN),
        ] {
            assert_eq!(cursor(bytes).signed(), Ok(value));
        }
    }

    #[test]
    fn numbers_that_do_not_fit_or_end_are_damage() {
        let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(cursor(&long).unsigned().is_err());
        assert!(cursor(&[0x80, 0x80]).unsigned().is_err());
        assert!(cursor(&[0x80]).signed().is_err());
        assert!(cursor(&[0xff, 0xff, 0xff, 0xff, 0x10]).unsigned32().is_err());
        assert_eq!(cursor(&[1, 2, 3]).number(4), Err(Damage { offset: 0, what: "cut off".into() }));
    }

    #[test]
    fn the_order_of_bytes_is_the_files() {
        assert_eq!(Cursor::new(&[1, 2], true).number(2), Ok(0x201));
        assert_eq!(Cursor::new(&[1, 2], false).number(2), Ok(0x102));
    }
}
