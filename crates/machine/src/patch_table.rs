/// How an entry of a [`PatchTable`] has the address of the code, with which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeAddress {
    /// A 32-bit offset from the entry.
    Offset,
    /// The address itself, in 64 bits.
    Absolute,
}

/// A table of code that a kernel rewrites while it runs: how to find it, and what an entry looks
/// like.
#[derive(Clone, Copy, Debug)]
pub struct PatchTable {
    /// The section of that name, or
    pub section: &'static str,
    /// what lies between these two symbols.
    pub symbols: (&'static str, &'static str),
    /// How an entry begins.
    pub address: CodeAddress,
    /// Bytes of an entry, the likeliest first: it changed between releases.
    pub strides: &'static [usize],
    /// The offset of the code's length in an entry of that stride; without it, the code is one
    /// instruction.
    pub length_at: Option<fn(stride: usize) -> usize>,
}

impl PatchTable {
    /// Static keys: Linux 6.12, `include/linux/jump_label.h` (`struct jump_entry`).
    pub(crate) const JUMP_LABELS: Self = Self {
        section: "__jump_table",
        symbols: ("__start___jump_table", "__stop___jump_table"),
        address: CodeAddress::Offset,
        strides: &[16],
        length_at: None,
    };

    /// Alternatives, whose entries differ between architectures.
    pub(crate) const fn alternatives(
        strides: &'static [usize],
        length_at: fn(usize) -> usize,
    ) -> Self {
        Self {
            section: ".altinstructions",
            symbols: ("__alt_instructions", "__alt_instructions_end"),
            address: CodeAddress::Offset,
            strides,
            length_at: Some(length_at),
        }
    }
}
