//! What a header's features say, as sections of a file or records of a pipe.
//!
//! Source: Linux 6.12, tools/perf/util/header.c.

use mepof_address::BuildId;

use super::attr::{Attr, MAX_EVENTS};
use super::cursor::{ByteOrder, Cursor, until_nul};
use super::format::{RECORD_HEADER, feature, misc};

/// No machine has more binaries than this; a file may claim any number.
pub(crate) const MAX_IMAGES: usize = 1 << 16;
/// PMUs, and what each says of itself: a hybrid machine has a dozen, with as many capabilities.
const MAX_CAPABILITIES: u32 = 256;
/// simpleperf writes about twenty.
const MAX_PAIRS: usize = 256;

/// One event of `HEADER_EVENT_DESC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventDescription {
    pub(crate) attr: Attr,
    pub(crate) name: String,
    pub(crate) ids: Vec<u64>,
}

/// One binary of `HEADER_BUILD_ID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedBuildId {
    pub(crate) misc: u16,
    pub(crate) id: Option<BuildId>,
    pub(crate) name: String,
}

/// A feature that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    BuildIds(Vec<NamedBuildId>),
    KernelRelease(String),
    Machine(String),
    CpuDescription(String),
    CpuId(String),
    Events(Vec<EventDescription>),
    /// Bytes of perf's ring buffer, which no compressed record is larger than.
    Compressed(u64),
    /// Name and value.
    PmuCapabilities(Vec<(String, String)>),
    /// simpleperf's key and value.
    SimpleperfInfo(Vec<(String, String)>),
    /// simpleperf stored a branch list beside the records.
    SimpleperfBranchList,
}

/// Whether [`read`] knows the feature.
pub(crate) fn is_known(bit: u64) -> bool {
    use feature::*;
    matches!(
        bit,
        BUILD_ID
            | OSRELEASE
            | ARCH
            | CPUDESC
            | CPUID
            | EVENT_DESC
            | COMPRESSED
            | CPU_PMU_CAPS
            | PMU_CAPS
            | SIMPLEPERF_META_INFO
            | SIMPLEPERF_ETM_BRANCH_LIST
    )
}

/// Reads the section of feature `bit`; `None` if it is damaged or of no interest.
pub(crate) fn read(bit: u64, bytes: &[u8], order: ByteOrder) -> Option<Feature> {
    let mut cursor = Cursor::new(bytes, order);
    Some(match bit {
        feature::BUILD_ID => Feature::BuildIds(build_ids(bytes, order)),
        feature::OSRELEASE => Feature::KernelRelease(cursor.counted_string()?),
        feature::ARCH => Feature::Machine(cursor.counted_string()?),
        feature::CPUDESC => Feature::CpuDescription(cursor.counted_string()?),
        feature::CPUID => Feature::CpuId(cursor.counted_string()?),
        feature::EVENT_DESC => Feature::Events(events(&mut cursor, order)?),
        feature::COMPRESSED => {
            let [_version, _kind, _level, _ratio, buffer] =
                [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
            Feature::Compressed(buffer.into())
        }
        feature::CPU_PMU_CAPS => Feature::PmuCapabilities(capabilities(&mut cursor)?),
        feature::PMU_CAPS => {
            let count = cursor.u32()?.min(MAX_CAPABILITIES);
            let mut all = Vec::new();
            for _ in 0..count {
                let Some(some) = capabilities(&mut cursor) else { break };
                all.extend(some);
                cursor.counted_string(); // the PMU's name
            }
            Feature::PmuCapabilities(all)
        }
        feature::SIMPLEPERF_META_INFO => {
            let mut words = bytes.split(|&byte| byte == 0).map(until_nul);
            let pairs = std::iter::from_fn(|| Some((words.next()?, words.next()?)));
            let pairs = pairs.take(MAX_PAIRS);
            Feature::SimpleperfInfo(pairs.take_while(|(key, _)| !key.is_empty()).collect())
        }
        feature::SIMPLEPERF_ETM_BRANCH_LIST => Feature::SimpleperfBranchList,
        _ => return None,
    })
}

fn capabilities(cursor: &mut Cursor<'_>) -> Option<Vec<(String, String)>> {
    let count = cursor.u32()?.min(MAX_CAPABILITIES);
    let pairs =
        (0..count).map_while(|_| Some((cursor.counted_string()?, cursor.counted_string()?)));
    Some(pairs.collect())
}

fn events(cursor: &mut Cursor<'_>, order: ByteOrder) -> Option<Vec<EventDescription>> {
    let count = cursor.u32()?.min(MAX_EVENTS as u32);
    let attr_size = cursor.u32()?;
    let mut events = Vec::new();
    for _ in 0..count {
        let (attr, _) = Attr::read(cursor.take_u64(attr_size.into())?, order)?;
        let ids = cursor.u32()?;
        let name = cursor.counted_string()?;
        let ids = cursor.take_u64(u64::from(ids) * 8)?.chunks_exact(8);
        let ids = ids.filter_map(|bytes| Cursor::new(bytes, order).u64()).collect();
        events.push(EventDescription { attr, name, ids });
    }
    Some(events)
}

/// A table of build-ids ends where its bytes end, or where an entry makes no sense.
fn build_ids(mut bytes: &[u8], order: ByteOrder) -> Vec<NamedBuildId> {
    let mut all = Vec::new();
    while let Some(header) = super::decoder::Header::read(bytes, order) {
        if all.len() >= MAX_IMAGES {
            break;
        }
        let Some((whole, rest)) = bytes.split_at_checked(header.size.max(RECORD_HEADER)) else {
            break;
        };
        let body = whole.get(RECORD_HEADER..).unwrap_or_default();
        all.extend(build_id(header.misc, body, order));
        bytes = rest;
    }
    all
}

/// The body of a `PERF_RECORD_HEADER_BUILD_ID`: process, 20 bytes of id, its size if the misc
/// flag says so (perf 5.12 and later), padding, file name.
pub(crate) fn build_id(misc: u16, body: &[u8], order: ByteOrder) -> Option<NamedBuildId> {
    let mut cursor = Cursor::new(body, order);
    cursor.u32()?;
    let id = cursor.take(20)?;
    let size = usize::from(cursor.u8()?);
    cursor.take(3)?;
    let with_size = misc & misc::BUILD_ID_SIZE != 0 && (1..=20).contains(&size);
    let id = if with_size { id.get(..size).unwrap_or_default() } else { id };
    Some(NamedBuildId { misc, id: BuildId::new(id).ok(), name: cursor.last_string() })
}
