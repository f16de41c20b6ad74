//! The map of a binary's basic blocks, which `-fbasic-block-address-map` writes: LLVM 22,
//! llvm/lib/Object/BBAddrMap.cpp and llvm/lib/CodeGen/AsmPrinter/AsmPrinter.cpp. LLVM 19 and 20
//! write version 2, LLVM 21 version 3, LLVM 22 version 5.

use mepof_address::ImageAddress;
use mepof_machine::Machine;

use crate::bytes::Cursor;
use crate::{Binary, BinaryError, Damage};

/// `SHT_LLVM_BB_ADDR_MAP`.
const SECTION_TYPE: u32 = 0x6fff_4c0a;

/// What a version's feature bits say is there.
#[derive(Clone, Copy)]
struct Features(u16);

impl Features {
    const ENTRY_COUNT: u16 = 1;
    const BLOCK_FREQUENCY: u16 = 1 << 1;
    const BRANCH_PROBABILITY: u16 = 1 << 2;
    const SEVERAL_RANGES: u16 = 1 << 3;
    const NO_BLOCKS: u16 = 1 << 4;
    const CALL_ENDS: u16 = 1 << 5; // from version 3 on
    const HASH: u16 = 1 << 6; // from version 4 on
    const POST_LINK: u16 = 1 << 7; // from version 5 on

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Damage> {
        let version = cursor.byte()?;
        let known = match version {
            2 => Self::CALL_ENDS - 1,
            3 => Self::HASH - 1,
            4 => Self::POST_LINK - 1,
            5 => 0xff,
            _ => {
                let what = format!("version {version} instead of 2 to 5 (LLVM 19 to 22)");
                return Err(cursor.damage(what));
            }
        };
        let bits = cursor.number(if version < 5 { 1 } else { 2 })? as u16;
        if bits & !known != 0 {
            return Err(cursor.damage(format!("unknown features {bits:#x} in version {version}")));
        }
        Ok(Self(bits))
    }

    fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

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
    let mut functions = Vec::new();
    let mut found = false;
    for header in binary.section_headers().iter().filter(|header| header.kind == SECTION_TYPE) {
        found = true;
        let data = binary.contents_of(header)?;
        let maps = parse_bb_address_maps(&data, binary.machine(), binary.is_little_endian());
        functions.extend(maps.map_err(|damage| BinaryError::Corrupt {
            path: binary.path().to_owned(),
            section: header.name.clone(),
            what: damage.to_string(),
        })?);
    }
    if !found {
        return Err(BinaryError::Missing {
            path: binary.path().to_owned(),
            what: "map of its basic blocks".to_owned(),
            remedy: "build it with Clang and -fbasic-block-address-map".to_owned(),
        });
    }
    functions.sort_by_key(|function| function.address);
    Ok(functions)
}

/// Reads the contents of one `.llvm_bb_addr_map` section, in its order. Analysis data
/// (`-pgo-analysis-map`) is passed over; a function whose blocks were left out
/// (`-basic-block-address-map-skip-bb-entries`) has ranges without blocks.
pub fn parse_bb_address_maps(
    data: &[u8],
    machine: Machine,
    little_endian: bool,
) -> Result<Vec<FunctionBlocks>, Damage> {
    let cursor = &mut Cursor::new(data, little_endian);
    let mut functions = Vec::new();
    while !cursor.is_at_end() {
        let features = Features::read(cursor)?;
        let several = features.has(Features::SEVERAL_RANGES);
        let count = if several { cursor.unsigned32()? } else { 1 };
        let mut ranges = Vec::new();
        for _ in 0..count {
            ranges.push(range(cursor, features, machine)?);
        }
        let entry: Option<&BlockRange> = ranges.first();
        let address = entry.ok_or_else(|| cursor.damage("a function without code"))?.address;
        skip_analysis(cursor, features, ranges.iter().map(|range| range.blocks.len()).sum())?;
        functions.push(FunctionBlocks { address, ranges });
    }
    Ok(functions)
}

fn range(
    cursor: &mut Cursor<'_>,
    features: Features,
    machine: Machine,
) -> Result<BlockRange, Damage> {
    let size = if machine.is_64_bit() { 8 } else { 4 };
    let address = ImageAddress(cursor.number(size)? & !machine.mode_bit());
    let count = cursor.unsigned32()?;
    let mut blocks = Vec::new();
    if !features.has(Features::NO_BLOCKS) {
        let mut next = address;
        for _ in 0..count {
            let block = block(cursor, features, next)?;
            next = ImageAddress(block.address.0.wrapping_add(block.size));
            blocks.push(block);
        }
    }
    Ok(BlockRange { address, blocks })
}

/// A block; the one before it ends at `previous_end`.
fn block(
    cursor: &mut Cursor<'_>,
    features: Features,
    previous_end: ImageAddress,
) -> Result<Block, Damage> {
    let id = cursor.unsigned32()?;
    let gap = cursor.unsigned32()?;
    let calls = if features.has(Features::CALL_ENDS) { cursor.unsigned32()? } else { 0 };
    let mut call_ends = Vec::new();
    let mut end = 0_u64; // of what is known of the block so far
    for _ in 0..calls {
        end += u64::from(cursor.unsigned32()?);
        call_ends.push(end);
    }
    let size = end + u64::from(cursor.unsigned32()?);
    let flags = cursor.unsigned32()?;
    if flags >> 5 != 0 {
        return Err(cursor.damage(format!("unknown block flags {flags:#x}")));
    }
    let hash = features.has(Features::HASH).then(|| cursor.number(8)).transpose()?;
    let flag = |bit: u32| flags >> bit & 1 == 1;
    Ok(Block {
        id,
        address: ImageAddress(previous_end.0.wrapping_add(gap.into())),
        size,
        has_return: flag(0),
        has_tail_call: flag(1),
        is_landing_pad: flag(2),
        can_fall_through: flag(3),
        has_indirect_branch: flag(4),
        call_ends,
        hash,
    })
}

/// Passes over what the compiler knew of a function's frequencies.
fn skip_analysis(cursor: &mut Cursor<'_>, features: Features, blocks: usize) -> Result<(), Damage> {
    if features.has(Features::ENTRY_COUNT) {
        cursor.unsigned()?;
    }
    let frequency = features.has(Features::BLOCK_FREQUENCY);
    let probability = features.has(Features::BRANCH_PROBABILITY);
    if !frequency && !probability {
        return Ok(());
    }
    let post_link = features.has(Features::POST_LINK);
    for _ in 0..blocks {
        for _ in 0..u8::from(frequency) + u8::from(post_link) {
            cursor.unsigned()?;
        }
        let successors = if probability { cursor.unsigned()? } else { 0 };
        for _ in 0..successors {
            for _ in 0..2 + u8::from(post_link) {
                cursor.unsigned()?; // its id, the probability, the count
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
