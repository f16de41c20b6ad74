//! The contents of `.pseudo_probe`: a tree of inlined functions for each function with code of
//! its own, and for each part of one that was split off.

use std::sync::Arc;

use mepof_address::ImageAddress;

use super::probe::{Probe, ProbeKind};
use crate::Damage;
use crate::bytes::Cursor;

/// The first probe of a part that was split off: its address field names the part.
const SENTINEL: u8 = 2;
const HAS_DISCRIMINATOR: u8 = 4;
const IS_DISTANCE: u8 = 0x80;

/// How many calls of inline stacks there may be, all functions together, for each byte of the
/// section: what a compiler writes has less than one.
const STACK_LIMIT: usize = 4;

/// What the addresses of a run of probes count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The function, or the part of one, whose name has this GUID.
    Function(u64),
    /// Nothing: they are addresses as they stand, which compilers wrote before LLVM 16.
    Absolute,
}

/// Probes that count from the same start. There is at least one.
pub(super) struct Run {
    pub start: Start,
    /// The function at the root of their tree.
    pub root: u64,
    pub probes: Vec<Probe>,
}

/// A function of the tree whose inlined calls are being read.
struct Caller {
    guid: u64,
    calls_left: u32,
}

/// The probes of a section, in its order.
pub(super) fn runs(data: &[u8], little_endian: bool) -> Result<Vec<Run>, Damage> {
    let mut reader = Reader {
        cursor: Cursor::new(data, little_endian),
        runs: Vec::new(),
        root: 0,
        start: Start::Absolute,
        begins: true,
        last: 0,
        stack: Vec::new(),
        stack_budget: data.len().saturating_mul(STACK_LIMIT),
    };
    while !reader.cursor.is_at_end() {
        reader.tree()?;
    }
    Ok(reader.runs)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    runs: Vec<Run>,
    root: u64,
    start: Start, // of the run that is being read
    begins: bool, // and it has no probe yet
    last: u64,    // the address of the probe before, as a distance from the start
    stack: Vec<(u64, u32)>,
    stack_budget: usize,
}

impl Reader<'_> {
    fn begin(&mut self, start: Start) {
        (self.start, self.begins, self.last) = (start, true, 0);
    }

    /// A function with all that was inlined into it.
    fn tree(&mut self) -> Result<(), Damage> {
        let guid = self.cursor.number(8)?;
        self.root = guid;
        self.begin(Start::Function(guid));
        let mut callers = vec![self.function(guid)?];
        self.stack.clear();
        while let Some(caller) = callers.last_mut() {
            if caller.calls_left == 0 {
                callers.pop();
                self.stack.pop();
                continue;
            }
            caller.calls_left -= 1;
            let call = self.cursor.unsigned32()?;
            self.stack.push((caller.guid, call));
            let guid = self.cursor.number(8)?;
            callers.push(self.function(guid)?);
        }
        Ok(())
    }

    /// The probes of one function of the tree, after its GUID.
    fn function(&mut self, guid: u64) -> Result<Caller, Damage> {
        let probes = self.cursor.unsigned32()?;
        let calls_left = self.cursor.unsigned32()?;
        let mut inlined_at: Option<Arc<[(u64, u32)]>> = None;
        for _ in 0..probes {
            let index = self.cursor.unsigned32()?;
            let packed = self.cursor.byte()?;
            let attributes = packed >> 4 & 7;
            let sentinel = attributes & SENTINEL != 0;
            if packed & IS_DISTANCE != 0 {
                self.last = self.last.wrapping_add_signed(self.cursor.signed()?);
            } else if sentinel {
                let part = self.cursor.number(8)?;
                self.begin(Start::Function(part));
            } else {
                let address = self.cursor.number(8)?;
                if self.start != Start::Absolute {
                    self.begin(Start::Absolute);
                }
                self.last = address;
            }
            let has_discriminator = attributes & HAS_DISCRIMINATOR != 0;
            let discriminator = if has_discriminator { self.cursor.unsigned32()? } else { 0 };
            if sentinel {
                continue;
            }
            let kind = match packed & 0xf {
                0 => ProbeKind::Block,
                1 => ProbeKind::IndirectCall,
                2 => ProbeKind::DirectCall,
                kind => return Err(self.cursor.damage(format!("a probe of unknown kind {kind}"))),
            };
            let inlined_at = match &inlined_at {
                Some(stack) => Arc::clone(stack),
                None => Arc::clone(inlined_at.insert(self.inline_stack()?)),
            };
            let address = ImageAddress(self.last);
            let probe = Probe { address, guid, index, kind, attributes, discriminator, inlined_at };
            match self.runs.last_mut() {
                Some(run) if !self.begins => run.probes.push(probe),
                _ => {
                    let (start, root) = (self.start, self.root);
                    self.runs.push(Run { start, root, probes: vec![probe] });
                }
            }
            self.begins = false;
        }
        Ok(Caller { guid, calls_left })
    }

    fn inline_stack(&mut self) -> Result<Arc<[(u64, u32)]>, Damage> {
        match self.stack_budget.checked_sub(self.stack.len()) {
            Some(left) => self.stack_budget = left,
            None => {
                return Err(self.cursor.damage("calls inlined deeper than any compiler inlines"));
            }
        }
        Ok(self.stack.as_slice().into())
    }
}
