use mepof_address::ImageAddress;

use crate::BlockRef;

/// A basic block, or a copy of one that a layout asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The block's number in the profile.
    pub id: u32,
    /// Which copy of the block: 0 is the block itself.
    pub clone: u32,
    /// Bytes.
    pub size: u64,
    /// How often it ran.
    pub count: u64,
    /// Ends in an indirect branch.
    pub has_indirect_branch: bool,
    /// Is where an exception lands.
    pub is_landing_pad: bool,
    /// The block's hash, if the binary has it.
    pub hash: Option<u64>,
}

/// How often control went from one block of a function to another, by a branch or by falling
/// through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Which node it leaves.
    pub source: u32,
    /// Which node it enters.
    pub target: u32,
    /// How often.
    pub count: u64,
}

/// The control flow of a function that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionGraph {
    /// Which function of the block map.
    pub function: u32,
    /// Its entry.
    pub address: ImageAddress,
    /// How often it was entered from elsewhere, or by a call to itself.
    pub entry_count: u64,
    /// Its blocks, the entry first, in the binary's order.
    pub nodes: Vec<Node>,
    /// Edges with a count, by source and target.
    pub edges: Vec<Edge>,
}

/// How often a block called a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallEdge {
    /// The block with the call.
    pub from: BlockRef,
    /// Which function of the block map was called.
    pub to: u32,
    /// Whether it was a jump that does not come back.
    pub tail: bool,
    /// How often.
    pub count: u64,
}

/// What happened to a trace's branches and ranges, by count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountTally {
    /// Branches from block to block of one function.
    pub edges: u64,
    /// Calls from mapped code.
    pub calls: u64,
    /// Jumps to another function's entry.
    pub tail_calls: u64,
    /// Branches to a function's entry from outside of mapped code.
    pub entries: u64,
    /// Returns, and resumptions after an interrupt or exception.
    pub returns: u64,
    /// Branches from mapped code to elsewhere.
    pub exits: u64,
    /// Branches with neither side in mapped code.
    pub unmapped: u64,
    /// Branches into the middle of a block that are not returns. More than a few mean that
    /// binary and data do not match.
    pub inside_block: u64,
    /// Branches into the middle of another function that are not returns.
    pub inside_function: u64,
    /// Ranges that follow the blocks' order.
    pub ranges: u64,
    /// Ranges with a side outside of mapped code.
    pub unmapped_ranges: u64,
    /// Ranges that end before they begin, leave a function, or cross a block that does not
    /// fall through.
    pub broken_ranges: u64,
}

impl CountTally {
    /// The share of branches and ranges in mapped code that contradict the map: 0 to 1. Near
    /// zero where binary and data belong together.
    pub fn contradictory(&self) -> f64 {
        let wrong = [self.inside_block, self.inside_function, self.broken_ranges];
        let right =
            [self.edges, self.calls, self.tail_calls, self.entries, self.returns, self.ranges];
        let sum = |counts: &[u64]| counts.iter().map(|&count| count as f64).sum::<f64>();
        let all = sum(&wrong) + sum(&right);
        if all > 0.0 { sum(&wrong) / all } else { 0.0 }
    }
}

/// The control flow of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramGraph {
    /// Functions that ran, by address.
    pub functions: Vec<FunctionGraph>,
    /// Calls between them, by caller's block and callee.
    pub calls: Vec<CallEdge>,
    /// What happened to the trace.
    pub tally: CountTally,
}
