use std::ops::Range;

use mepof_address::{BuildId, ImageAddress, Placement, Region, RuntimeAddress};

use crate::error::{name, side};
use crate::input::perf_data::module_name;
use crate::kallsyms;
use crate::{Addressing, Facts, Mapping, Space, TracedImage};

/// Locations where a module is looked for: none is loaded that often, and each has all its
/// sections.
const MAX_LOCATIONS: usize = 4096;
/// Addresses and names that an error lists.
const MAX_LISTED: usize = 8;

/// A section with code, as a binary has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// `.text`, `.init.text`, ….
    pub name: String,
    /// Where it is in the binary.
    pub addresses: Range<ImageAddress>,
    /// Where it is in the file.
    pub file_offset: u64,
}

/// What a binary is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinaryKind {
    /// A vmlinux: image addresses of the symbols that an input may refer to.
    Kernel {
        /// `_text`.
        text: Option<ImageAddress>,
        /// `_stext`.
        stext: Option<ImageAddress>,
    },
    /// A module.
    Module {
        /// Its name as `lsmod` has it, or its file's.
        name: String,
        /// The code that it keeps, and where the kernel's loader puts that: offsets from where the
        /// module begins. `None` if the binary does not say.
        code: Option<Vec<(u64, Range<ImageAddress>)>>,
    },
    /// A program or library, by its path or its file's name.
    Program(String),
}

/// What a binary says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryFacts<'a> {
    /// What it is.
    pub kind: BinaryKind,
    /// Its build-id.
    pub build_id: Option<&'a BuildId>,
    /// Its sections with code, in the order of the section table.
    pub sections: Vec<CodeSection>,
    /// The linked address of its first executable segment, for offsets from that.
    pub segment: Option<ImageAddress>,
}

/// What a user adds where the input says too little.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// Where `_text` or `_stext` ran.
    pub kernel_base: Option<(&'a str, RuntimeAddress)>,
    /// The text of /proc/kallsyms of the machine, of the boot that was recorded.
    pub kallsyms: Option<&'a str>,
    /// The module's sections and where they ran: names and contents of
    /// /sys/module/MODULE/sections/*.
    pub module_sections: &'a [(String, RuntimeAddress)],
    /// Whether a binary with another build-id is used anyway.
    pub any_build_id: bool,
}

/// Where a binary ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Its sections.
    pub placement: Placement,
    /// Addresses that another module had as well, at another time, sorted. They are not mapped: see
    /// [`Cause::Ambiguous`](crate::Cause::Ambiguous).
    pub shared: Vec<Range<RuntimeAddress>>,
    /// Whether both the input and the binary have a build-id, and the same.
    pub is_confirmed: bool,
}

/// Why it is not known where a binary ran. Each says how to remedy it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// No mapping of the kernel, or one with hidden addresses.
    #[error(
        "the input does not say where the kernel ran; print text with `perf script \
         --show-mmap-events`, or give a copy of /proc/kallsyms of the machine, read by root before \
         its next boot (--kallsyms); with `sysctl kernel.kptr_restrict=0` perf records it"
    )]
    NoKernelMapping,
    /// Only the kernel of the other side of virtual machines.
    #[error(
        "the input only says where {there} ran; use {there} (--space {name})",
        there = side(*found), name = name(*found)
    )]
    OtherKernel {
        /// What is there.
        found: Space,
    },
    /// /proc/kallsyms was read by someone who may not see addresses: not the input is at fault,
    /// but [`Hints::kallsyms`].
    #[error(
        "the kernel's addresses in it are hidden or missing: copy /proc/kallsyms as root, or after \
         `sysctl kernel.kptr_restrict=0`"
    )]
    HiddenAddresses,
    /// The binary is not the one that ran.
    #[error(
        "the binary is not the one that ran: its build-id is {binary}, the trace's {recorded} \
         ({name}); give the binary of the exact build that was recorded"
    )]
    BuildIdDiffers {
        /// The name of the image in the input.
        name: String,
        /// The id in the input.
        recorded: BuildId,
        /// The id of the binary.
        binary: BuildId,
    },
    /// No such module or program in the input.
    #[error(
        "{name} was not loaded while recording, or the input does not say where: it has {known}; \
         text says it if it was printed with `perf script --show-mmap-events`"
    )]
    NotMapped {
        /// The module or program.
        name: String,
        /// Some of what is there.
        known: String,
    },
    /// The input says where a module was, but neither it nor the module where in that its code was.
    #[error(
        "the kernel's loader put tables before the code of {name}, whose sizes the module does not \
         say; give a copy of /proc/kallsyms of the machine, read by root before its next boot \
         (--kallsyms)"
    )]
    UnknownLayout {
        /// The module.
        name: String,
    },
    /// A binary without the symbols of a kernel, where one was asked for.
    #[error(
        "{name} has no symbol _text or _stext, by which a kernel is located; give the vmlinux \
         before symbols were stripped from it, or --space user for a program"
    )]
    NoSymbols {
        /// The binary.
        name: String,
    },
    /// More than one kernel ran, or one at several addresses.
    #[error("several kernels ran: {0}; record them one at a time")]
    SeveralKernels(String),
    /// The binary does not have the symbol that the input refers to.
    #[error("the binary has no symbol {0}, to which the trace's addresses refer")]
    NoSymbol(String),
    /// The binary has no section with code.
    #[error("the binary has no code, or none at the addresses that ran")]
    NoCode,
}

/// Finds where the binary ran, by what the input and a user say.
///
/// Kernels move as a whole (KASLR): the input names a symbol and where that ran. A module's
/// mapping begins where its code did, whose sections follow each other as the kernel's loader puts
/// them, unless their addresses are given.
///
/// # Errors
/// See [`LocateError`].
pub fn locate(
    facts: &Facts,
    space: Space,
    binary: &BinaryFacts<'_>,
    hints: &Hints<'_>,
) -> Result<Located, LocateError> {
    if binary.sections.is_empty() {
        return Err(LocateError::NoCode);
    }
    match facts.addressing {
        Addressing::Runtime => {}
        Addressing::Offset => return Ok(located(by_file(binary), Vec::new(), false)),
        Addressing::Image => return Ok(located(shifted(binary, 0), Vec::new(), false)),
        Addressing::ImageOrTextOffset { lowest, highest } => {
            let offset_from =
                binary.segment.filter(|&from| are_offsets(binary, from, lowest, highest));
            let slide = offset_from.map_or(0, |from| from.0.wrapping_neg());
            return Ok(located(shifted(binary, slide), Vec::new(), false));
        }
    }
    match &binary.kind {
        BinaryKind::Kernel { text, stext } => {
            let symbol = |name: &str| match name {
                "_text" => *text,
                "_stext" => *stext,
                _ => None,
            };
            kernel(facts, space, binary, hints, symbol)
        }
        BinaryKind::Module { name, code } => {
            module(facts, space, binary, hints, name, code.as_deref())
        }
        BinaryKind::Program(name) => program(facts, space, binary, hints, name),
    }
}

/// All sections, at their offsets in the file.
fn by_file(binary: &BinaryFacts<'_>) -> Vec<Region> {
    let regions = binary.sections.iter().map(|section| Region {
        runtime: RuntimeAddress(section.file_offset),
        image: section.addresses.start,
        size: size(&section.addresses),
    });
    regions.collect()
}

/// Whether `lowest` and `highest` are rather offsets from `from` than addresses: more of them lie in
/// the code then, or as many, as llvm-profgen writes offsets by default.
fn are_offsets(binary: &BinaryFacts<'_>, from: ImageAddress, lowest: u64, highest: u64) -> bool {
    let in_code = |slide: u64| {
        let contains = |address: &u64| {
            let address = ImageAddress(address.wrapping_add(slide));
            binary.sections.iter().any(|section| section.addresses.contains(&address))
        };
        [lowest, highest].iter().filter(|address| contains(address)).count()
    };
    // Both may be of other code, on two sides of this one.
    let is_around = |section: &CodeSection| {
        lowest < section.addresses.start.0 && section.addresses.end.0 <= highest
    };
    match (in_code(0), in_code(from.0)) {
        (0, 0) => !binary.sections.iter().any(is_around),
        (addresses, offsets) => offsets >= addresses,
    }
}

fn located(
    regions: Vec<Region>,
    shared: Vec<Range<RuntimeAddress>>,
    is_confirmed: bool,
) -> Located {
    Located { placement: Placement::new(regions), shared, is_confirmed }
}

/// All sections, `slide` bytes from where they are in the binary.
fn shifted(binary: &BinaryFacts<'_>, slide: u64) -> Vec<Region> {
    let regions = binary.sections.iter().map(|section| Region {
        runtime: RuntimeAddress(section.addresses.start.0.wrapping_add(slide)),
        image: section.addresses.start,
        size: size(&section.addresses),
    });
    regions.collect()
}

fn size(addresses: &Range<ImageAddress>) -> u64 {
    addresses.end.0.saturating_sub(addresses.start.0)
}

/// Whether the build-ids are known and equal; an error if they differ.
fn confirm(
    binary: &BinaryFacts<'_>,
    image: Option<&TracedImage>,
    hints: &Hints<'_>,
) -> Result<bool, LocateError> {
    let recorded = image.and_then(|image| Some((&image.name, image.build_id.as_ref()?)));
    match (binary.build_id, recorded) {
        (Some(binary), Some((name, recorded))) if binary != recorded && !hints.any_build_id => {
            Err(LocateError::BuildIdDiffers {
                name: name.clone(),
                recorded: recorded.clone(),
                binary: binary.clone(),
            })
        }
        (Some(binary), Some((_, recorded))) => Ok(binary == recorded),
        _ => Ok(false),
    }
}

fn kernel(
    facts: &Facts,
    space: Space,
    binary: &BinaryFacts<'_>,
    hints: &Hints<'_>,
    symbol: impl Fn(&str) -> Option<ImageAddress>,
) -> Result<Located, LocateError> {
    let image = the_kernel(facts, space, binary)?;
    let is_confirmed = confirm(binary, image, hints)?;
    let given = hints.kernel_base.map(|(name, address)| (name.to_owned(), address));
    let base = match (given, hints.kallsyms) {
        (Some(given), _) => given,
        (None, Some(text)) => kallsyms_base(text, |name| symbol(name).is_some())
            .ok_or(LocateError::HiddenAddresses)?,
        (None, None) => {
            let of_image = image.and_then(recorded_base);
            let base = of_image.or_else(|| facts.kernel_base.clone());
            base.ok_or_else(|| unlocated(facts, space))?
        }
    };
    let linked = symbol(&base.0).ok_or(LocateError::NoSymbol(base.0))?;
    let slide = base.1.0.wrapping_sub(linked.0);
    Ok(located(shifted(binary, slide), Vec::new(), is_confirmed))
}

/// Why no kernel of a side is there.
fn unlocated(facts: &Facts, wanted: Space) -> LocateError {
    let mut kernels = facts.images.iter().filter(|image| is_kernel(&image.name));
    match (kernels.next(), kernels.all(|image| image.space != wanted)) {
        (Some(image), true) if image.space != wanted => {
            LocateError::OtherKernel { found: image.space }
        }
        _ => LocateError::NoKernelMapping,
    }
}

fn is_kernel(name: &str) -> bool {
    name.starts_with("[kernel.kallsyms") || name.starts_with("[guest.kernel.kallsyms")
}

/// The image that is the kernel; none in formats that know no mappings.
fn the_kernel<'a>(
    facts: &'a Facts,
    space: Space,
    binary: &BinaryFacts<'_>,
) -> Result<Option<&'a TracedImage>, LocateError> {
    let kernels =
        facts.images.iter().filter(|image| image.space == space && is_kernel(&image.name));
    let mut kernels: Vec<_> = kernels.collect();
    if kernels.len() > 1 {
        // A guest for each process: the binary's build-id may tell which one is meant.
        let same = |image: &&TracedImage| {
            image.build_id.is_some() && image.build_id.as_ref() == binary.build_id
        };
        let matching: Vec<_> = kernels.iter().copied().filter(same).collect();
        if !matching.is_empty() {
            kernels = matching;
        }
    }
    let mut bases: Vec<_> = kernels.iter().flat_map(|image| bases(image)).collect();
    bases.sort_unstable();
    bases.dedup();
    match kernels.as_slice() {
        [] => Ok(None),
        [only] if bases.len() <= 1 => Ok(Some(only)),
        [first, ..] if bases.len() == 1 => Ok(Some(first)),
        several => {
            let say = |image: &&TracedImage| {
                let at = bases_of(image).take(MAX_LISTED);
                let at: Vec<_> = at.map(|address| address.to_string()).collect();
                format!("{} at {}", image.name, at.join(" and "))
            };
            let said = several.iter().take(MAX_LISTED).map(say).collect::<Vec<_>>();
            Err(LocateError::SeveralKernels(said.join(", ")))
        }
    }
}

fn bases(image: &TracedImage) -> Vec<RuntimeAddress> {
    bases_of(image).collect()
}

/// Where the symbol in the image's name ran, for each mapping that knows.
fn bases_of(image: &TracedImage) -> impl Iterator<Item = RuntimeAddress> {
    let named = !image.name.ends_with(']');
    let known = image.mappings.iter().filter(move |mapping| named && mapping.offset != 0);
    known.map(|mapping| RuntimeAddress(mapping.offset))
}

fn recorded_base(image: &TracedImage) -> Option<(String, RuntimeAddress)> {
    let (_, symbol) = image.name.split_once(']')?;
    Some((symbol.to_owned(), bases_of(image).next()?))
}

/// Where a known symbol ran, from lines such as `ffffffff81000000 T _stext`.
fn kallsyms_base(text: &str, is_known: impl Fn(&str) -> bool) -> Option<(String, RuntimeAddress)> {
    let mut symbols = text.lines().filter_map(kallsyms::symbol);
    let found = symbols.find(|&(address, name)| address != 0 && is_known(name));
    found.map(|(address, name)| (name.to_owned(), RuntimeAddress(address)))
}

fn module(
    facts: &Facts,
    space: Space,
    binary: &BinaryFacts<'_>,
    hints: &Hints<'_>,
    name: &str,
    code: Option<&[(u64, Range<ImageAddress>)]>,
) -> Result<Located, LocateError> {
    let name = module_name(name).unwrap_or_else(|| name.replace('-', "_"));
    let modules = || {
        let ours = facts.images.iter().filter(|image| image.space == space);
        ours.filter_map(|image| Some((module_name(&image.name)?, image)))
    };
    let image = modules().find(|(other, _)| *other == name).map(|(_, image)| image);
    let is_confirmed = confirm(binary, image, hints)?;
    let regions = if hints.module_sections.is_empty() {
        let mappings = image.map(|image| image.mappings.as_slice()).unwrap_or_default();
        let mappings = mappings.iter().take(MAX_LOCATIONS);
        let regions = mappings.map(|mapping| module_regions(binary, code, mapping));
        let regions: Option<Vec<_>> = regions.collect();
        let unknown = || LocateError::UnknownLayout { name: name.clone() };
        regions.ok_or_else(unknown)?.concat()
    } else {
        listed_regions(binary, hints.module_sections)
    };
    if regions.is_empty() {
        return Err(LocateError::NotMapped {
            name,
            known: listed(modules().map(|(name, _)| name)),
        });
    }
    let others = modules().filter(|(other, _)| *other != name);
    let starts = others.flat_map(|(_, image)| &image.mappings);
    let mut starts: Vec<_> = starts.map(|mapping| mapping.addresses.start).collect();
    starts.sort_unstable();
    let (regions, shared) = without_shared(regions, &starts);
    Ok(located(regions, shared, is_confirmed))
}

/// Where a mapping says the section or the part of the file that it is of was, or, with neither, the
/// loaded `code` if that is known.
fn module_regions(
    binary: &BinaryFacts<'_>,
    code: Option<&[(u64, Range<ImageAddress>)]>,
    mapping: &Mapping,
) -> Option<Vec<Region>> {
    let start = mapping.addresses.start;
    if let Some(name) = &mapping.section {
        return Some(listed_regions(binary, &[(name.clone(), start)]));
    }
    // perf says 0 of all modules, where a file has no code.
    if mapping.offset != 0 {
        return Some(file_regions(binary, mapping));
    }
    let regions = code?.iter().map(|(offset, addresses)| Region {
        runtime: RuntimeAddress(start.0.wrapping_add(*offset)),
        image: addresses.start,
        size: size(addresses),
    });
    Some(regions.collect())
}

fn listed_regions(binary: &BinaryFacts<'_>, listed: &[(String, RuntimeAddress)]) -> Vec<Region> {
    let regions = binary.sections.iter().filter_map(|section| {
        let (_, runtime) = listed.iter().find(|(name, at)| *name == section.name && at.0 != 0)?;
        Some(Region {
            runtime: *runtime,
            image: section.addresses.start,
            size: size(&section.addresses),
        })
    });
    regions.collect()
}

/// Cuts regions off where another module began: at the first of `others`, sorted, within. The
/// lengths of modules' mappings do not count: since Linux 6.4 (`module_memory`) they include data
/// that is elsewhere.
fn without_shared(
    regions: Vec<Region>,
    others: &[RuntimeAddress],
) -> (Vec<Region>, Vec<Range<RuntimeAddress>>) {
    let mut shared: Vec<Range<RuntimeAddress>> = Vec::new();
    let kept = regions.into_iter().filter_map(|mut region| {
        let end = region.runtime.0.saturating_add(region.size);
        let after = others.partition_point(|other| *other < region.runtime);
        if let Some(first) = others.get(after).filter(|first| first.0 < end) {
            shared.push(*first..RuntimeAddress(end));
            region.size = first.0 - region.runtime.0;
        }
        (region.size > 0).then_some(region)
    });
    let kept = kept.collect();
    shared.sort_unstable_by_key(|range| range.start);
    (kept, shared)
}

/// Some of the names, for an error.
fn listed(names: impl Iterator<Item = impl Into<String>>) -> String {
    let names: Vec<String> = names.take(20).map(Into::into).collect();
    if names.is_empty() { "no such binary".to_owned() } else { names.join(", ") }
}

fn program(
    facts: &Facts,
    space: Space,
    binary: &BinaryFacts<'_>,
    hints: &Hints<'_>,
    name: &str,
) -> Result<Located, LocateError> {
    let file = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let users = || facts.images.iter().filter(|image| image.space == Space::User);
    let by_id = |image: &&TracedImage| {
        image.build_id.is_some() && image.build_id.as_ref() == binary.build_id
    };
    let by_name = |image: &&TracedImage| file(&image.name) == file(name);
    let image = users().find(by_id).or_else(|| users().find(by_name));
    let Some(image) = image else {
        let name = name.to_owned();
        if space != Space::User {
            return Err(LocateError::NoSymbols { name });
        }
        return Err(LocateError::NotMapped {
            name,
            known: listed(users().map(|image| &*image.name)),
        });
    };
    let is_confirmed = confirm(binary, Some(image), hints)?;
    let mappings = image.mappings.iter();
    let regions: Vec<_> = mappings.flat_map(|mapping| file_regions(binary, mapping)).collect();
    if regions.is_empty() {
        return Err(LocateError::NoCode);
    }
    Ok(located(regions, Vec::new(), is_confirmed))
}

/// The sections in the part of the file that `mapping` is of.
fn file_regions(binary: &BinaryFacts<'_>, mapping: &Mapping) -> Vec<Region> {
    let Range { start, end } = mapping.addresses;
    let length = end.0.saturating_sub(start.0);
    let regions = binary.sections.iter().filter_map(|section| {
        let into = section.file_offset.checked_sub(mapping.offset)?;
        let size = size(&section.addresses).min(length.checked_sub(into)?);
        let runtime = RuntimeAddress(start.0.saturating_add(into));
        (size > 0).then_some(Region { runtime, image: section.addresses.start, size })
    });
    regions.collect()
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
