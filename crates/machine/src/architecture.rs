use mepof_address::ImageAddress;

use crate::instruction::Instruction;
use crate::module_table::ModuleTable;
use crate::patch_table::PatchTable;
use crate::relocation::Relocation;

/// What kind of code a stretch of a 32-bit or 64-bit Arm section holds, from a mapping symbol
/// (ELF for the Arm Architecture, section "Mapping symbols").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeKind {
    /// `$a` and `$x`: A32 or A64 instructions.
    Arm,
    /// `$t`: T32 instructions.
    Thumb,
    /// `$d`: data between the code.
    Data,
}

/// Hardware that records branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchRecorder {
    /// Its maker and name.
    pub name: &'static str,
    /// What is missing in its records, after a colon; empty where nothing is worth saying.
    pub remark: &'static str,
}

/// What a [`Decoder`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instruction.
    Instruction(Instruction),
    /// Bytes that are not an instruction, and how many of them to skip.
    Skip(usize),
}

/// Decodes a piece of code, instruction by instruction.
pub trait Decoder {
    /// The instruction at byte `offset` of the code; `None` if the code ends within it. Offsets
    /// only grow.
    fn step(&mut self, offset: usize) -> Option<Step>;

    /// From here on the code is of this kind, which is not [`CodeKind::Data`].
    fn switch(&mut self, _kind: CodeKind) {}
}

/// What differs between instruction sets. `thumb` selects T32 code on 32-bit Arm and is ignored
/// elsewhere.
pub trait Architecture: Sync {
    /// The name in messages.
    fn name(&self) -> &'static str;

    /// `e_machine` of its ELF files.
    fn elf_number(&self) -> u16;

    /// Whether addresses, and so its ELF files, have 64 bits rather than 32.
    fn is_64_bit(&self) -> bool {
        true
    }

    /// What `uname -m` prints.
    fn uname(&self) -> &'static str;

    /// Whether `uname -m` may print `name`.
    fn has_uname(&self, name: &str) -> bool {
        name == self.uname()
    }

    /// The lowest address that is a kernel's rather than a process's.
    fn kernel_space(&self) -> u64 {
        1 << 63
    }

    /// What the file whose first bytes these are is, if a boot loader of this architecture starts
    /// it: with an article.
    fn boot_image(&self, _bytes: &[u8]) -> Option<&'static str> {
        None
    }

    /// The bit of a function's address that selects the instruction set and is not part of the
    /// address; 0 where there is none.
    fn mode_bit(&self) -> u64 {
        0
    }

    /// What a symbol without a type says of the code that follows, if it is a mapping symbol.
    fn mapping_symbol(&self, _name: &[u8]) -> Option<CodeKind> {
        None
    }

    /// How the relocation of type `kind` changes the bytes; `None` for those that neither
    /// branches nor debug information use.
    fn relocation(&self, kind: u32) -> Option<Relocation>;

    /// The tables in which a kernel lists the code that it rewrites while it runs.
    fn patch_tables(&self) -> &'static [PatchTable];

    /// The sections of a module that the kernel's loader enlarges.
    fn module_tables(&self) -> &'static [ModuleTable] {
        &[]
    }

    /// Decodes the instruction at the start of `code`, which lies at `address`; `None` if the
    /// bytes are not an instruction.
    fn decode(&self, thumb: bool, address: ImageAddress, code: &[u8]) -> Option<Instruction>;

    /// A decoder of `code`, which lies at `address`.
    fn decoder<'a>(
        &self,
        thumb: bool,
        address: ImageAddress,
        code: &'a [u8],
    ) -> Box<dyn Decoder + 'a>;

    /// Whether `code` begins with an instruction that is not a branch but has a bit in an ETM
    /// trace.
    fn is_traced_barrier(&self, _thumb: bool, _code: &[u8]) -> bool {
        false
    }

    /// Whether `code` begins with a return from an exception that an ETM trace has a bit for.
    fn is_traced_exception_return(&self, _code: &[u8]) -> bool {
        false
    }

    /// What recorded branch stacks on the CPU that perf calls `cpu_id` (`GenuineIntel,6,143,8`,
    /// or Arm's MIDR); `says_speculation` is whether any entry says if it was speculative.
    fn branch_recorder(&self, _cpu_id: &str, _says_speculation: bool) -> Option<BranchRecorder> {
        None
    }
}

/// The first four bytes of `code` as a little-endian number.
pub(crate) fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Whether `bytes` has `magic` at `offset`.
pub(crate) fn has_magic(bytes: &[u8], offset: usize, magic: &[u8]) -> bool {
    bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
}

/// What a mapping symbol of Arm says. It may carry a suffix from a dot on.
pub(crate) fn arm_mapping_symbol(name: &[u8]) -> Option<CodeKind> {
    match name {
        [b'$', kind] | [b'$', kind, b'.', ..] => match kind {
            b'a' | b'x' => Some(CodeKind::Arm),
            b't' => Some(CodeKind::Thumb),
            b'd' => Some(CodeKind::Data),
            _ => None,
        },
        _ => None,
    }
}
