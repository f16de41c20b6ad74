/// A block as far as its position in the order matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Bytes.
    pub size: u64,
    /// How often it ran.
    pub count: f64,
}

/// A jump between two blocks, or the falling through that takes its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// Which block it leaves.
    pub source: u32,
    /// Which block it enters.
    pub target: u32,
    /// How often.
    pub count: f64,
}

/// What a jump is worth, by its length. The defaults are the published ones, which LLVM's
/// `CodeLayout` uses too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Falling through.
    pub fall_through: f64,
    /// A forward jump of length 0; less and less up to `forward_distance`.
    pub forward: f64,
    /// Bytes from which on a forward jump is worth nothing.
    pub forward_distance: u64,
    /// A backward jump of length 0; less and less up to `backward_distance`.
    pub backward: f64,
    /// Bytes from which on a backward jump is worth nothing.
    pub backward_distance: u64,
}

impl Default for Score {
    fn default() -> Self {
        Self {
            fall_through: 1.0,
            forward: 0.1,
            forward_distance: 1024,
            backward: 0.1,
            backward_distance: 640,
        }
    }
}

impl Score {
    /// The worth of a jump taken once, from the end of a block at `end` to one at `target`.
    pub fn jump(&self, end: u64, target: u64) -> f64 {
        let decayed = |worth: f64, length: u64, limit: u64| {
            if length < limit { worth * (1.0 - length as f64 / limit as f64) } else { 0.0 }
        };
        if end == target {
            self.fall_through
        } else if end < target {
            decayed(self.forward, target - end, self.forward_distance)
        } else {
            decayed(self.backward, end - target, self.backward_distance)
        }
    }

    /// The score of blocks at given addresses: `positions` has each block's first byte and the
    /// byte after its last.
    pub fn placed(&self, positions: &[(u64, u64)], jumps: &[Jump]) -> f64 {
        let worth = |jump: &Jump| {
            let (_, end) = *positions.get(jump.source as usize)?;
            let (target, _) = *positions.get(jump.target as usize)?;
            Some(jump.count * self.jump(end, target))
        };
        jumps.iter().filter_map(worth).sum()
    }

    /// The score of `blocks` one after the other in `order`.
    pub fn of(&self, blocks: &[Block], jumps: &[Jump], order: &[u32]) -> f64 {
        let mut positions = vec![(u64::MAX, 0); blocks.len()];
        self.ordered(blocks, jumps, order, &mut positions)
    }

    /// As [`of`](Self::of), with `positions` as scratch space for all blocks.
    pub(super) fn ordered(
        &self,
        blocks: &[Block],
        jumps: &[Jump],
        order: &[u32],
        positions: &mut [(u64, u64)],
    ) -> f64 {
        let mut address = 0_u64;
        for &block in order {
            let size = blocks.get(block as usize).map_or(0, |block| block.size);
            if let Some(position) = positions.get_mut(block as usize) {
                *position = (address, address.saturating_add(size));
            }
            address = address.saturating_add(size);
        }
        self.placed(positions, jumps)
    }
}
