//! Branch lists, followed through the code of the binaries.

use std::path::Path;

use mepof_address::{BuildId, ImageAddress};
use mepof_binary::Binary;
use mepof_machine::{CodeKind, Flow};
use mepof_trace::input::Options;
use mepof_trace::input::branch_list::{self, Step, TracedBinary, TracedKind, Walk};
use mepof_trace::{Addressing, Cause, Facts, Sink, TraceError};

use crate::image::Image;

/// Reads the branch list at `path` and follows it through `images`, to addresses of the images.
///
/// Modules are left out: simpleperf counts their addresses from an address in memory, which the
/// file of the module does not know.
pub(crate) fn read<S: Sink>(
    path: &Path,
    options: &Options<'_>,
    images: &[Image],
    sink: &mut S,
) -> Result<Facts, TraceError> {
    let list = branch_list::read(path, options)?;
    let mut facts = Facts { addressing: Addressing::Image, ..list.facts() };
    let lists = std::mem::take(&mut facts.samples.used);
    let mut others = Others::default();
    let mut walk = Walk::new(path, options);
    for traced in &list.binaries {
        if let Some(binary) = image_of(traced, images) {
            let decode = |at| step(binary, at);
            let tally = walk.follow(traced, slide(traced, binary), decode, sink)?;
            facts.samples.merge(&tally);
        } else {
            others.add(&traced.path, traced.build_id.as_ref());
        }
    }
    let followed = facts.samples.read();
    facts.samples.drop(Cause::OutsideBinary, lists.saturating_sub(followed));
    let mut is_ours = Vec::with_capacity(list.lbr.binaries.len());
    for (name, build_id) in &list.lbr.binaries {
        let is_kernel = name.starts_with("[kernel.kallsyms]");
        let traced = TracedBinary {
            path: name.clone(),
            build_id: build_id.clone(),
            kind: if is_kernel { TracedKind::Kernel } else { TracedKind::Program },
            ..TracedBinary::default()
        };
        let found = image_of(&traced, images).is_some();
        is_ours.push(found);
        if !found {
            others.add(name, build_id.as_ref());
        }
    }
    let is_ours = |index: usize| is_ours.get(index).copied().unwrap_or_default();
    let given = list.give_stacks(is_ours, path, options, sink)?;
    let stacks = list.lbr.samples.len() as u64;
    facts.samples.used = facts.samples.used.saturating_add(given);
    facts.samples.drop(Cause::OutsideBinary, stacks.saturating_sub(given));
    if facts.samples.used == 0 && !others.0.is_empty() {
        let what = format!(
            "it has nothing of the given binaries, only of {}; give the exact build that was \
             traced",
            others.0.join(", ")
        );
        return Err(TraceError::Unsupported { path: path.to_owned(), what });
    }
    Ok(facts)
}

/// Some of the binaries that were not given, for messages.
#[derive(Default)]
struct Others(Vec<String>);

impl Others {
    fn add(&mut self, path: &str, build_id: Option<&BuildId>) {
        if self.0.len() < 8 {
            let name = build_id.map_or_else(|| path.to_owned(), |id| format!("{path} ({id})"));
            self.0.push(name);
        }
    }
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

/// What to add to the addresses of `traced` for those that the linker gave.
fn slide(traced: &TracedBinary, binary: &Binary) -> u64 {
    let linked = binary.symbol("_stext").zip(traced.kernel_start);
    linked.map_or(0, |(linked, start)| linked.0.wrapping_sub(start.0))
}

/// What the instruction at `address` does, as ETM sees it, and its size. Bit 0 of an address of
/// T32 code is set.
///
/// Source: Arm's ETMv4 architecture specification (IHI 0064), "P0 instructions": branches and
/// `isb`. Exceptions are not, not even those of `svc` and `brk`.
fn step(binary: &Binary, address: u64) -> Option<(Step, u64)> {
    let machine = binary.machine();
    let mode = address & machine.mode_bit();
    let thumb = mode != 0;
    let at = ImageAddress(address & !mode);
    let code = binary.code(at..ImageAddress(at.0.checked_add(4)?));
    let instruction = machine.decode(thumb, at, code)?;
    let target = |target: ImageAddress| {
        let thumb = binary.code_kind(target) == Some(CodeKind::Thumb);
        Step::Branch(target.0 | if thumb { machine.mode_bit() } else { 0 })
    };
    let step = match instruction.flow {
        Flow::Conditional(to) | Flow::Jump(to) | Flow::Call(to) => target(to),
        Flow::IndirectJump | Flow::IndirectCall | Flow::Return => Step::Indirect,
        Flow::System if machine.is_traced_exception_return(code) => Step::Indirect,
        _ if machine.is_traced_barrier(thumb, code) => Step::Marker,
        Flow::Next | Flow::System | Flow::Stop => Step::Next,
    };
    Some((step, u64::from(instruction.size)))
}
