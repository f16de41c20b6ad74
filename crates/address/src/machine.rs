use std::fmt;

/// An instruction set that a kernel may be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Machine {
    /// AMD64, also known as Intel 64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm, with A32 and T32 code.
    Arm,
}

impl Machine {
    /// The lowest address that belongs to a kernel rather than to a process. On 32-bit Arm
    /// this is the default split of 3 GiB to 1 GiB, less the 16 MiB of modules below it.
    pub fn kernel_space(self) -> u64 {
        match self {
            Self::X86_64 | Self::Aarch64 => 1 << 63,
            Self::Arm => 0xbf00_0000,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "arm64",
            Self::Arm => "arm",
        })
    }
}
