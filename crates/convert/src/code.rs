//! The instructions of the functions that a trace touches.

use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, instructions};
use mepof_machine::{Flow, Instruction};
use rayon::prelude::*;

/// One instruction of [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub address: ImageAddress,
    pub size: u8,
    pub flow: Flow,
}

impl Placed {
    /// Whether it may go elsewhere than to the next instruction.
    pub fn is_branch(&self) -> bool {
        !matches!(self.flow, Flow::Next | Flow::Stop)
    }

    /// Whether it never goes on to the next instruction without having been elsewhere. Calls to
    /// firmware and to a hypervisor come back unseen.
    fn is_barrier(&self) -> bool {
        self.is_branch() && !matches!(self.flow, Flow::Conditional(_) | Flow::System)
    }
}

/// Decoded functions, by address.
#[derive(Debug, Default)]
pub(crate) struct Code {
    instructions: Vec<Placed>,
    barriers: Vec<ImageAddress>, // the instructions that code does not run straight through
}

impl Code {
    /// Decodes the functions of `binary` that cover any of `addresses`, in parallel.
    pub fn new(binary: &Binary, addresses: &[ImageAddress]) -> Self {
        let functions = binary.functions();
        let mut touched: Vec<usize> = addresses
            .iter()
            .filter_map(|&address| {
                let after = functions.partition_point(|f| f.addresses.start <= address);
                let index = after.checked_sub(1)?;
                functions.get(index)?.addresses.contains(&address).then_some(index)
            })
            .collect();
        touched.sort_unstable();
        touched.dedup();
        let decoded: Vec<Vec<Placed>> = touched
            .par_iter()
            .filter_map(|&index| functions.get(index))
            .map(|function| decode(binary, function.addresses.clone()))
            .collect();
        Self::of(decoded.concat())
    }

    /// Instructions by address, none of which overlaps another.
    pub fn of(instructions: Vec<Placed>) -> Self {
        let barriers = instructions
            .iter()
            .filter(|placed| placed.is_barrier())
            .map(|placed| placed.address)
            .collect();
        Self { instructions, barriers }
    }

    /// All instructions.
    pub fn all(&self) -> &[Placed] {
        &self.instructions
    }

    /// The instructions that begin in `first..=last`.
    pub fn within(&self, first: ImageAddress, last: ImageAddress) -> &[Placed] {
        let begin = self.instructions.partition_point(|placed| placed.address < first);
        let end = self.instructions.partition_point(|placed| placed.address <= last);
        self.instructions.get(begin..end).unwrap_or_default()
    }

    /// The instruction that begins at `address`.
    pub fn at(&self, address: ImageAddress) -> Option<Placed> {
        let index = self.instructions.partition_point(|placed| placed.address < address);
        self.instructions.get(index).filter(|placed| placed.address == address).copied()
    }

    /// The instruction after the one at `address`, if it follows at once.
    pub fn after(&self, placed: Placed) -> Option<Placed> {
        self.at(ImageAddress(placed.address.0.checked_add(u64::from(placed.size))?))
    }

    /// The instructions from `first` on and before `last` that code does not run straight through.
    pub fn barriers(&self, first: ImageAddress, last: ImageAddress) -> &[ImageAddress] {
        let begin = self.barriers.partition_point(|&barrier| barrier < first);
        let end = self.barriers.partition_point(|&barrier| barrier < last);
        self.barriers.get(begin..end).unwrap_or_default()
    }
}

fn decode(binary: &Binary, addresses: Range<ImageAddress>) -> Vec<Placed> {
    let location = |(address, instruction): (_, Instruction)| Placed {
        address,
        size: instruction.size,
        flow: instruction.flow,
    };
    instructions(binary, addresses).map(location).collect()
}
