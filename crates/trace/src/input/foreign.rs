//! What people have in place of a branch trace or a profile, and what to do with it.
//!
//! Sources of the magics: trace-cmd's trace.dat(5), the Common Trace Format 1.8, Intel's SDM (PSB
//! packets), simpleperf's cmd_report_sample.proto, GCC's gcov-io.h, LLVM 22's InstrProf.h,
//! MemProfData.inc and SampleProf.h; of the texts: perf's builtin-{script,report,stat}.c,
//! BOLT's DataReader.cpp, LLVM 22's BasicBlockSectionsProfileReader.cpp.

use memchr::memmem;

/// How what begins with `head` is compressed, and what decompresses it.
pub(crate) fn compression(head: &[u8]) -> Option<&'static str> {
    of_magic(COMPRESSED, head)
}

/// What begins with `head`, if it is binary and known.
pub(super) fn binary(head: &[u8]) -> Option<&'static str> {
    if head.get(257..262) == Some(b"ustar") {
        return Some(
            "this is a tar archive (unpack it); what `perf archive` makes has no trace: give the \
             perf.data itself",
        );
    }
    // GCC's own counts begin with the version of a compiler, such as `*22B`; AutoFDO data do so
    // only as of GCC 4.7.
    let counted = head.starts_with(b"adcg") && head.get(4..8) != Some(b"*704");
    if counted && head.get(4).is_some_and(|stage| b"*ep".contains(stage)) {
        return Some(GCC_COUNTS);
    }
    compression(head).or_else(|| of_magic(MAGICS, head))
}

/// What the text is that begins with `head`, if it is known.
pub(super) fn text(head: &[u8]) -> Option<&'static str> {
    let lines = || head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = || lines().filter(|line| !line.is_empty());
    let of_line = lines().take(200).find_map(|line| of_magic(LINES, line));
    of_line.or_else(|| {
        let first = lines().find(|line| !line.starts_with(b"#"))?;
        let (_, what) = FIRST_LINES.iter().find(|(is_one, _)| is_one(first))?;
        Some(*what)
    })
}

const AUTOFDO: &str =
    "this is an AutoFDO profile already (`mepof profile merge` writes it in another format)";

const GCC_COUNTS: &str = "this is the counts of one object of a kernel that GCC instrumented (.gcda): the algorithm \
     gcc-pgo reads an archive of all of them, named NAME.gcda.tar";
const REPORT: &str = "this is text of `perf report`; `perf script -F ip,brstack` has the branches";
const EVENTS: &str = "this is a trace of the kernel's events (ftrace), which has no branches: record with \
     `perf record -b`";
const CTF: &str = "this is a part of a trace of LTTng or babeltrace (CTF), which has no branches: \
                   record with `perf record -b`";
const SIMPLEPERF: &str = "this is a report of simpleperf, without branches: give what `simpleperf record -b` wrote, or \
     the branch list of an ETM trace";
const INSTRUMENTED: &str = "this is a profile of an instrumented kernel, as text";
const BOLT: &str = "this is a profile of BOLT already, which `llvm-bolt --data=` reads";
const PROPELLER: &str = "this is a profile of Propeller already, which Clang reads \
                         (`-fbasic-block-sections=list=`)";

const COMPRESSED: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "this is compressed with gzip (decompress it with `gunzip`)"),
    (b"\x28\xb5\x2f\xfd", "this is compressed with zstd (decompress it with `unzstd`)"),
    (b"\xfd7zXZ\0", "this is compressed with xz (decompress it with `unxz`)"),
    (
        b"BZh",
        "this is compressed with bzip2 (decompress it with `bunzip2`); what `perf archive` makes \
         has no trace: give the perf.data itself",
    ),
    (b"PK\x03\x04", "this is a zip archive (unpack it)"),
];

const MAGICS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "this is an ELF binary"),
    (b"\xfflprofr\x81", "this is a raw profile of an instrumented kernel"),
    (b"\x81rforpl\xff", "this is a raw profile of an instrumented kernel"),
    (b"\xfflprofi\x81", "this is an indexed profile of an instrumented kernel"),
    (b"\x81rforpm\xff", "this is a profile of memory (`-fmemory-profile`)"),
    // The first bytes of `SPMagic` in LEB128, for the plain and the extensible binary form.
    (b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8", AUTOFDO),
    (b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8", AUTOFDO),
    (b"adcg", AUTOFDO),
    (b"oncg", "this is what GCC notes of an object (.gcno), without counts"),
    (b"SIMPLEPERF", SIMPLEPERF),
    (b"\x17\x08Dtracing", EVENTS),
    (b"\xc1\x1f\xfc\xc1", CTF),
    (b"\x57\x1d\xd1\x75", CTF),
    (b"\x02\x82\x02\x82\x02\x82", "this is a raw trace of Intel PT: give the perf.data with it"),
    (b"\xff\xfe", "this is text in UTF-16 (convert it: `iconv -f UTF-16 -t UTF-8`)"),
];

/// Any of the first lines begins so.
const LINES: &[(&[u8], &str)] = &[
    (b"# Overhead", REPORT),
    (b"# Samples:", REPORT),
    (b"# Total Lost Samples", REPORT),
    (b"# Func Hash:", INSTRUMENTED),
    (b"# tracer:", EVENTS),
    (b"/* CTF 1.", CTF),
    (b"Cmdline: ", SIMPLEPERF),
    (
        b". ... raw event: size",
        "this is a dump of `perf script -D`; print it with `perf script -F ip,brstack \
         --show-mmap-events`",
    ),
    (
        b"Performance counter stats for",
        "this is text of `perf stat`, which counts and has no branches: record with \
         `perf record -b`",
    ),
    (b"profile-version:", BOLT),
    (b"boltedcollection", BOLT),
];

type IsOne = fn(&[u8]) -> bool;

/// The first line that is not a comment is such a one.
const FIRST_LINES: &[(IsOne, &str)] = &[
    (is_bolt, BOLT),
    (|line| line == b"v1" || line.starts_with(b"!"), PROPELLER),
    (is_counted_function, AUTOFDO),
    (
        is_folded,
        "this is call stacks for a flame graph, without branches: record with `perf record -b`",
    ),
    (
        |line| line == b"{" || line.starts_with(b"{\""),
        "this is JSON, which mepof reads no branches from",
    ),
];

fn of_magic(magics: &[(&[u8], &'static str)], head: &[u8]) -> Option<&'static str> {
    magics.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, name)| name)
}

/// Whether a line is the head of a function in an AutoFDO profile: NAME:TOTAL:HEAD.
fn is_counted_function(line: &[u8]) -> bool {
    let mut parts = line.rsplitn(3, |&byte| byte == b':');
    let mut number = || parts.next().is_some_and(is_number);
    number() && number() && parts.next().is_some_and(|name| !name.is_empty())
}

/// BOLT's fdata: two locations, each 1 NAME OFFSET in hexadecimal, mispredictions and count.
fn is_bolt(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').take(9).collect();
    matches!(words.as_slice(), [kind, _, _, other, _, _, missed, count]
        if matches!(kind, [b'0'..=b'4']) && matches!(other, [b'0'..=b'4'])
            && is_number(missed) && is_number(count))
        || (memmem::find(line, b"no_lbr") == Some(0))
}

/// `FRAME;FRAME;FRAME COUNT`.
fn is_folded(line: &[u8]) -> bool {
    let mut parts = line.rsplitn(2, |&byte| byte == b' ');
    parts.next().is_some_and(is_number) && parts.next().is_some_and(|stack| stack.contains(&b';'))
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}
