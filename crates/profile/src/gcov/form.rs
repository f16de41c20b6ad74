//! What marks the data, and how its versions differ.

pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"adcg");
pub(super) const SUMMARY: u32 = 0xa800_0000;
pub(super) const NAMES: u32 = 0xaa00_0000;
pub(super) const FUNCTIONS: u32 = 0xac00_0000;
pub(super) const MODULES: u32 = 0xae00_0000;

/// For which compilers the form is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// GCC 5 to 11.
    Gcc5,
    /// GCC 12. Later ones read it too, and find less.
    #[default]
    Gcc12,
    /// GCC 13 to 15, which look up discriminators.
    Gcc13,
    /// GCC 16, which does too.
    Gcc16,
}

impl Version {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Gcc5 => 1,
            Self::Gcc12 | Self::Gcc13 => 2,
            Self::Gcc16 => 3,
        }
    }

    /// The number by which a block is found. To that of the first block, GCC 16 adds which copy a
    /// block is and how often it was unrolled (`gcc/input.h`), after it has looked it up.
    pub(super) fn looked_up(self, discriminator: u32) -> u32 {
        match self {
            Self::Gcc5 | Self::Gcc12 => 0,
            Self::Gcc13 => discriminator,
            Self::Gcc16 => discriminator & 0xff,
        }
    }

    /// The count of what is found by one number, with one block more.
    pub(super) fn joined(self, sum: u64, count: u64, discriminator: u32) -> u64 {
        match self {
            Self::Gcc5 | Self::Gcc12 => sum.max(count),
            Self::Gcc13 => sum.saturating_add(count),
            Self::Gcc16 => {
                let unrolled = u64::from(discriminator >> 8 & 0x7f).max(1);
                sum.saturating_add(count.saturating_mul(unrolled))
            }
        }
    }
}

/// What google/autofdo writes by default, and what LLVM reads.
pub(super) const VERSION_4_7: u32 = u32::from_le_bytes(*b"*704");

/// Whether `bytes` begin as GCC's AutoFDO data do. The counts of instrumented objects (`.gcda`) have
/// the same magic, and the version of the compiler, such as `*22B`, where these have a number.
pub fn is_gcov(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(&MAGIC.to_le_bytes()) else { return false };
    let of_compiler = matches!(rest, [b'*' | b'e' | b'p', ..]);
    !of_compiler || rest.starts_with(&VERSION_4_7.to_le_bytes())
}
