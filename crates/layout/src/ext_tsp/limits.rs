/// What bounds the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Chains that together have more blocks are not merged.
    pub chain: usize,
    /// A chain of more blocks is not split when it is merged, but where a jump suggests it.
    pub split: usize,
    /// With more blocks, only the given order is kept.
    pub blocks: usize,
    /// How many placements of a block the merging may cost. What is not merged by then is put
    /// in order by density.
    pub placements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chain: 512, split: 128, blocks: 16_384, placements: 20_000_000 }
    }
}
