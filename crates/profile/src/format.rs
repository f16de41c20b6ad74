use std::fmt;

use serde::{Deserialize, Serialize};

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
