/// A section of a module that the kernel's loader enlarges before it lays out the code, to write
/// branches there that reach further.
#[derive(Clone, Copy, Debug)]
pub struct ModuleTable {
    /// The section's name. What the file has in it only keeps its place.
    pub section: &'static str,
    /// How large it becomes; `None` if that depends on more than the module.
    pub size: Option<TableSize>,
}

/// How large a [`ModuleTable`] becomes.
#[derive(Clone, Copy, Debug)]
pub struct TableSize {
    /// The first release of Linux whose loader does it so.
    pub since: (u32, u32),
    /// What it is aligned to, in bytes.
    pub alignment: u64,
    /// Bytes of an entry.
    pub entry_size: u64,
    /// Entries that it has in any case. It has others for
    pub entries: u64,
    /// branches out of their section, which relocations of these types stand for.
    pub branches: &'static [u32],
}
