use std::fmt;
use std::str::FromStr;

/// The build-id note of an ELF file: 1 to 64 bytes, 20 by default (SHA-1).
///
/// Compared as perf compares: `perf.data` pads an id to 20 bytes with zeros, so trailing
/// zeros do not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Vec<u8>);

/// What is wrong with a build-id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildIdError {
    /// Not an even number of hexadecimal digits.
    #[error("a build-id is an even number of hexadecimal digits, not {0:?}")]
    NotHexadecimal(String),
    /// Empty, all zeros, or beyond 64 bytes.
    #[error("a build-id has 1 to 64 bytes, and not all of them are zero")]
    Length,
}

impl BuildId {
    /// The id in `bytes`, without the padding.
    pub fn new(bytes: &[u8]) -> Result<Self, BuildIdError> {
        let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        match bytes.get(..length) {
            Some(id) if (1..=64).contains(&length) => Ok(Self(id.to_vec())),
            _ => Err(BuildIdError::Length),
        }
    }

    /// Its bytes, without the padding.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for BuildId {
    type Err = BuildIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || BuildIdError::NotHexadecimal(text.to_owned());
        if text.len() % 2 != 0 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|value| value as u8))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect();
        Self::new(&bytes)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_does_not_count() {
        assert_eq!(BuildId::new(&[0xab, 0xcd, 0, 0]), "abcd".parse());
    }

    #[test]
    fn nothing_but_zeros_is_not_an_id() {
        assert_eq!(BuildId::new(&[0; 20]), Err(BuildIdError::Length));
    }

    #[test]
    fn text_is_read_and_written_in_lower_case() {
        let id: Result<BuildId, _> = "ABCDEF01".parse();
        assert_eq!(id.map(|id| id.to_string()), Ok("abcdef01".to_owned()));
        assert!("abc".parse::<BuildId>().is_err());
        assert!("é0".parse::<BuildId>().is_err());
    }
}
