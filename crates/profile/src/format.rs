use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LineLocation, Profile, ReadError, WriteError, ext_binary, gcov, text};

/// How deep inlined calls may nest. LLVM sets no bound; real profiles stay below 40.
pub const MAX_INLINE_DEPTH: usize = 256;

/// The forms that profiles come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// LLVM's text.
    Text,
    /// LLVM's extensible binary.
    ExtBinary,
    /// LLVM's older binary, without sections.
    Binary,
    /// GCC's AutoFDO data (`fbdata.afdo`).
    Gcov,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::ExtBinary => "extensible binary",
            Self::Binary => "binary",
            Self::Gcov => "gcov",
        })
    }
}

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

/// Checks what every compiler's reader checks again: that names can be written in `format` and
/// places are in range. Gives the names, in LLVM's order.
pub(crate) fn checked_names(
    profile: &Profile,
    format: Format,
) -> Result<Vec<&Arc<str>>, WriteError> {
    let names = profile.names();
    let bad = |name: &Arc<str>| match format {
        // The text reader finds a name by what surrounds it.
        Format::Text => {
            name.is_empty()
                || name.starts_with([' ', '#', '!'])
                || name.contains(['\n', '\r', '\0'])
        }
        _ => name.contains('\0'),
    };
    if let Some(name) = names.iter().copied().chain(&profile.symbols).find(|name| bad(name)) {
        return Err(WriteError::Name { name: name.to_string(), format });
    }
    profile.functions.iter().try_for_each(|(name, function)| check_offsets(name, function))?;
    Ok(names)
}

fn check_offsets(name: &str, function: &crate::FunctionProfile) -> Result<(), WriteError> {
    let mut places = function.body.keys().chain(function.inlined.keys());
    if let Some(place) = places.find(|place| place.offset > LineLocation::MAX_OFFSET) {
        return Err(WriteError::Offset { function: name.to_owned(), offset: place.offset });
    }
    function.inlined.values().flatten().try_for_each(|(name, callee)| check_offsets(name, callee))
}
