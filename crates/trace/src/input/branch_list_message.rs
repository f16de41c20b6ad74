//! The messages of simpleperf/branch_list.proto, in protobuf's encoding. Few enough fields to
//! read by hand: <https://protobuf.dev/programming-guides/encoding/>.

use mepof_address::{BuildId, RuntimeAddress};

use super::branch_list::{BranchList, TakenBits, TracedBinary, TracedKind};

/// More binaries than any process has.
const MAX_BINARIES: usize = 1 << 16;

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

/// Calls `field` with each field's number and value; `None` if one is damaged.
fn fields<'a>(
    mut bytes: &'a [u8],
    mut field: impl FnMut(u64, Value<'a>) -> Option<()>,
) -> Option<()> {
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            1 => Value::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = varint(&mut bytes)?;
                Value::Bytes(take(&mut bytes, length)?)
            }
            5 => Value::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        field(tag >> 3, value)?;
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(front)
}

fn text(value: Value<'_>) -> Option<String> {
    value.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// simpleperf writes 20 bytes, in hexadecimal digits, padded with zeros.
fn build_id(value: Value<'_>) -> Option<Option<BuildId>> {
    text(value).map(|digits| digits.trim_start_matches("0x").parse().ok())
}

/// Takes room for a `T` and `more` bytes that it holds, each with what an allocation costs besides;
/// `None`, and no room at all, if there is too little.
fn take_room<T>(room: &mut u64, more: usize) -> Option<()> {
    const ALLOCATION: u64 = 16;
    // A vector that grows holds up to twice what is in it.
    let bytes = 2 * size_of::<T>() as u64 + more as u64 + ALLOCATION;
    *room = room.saturating_sub(bytes);
    (*room > 0).then_some(())
}

/// Adds a `BranchList` to `list`. `room`: bytes that may be held in all. They are 0 afterwards if
/// it was that which failed.
pub(super) fn branch_list(bytes: &[u8], list: &mut BranchList, room: &mut u64) -> Option<()> {
    fields(bytes, |number, value| {
        match number {
            // What says nothing is not kept: there could be any number of it.
            2 => {
                let binary = binary(value.bytes()?, room)?;
                if !binary.lists.is_empty() {
                    take_room::<TracedBinary>(room, binary.path.len())?;
                    list.binaries.push(binary);
                }
            }
            3 => lbr_data(value.bytes()?, &mut list.lbr, room)?,
            _ => {}
        }
        Some(())
    })
}

fn binary(bytes: &[u8], room: &mut u64) -> Option<TracedBinary> {
    let mut binary = TracedBinary::default();
    fields(bytes, |number, value| {
        match number {
            1 => binary.path = text(value)?,
            2 => binary.build_id = build_id(value)?,
            3 => address(value.bytes()?, &mut binary.lists, room)?,
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

fn address(bytes: &[u8], lists: &mut Vec<TakenBits>, room: &mut u64) -> Option<()> {
    let mut address = 0;
    let first = lists.len();
    fields(bytes, |number, value| {
        match number {
            1 => address = value.number()?,
            2 => {
                let list = taken_bits(value.bytes()?)?;
                if list.length > 0 && list.count > 0 {
                    take_room::<TakenBits>(room, list.bits.len())?;
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

fn lbr_data(bytes: &[u8], data: &mut LbrData, room: &mut u64) -> Option<()> {
    fields(bytes, |number, value| {
        match number {
            1 => {
                let sample = lbr_sample(value.bytes()?)?;
                if !sample.branches.is_empty() {
                    let entry = size_of::<[(Option<usize>, u64); 2]>();
                    take_room::<LbrSample>(room, 2 * entry * sample.branches.len())?;
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
                take_room::<(String, Option<BuildId>)>(room, binary.0.len())?;
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
