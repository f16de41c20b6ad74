//! Where the kernel's loader puts the code of a module.
//!
//! Source: Linux 6.12, `kernel/module/main.c`, `__layout_sections()`, and
//! `arch/arm64/kernel/module-plts.c`, `count_plts()`.

use std::ops::Range;

use mepof_address::ImageAddress;
use mepof_machine::ModuleTable;
use object::read::elf::{ElfFile, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionIndex,
};

use super::Binary;
use super::section::SectionHeader;
use super::width::with_elf;

impl Binary {
    /// Where the kernel's loader puts the code that a module keeps: each section that has any, and
    /// its offset from the first byte of all. `None` if the loader makes room before some of it
    /// for tables of its own, and the module does not say how large they become.
    pub fn loaded_code(&self) -> Option<Vec<(u64, Range<ImageAddress>)>> {
        let kernel = self.kernel();
        let tables = self.machine().module_tables();
        let (mut next, mut loaded) = (Some(0_u64), Vec::new());
        for header in self.section_headers().iter().filter(|header| !kernel.frees(header)) {
            let table = tables.iter().find(|table| table.section == header.name);
            let room = match table {
                Some(table) => self.room(table, &kernel),
                // One that is empty, or without contents, is aligned as well.
                None if header.is_executed() => Some((header.alignment.max(1), header.size)),
                None => continue,
            };
            let offset = next
                .zip(room)
                .and_then(|(next, (alignment, _))| next.checked_next_multiple_of(alignment));
            if header.is_code() && table.is_none() {
                let start = header.address;
                loaded.push((offset?, ImageAddress(start)..ImageAddress(start + header.size)));
            }
            next = offset.zip(room).and_then(|(offset, (_, size))| offset.checked_add(size));
        }
        Some(loaded)
    }

    /// The alignment and size that `table` has once the module is loaded.
    fn room(&self, table: &ModuleTable, kernel: &Kernel) -> Option<(u64, u64)> {
        let size = table.size.filter(|size| size.since <= kernel.release)?;
        let branches = with_elf!(&self.path, &self.contents, |file| {
            let headers = self.section_headers().iter();
            let kept = headers.filter(|header| header.is_executed() && !kernel.frees(header));
            Ok(kept.map(|header| branch_entries(&file, header, size.branches)).sum::<u64>())
        });
        Some((size.alignment, (size.entries + branches.ok()?) * size.entry_size))
    }

    fn kernel(&self) -> Kernel {
        let information = self.section_data(".modinfo").ok().flatten().unwrap_or_default();
        let mut fields = information.split(|&byte| byte == 0);
        let vermagic = fields.find_map(|field| field.strip_prefix(b"vermagic="));
        let vermagic = vermagic.map(String::from_utf8_lossy);
        let mut numbers =
            vermagic.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_digit()));
        let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Kernel {
            release: (number(), number()),
            unloads: vermagic.is_none_or(|text| text.contains("mod_unload")),
        }
    }
}

/// What a module says of the kernel that it is for.
struct Kernel {
    /// 0.0 if it does not say.
    release: (u32, u32),
    /// Whether that unloads modules.
    unloads: bool,
}

impl Kernel {
    /// Whether the section is freed once the module is initialised.
    fn frees(&self, header: &SectionHeader) -> bool {
        header.name.starts_with(".init") || (!self.unloads && header.name.starts_with(".exit"))
    }
}

/// How many entries of a table the loader counts for the branches out of a section. `kinds` are
/// the types of their relocations.
fn branch_entries<Elf: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'_, Elf>,
    header: &SectionHeader,
    kinds: &[u32],
) -> u64 {
    let Ok(section) = file.section_by_index(SectionIndex(header.index)) else { return 0 };
    let relocations = section.relocations().map(|(_, relocation)| {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        let RelocationTarget::Symbol(target) = relocation.target() else { return None };
        let symbol = file.symbol_by_index(target);
        let is_inside = symbol.is_ok_and(|symbol| symbol.section_index() == Some(section.index()));
        let branch = (r_type.0, target.0, relocation.addend());
        (kinds.contains(&r_type.0) && !is_inside).then_some(branch)
    });
    let mut branches: Vec<_> = relocations.collect();
    // As partition_branch_plt_relas() does it: the last of them may stay out of the sorted part,
    // so that it has an entry of its own.
    let (mut sorted, mut last) = (0, branches.len().saturating_sub(1));
    while sorted < last {
        let is_branch = |index: usize| branches.get(index).is_some_and(Option::is_some);
        if is_branch(sorted) {
            sorted += 1;
        } else if is_branch(last) {
            branches.swap(sorted, last);
        } else {
            last -= 1;
        }
    }
    branches.get_mut(..sorted).unwrap_or_default().sort_unstable();
    let mut before = None;
    let entries = branches.into_iter().flatten().filter(|&(kind, target, addend)| {
        let is_known = addend == 0 && before == Some((kind, target));
        before = (addend == 0).then_some((kind, target));
        !is_known
    });
    entries.count() as u64
}
