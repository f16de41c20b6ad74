//! The messages of simpleperf/branch_list.proto.
//!
//! `buffa` decodes protobuf's wire format. The messages are filled in here rather than by
//! generated code because a damaged or hostile file may claim any number of tiny messages: each
//! is counted against a budget before it is kept (docs/decisions/0013-protobuf.md).

use buffa::encoding::{Tag, WireType, decode_varint, skip_field};
use buffa::types::borrow_bytes;
use mepof_address::{BuildId, RuntimeAddress};
use mepof_machine::Machine;

use crate::Facts;

/// More binaries than any process has.
const MAX_BINARIES: usize = 1 << 16;

/// What kind of binary was traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracedKind {
    /// A program or library.
    #[default]
    Program,
    /// A vmlinux.
    Kernel,
    /// A kernel module.
    Module,
}

/// How code ran from an address on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenBits {
    /// The first instruction. On 32-bit Arm, bit 0 set means T32 code.
    pub address: u64,
    /// Whether each branch on the way was taken, from the lowest bit of the first byte on.
    pub bits: Vec<u8>,
    /// How many bits count.
    pub length: u32,
    /// How often code ran this way.
    pub count: u64,
}

/// All that was traced of one binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedBinary {
    /// Its path on the device.
    pub path: String,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// What it is.
    pub kind: TracedKind,
    /// For a kernel whose addresses are still those of run time: where `_stext` ran. All
    /// other addresses are as the linker gave them.
    pub kernel_start: Option<RuntimeAddress>,
    /// How its code ran.
    pub lists: Vec<TakenBits>,
}

/// A branch list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchList {
    /// The binaries, in the order of the file. One may occur several times.
    pub binaries: Vec<TracedBinary>,
    /// Samples of branch stacks, which simpleperf stores in image addresses.
    pub lbr: LbrData,
}

impl TakenBits {
    /// Whether the branch at `position` was taken; `None` past the end.
    pub(super) fn taken(&self, position: u32) -> Option<bool> {
        let byte = self.bits.get(usize::try_from(position / 8).ok()?)?;
        (position < self.length).then_some(byte >> (position % 8) & 1 == 1)
    }
}

impl BranchList {
    /// What it says about itself.
    pub fn facts(&self) -> Facts {
        let lists = self.binaries.iter().flat_map(|binary| &binary.lists);
        let mut facts = Facts {
            format: "simpleperf branch list".to_owned(),
            machine: Some(Machine::AARCH64),
            ..Facts::default()
        };
        facts.samples.used = lists.fold(0, |sum: u64, list| sum.saturating_add(list.count));
        facts
    }
}

/// Branch stacks, newest entry first. A binary is an index into `binaries`, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LbrData {
    /// Path and build-id of each binary.
    pub binaries: Vec<(String, Option<BuildId>)>,
    /// The samples.
    pub samples: Vec<LbrSample>,
}

/// A sample of [`LbrData`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LbrSample {
    /// Source and target: binary and address in it.
    pub branches: Vec<[(Option<usize>, u64); 2]>,
}

/// A field's value.
#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }

    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Number(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// Calls `field` with the number and value of each field whose type the messages use; `None` if
/// one is damaged.
fn fields<'a>(
    mut bytes: &'a [u8],
    mut field: impl FnMut(u32, Value<'a>) -> Option<()>,
) -> Option<()> {
    while !bytes.is_empty() {
        let tag = Tag::decode(&mut bytes).ok()?;
        let value = match tag.wire_type() {
            WireType::Varint => Value::Number(decode_varint(&mut bytes).ok()?),
            WireType::LengthDelimited => Value::Bytes(borrow_bytes(&mut bytes).ok()?),
            _ => {
                skip_field(tag, &mut bytes).ok()?;
                continue;
            }
        };
        field(tag.field_number(), value)?;
    }
    Some(())
}

fn text(value: Value<'_>) -> Option<String> {
    value.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// simpleperf writes 20 bytes, in hexadecimal digits, padded with zeros.
fn build_id(value: Value<'_>) -> Option<Option<BuildId>> {
    text(value).map(|digits| digits.trim_start_matches("0x").parse().ok())
}

/// Takes budget for a `T` and `more` bytes that it holds, each with what an allocation costs
/// besides; `None`, and no budget at all, if there is too little.
fn reserve<T>(budget: &mut u64, more: usize) -> Option<()> {
    const ALLOCATION: u64 = 16;
    // A vector that grows holds up to twice what is in it.
    let bytes = 2 * size_of::<T>() as u64 + more as u64 + ALLOCATION;
    *budget = budget.saturating_sub(bytes);
    (*budget > 0).then_some(())
}

/// Adds a `BranchList` to `list`. `budget`: bytes that may be held in all. They are 0 afterwards if
/// it was that which failed.
pub(super) fn branch_list(bytes: &[u8], list: &mut BranchList, budget: &mut u64) -> Option<()> {
    fields(bytes, |number, value| {
        match number {
            // Empty messages are not kept: there could be any number of them.
            2 => {
                let binary = binary(value.bytes()?, budget)?;
                if !binary.lists.is_empty() {
                    reserve::<TracedBinary>(budget, binary.path.len())?;
                    list.binaries.push(binary);
                }
            }
            3 => lbr_data(value.bytes()?, &mut list.lbr, budget)?,
            _ => {}
        }
        Some(())
    })
}

fn binary(bytes: &[u8], budget: &mut u64) -> Option<TracedBinary> {
    let mut binary = TracedBinary::default();
    fields(bytes, |number, value| {
        match number {
            1 => binary.path = text(value)?,
            2 => binary.build_id = build_id(value)?,
            3 => address(value.bytes()?, &mut binary.lists, budget)?,
            4 => {
                binary.kind = match value.number()? {
                    0 => TracedKind::Program,
                    1 => TracedKind::Kernel,
                    2 => TracedKind::Module,
                    _ => return None,
                }
            }
            5 => fields(value.bytes()?, |number, value| {
                if number == 1 {
                    let start = value.number()?;
                    binary.kernel_start = (start != 0).then_some(RuntimeAddress(start));
                }
                Some(())
            })?,
            _ => {}
        }
        Some(())
    })?;
    Some(binary)
}

fn address(bytes: &[u8], lists: &mut Vec<TakenBits>, budget: &mut u64) -> Option<()> {
    let mut address = 0;
    let first = lists.len();
    fields(bytes, |number, value| {
        match number {
            1 => address = value.number()?,
            2 => {
                let list = taken_bits(value.bytes()?)?;
                if list.length > 0 && list.count > 0 {
                    reserve::<TakenBits>(budget, list.bits.len())?;
                    lists.push(list);
                }
            }
            _ => {}
        }
        Some(())
    })?;
    lists.iter_mut().skip(first).for_each(|list| list.address = address);
    Some(())
}

fn taken_bits(bytes: &[u8]) -> Option<TakenBits> {
    let mut list = TakenBits::default();
    fields(bytes, |number, value| {
        match number {
            1 => list.bits = value.bytes()?.to_vec(),
            2 => list.length = u32::try_from(value.number()?).ok()?,
            3 => list.count = value.number()?,
            _ => {}
        }
        Some(())
    })?;
    // More bits than bytes for them.
    (list.length as usize <= list.bits.len().saturating_mul(8)).then_some(list)
}

fn lbr_data(bytes: &[u8], data: &mut LbrData, budget: &mut u64) -> Option<()> {
    fields(bytes, |number, value| {
        match number {
            1 => {
                let sample = lbr_sample(value.bytes()?)?;
                if !sample.branches.is_empty() {
                    let entry = size_of::<[(Option<usize>, u64); 2]>();
                    reserve::<LbrSample>(budget, 2 * entry * sample.branches.len())?;
                    data.samples.push(sample);
                }
            }
            2 if data.binaries.len() >= MAX_BINARIES => return None,
            2 => {
                let mut binary = (String::new(), None);
                fields(value.bytes()?, |number, value| {
                    match number {
                        1 => binary.0 = text(value)?,
                        2 => binary.1 = build_id(value)?,
                        _ => {}
                    }
                    Some(())
                })?;
                reserve::<(String, Option<BuildId>)>(budget, binary.0.len())?;
                data.binaries.push(binary);
            }
            _ => {}
        }
        Some(())
    })
}

fn lbr_sample(bytes: &[u8]) -> Option<LbrSample> {
    // 1 is the first binary, 0 is none.
    let index = |number: u64| number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    let mut sample = LbrSample::default();
    fields(bytes, |number, value| {
        if number == 3 {
            let mut sides = [(None, 0); 2];
            let [from, to] = &mut sides;
            fields(value.bytes()?, |number, value| {
                match number {
                    1 => from.0 = index(value.number()?),
                    2 => to.0 = index(value.number()?),
                    3 => from.1 = value.number()?,
                    4 => to.1 = value.number()?,
                    _ => {}
                }
                Some(())
            })?;
            let known = sides.iter().any(|(binary, _)| binary.is_some());
            sample.branches.extend(Some(sides).filter(|_| known));
        }
        Some(())
    })?;
    Some(sample)
}
