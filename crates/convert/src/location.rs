//! Where a binary ran, and whether it is the build that did.

use std::borrow::Borrow;
use std::ops::Range;
use std::path::Path;

use mepof_address::{Placement, Region, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::{
    Addressing, Aggregate, BinaryFacts, BinaryKind, CodeSection, Facts, Hints, LocateError,
    Located, Space, locate, module_symbols,
};
use rustc_hash::FxHashMap;

use crate::sources::BranchSources;
use crate::verdict::{BuildIdMatch, Reason};
use crate::{ConvertError, Subject};
use crate::{offsets, slide, symbols};

/// Where a binary ran, and whether it is the build that did.
pub(crate) struct Location {
    pub placement: Placement,
    /// Where another binary ran too: see [`mepof_trace::map_to_image`].
    pub shared: Vec<Range<RuntimeAddress>>,
    pub build_id_match: BuildIdMatch,
    pub other_build: Option<Reason>,
    pub note: Option<String>,
}

impl Location {
    /// Where the names of the `index`-th binary are. They do not say which build ran.
    pub fn of_names(binary: &Binary, index: usize) -> Self {
        let placement = symbols::placement(binary, index);
        Self {
            placement,
            shared: Vec::new(),
            build_id_match: BuildIdMatch::Unknown,
            other_build: None,
            note: None,
        }
    }

    /// Of a module that an input of one binary's addresses has nothing of.
    pub fn left_out(facts: &Facts, module: &Binary) -> Self {
        let (path, format) = (module.path().display(), &facts.format);
        let note = format!("{path} is left out: {format} does not say where modules ran");
        Self {
            placement: Placement::default(),
            shared: Vec::new(),
            build_id_match: BuildIdMatch::Unknown,
            other_build: None,
            note: Some(note),
        }
    }

    /// Of an input of offsets, which it may have taken from this build.
    fn of_offsets(facts: &Facts, aggregate: &Aggregate, binary: &Binary) -> Self {
        let sources = aggregate.branches().map(|(from, _, count)| (from, count));
        let ends = aggregate.ranges().map(|(_, last, count)| (last, count));
        let is_same = |id| Some(id) == binary.build_id();
        let mut ids = facts.images.iter().filter_map(|image| image.build_id.as_ref());
        Self {
            placement: offsets::placement(binary, sources.chain(ends)),
            shared: Vec::new(),
            build_id_match: match ids.any(is_same) {
                true => BuildIdMatch::Same,
                false => BuildIdMatch::Unknown,
            },
            other_build: None,
            note: None,
        }
    }

    /// Finds out where `binary` ran when an input was recorded. `kallsyms` is a file and its text.
    pub fn find(
        path: &Path,
        facts: &Facts,
        aggregate: &Aggregate,
        binary: &Binary,
        space: Space,
        kallsyms: Option<(&Path, &str)>,
    ) -> Result<Self, ConvertError> {
        if facts.addressing == Addressing::Offset {
            return Ok(Self::of_offsets(facts, aggregate, binary));
        }
        let text = kallsyms.map(|(_, text)| text);
        let (located, differs) = locate_any_build(facts, space, binary, text);
        let mut other_build = None;
        if let Some(LocateError::BuildIdDiffers { recorded, binary: given, .. }) = differs {
            let (traced, given) = (recorded.to_string(), given.to_string());
            let (subject, binary) = (Subject::of(binary), binary.path().to_owned());
            other_build = Some(Reason::OtherBuild { traced, binary, given, subject });
        }
        let (located, note) = match located {
            Ok(located) => {
                let note = are_offsets(facts, &located.placement).then(|| OFFSETS.to_owned());
                (located, note)
            }
            Err(LocateError::NotMapped { name, .. }) if binary.is_relocatable() => {
                (Located::default(), Some(format!("{name} was not loaded")))
            }
            Err(error) if is_silent(&error, binary) => {
                let by_branches =
                    found_by_branches(&error, binary, || BranchSources::of(aggregate));
                let (placement, note) = match by_branches {
                    Some(placement) => (placement, BY_BRANCHES),
                    None => (linked(binary), AS_LINKED),
                };
                if !mostly_within(aggregate, &placement) {
                    let (input, what) = (path.to_owned(), error.to_string());
                    return Err(ConvertError::NotLocated { input, what });
                }
                (Located { placement, ..Located::default() }, Some(note.to_owned()))
            }
            Err(error) => {
                let at_fault = match (&error, kallsyms) {
                    (LocateError::HiddenAddresses, Some((kallsyms, _))) => kallsyms,
                    _ => path,
                };
                let (input, what) = (at_fault.to_owned(), error.to_string());
                return Err(ConvertError::NotLocated { input, what });
            }
        };
        let Located { placement, shared, is_confirmed } = located;
        let build_id_match = match (&other_build, is_confirmed) {
            (Some(_), _) => BuildIdMatch::Different,
            (None, true) => BuildIdMatch::Same,
            (None, false) => BuildIdMatch::Unknown,
        };
        Ok(Self { placement, shared, build_id_match, other_build, note })
    }
}

const AS_LINKED: &str = "the input does not say where the binary ran; mepof assumes the addresses \
    that it was linked for";

const BY_BRANCHES: &str = "the input does not say where the kernel ran; mepof takes it to have run \
    where its branch instructions fit the branches";

/// Whether `error` says no more than that the input does not locate a binary that may have run
/// where it was linked; a module is not linked for any address.
fn is_silent(error: &LocateError, binary: &Binary) -> bool {
    match error {
        LocateError::NotMapped { .. } => !binary.is_relocatable(),
        LocateError::NoKernelMapping
        | LocateError::OtherKernel { .. }
        | LocateError::NoSymbols { .. } => true,
        _ => false,
    }
}

/// Where a kernel ran that `error` says the input does not locate, by what `sources` gives.
fn found_by_branches<S: Borrow<BranchSources>>(
    error: &LocateError,
    binary: &Binary,
    sources: impl FnOnce() -> S,
) -> Option<Placement> {
    match error {
        LocateError::NoKernelMapping | LocateError::OtherKernel { .. } => {
            slide::placement(binary, sources().borrow())
        }
        _ => None,
    }
}

const OFFSETS: &str = "addresses are read as offsets from the first executable segment, as \
    llvm-profgen writes them without --use-offset=0";

/// Whether the addresses of an input were taken for offsets, so that the binary was at
/// `placement`.
fn are_offsets(facts: &Facts, placement: &Placement) -> bool {
    matches!(facts.addressing, Addressing::ImageOrTextOffset { .. })
        && placement.regions().iter().any(|region| region.runtime.0 != region.image.0)
}

/// Where a binary ran, as far as an input says.
pub struct Placed {
    /// Where its code was.
    pub placement: Placement,
    /// Why another build may have run, or this one elsewhere.
    pub doubt: Option<LocateError>,
}

/// Where `binary` ran when an input with these `facts` was recorded, with branches from `sources`;
/// `kallsyms` is the text of `/proc/kallsyms`. If nothing says, where its branch instructions fit
/// these sources, or the addresses that it was linked for; if another build ran, where that did.
pub fn place(
    facts: &Facts,
    binary: &Binary,
    space: Space,
    kallsyms: Option<&str>,
    sources: &BranchSources,
) -> Result<Placed, LocateError> {
    if facts.addressing == Addressing::Offset {
        let placement = offsets::placement(binary, sources.kept());
        return Ok(Placed { placement, doubt: None });
    }
    let (located, differs) = locate_any_build(facts, space, binary, kallsyms);
    match located {
        Ok(located) => Ok(Placed { placement: located.placement, doubt: differs }),
        Err(doubt) if is_silent(&doubt, binary) => {
            Ok(match found_by_branches(&doubt, binary, || sources) {
                Some(placement) => Placed { placement, doubt: None },
                None => Placed { placement: linked(binary), doubt: Some(doubt) },
            })
        }
        Err(error) => Err(error),
    }
}

/// Where a binary or another build of it ran, and the error if it was another build.
fn locate_any_build(
    facts: &Facts,
    space: Space,
    binary: &Binary,
    kallsyms: Option<&str>,
) -> (Result<Located, LocateError>, Option<LocateError>) {
    let about = &facts_of(binary);
    let module_sections = &kallsyms.map_or_else(Vec::new, |text| module_sections(text, binary));
    let hints = Hints { kallsyms, module_sections, ..Hints::default() };
    match locate(facts, space, about, &hints) {
        Err(differs @ LocateError::BuildIdDiffers { .. }) => {
            let hints = Hints { any_build_id: true, ..hints };
            (locate(facts, space, about, &hints), Some(differs))
        }
        located => (located, None),
    }
}

fn facts_of(binary: &Binary) -> BinaryFacts<'_> {
    let name = || binary.path().to_string_lossy().into_owned();
    let kind = if binary.is_relocatable() {
        BinaryKind::Module { name: name(), code: binary.loaded_code() }
    } else {
        match (binary.symbol("_text"), binary.symbol("_stext")) {
            (None, None) => BinaryKind::Program(name()),
            (text, stext) => BinaryKind::Kernel { text, stext },
        }
    };
    let sections = binary.sections().iter().map(|section| CodeSection {
        name: section.name.clone(),
        addresses: section.addresses.clone(),
        file_offset: section.file_offset,
    });
    let sections = sections.collect();
    let (build_id, segment) = (binary.build_id(), binary.executable_base());
    BinaryFacts { kind, build_id, sections, segment }
}

/// Where the sections of a module were, by the symbols in a copy of /proc/kallsyms whose names it
/// has once.
fn module_sections(kallsyms: &str, binary: &Binary) -> Vec<(String, RuntimeAddress)> {
    if !binary.is_relocatable() {
        return Vec::new();
    }
    let mut addresses = FxHashMap::default();
    // It was read before: there is no error to come.
    for symbol in binary.symbols_of_code().unwrap_or_default() {
        let known = addresses.entry(symbol.name).or_insert(Some(symbol.address));
        *known = known.filter(|known| *known == symbol.address);
    }
    let mut sections = FxHashMap::default();
    for (runtime, name) in module_symbols(kallsyms, binary.path()) {
        let Some(Some(address)) = addresses.get(name.as_bytes()) else { continue };
        let mut all = binary.sections().iter();
        let Some(section) = all.find(|section| section.addresses.contains(address)) else {
            continue;
        };
        let offset = address.0 - section.addresses.start.0;
        let start = RuntimeAddress(runtime.0.wrapping_sub(offset));
        sections.entry(section.name.clone()).or_insert(start);
    }
    sections.into_iter().collect()
}

/// Where the linker put the binary.
fn linked(binary: &Binary) -> Placement {
    let regions = binary.sections().iter().map(|section| Region {
        runtime: RuntimeAddress(section.addresses.start.0),
        image: section.addresses.start,
        size: section.addresses.end.0 - section.addresses.start.0,
    });
    Placement::new(regions.collect())
}

/// Whether at least half of the branches have their source in `placement`.
fn mostly_within(aggregate: &Aggregate, placement: &Placement) -> bool {
    let (mut inside, mut all) = (0u64, 0u64);
    for (from, _, count) in aggregate.branches() {
        all = all.saturating_add(count);
        if placement.to_image(from).is_some() {
            inside = inside.saturating_add(count);
        }
    }
    inside >= all.div_ceil(2)
}
