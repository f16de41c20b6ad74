//! What hostile files may take of the memory. Its own program: what others allocate would count.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a test, which counts what is allocated"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use mepof_trace::input::{Options, branch_list, perf_data};
use mepof_trace::{Aggregate, Facts, Space, TraceError};

/// Counts the bytes that are allocated, and the most at a time.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as of the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// MiB that `read` takes at most.
fn mib(read: impl FnOnce(&Options<'_>)) -> usize {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap();
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let options = Options {
        space: Space::Kernel,
        events: &[],
        max_distinct: 1 << 20,
        symbols: None,
        binary: None,
        threads: 1,
        cancelled: &cancelled,
        progress: &progress,
    };
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    read(&options);
    (PEAK.load(Ordering::Relaxed) - before) >> 20
}

fn read_perf_data(file: impl Read + Seek, length: u64) -> usize {
    mib(|options| {
        let parse = |sink: &mut Aggregate| -> Result<Facts, TraceError> {
            perf_data::parse(file, length, Path::new("x"), options, sink)
        };
        let _ = parse(&mut Aggregate::default());
    })
}

/// A file that is `head`, and then `unit` over and over.
struct Endless {
    head: Vec<u8>,
    unit: Vec<u8>,
    at: u64,
    length: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min((self.length - self.at.min(self.length)) as usize);
        for (position, byte) in (self.at..).zip(&mut buffer[..count]) {
            let position = position as usize;
            let behind = position.checked_sub(self.head.len());
            *byte = match behind {
                Some(behind) => self.unit[behind % self.unit.len()],
                None => self.head[position],
            };
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if let SeekFrom::Start(at) = to {
            self.at = at;
        }
        Ok(self.at)
    }
}

/// A perf.data whose tables of events and of features, each of `size` bytes, begin where the
/// header ends and have `unit` over and over. Its features are `features`.
fn file_of(unit: Vec<u8>, size: u64, features: &[u64]) -> Endless {
    const HEADER: u64 = 104;
    let set = features.iter().fold(0_u64, |set, bit| set | 1 << bit);
    let table = HEADER + 8;
    let content = table + 16 * features.len() as u64;
    let words = [
        u64::from_le_bytes(*b"PERFILE2"),
        HEADER,
        80, // bytes of an event
        content,
        size,
        HEADER, // one record, of no kind
        8,
        0,
        0,
        set,
        0,
        0,
        0,
        8 << 48,
    ];
    let sections = features.iter().flat_map(|_| [content, size]);
    let words = words.into_iter().chain(sections);
    let head: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    Endless { length: head.len() as u64 + size, head, unit, at: 0 }
}

#[test]
fn a_large_header_takes_some_mib() {
    const SIZE: u64 = 200 << 20;
    // A string of no bytes; one of a byte; a build-id's record.
    let words = [
        vec![0; 4],
        [&1_u32.to_le_bytes()[..], b"x"].concat(),
        [&[0, 0, 0, 0, 1, 0, 40, 0][..], &[7; 32]].concat(),
        b"k\0v\0".to_vec(),
    ];
    // OSRELEASE, ARCH, CPUDESC, CPUID, CMDLINE, EVENT_DESC, BUILD_ID, CPU_PMU_CAPS, PMU_CAPS
    let features = [4, 6, 8, 9, 11, 12, 2, 28, 30];
    for unit in words {
        let file = file_of(unit.clone(), SIZE, &features);
        let length = file.length;
        let most = read_perf_data(file, length);
        assert!(most < 32, "{most} MiB for {unit:?}");
    }
}

#[test]
fn long_names_of_many_mappings_take_some_mib() {
    let mut pipe = [*b"PERFILE2", 16_u64.to_le_bytes()].concat();
    for number in 0..4000_u64 {
        let record = 60_000_u16;
        pipe.extend([1, 0, 0, 0, 1, 0]);
        pipe.extend(record.to_le_bytes());
        for word in [0, 0xffff_ffff_0000_0000, 8, 0] {
            pipe.extend(u64::to_le_bytes(word));
        }
        pipe.extend(format!("/{number:06}").bytes());
        pipe.resize(pipe.len() + usize::from(record) - 8 - 32 - 7, b'x');
    }
    let length = pipe.len() as u64;
    let most = read_perf_data(Cursor::new(pipe), length);
    assert!(most < 64, "{most} MiB");
}

/// A message of a branch list whose field `number` is `value`.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let (low, high) = (value.len() as u8 & 0x7f | 0x80, (value.len() >> 7) as u8 & 0x7f | 0x80);
    [&[number << 3 | 2, low, high, (value.len() >> 14) as u8][..], value].concat()
}

#[test]
fn a_branch_list_of_many_short_lists_takes_no_more_than_it_may() {
    let bits = [&[0x12, 7][..], &[0x0a, 1, 1, 0x10, 1, 0x18, 1]].concat();
    let binary = field(2, &field(3, &bits.repeat(100_000)));
    let mut file = b"simpleperf:EtmBranchList\x01\0\0\0\0".to_vec();
    for _ in 0..60 {
        file.extend((binary.len() as u32).to_le_bytes());
        file.extend(&binary);
    }
    let most = mib(|options| {
        let outcome = branch_list::parse(&file[..], Path::new("x"), options);
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("more lists than fit"), "{error}");
    });
    assert!(most <= 550, "{most} MiB");
}
