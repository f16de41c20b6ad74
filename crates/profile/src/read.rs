use crate::{Format, Profile, ReadError, ext_binary, gcov, text};

/// Reads a profile in whichever form it is.
pub fn read(bytes: &[u8]) -> Result<(Profile, Format), ReadError> {
    if gcov::is_gcov(bytes) {
        Ok((gcov::read(bytes)?, Format::Gcov))
    } else if let Some(format) = ext_binary::format_of(bytes) {
        Ok((ext_binary::read(bytes)?, format))
    } else if text::is_text(bytes) {
        Ok((text::read(bytes)?, Format::Text))
    } else {
        Err(ReadError::UnknownFormat)
    }
}
