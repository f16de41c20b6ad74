//! What a DWARF discriminator says.

use mepof_binary::{Binary, Symbolizer};

/// Whether the discriminators of a binary are LLVM's flow-sensitive ones. Source: LLVM 22,
/// `llvm/lib/Transforms/Utils/SampleProfileLoaderBaseUtil.cpp`.
pub(crate) fn is_flow_sensitive(binary: &Binary) -> bool {
    binary.symbol("__llvm_fs_discriminator__").is_some()
}

/// What of a flow-sensitive discriminator was known before code generation: the discriminator that
/// a build without flow-sensitive ones has. Source: LLVM 22,
/// `llvm/include/llvm/Support/Discriminator.h`, `getBaseFSBitEnd`.
pub(crate) fn flow_sensitive_base(discriminator: u32) -> u32 {
    discriminator & 0xff
}

/// How to read a binary's discriminators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discriminators {
    /// LLVM's: which path through a line, and how often the line's code was duplicated. Source:
    /// LLVM 22, `llvm/include/llvm/IR/DebugInfoMetadata.h`, `DILocation::decodeDiscriminator`.
    Packed,
    /// GCC's, and LLVM's flow-sensitive ones: whole.
    Whole,
}

impl Discriminators {
    /// Those of the debug information of a binary.
    pub fn of(symbolizer: &Symbolizer, flow_sensitive: bool) -> Self {
        if flow_sensitive || symbolizer.is_by_gcc() { Self::Whole } else { Self::Packed }
    }

    /// Which of several paths through the line this is.
    pub fn path(self, discriminator: u32) -> u32 {
        match self {
            Self::Packed => base(discriminator),
            Self::Whole => discriminator,
        }
    }

    /// How many copies loop unrolling or vectorisation made of the line's code; at least 1.
    pub fn copies(self, discriminator: u32) -> u64 {
        match self {
            Self::Packed => duplication(discriminator),
            Self::Whole => 1,
        }
    }
}

/// A component: one bit when zero, seven bits up to 31, and fourteen beyond that.
fn component(bits: u32) -> u32 {
    let value = bits >> 1;
    match (bits & 1, value & 0x20) {
        (1, _) => 0,
        (_, 0) => value & 0x1f,
        _ => (value >> 1 & 0xfe0) | (value & 0x1f),
    }
}

fn after_component(bits: u32) -> u32 {
    match (bits & 1, bits & 0x40) {
        (1, _) => bits >> 1,
        (_, 0) => bits >> 7,
        _ => bits >> 14,
    }
}

fn base(discriminator: u32) -> u32 {
    component(discriminator)
}

fn duplication(discriminator: u32) -> u64 {
    u64::from(component(after_component(discriminator)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Packs as DILocation::encodeDiscriminator does.
    fn pack(value: u32) -> (u32, u32) {
        match value {
            0 => (1, 1),
            1..=0x1f => (value << 1, 7),
            _ => ((((value & 0xfe0) << 1) | 0x20 | (value & 0x1f)) << 1, 14),
        }
    }

    #[test]
    fn components_come_out_as_they_went_in() {
        for base_value in [0, 1, 2, 31, 32, 33, 500, 4095] {
            for factor in [0, 2, 8, 31, 32, 64] {
                let ((low, width), (high, _)) = (pack(base_value), pack(factor));
                let packed = low | high << width;
                assert_eq!(base(packed), base_value);
                assert_eq!(duplication(packed), u64::from(factor.max(1)));
            }
        }
    }

    #[test]
    fn whole_discriminators_pack_nothing() {
        for discriminator in [0, 1, 3, 0x104] {
            assert_eq!(Discriminators::Whole.path(discriminator), discriminator);
            assert_eq!(Discriminators::Whole.copies(discriminator), 1);
        }
        assert_eq!(Discriminators::Packed.path(2), 1);
        assert_eq!(Discriminators::Packed.copies(2 << 1 << 7 | 2), 2);
    }

    #[test]
    fn no_discriminator_is_one_path_that_was_not_duplicated() {
        assert_eq!((base(0), duplication(0)), (0, 1));
    }
}
