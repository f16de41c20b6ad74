//! Inputs, read and held against binaries.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::{Placement, Region, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::input::perf_data::OTHER_SIDE;
use mepof_trace::input::perf_script::NAMED;
use mepof_trace::input::{self, Format, Options};
use mepof_trace::{
    Addressing, Aggregate, BinaryFacts, BinaryKind, CodeSection, Facts, Hints, ImageTrace,
    LocateError, Located, Sink, Space, Tally, TraceError, locate, place,
};

use crate::branch_list;
use crate::symbols::{self, Symbols};
use crate::verdict::{BuildIdMatch, Reason};
use crate::{ConvertError, Subject};

/// Distinct branches and ranges of one input at most: some 1 GiB of them. A kernel has fewer than
/// a million.
const MOST_DISTINCT: usize = 1 << 25;

/// What to read.
#[derive(Debug)]
pub struct Request<'a> {
    /// The vmlinux.
    pub binary: &'a Path,
    /// Kernel modules, as built.
    pub modules: &'a [PathBuf],
    /// Branch records.
    pub inputs: &'a [PathBuf],
    /// Their format; `None` finds out.
    pub format: Option<Format>,
    /// Whose samples to take.
    pub space: Space,
    /// The events to take; empty takes all that have branch stacks.
    pub events: &'a [String],
    /// A copy of `/proc/kallsyms` of the machine that recorded, where the input does not say
    /// where the kernel was.
    pub kallsyms: Option<&'a Path>,
    /// Set from outside to stop.
    pub cancelled: &'a AtomicBool,
    /// Bytes of the inputs that were read so far.
    pub progress: &'a AtomicU64,
}

/// One input, without its records.
#[derive(Debug)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// What it says about itself.
    pub facts: Facts,
    /// What became of the entries of its branch stacks.
    pub entries: Tally,
    /// Where the binaries ran, in the order of [`Recording::images`].
    pub placements: Vec<Placement>,
}

/// One binary, and what ran of it.
#[derive(Debug)]
pub struct Image {
    /// The binary.
    pub binary: Binary,
    /// Its branches and ranges, of all inputs.
    pub trace: ImageTrace,
    /// Whether the inputs come from this very build.
    pub build_id_match: BuildIdMatch,
}

/// All inputs and binaries.
#[derive(Debug)]
pub struct Recording {
    /// In the order given.
    pub inputs: Vec<Input>,
    /// The vmlinux first, then the modules in the order given.
    pub images: Vec<Image>,
    /// Set if the vmlinux is not the one that ran.
    pub(crate) other_build: Option<Reason>,
}

impl Recording {
    /// Reads all inputs, one after the other: memory holds the distinct branches of one input,
    /// and of all inputs those that lie in the binaries.
    pub fn read(request: &Request<'_>) -> Result<Self, ConvertError> {
        let paths = std::iter::once(request.binary).chain(request.modules.iter().map(|m| &**m));
        let mut images = paths
            .map(|path| {
                let (trace, build_id_match) = (ImageTrace::default(), BuildIdMatch::Same);
                Ok(Image { binary: Binary::open(path)?, trace, build_id_match })
            })
            .collect::<Result<Vec<_>, ConvertError>>()?;
        let first_subject = images.first().map(|image| Subject::of(&image.binary));
        let first_subject = first_subject.unwrap_or_default();
        let kallsyms = request.kallsyms.map(read_text).transpose()?;
        let mut inputs = Vec::new();
        let mut other_build = None;
        for path in request.inputs {
            let mut aggregate = Aggregate::default();
            let symbols = Symbols::new(&images);
            let options = options(request, &symbols);
            let mut facts = if is_branch_list(path, request.format)? {
                branch_list::read(path, &options, &images, &mut aggregate)?
            } else {
                input::read(path, request.format, &options, &mut aggregate)?
            };
            let first = images.first().map(|image| &image.binary);
            first.map_or(Ok(()), |binary| refuse(path, &facts, &aggregate, binary, request))?;
            let mut found = false;
            let mut placements = Vec::new();
            for (index, image) in images.iter_mut().enumerate() {
                let kallsyms = kallsyms.as_deref();
                let at = if facts.format == NAMED {
                    Place::of_names(&image.binary, index)
                } else {
                    find(path, &facts, &aggregate, &image.binary, request, kallsyms)?
                };
                let trace = place(&aggregate, &at.placement, &at.shared);
                found |= trace.placed.used > 0;
                image.trace.merge(trace);
                image.build_id_match = image.build_id_match.and(at.build_id_match);
                other_build = other_build.or(at.other_build);
                facts.notes.extend(at.note);
                placements.push(at.placement);
            }
            if !found {
                return Err(ConvertError::NothingInBinary {
                    input: path.clone(),
                    binary: request.binary.to_owned(),
                    subject: first_subject,
                    branches: aggregate.entries().used,
                });
            }
            let entries = aggregate.entries().clone();
            inputs.push(Input { path: path.clone(), facts, entries, placements });
        }
        Ok(Self { inputs, images, other_build })
    }

    /// Reads one of the inputs of `request` once more, into `sink`: where the binaries ran,
    /// which some sinks have to know, is known after the first time only. With one thread
    /// (`threads`; 0 is one per core) the records come in the input's order.
    ///
    /// # Errors
    /// [`ConvertError::ReadOnce`] if it is a pipe.
    pub fn feed<S: Sink>(
        &self,
        request: &Request<'_>,
        input: &Input,
        threads: usize,
        sink: &mut S,
    ) -> Result<Facts, ConvertError> {
        let metadata = fs::metadata(&input.path)
            .map_err(|source| TraceError::Io { path: input.path.clone(), source })?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(ConvertError::ReadOnce { input: input.path.clone() });
        }
        let symbols = Symbols::new(&self.images);
        let options = Options { threads, ..options(request, &symbols) };
        Ok(input::read(&input.path, request.format, &options, sink)?)
    }

    /// Samples that were used, of all inputs; `None` if one of them is an exact recording, which
    /// has no sampling error.
    pub(crate) fn samples(&self) -> Option<u64> {
        let exact = |input: &Input| input.facts.exact;
        let sampled = !self.inputs.iter().any(exact);
        let of_input = |input: &Input| match input.facts.addressing {
            _ if input.facts.format == NAMED => input.facts.samples.used,
            Addressing::Runtime => input.facts.samples.used,
            // Text that was aggregated before: it says how many branches, not how many samples.
            Addressing::Image | Addressing::TextOffset => input.entries.used,
        };
        sampled.then(|| self.inputs.iter().map(of_input).sum())
    }
}

/// Whether the input is a branch list, which takes the binaries to read. A pipe is none: looking
/// would take its beginning away.
fn is_branch_list(path: &Path, format: Option<Format>) -> Result<bool, ConvertError> {
    if format.is_some() || !path.is_file() {
        return Ok(format == Some(Format::BranchList));
    }
    Ok(input::format_of(path)? == Format::BranchList)
}

fn options<'a>(request: &'a Request<'_>, symbols: &'a Symbols<'a>) -> Options<'a> {
    Options {
        space: request.space,
        events: request.events,
        max_distinct: MOST_DISTINCT,
        symbols: Some(symbols),
        threads: 0,
        cancelled: request.cancelled,
        progress: request.progress,
    }
}

fn read_text(path: &Path) -> Result<String, ConvertError> {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|source| TraceError::Io { path: path.to_owned(), source }.into())
}

/// Refuses an input that has nothing of what was asked for of `binary`, the first one.
fn refuse(
    path: &Path,
    facts: &Facts,
    aggregate: &Aggregate,
    binary: &Binary,
    request: &Request<'_>,
) -> Result<(), ConvertError> {
    let wanted = request.space;
    if aggregate.is_empty() {
        return Err(input::unusable(path, facts, wanted).into());
    }
    if facts.addressing != Addressing::Runtime || facts.format == NAMED {
        return Ok(());
    }
    let is_kernel = Subject::of(binary) == Subject::Kernel;
    if wanted == Space::User && is_kernel {
        return Err(ConvertError::KernelForUserCode { binary: binary.path().to_owned() });
    }
    // Text does not say whose its addresses are, but they do.
    let kernel_space = binary.machine().kernel_space();
    let linked_so = binary.sections().iter().any(|s| s.addresses.start.0 >= kernel_space);
    let found = match wanted {
        Space::User => Space::Kernel,
        Space::Kernel | Space::GuestKernel if is_kernel && linked_so => Space::User,
        Space::Kernel | Space::GuestKernel => return Ok(()),
    };
    let is_wanted = |address: RuntimeAddress| {
        (address.0 >= kernel_space) == (wanted != Space::User) && address != OTHER_SIDE
    };
    let mut branches = aggregate.branches();
    if branches.any(|(from, to, _)| is_wanted(from) || is_wanted(to)) {
        return Ok(());
    }
    Err(TraceError::OtherSpace { path: path.to_owned(), wanted, found }.into())
}

/// Where a binary ran, and whether it is the build that did.
struct Place {
    placement: Placement,
    /// Where another binary ran too: see [`place`].
    shared: Vec<Range<RuntimeAddress>>,
    build_id_match: BuildIdMatch,
    other_build: Option<Reason>,
    note: Option<String>,
}

impl Place {
    /// Where the names of the `index`-th binary are. Which build ran they do not tell.
    fn of_names(binary: &Binary, index: usize) -> Self {
        let placement = symbols::placement(binary, index);
        Self {
            placement,
            shared: Vec::new(),
            build_id_match: BuildIdMatch::Unknown,
            other_build: None,
            note: None,
        }
    }
}

/// Finds out where `binary` ran when an input was recorded.
fn find(
    path: &Path,
    facts: &Facts,
    aggregate: &Aggregate,
    binary: &Binary,
    request: &Request<'_>,
    kallsyms: Option<&str>,
) -> Result<Place, ConvertError> {
    let about = facts_of(binary);
    let hints = Hints { kallsyms, ..Hints::default() };
    let mut other_build = None;
    let mut located = locate(facts, request.space, &about, &hints);
    if let Err(LocateError::BuildIdDiffers { recorded, binary: given, .. }) = &located {
        let (traced, given) = (recorded.to_string(), given.to_string());
        let (subject, binary) = (Subject::of(binary), binary.path().to_owned());
        other_build = Some(Reason::OtherBuild { traced, binary, given, subject });
        let hints = Hints { any_build_id: true, ..hints };
        located = locate(facts, request.space, &about, &hints);
    }
    let (located, note) = match located {
        Ok(located) => (located, None),
        Err(LocateError::NotMapped { name, .. }) if binary.is_relocatable() => {
            (Located::default(), Some(format!("{name} was not loaded")))
        }
        Err(error @ (LocateError::NoKernelMapping | LocateError::NotMapped { .. })) => {
            let placement = linked(binary);
            if !mostly_within(aggregate, &placement) {
                let (input, what) = (path.to_owned(), error.to_string());
                return Err(ConvertError::NotLocated { input, what });
            }
            let note = "the input does not say where the binary ran; \
                        its addresses are taken to be those that it was linked for";
            (Located { placement, ..Located::default() }, Some(note.to_owned()))
        }
        Err(error) => {
            let (input, what) = (path.to_owned(), error.to_string());
            return Err(ConvertError::NotLocated { input, what });
        }
    };
    let Located { placement, shared, is_confirmed } = located;
    let build_id_match = match (&other_build, is_confirmed) {
        (Some(_), _) => BuildIdMatch::Different,
        (None, true) => BuildIdMatch::Same,
        (None, false) => BuildIdMatch::Unknown,
    };
    Ok(Place { placement, shared, build_id_match, other_build, note })
}

/// Where `binary` ran when an input with these `facts` was recorded; `kallsyms` is the text of
/// `/proc/kallsyms`. Where nobody says, the addresses that it was linked for.
pub fn placement(
    facts: &Facts,
    binary: &Binary,
    space: Space,
    kallsyms: Option<&str>,
) -> Result<Placement, LocateError> {
    let hints = Hints { kallsyms, any_build_id: true, ..Hints::default() };
    match locate(facts, space, &facts_of(binary), &hints) {
        Ok(located) => Ok(located.placement),
        Err(LocateError::NoKernelMapping) => Ok(linked(binary)),
        Err(error) => Err(error),
    }
}

fn facts_of(binary: &Binary) -> BinaryFacts<'_> {
    let name = || binary.path().to_string_lossy().into_owned();
    let kind = if binary.is_relocatable() {
        BinaryKind::Module(name())
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
        alignment: 0,
    });
    let sections = sections.collect();
    let (build_id, segment) = (binary.build_id(), binary.executable_base());
    BinaryFacts { kind, build_id, sections, segment }
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
