use mepof_binary::{Binary, KERNEL_LINES, PROGRAM_LINES};
use serde::Serialize;

/// What a binary is to the reader of an error, who is to give another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A vmlinux.
    #[default]
    Kernel,
    /// A kernel module.
    Module,
    /// A program or library.
    Program,
}

impl Subject {
    /// What `binary` is.
    pub fn of(binary: &Binary) -> Self {
        if binary.is_relocatable() {
            Self::Module
        } else if ["_text", "_stext"].iter().any(|symbol| binary.symbol(symbol).is_some()) {
            Self::Kernel
        } else {
            Self::Program
        }
    }

    /// What an input was recorded on or with.
    pub(crate) fn ran(self) -> &'static str {
        match self {
            Self::Kernel => "on a kernel",
            Self::Module => "with a module",
            Self::Program => "of a program",
        }
    }

    /// What to give instead.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Kernel => "the vmlinux",
            Self::Module => "the module",
            Self::Program => "the program",
        }
    }

    /// What else may be wrong than that it is the wrong file.
    pub(crate) fn or_place(self) -> &'static str {
        match self {
            Self::Kernel => ", and where it was loaded (--kallsyms) if KASLR was on",
            Self::Module | Self::Program => "",
        }
    }

    /// What to do if not one branch is in the binary.
    pub(crate) fn remedy(self) -> String {
        format!("give {} of the exact build that ran{}", self.file(), self.or_place())
    }

    /// How to build with debug lines.
    pub(crate) fn with_lines(self) -> &'static str {
        match self {
            Self::Kernel | Self::Module => KERNEL_LINES,
            Self::Program => PROGRAM_LINES,
        }
    }
}
