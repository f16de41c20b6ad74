use mepof_address::{ImageAddress, Machine};

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To a target, or to the next instruction.
    Conditional(ImageAddress),
    /// To a target.
    Jump(ImageAddress),
    /// To wherever a register or memory says.
    IndirectJump,
    /// Into a function, and later to the next instruction.
    Call(ImageAddress),
    /// Into whatever function a register or memory names, and later to the next instruction.
    IndirectCall,
    /// Back to the caller.
    Return,
    /// Into the kernel or out of it, or to a handler: system call, `iret`, `eret`.
    System,
    /// Nowhere: `ud2`, `brk`, `hlt` in a loop's place.
    Stop,
}

/// One machine instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes.
    pub size: u8,
    /// Where control goes.
    pub flow: Flow,
    /// An x86 string instruction with a repeat prefix: it may jump to itself.
    pub repeats: bool,
}

/// Decodes the instruction at the start of `code`, which lies at `address`. `None` if the bytes
/// are no instruction. `thumb` selects T32 on 32-bit Arm and is ignored elsewhere.
pub fn decode(
    machine: Machine,
    thumb: bool,
    address: ImageAddress,
    code: &[u8],
) -> Option<Instruction> {
    let _ = (machine, thumb, address, code);
    todo!()
}
