use mepof_address::ImageAddress;

use crate::{Binary, BinaryError};

/// A basic block of the machine code, as `-fbasic-block-address-map` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number that code generation gave it; profiles refer to it.
    pub id: u32,
    /// Its first byte.
    pub address: ImageAddress,
    /// Bytes.
    pub size: u64,
    /// Ends in a return.
    pub has_return: bool,
    /// Ends in a tail call.
    pub has_tail_call: bool,
    /// Is where an exception lands.
    pub is_landing_pad: bool,
    /// May go on to the next block.
    pub can_fall_through: bool,
    /// Ends in an indirect branch.
    pub has_indirect_branch: bool,
    /// Where calls in it end, in bytes from its start (version 3 and later, on request).
    pub call_ends: Vec<u64>,
    /// The block's hash, which profiles can be matched by (version 4 and later, on request).
    pub hash: Option<u64>,
}

/// Blocks that lie side by side: all of a function's, or those of one of its sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// Its first byte.
    pub address: ImageAddress,
    /// The blocks, by address.
    pub blocks: Vec<Block>,
}

/// A function's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionBlocks {
    /// The function's entry.
    pub address: ImageAddress,
    /// Its ranges, the entry's first.
    pub ranges: Vec<BlockRange>,
}

/// Reads `.llvm_bb_addr_map` (its sections, in all versions that LLVM 19 to 22 write), by
/// function address. `BinaryError::Missing` if there is none.
pub fn read_bb_address_maps(binary: &Binary) -> Result<Vec<FunctionBlocks>, BinaryError> {
    let _ = binary;
    todo!()
}
