//! Inputs, read and held against binaries.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::{BuildId, ImageAddress, Placement, Region, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::input::{self, Format, Options};
use mepof_trace::{Addressing, Aggregate, Facts, ImageTrace, Space, Tally, place};

use crate::ConvertError;
use crate::verdict::{BuildIdMatch, Reason};

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
                let (trace, build_id_match) = (ImageTrace::default(), BuildIdMatch::Unknown);
                Ok(Image { binary: Binary::open(path)?, trace, build_id_match })
            })
            .collect::<Result<Vec<_>, ConvertError>>()?;
        let mut inputs = Vec::new();
        let mut other_build = None;
        for path in request.inputs {
            let options = Options {
                space: request.space,
                events: request.events,
                max_distinct: usize::MAX,
                threads: 0,
                cancelled: request.cancelled,
                progress: request.progress,
            };
            let mut aggregate = Aggregate::default();
            let facts = input::read(path, request.format, &options, &mut aggregate)?;
            refuse_unusable(path, &facts, &aggregate)?;
            let mut found = false;
            for image in &mut images {
                let placement = placement(&facts, &image.binary);
                let trace = place(&aggregate, &placement);
                found |= trace.placed.used > 0;
                image.trace.merge(trace);
            }
            if !found {
                return Err(ConvertError::NothingInBinary {
                    input: path.clone(),
                    binary: request.binary.to_owned(),
                    branches: aggregate.entries().used,
                });
            }
            let _ = &mut other_build;
            inputs.push(Input { path: path.clone(), facts, entries: aggregate.entries().clone() });
        }
        Ok(Self { inputs, images, other_build })
    }

    /// Samples that were used, of all inputs; `None` if one of them is an exact recording, which
    /// has no sampling error.
    pub(crate) fn samples(&self) -> Option<u64> {
        let exact = |input: &Input| input.facts.exact;
        let sampled = !self.inputs.iter().any(exact);
        sampled.then(|| self.inputs.iter().map(|input| input.facts.samples.used).sum())
    }
}

/// Inputs that nothing can be made of, each with its own cure.
fn refuse_unusable(path: &Path, facts: &Facts, aggregate: &Aggregate) -> Result<(), ConvertError> {
    if !aggregate.is_empty() {
        return Ok(());
    }
    let input = path.to_owned();
    let samples = facts.samples.read();
    if samples == 0 {
        return Err(ConvertError::NoSamples { input });
    }
    if !facts.events.iter().any(|event| event.branch_stack) && !facts.events.is_empty() {
        return Err(ConvertError::NoBranchStacks { input, samples });
    }
    if !facts.has_kernel_branches() {
        let names: Vec<&str> = facts.events.iter().map(|event| event.name.as_str()).collect();
        return Err(ConvertError::NoKernelBranches { input, event: names.join(", ") });
    }
    Err(ConvertError::NoBranchStacks { input, samples })
}

/// Where `binary` ran when `facts`' input was recorded.
pub fn placement(facts: &Facts, binary: &Binary) -> Placement {
    let base = match facts.addressing {
        Addressing::Image | Addressing::Runtime => 0,
        Addressing::TextOffset => binary.executable_base().map_or(0, |base| base.0),
    };
    let regions = binary.sections().iter().map(|section| Region {
        runtime: RuntimeAddress(section.addresses.start.0.wrapping_sub(base)),
        image: section.addresses.start,
        size: section.addresses.end.0 - section.addresses.start.0,
    });
    Placement::new(regions.collect())
}
