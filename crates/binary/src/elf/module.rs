//! Where the kernel's loader puts the code of a module.

use std::ops::Range;

use mepof_address::ImageAddress;

use super::Binary;

impl Binary {
    /// Where the kernel's loader puts the code that a module keeps: each section that has any, and
    /// its offset from the first byte of all. Source: Linux 6.12, `kernel/module/main.c`,
    /// `__layout_sections()`.
    pub fn loaded_code(&self) -> Vec<(u64, Range<ImageAddress>)> {
        let unloads = self.vermagic().is_none_or(|words| words.contains("mod_unload"));
        let (mut next, mut loaded) = (0_u64, Vec::new());
        for header in self.section_headers() {
            let is_freed =
                header.name.starts_with(".init") || (!unloads && header.name.starts_with(".exit"));
            if !header.is_executed() || is_freed {
                continue;
            }
            // One that is empty, or without contents, is aligned as well.
            let alignment = header.alignment.max(1);
            let offset = next.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
            next = offset.saturating_add(header.size);
            if header.is_code() {
                let start = header.address;
                loaded.push((offset, ImageAddress(start)..ImageAddress(start + header.size)));
            }
        }
        loaded
    }

    /// The kernel that a module is for: its release, and some of how it is configured.
    fn vermagic(&self) -> Option<String> {
        let information = self.section_data(".modinfo").ok()??;
        let mut fields = information.split(|&byte| byte == 0);
        let vermagic = fields.find_map(|field| field.strip_prefix(b"vermagic="))?;
        Some(String::from_utf8_lossy(vermagic).into_owned())
    }
}
