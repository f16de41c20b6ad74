/// How a relocation changes the bytes at its offset.
#[derive(Clone, Copy)]
pub enum Relocation {
    /// The value as a number of so many bytes.
    Absolute(usize),
    /// The distance from the relocation as a number of so many bytes.
    Relative(usize),
    /// The distance of a branch, in the bits of its instruction.
    Branch {
        /// By how many bytes the program counter is ahead of the instruction.
        ahead: u64,
        /// Writes the distance in bytes into the instruction; `None` if that is cut off. Arm's
        /// instructions are little endian whatever the data is.
        patch: fn(instruction: &mut [u8], distance: u64) -> Option<()>,
    },
}

/// Sets `width` bits from bit `at` of the 32-bit instruction at the start of `bytes`.
pub(crate) fn set_bits(bytes: &mut [u8], value: u64, width: u32, at: u32) -> Option<()> {
    let field = bytes.first_chunk_mut::<4>()?;
    let mask = ((1_u32 << width) - 1) << at;
    let instruction = u32::from_le_bytes(*field) & !mask | (value as u32) << at & mask;
    *field = instruction.to_le_bytes();
    Some(())
}
