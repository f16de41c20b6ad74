use std::sync::Arc;

use mepof_address::ImageAddress;

/// What a pseudo probe stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// A basic block.
    Block,
    /// A call through a pointer.
    IndirectCall,
    /// A direct call.
    DirectCall,
}

/// A pseudo probe: a block or call of a function's source form, and where it is in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Where it is.
    pub address: ImageAddress,
    /// The function's GUID: the low 64 bits of its name's MD5.
    pub guid: u64,
    /// Its number within the function, from 1.
    pub index: u32,
    /// What it is.
    pub kind: ProbeKind,
    /// Attribute bits as encoded.
    pub attributes: u8,
    /// Its discriminator, 0 where there is none.
    pub discriminator: u32,
    /// The calls that it was inlined through: (GUID of the caller, index of the call probe), the
    /// outermost first.
    pub inlined_at: Arc<[(u64, u32)]>,
}
