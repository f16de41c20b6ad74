//! Inputs, read and matched to binaries.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::{Placement, RuntimeAddress};
use mepof_binary::Binary;
use mepof_trace::input::perf_script::NAMED;
use mepof_trace::input::{self, Format, Options};
use mepof_trace::{
    Addressing, Aggregate, Facts, OTHER_SIDE, Sink, Space, Tally, TraceError, map_to_image,
    read_kallsyms,
};

use crate::branch_list;
use crate::image::Image;
use crate::location::Location;
use crate::outside::outside;
use crate::symbols::Symbols;
use crate::verdict::Reason;
use crate::{ConvertError, Subject};

/// Distinct branches and ranges of one input at most: about 1 GiB of them. A kernel has fewer than
/// a million.
const MAX_DISTINCT: usize = 1 << 25;

/// Entries of a branch stack at most, where an input does not say: 32 on the processors with the
/// deepest ones that are common (Intel's LBR since Skylake).
const USUAL_DEPTH: u64 = 32;

/// What to read.
#[derive(Debug)]
pub struct Request<'a> {
    /// The vmlinux.
    pub binary: &'a Path,
    /// Kernel modules, as built.
    pub modules: &'a [PathBuf],
    /// Branch traces.
    pub inputs: &'a [PathBuf],
    /// Their format; `None` detects it.
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
    /// What happened to the entries of its branch stacks.
    pub entries: Tally,
    /// Samples that were used; an estimate where they were aggregated.
    pub samples: u64,
    /// Where the binaries ran, in the order of [`BranchTrace::images`].
    pub placements: Vec<Placement>,
}

/// All inputs and binaries.
#[derive(Debug)]
pub struct BranchTrace {
    /// In the order given.
    pub inputs: Vec<Input>,
    /// The vmlinux first, then the modules in the order given.
    pub images: Vec<Image>,
    /// Set if the vmlinux is not the one that ran.
    pub(crate) other_build: Option<Reason>,
}

impl BranchTrace {
    /// Reads all inputs, one after the other: memory holds the distinct branches of one input,
    /// and of all inputs those that lie in the binaries.
    pub fn read(request: &Request<'_>) -> Result<Self, ConvertError> {
        let mut images = Image::open_all(request.binary, request.modules)?;
        let first_subject = images.first().map(|image| Subject::of(&image.binary));
        let first_subject = first_subject.unwrap_or_default();
        let kallsyms = request.kallsyms.map(|path| Ok((path, read_kallsyms(path)?)));
        let kallsyms = kallsyms.transpose().map_err(ConvertError::Trace)?;
        let mut inputs = Vec::new();
        let mut other_build = None;
        for path in request.inputs {
            let mut aggregate = Aggregate::default();
            let symbols = Symbols::new(&images);
            let options = options(request, &symbols);
            let mut facts = read_input(path, request, &options, &images, &mut aggregate)?;
            let first = images.first().map(|image| &image.binary);
            first.map_or(Ok(()), |binary| refuse(path, &facts, &aggregate, binary, request))?;
            let mut found = false;
            let mut placements = Vec::new();
            for (index, image) in images.iter_mut().enumerate() {
                let kallsyms = kallsyms.as_ref().map(|(path, text)| (*path, text.as_str()));
                let at = if facts.format == NAMED {
                    Location::of_names(&image.binary, index)
                } else if index > 0 && facts.addressing != Addressing::Runtime {
                    Location::left_out(&facts, &image.binary)
                } else {
                    Location::find(
                        path,
                        &facts,
                        &aggregate,
                        &image.binary,
                        request.space,
                        kallsyms,
                    )?
                };
                let trace = map_to_image(&aggregate, &at.placement, &at.shared);
                found |= trace.mapped.used > 0;
                image.trace.merge(trace);
                image.build_id_match = image.build_id_match.and(at.build_id_match);
                other_build = other_build.or(at.other_build);
                facts.notes.extend(at.note);
                placements.push(at.placement);
            }
            let outside = outside(&facts, &aggregate, &placements, request.space);
            if !found {
                return Err(ConvertError::NothingInBinary {
                    input: path.clone(),
                    binary: request.binary.to_owned(),
                    subject: first_subject,
                    branches: aggregate.entries().used,
                    instead: outside.and_then(|outside| outside.instead()),
                });
            }
            facts.notes.extend(outside.and_then(|outside| outside.note()));
            let entries = aggregate.entries().clone();
            let samples = samples(&facts, &aggregate);
            inputs.push(Input { path: path.clone(), facts, entries, samples, placements });
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
        read_input(&input.path, request, &options, &self.images, sink)
    }

    /// Whether an input says where the binary at `index` was.
    pub(crate) fn has_located(&self, index: usize) -> bool {
        let placements = self.inputs.iter().filter_map(|input| input.placements.get(index));
        placements.into_iter().any(|placement| !placement.regions().is_empty())
    }

    /// Samples that were used, of all inputs; `None` if one of them is exact, and so has no
    /// sampling error.
    pub(crate) fn samples(&self) -> Option<u64> {
        let exact = |input: &Input| input.facts.exact;
        let sampled = !self.inputs.iter().any(exact);
        let of_input = |sum: u64, input: &Input| sum.saturating_add(input.samples);
        sampled.then(|| self.inputs.iter().fold(0, of_input))
    }
}

/// The samples of one input that are independent of each other.
fn samples(facts: &Facts, aggregate: &Aggregate) -> u64 {
    if facts.addressing == Addressing::Runtime || facts.format == NAMED {
        return facts.samples.used;
    }
    // Aggregated before: it says how many branches, not how many samples. A stack has one range
    // fewer than it has branches. What has more ranges than that was not made of stacks (ETM), or
    // not of these alone.
    let branches = aggregate.entries().used;
    let ranges = aggregate.ranges().fold(0_u64, |sum, (.., count)| sum.saturating_add(count));
    branches.saturating_sub(ranges).max(branches.div_ceil(USUAL_DEPTH))
}

/// Reads the input at `path` into `sink`.
fn read_input<S: Sink>(
    path: &Path,
    request: &Request<'_>,
    options: &Options<'_>,
    images: &[Image],
    sink: &mut S,
) -> Result<Facts, ConvertError> {
    if is_branch_list(path, request.format)? {
        Ok(branch_list::read(path, options, images, sink)?)
    } else {
        Ok(input::read(path, request.format, options, sink)?)
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
        max_distinct: MAX_DISTINCT,
        symbols: Some(symbols),
        binary: symbols.wanted(),
        threads: 0,
        cancelled: request.cancelled,
        progress: request.progress,
    }
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
    if facts.offsets > 0 {
        let what = "its branch stacks have offsets in place of addresses (-F brstackoff, where \
            perf has no symbols of the kernel); print addresses: `perf script -F ip,brstack \
            --show-mmap-events`";
        return Err(TraceError::Unsupported { path: path.to_owned(), what: what.to_owned() }.into());
    }
    Err(TraceError::OtherSpace { path: path.to_owned(), wanted, found }.into())
}

#[cfg(test)]
mod tests {
    use mepof_trace::{BranchEntry, Sample};

    use super::*;

    #[test]
    fn branches_of_one_stack_are_one_sample() {
        let entry = |at: u64| BranchEntry {
            from: RuntimeAddress(at),
            to: RuntimeAddress(at - 8),
            ..BranchEntry::default()
        };
        let entries: Vec<_> = (1..=16).map(|at| entry(0x1000 - 0x10 * at)).collect();
        let facts = Facts { addressing: Addressing::Image, ..Facts::default() };
        for (depth, consecutive, expected) in [(16, true, 63), (1, true, 63), (16, false, 1008)] {
            let mut aggregate = Aggregate::default();
            let branches = &entries[..depth];
            let sample = Sample { time: None, address: None, branches, consecutive, count: 63 };
            aggregate.sample(&sample);
            assert_eq!(samples(&facts, &aggregate), expected, "{depth} {consecutive}");
        }
        // As many ranges as branches.
        let mut aggregate = Aggregate::default();
        aggregate.branch(RuntimeAddress(8), RuntimeAddress(0), 3200);
        aggregate.range(RuntimeAddress(0), RuntimeAddress(8), 3200);
        assert_eq!(samples(&facts, &aggregate), 100);
        let counted = Facts { addressing: Addressing::Runtime, ..facts };
        assert_eq!(samples(&counted, &aggregate), 0);
    }
}
