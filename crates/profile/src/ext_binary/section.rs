use crate::Format;

/// `SPROF42` and a byte for the form, as a number.
pub(super) const fn magic(form: u8) -> u64 {
    u64::from_be_bytes([b'S', b'P', b'R', b'O', b'F', b'4', b'2', form])
}

pub(super) const EXT_BINARY: u64 = magic(4);
pub(super) const BINARY: u64 = magic(0xff);
pub(super) const VERSION: u64 = 103;

/// Bytes of an entry of the section header table: type, flags, offset and size.
pub(super) const HEADER_SIZE: usize = 32;

pub(super) const SUMMARY: u64 = 1;
pub(super) const NAMES: u64 = 2;
pub(super) const SYMBOLS: u64 = 3;
pub(super) const FUNCTION_OFFSETS: u64 = 4;
pub(super) const METADATA: u64 = 5;
pub(super) const CONTEXT_NAMES: u64 = 6;
pub(super) const FUNCTIONS: u64 = 32;

/// Common flags, in the low half.
pub(super) const COMPRESSED: u64 = 1;

// Flags of one section, in the high half.
pub(super) const SUMMARY_PARTIAL: u64 = 1 << 32;
pub(super) const SUMMARY_FULL_CONTEXT: u64 = 1 << 33;
pub(super) const SUMMARY_FLOW_SENSITIVE: u64 = 1 << 34;
pub(super) const SUMMARY_PREINLINED: u64 = 1 << 36;
pub(super) const SUMMARY_VTABLES: u64 = 1 << 37;
pub(super) const NAMES_MD5: u64 = 1 << 32;
pub(super) const NAMES_FIXED_LENGTH: u64 = 1 << 33;
pub(super) const NAMES_UNIQUE_SUFFIX: u64 = 1 << 34;
pub(super) const METADATA_PROBES: u64 = 1 << 32;
pub(super) const METADATA_ATTRIBUTES: u64 = 1 << 33;

/// The form that a magic number stands for.
pub(super) const fn format(magic: u64) -> Option<Format> {
    match magic {
        EXT_BINARY => Some(Format::ExtBinary),
        BINARY => Some(Format::Binary),
        _ => None,
    }
}
