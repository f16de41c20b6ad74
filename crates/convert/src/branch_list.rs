//! Branch lists, followed through the code of the binaries.

use std::path::Path;
use std::sync::atomic::Ordering;

use mepof_address::{BuildId, ImageAddress, Machine};
use mepof_binary::{Binary, CodeKind, Flow, decode};
use mepof_trace::input::Options;
use mepof_trace::input::branch_list::{self, Step, TracedBinary, TracedKind};
use mepof_trace::{Addressing, Aggregate, Cause, Facts, Sink, TraceError};

use crate::Image;

/// Reads the branch list at `path` and follows it through `images`, to addresses of the images.
///
/// Modules are left out: simpleperf counts their addresses from a place in memory, which the
/// file of the module does not know.
pub(crate) fn read(
    path: &Path,
    options: &Options<'_>,
    images: &[Image],
    aggregate: &mut Aggregate,
) -> Result<Facts, TraceError> {
    let list = branch_list::read(path, options)?;
    let mut facts = Facts { addressing: Addressing::Image, ..list.facts() };
    let lists = std::mem::take(&mut facts.samples.used);
    let mut others = Vec::new();
    for traced in &list.binaries {
        if let Some(binary) = image_of(traced, images) {
            let tally = moved(traced, binary).walk(|at| step(binary, at), aggregate);
            facts.samples.merge(&tally);
        } else {
            others.push(title(&traced.path, traced.build_id.as_ref()));
        }
        check(path, options, aggregate)?;
    }
    let followed = facts.samples.read();
    facts.samples.drop(Cause::OutsideBinary, lists.saturating_sub(followed));
    for (index, (name, build_id)) in list.lbr.binaries.iter().enumerate() {
        let is_kernel = name.starts_with("[kernel.kallsyms]");
        let traced = TracedBinary {
            path: name.clone(),
            build_id: build_id.clone(),
            kind: if is_kernel { TracedKind::Kernel } else { TracedKind::Program },
            ..TracedBinary::default()
        };
        if image_of(&traced, images).is_some() {
            list.give_stacks(index, aggregate);
        } else {
            others.push(title(name, build_id.as_ref()));
        }
        check(path, options, aggregate)?;
    }
    facts.samples.used = facts.samples.used.saturating_add(list.lbr.samples.len() as u64);
    if aggregate.is_empty() && !others.is_empty() {
        others.truncate(8);
        let what = format!(
            "nothing in it is of the binaries that were given, but of {}; give the very build \
             that was traced",
            others.join(", ")
        );
        return Err(TraceError::Unsupported { path: path.to_owned(), what });
    }
    Ok(facts)
}

fn check(path: &Path, options: &Options<'_>, aggregate: &Aggregate) -> Result<(), TraceError> {
    if options.cancelled.load(Ordering::Relaxed) {
        return Err(TraceError::Cancelled);
    }
    let limit = options.max_distinct;
    if aggregate.distinct() > limit {
        return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
    }
    Ok(())
}

fn title(path: &str, build_id: Option<&BuildId>) -> String {
    build_id.map_or_else(|| path.to_owned(), |id| format!("{path} ({id})"))
}

/// The binary that `traced` is: by build-id where both have one, else by what it is.
fn image_of<'a>(traced: &TracedBinary, images: &'a [Image]) -> Option<&'a Binary> {
    let file_name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let is_same = |binary: &&Binary| match (binary.build_id(), &traced.build_id) {
        (Some(one), Some(other)) => one == other,
        _ => match traced.kind {
            TracedKind::Kernel => binary.symbol("_stext").is_some(),
            TracedKind::Program => file_name(binary.path()) == file_name(Path::new(&traced.path)),
            TracedKind::Module => false,
        },
    };
    let binaries = images.iter().map(|image| &image.binary);
    binaries.filter(|binary| !binary.is_relocatable()).find(is_same)
}

/// `traced` with the addresses that the linker gave.
fn moved(traced: &TracedBinary, binary: &Binary) -> TracedBinary {
    let mut traced = traced.clone();
    if let (Some(start), Some(linked)) = (traced.kernel_start, binary.symbol("_stext")) {
        let slide = linked.0.wrapping_sub(start.0);
        for list in &mut traced.lists {
            list.address = list.address.wrapping_add(slide);
        }
    }
    traced
}

/// What the instruction at `address` does, as ETM sees it, and its size. Bit 0 of an address of
/// T32 code is set.
///
/// Source: Arm's ETMv4 architecture specification (IHI 0064), "P0 instructions": branches and
/// `isb`. Exceptions, those of `svc` and `brk` too, are none.
fn step(binary: &Binary, address: u64) -> Option<(Step, u64)> {
    let machine = binary.machine();
    let thumb = machine == Machine::Arm && address & 1 == 1;
    let at = ImageAddress(address & !u64::from(thumb));
    let code = binary.code(at..ImageAddress(at.0.checked_add(4)?));
    let instruction = decode(machine, thumb, at, code)?;
    let target = |target: ImageAddress| {
        let thumb = machine == Machine::Arm && binary.code_kind(target) == Some(CodeKind::Thumb);
        Step::Branch(target.0 | u64::from(thumb))
    };
    let step = match instruction.flow {
        Flow::Conditional(to) | Flow::Jump(to) | Flow::Call(to) => target(to),
        Flow::IndirectJump | Flow::IndirectCall | Flow::Return => Step::Indirect,
        Flow::System if machine == Machine::Aarch64 && is_exception_return(code) => Step::Indirect,
        _ if is_barrier(machine, thumb, code) => Step::Marker,
        Flow::Next | Flow::System | Flow::Stop => Step::Next,
    };
    Some((step, u64::from(instruction.size)))
}

fn word(code: &[u8]) -> Option<u32> {
    code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Whether it is `eret`, `eretaa` or `eretab`.
fn is_exception_return(code: &[u8]) -> bool {
    matches!(word(code), Some(0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff))
}

/// Whether it is `isb`.
fn is_barrier(machine: Machine, thumb: bool, code: &[u8]) -> bool {
    let Some(word) = word(code) else { return false };
    match machine {
        Machine::Aarch64 => word & 0xffff_f0ff == 0xd503_30df,
        Machine::Arm if thumb => word & 0xfff0_ffff == 0x8f60_f3bf,
        Machine::Arm => word & 0xffff_fff0 == 0xf57f_f060,
        Machine::X86_64 => false,
    }
}
