use mepof_address::ImageAddress;

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction. x86's `hlt` and Arm's `wfi` are among these: they wait, and
    /// an interrupt goes on behind them.
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
    /// Nowhere: `ud2`, `int3`, `brk`, `udf`. They always raise an exception, though the handler
    /// may go on behind them, as the kernel's `WARN` does.
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
    /// 32-bit Arm's condition codes may skip it: control may go on to the next instruction
    /// whatever `flow` says. Not set for [`Flow::Conditional`], which says so itself.
    pub predicated: bool,
}

impl Instruction {
    pub(crate) fn new(size: u8, flow: Flow) -> Self {
        Self { size, flow, repeats: false, predicated: false }
    }

    /// Whether the next instruction can run right after this one, with nothing in between.
    /// After a call, other code runs first.
    pub fn can_fall_through(&self) -> bool {
        self.predicated || matches!(self.flow, Flow::Next | Flow::Conditional(_))
    }
}

/// `address` and a signed distance, within the address space of a 64-bit machine.
pub(crate) fn displaced(address: ImageAddress, by: i64) -> ImageAddress {
    ImageAddress(address.0.wrapping_add_signed(by))
}

/// The `bits` bits of `word` from bit `low` on, sign-extended.
pub(crate) fn signed(word: u32, low: u32, bits: u32) -> i64 {
    let top = 32 - bits;
    i64::from((word.wrapping_shl(top - low) as i32) >> top)
}
