//! Pseudo probes, which `-fpseudo-probe-for-profiling` writes: LLVM 22,
//! llvm/include/llvm/MC/MCPseudoProbe.h and llvm/lib/MC/MCPseudoProbe.cpp. The format is the
//! same from LLVM 19 on.

mod decode;
mod probe;

use std::ops::Range;

use mepof_address::ImageAddress;
use rustc_hash::FxHashMap;

use crate::bytes::Cursor;
use crate::{Binary, BinaryError, Damage};

use decode::{Run, Start};
pub use probe::{Probe, ProbeKind};

/// All pseudo probes of a binary.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// By address.
    pub probes: Vec<Probe>,
    /// Functions: (GUID, hash of the control flow, name), by GUID.
    pub functions: Vec<(u64, u64, String)>,
    /// Probes that are left out because the symbol table does not say where their function is: the
    /// table does not have the name, or several functions have it and nothing says which is which.
    pub unlocated: usize,
}

/// The contents of a `.pseudo_probe` section.
#[derive(Clone, Debug)]
pub struct ProbeSection<'a> {
    /// Its bytes.
    pub data: &'a [u8],
    /// The code that it belongs to, where that is one section: in a relocatable file.
    pub code: Option<Range<ImageAddress>>,
}

impl Probes {
    /// Reads `.pseudo_probe` and `.pseudo_probe_desc`; `None` if the binary has none.
    pub fn read(binary: &Binary) -> Result<Option<Self>, BinaryError> {
        let mut probes = Vec::new(); // the contents, and the code that they belong to
        let mut descriptions = Vec::new();
        for header in binary.section_headers() {
            match header.name.as_str() {
                ".pseudo_probe" => {
                    let linked = |section: &&crate::Section| section.index == header.link as usize;
                    let code = binary.sections().iter().find(linked).filter(|_| {
                        // In other files `sh_link` names but the first of several.
                        binary.is_relocatable()
                    });
                    let code = code.map(|section| section.addresses.clone());
                    probes.push((binary.contents_of(header)?, code));
                }
                ".pseudo_probe_desc" => descriptions.push(binary.contents_of(header)?),
                _ => {}
            }
        }
        if probes.is_empty() {
            return Ok(None);
        }
        let corrupt = |section: &str, damage: Damage| BinaryError::Corrupt {
            path: binary.path().to_owned(),
            section: section.to_owned(),
            what: damage.to_string(),
        };
        let sections: Vec<_> =
            probes.iter().map(|(data, code)| ProbeSection { data, code: code.clone() }).collect();
        let symbols = binary.code_symbols()?;
        let mode_bit = binary.machine().mode_bit();
        let symbols =
            symbols.iter().map(|&(name, address)| (name, ImageAddress(address.0 & !mode_bit)));
        let little_endian = binary.is_little_endian();
        let mut found = Self::parse(&sections, symbols, little_endian)
            .map_err(|damage| corrupt(".pseudo_probe", damage))?;
        for data in &descriptions {
            found
                .describe(data, little_endian)
                .map_err(|damage| corrupt(".pseudo_probe_desc", damage))?;
        }
        Ok(Some(found))
    }

    /// The probes of `sections` in a binary whose functions and parts of functions have the
    /// names and addresses of `symbols`. Without descriptions of functions.
    pub fn parse<'a>(
        sections: &[ProbeSection<'_>],
        symbols: impl Iterator<Item = (&'a [u8], ImageAddress)>,
        little_endian: bool,
    ) -> Result<Self, Damage> {
        let mut starts: FxHashMap<u64, Vec<ImageAddress>> = FxHashMap::default();
        for (name, address) in symbols {
            starts.entry(guid(name)).or_default().push(address);
        }
        for addresses in starts.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
        let mut found = Self::default();
        for section in sections {
            let runs = decode::runs(section.data, little_endian)?;
            found.locate(runs, &starts, section.code.as_ref());
        }
        found.probes.sort_by_key(|probe| probe.address);
        Ok(found)
    }

    /// Adds the probes of `runs`.
    ///
    /// Where several functions have the same name, the linker put their probes into the order of
    /// their code: that is what `SHF_LINK_ORDER` asks of it.
    fn locate(
        &mut self,
        runs: Vec<Run>,
        starts: &FxHashMap<u64, Vec<ImageAddress>>,
        code: Option<&Range<ImageAddress>>,
    ) {
        // The code that a run lies in, as the how-many-eth of its name.
        let mut count: FxHashMap<u64, usize> = FxHashMap::default();
        let mut previous: Option<(Start, u64)> = None;
        let mut starts_of_runs = Vec::with_capacity(runs.len());
        for run in &runs {
            let start = match run.start {
                Start::Absolute => None,
                Start::Function(guid) => {
                    let count = count.entry(guid).or_default();
                    // The trees of one piece of code follow one another by the GUIDs of their
                    // roots.
                    let goes_on =
                        previous.is_some_and(|(start, root)| start == run.start && root < run.root);
                    *count += usize::from(!goes_on);
                    Some((guid, *count - 1))
                }
            };
            previous = Some((run.start, run.root));
            starts_of_runs.push(start);
        }
        for (run, start) in runs.into_iter().zip(starts_of_runs) {
            let start = match start {
                None => Some(0),
                Some((guid, index)) => {
                    let all = starts.get(&guid).map_or(&[][..], Vec::as_slice);
                    let inside =
                        |start: &&ImageAddress| code.is_none_or(|code| code.contains(start));
                    let mut candidates = all.iter().filter(inside);
                    let found = match (candidates.clone().count(), count.get(&guid)) {
                        (1, _) => candidates.next(),
                        (all, Some(&runs)) if all == runs => candidates.nth(index),
                        _ => None,
                    };
                    found.map(|start| start.0)
                }
            };
            let Some(start) = start else {
                self.unlocated += run.probes.len();
                continue;
            };
            self.probes.extend(run.probes.into_iter().map(|mut probe| {
                probe.address.0 = probe.address.0.wrapping_add(start);
                probe
            }));
        }
    }

    /// Adds the functions that a `.pseudo_probe_desc` section describes.
    pub fn describe(&mut self, data: &[u8], little_endian: bool) -> Result<(), Damage> {
        let cursor = &mut Cursor::new(data, little_endian);
        while !cursor.is_at_end() {
            let (guid, hash) = (cursor.number(8)?, cursor.number(8)?);
            let size = cursor.unsigned32()?;
            let name = cursor.bytes(size as usize)?;
            self.functions.push((guid, hash, String::from_utf8_lossy(name).into_owned()));
        }
        // The first description of a function stays.
        self.functions.sort_by_key(|(guid, ..)| *guid);
        self.functions.dedup_by_key(|(guid, ..)| *guid);
        Ok(())
    }
}

/// What LLVM calls a function's GUID: the low 64 bits of the MD5 of its name.
fn guid(name: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = md5::compute(name).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests;
