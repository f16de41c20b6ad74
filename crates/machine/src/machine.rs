use std::fmt;
use std::ops::Deref;

use crate::aarch64::Aarch64;
use crate::architecture::Architecture;
use crate::arm::Arm;
use crate::x86_64::X86_64;

/// An instruction set that a kernel may be built for. It derefs to what is known about it.
#[derive(Clone, Copy)]
pub struct Machine(&'static dyn Architecture);

impl Machine {
    /// AMD64, also known as Intel 64.
    pub const X86_64: Self = Self(&X86_64);
    /// 64-bit Arm.
    pub const AARCH64: Self = Self(&Aarch64);
    /// 32-bit Arm, with A32 and T32 code.
    pub const ARM: Self = Self(&Arm);

    /// All of them.
    pub const ALL: [Self; 3] = [Self::X86_64, Self::AARCH64, Self::ARM];

    /// The machine whose `e_machine` in an ELF file is `number`.
    pub fn of_elf(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.elf_number() == number)
    }

    /// The machine that `uname -m` calls `name`.
    pub fn of_uname(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.has_uname(name))
    }
}

impl Deref for Machine {
    type Target = dyn Architecture;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.elf_number() == other.elf_number()
    }
}

impl Eq for Machine {}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_found_by_its_names() {
        for (name, machine) in [
            ("x86_64", Some(Machine::X86_64)),
            ("amd64", Some(Machine::X86_64)),
            ("aarch64", Some(Machine::AARCH64)),
            ("arm64", Some(Machine::AARCH64)),
            ("armv8l", Some(Machine::AARCH64)),
            ("armv7l", Some(Machine::ARM)),
            ("armv6", Some(Machine::ARM)),
            ("riscv64", None),
        ] {
            assert_eq!(Machine::of_uname(name), machine, "{name}");
        }
        for machine in Machine::ALL {
            assert_eq!(Machine::of_uname(machine.uname()), Some(machine));
            assert_eq!(Machine::of_elf(machine.elf_number()), Some(machine));
        }
    }
}
