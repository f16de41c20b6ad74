use std::collections::HashMap;

use mepof_address::{BuildId, RuntimeAddress};

use super::cursor::{ByteOrder, Cursor};
use super::feature::{MAX_IMAGES, NamedBuildId};
use super::format::misc;
use crate::{Mapping, Space, TracedImage};

/// Of all their names together; one may have 4096.
const MAX_NAME_BYTES: usize = 16 << 20;
const MAX_MAPPINGS: usize = 1 << 20;
/// `PROT_EXEC`.
const EXECUTABLE: u32 = 4;

/// A mapping as a record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappingRecord {
    space: Space,
    name: String,
    build_id: Option<BuildId>,
    mapping: Mapping,
}

impl MappingRecord {
    /// Reads the body of a `PERF_RECORD_MMAP`, or of a `PERF_RECORD_MMAP2` if `second`.
    pub(crate) fn read(
        misc: u16,
        body: &[u8],
        second: bool,
        order: ByteOrder,
        kernel_space: u64,
    ) -> Option<Self> {
        let mut cursor = Cursor::new(body, order);
        cursor.take(8)?; // process and thread
        let start = cursor.u64()?;
        let length = cursor.u64()?;
        let offset = cursor.u64()?;
        let mut build_id = None;
        let mut executable = misc & misc::MMAP_DATA == 0;
        if second {
            let mut file = Cursor::new(cursor.take(24)?, order);
            // Device, inode and generation share their bytes with a build-id.
            if misc & misc::MMAP_BUILD_ID != 0 {
                let size = usize::from(file.u8()?).min(20);
                file.take(3)?;
                build_id = BuildId::new(file.take(size)?).ok();
            }
            executable &= cursor.u32()? & EXECUTABLE != 0;
            cursor.u32()?;
        }
        let name = cursor.last_string();
        let space = space_of(misc, &name, start, kernel_space);
        if !executable && space == Space::User {
            return None;
        }
        let end = start.saturating_add(length);
        let addresses = RuntimeAddress(start)..RuntimeAddress(end);
        Some(Self { space, name, build_id, mapping: Mapping { addresses, offset, section: None } })
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// For a kernel: the symbol that its name ends in, and where that ran.
    pub(crate) fn reference(&self) -> Option<(String, RuntimeAddress)> {
        let symbol = kernel_symbol(&self.name)?;
        let address = self.mapping.offset;
        (!symbol.is_empty() && address != 0).then(|| (symbol.to_owned(), RuntimeAddress(address)))
    }

    /// For a kernel: where it begins.
    pub(crate) fn kernel_start(&self) -> Option<RuntimeAddress> {
        kernel_symbol(&self.name)?;
        let start = self.mapping.addresses.start;
        (start.0 != 0).then_some(start)
    }
}

fn space_of(misc: u16, name: &str, start: u64, kernel_space: u64) -> Space {
    match misc & misc::CPUMODE {
        misc::KERNEL => Space::Kernel,
        misc::GUEST_KERNEL => Space::GuestKernel,
        misc::USER | misc::GUEST_USER => Space::User,
        _ if name.starts_with("[guest.kernel") => Space::GuestKernel,
        _ if name.starts_with("[kernel") || start >= kernel_space => Space::Kernel,
        _ => Space::User,
    }
}

/// What follows `[kernel.kallsyms]` or `[guest.kernel.kallsyms.PID]`; `None` for other names.
fn kernel_symbol(name: &str) -> Option<&str> {
    let name = name.strip_prefix("[guest.").or_else(|| name.strip_prefix('['))?;
    let rest = name.strip_prefix("kernel.kallsyms")?;
    rest.split_once(']').map(|(_, symbol)| symbol)
}

/// The name by which a module is known to the kernel: `[nf_tables]`,
/// `/lib/modules/6.1.0/kernel/net/netfilter/nf_tables.ko.xz` and `nf-tables.ko` are all
/// `nf_tables`. `None` if it is not a module's name.
pub(crate) fn module_name(name: &str) -> Option<String> {
    if let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return (!inner.contains('.')).then(|| inner.replace('-', "_"));
    }
    let file = name.rsplit('/').next()?;
    let stem = [".xz", ".gz", ".zst"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    stem.strip_suffix(".ko").map(|stem| stem.replace('-', "_"))
}

/// What makes two names one binary's.
fn key(space: Space, name: &str) -> (Space, String) {
    let plain = match kernel_symbol(name) {
        Some(symbol) => name.strip_suffix(symbol).unwrap_or(name).to_owned(),
        None if space == Space::User => name.to_owned(),
        None => module_name(name).unwrap_or_else(|| name.to_owned()),
    };
    (space, plain)
}

/// The binaries that a file mentions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    images: Vec<TracedImage>,
    /// By names that the input chooses: the hash has a seed.
    positions: HashMap<(Space, String), usize>,
    name_bytes: usize,
    mappings: usize,
    /// What exceeded the limits.
    pub(crate) refused: u64,
}

impl Images {
    fn has_room_for(&self, name: &str) -> bool {
        self.name_bytes.saturating_add(name.len()) <= MAX_NAME_BYTES
    }

    fn position(&mut self, space: Space, name: &str) -> Option<&mut TracedImage> {
        let key = key(space, name);
        let index = match self.positions.get(&key) {
            Some(&index) => index,
            None if self.images.len() >= MAX_IMAGES || !self.has_room_for(name) => {
                self.refused += 1;
                return None;
            }
            None => {
                self.name_bytes += name.len();
                let image = TracedImage {
                    name: name.to_owned(),
                    space,
                    build_id: None,
                    mappings: Vec::new(),
                };
                self.images.push(image);
                self.positions.insert(key, self.images.len() - 1);
                self.images.len() - 1
            }
        };
        self.images.get_mut(index)
    }

    pub(crate) fn add(&mut self, record: MappingRecord) {
        let full = self.mappings >= MAX_MAPPINGS;
        let has_room = self.has_room_for(&record.name);
        let MappingRecord { space, name, build_id, mapping } = record;
        let Some(image) = self.position(space, &name) else { return };
        let mut renamed = 0;
        // The symbol that a kernel's mapping is named after is worth more than the bare name
        // of the table of build-ids.
        if has_room && image.name.len() < name.len() && kernel_symbol(&name).is_some() {
            renamed = name.len() - image.name.len();
            image.name = name;
        }
        image.build_id = build_id.or_else(|| image.build_id.take());
        // A process that forks maps the same again and again; looking back a little suffices.
        let is_new = !image.mappings.iter().rev().take(64).any(|known| *known == mapping);
        if is_new && !full {
            image.mappings.push(mapping);
            self.mappings += 1;
        }
        self.refused += u64::from(is_new && full);
        self.name_bytes += renamed;
    }

    pub(crate) fn build_id(&mut self, named: NamedBuildId) {
        let NamedBuildId { misc, id: Some(id), name } = named else { return };
        let space = match misc & misc::CPUMODE {
            misc::KERNEL => Space::Kernel,
            misc::GUEST_KERNEL => Space::GuestKernel,
            _ => Space::User,
        };
        if let Some(image) = self.position(space, &name) {
            // The id in a mapping was read while the binary was mapped; keep it.
            image.build_id.get_or_insert(id);
        }
    }

    pub(crate) fn has_kernel(&self, space: Space) -> bool {
        self.images.iter().any(|image| {
            image.space == space
                && kernel_symbol(&image.name).is_some()
                && !image.mappings.is_empty()
        })
    }

    pub(crate) fn into_images(self) -> Vec<TracedImage> {
        self.images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_one_name_however_it_is_written() {
        for name in ["[nf_tables]", "/lib/modules/6.1/net/nf-tables.ko.xz", "nf_tables.ko"] {
            assert_eq!(module_name(name).as_deref(), Some("nf_tables"));
        }
        for name in ["[kernel.kallsyms]", "/usr/bin/ls", "vmlinux", ""] {
            assert_eq!(module_name(name), None);
        }
    }

    #[test]
    fn a_kernels_name_ends_in_its_symbol() {
        assert_eq!(kernel_symbol("[kernel.kallsyms]_stext"), Some("_stext"));
        assert_eq!(kernel_symbol("[guest.kernel.kallsyms.42]_text"), Some("_text"));
        assert_eq!(kernel_symbol("[guest.kernel.kallsyms]"), Some(""));
        assert_eq!(kernel_symbol("[nf_tables]"), None);
    }
}
