//! Tells formats apart by their content.

use memchr::memmem;

use super::format::Format;
use super::unsymbolized::is_counted;
use crate::recorder_trace::MAGIC as RECORDER;

/// Bytes at the beginning of an input that are looked at.
pub(super) const HEAD: usize = 1 << 16;

/// The format of an input that begins with `head`; what it looks like, if it has none.
pub(super) fn detect(head: &[u8]) -> Result<Format, String> {
    // Source of perf's: Linux 6.12, tools/perf/util/header.c (`PERFILE2`, in either byte order);
    // of the branch list's: simpleperf's BranchListFile.cpp, a protobuf whose first field is a
    // magic string.
    if head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP") {
        return Ok(Format::PerfData);
    }
    if head.starts_with(RECORDER) {
        return Ok(Format::Recorder);
    }
    let beginning = head.get(..64).unwrap_or(head);
    if memmem::find(beginning, b"simpleperf:").is_some()
        && memmem::find(beginning, b"BranchList").is_some()
    {
        return Ok(Format::BranchList);
    }
    if let Some(name) = compression(head).or_else(|| of_magic(MAGICS, head)) {
        return Err(name.to_owned());
    }
    if head.is_empty() {
        return Err("this is empty".to_owned());
    }
    if head.contains(&0) {
        return Err("this is binary data of an unknown kind".to_owned());
    }
    text(head)
}

/// How what begins with `head` is compressed, and what decompresses it.
pub(crate) fn compression(head: &[u8]) -> Option<&'static str> {
    of_magic(COMPRESSED, head)
}

fn of_magic(magics: &[(&[u8], &'static str)], head: &[u8]) -> Option<&'static str> {
    magics.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, name)| name)
}

fn text(head: &[u8]) -> Result<Format, String> {
    let lines = || {
        head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
    };
    // A context, a number, and then something that counts.
    if lines().take(4).any(is_counted) {
        return Ok(Format::Unsymbolized);
    }
    for (line, name) in lines().take(200).filter_map(|line| {
        let (_, name) = TEXTS.iter().find(|(part, _)| memmem::find(line, part).is_some())?;
        Some((line, name))
    }) {
        // perf script prints comments like those of perf report, but not these.
        if line.starts_with(b"#") || name.contains("profile") {
            return Err((*name).to_owned());
        }
    }
    if lines().find(|line| !line.starts_with(b"#")).is_some_and(is_counted_function) {
        return Err(AUTOFDO.to_owned());
    }
    let looks_like_perf_script = lines().any(|line| {
        let entry = memmem::find(line, b"0x").is_some() && line.contains(&b'/');
        let address = line
            .split(|&byte| byte == b' ')
            .any(|token| token.len() >= 6 && token.iter().all(u8::is_ascii_hexdigit));
        entry
            || address
            || memmem::find(line, b"PERF_RECORD_").is_some()
            || memmem::find(line, b"/-/-/").is_some()
    });
    if looks_like_perf_script {
        return Ok(Format::PerfScript);
    }
    Err("this is text of an unknown kind".to_owned())
}

/// Whether a line is the head of a function in an AutoFDO profile: NAME:TOTAL:HEAD.
fn is_counted_function(line: &[u8]) -> bool {
    let mut parts = line.rsplitn(3, |&byte| byte == b':');
    let mut number =
        || parts.next().is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    number() && number() && parts.next().is_some_and(|name| !name.is_empty())
}

const AUTOFDO: &str =
    "this is an AutoFDO profile already (`mepof profile merge` writes it in another format)";

const COMPRESSED: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "this is compressed with gzip (decompress it with `gunzip`)"),
    (b"\x28\xb5\x2f\xfd", "this is compressed with zstd (decompress it with `unzstd`)"),
    (b"\xfd7zXZ\0", "this is compressed with xz (decompress it with `unxz`)"),
    (b"BZh", "this is compressed with bzip2 (decompress it with `bunzip2`)"),
    (b"PK\x03\x04", "this is a zip archive (unpack it)"),
];

const MAGICS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "this is an ELF binary"),
    (b"\xfflprofr\x81", "this is a raw profile of an instrumented kernel"),
    (b"\x81rforpl\xff", "this is a raw profile of an instrumented kernel"),
    (b"\xfflprofi\x81", "this is an indexed profile of an instrumented kernel"),
    // The first bytes of `SPMagic` in LEB128, for the plain and the extensible binary form.
    // Source: LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h.
    (b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8", AUTOFDO),
    (b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8", AUTOFDO),
    (b"adcg", AUTOFDO),
    (b"SIMPLEPERF", "this is a text report of simpleperf"),
];

const TEXTS: &[(&[u8], &str)] = &[
    (b"# Overhead", "this is text of `perf report`; `perf script -F ip,brstack` has the branches"),
    (b"# Samples:", "this is text of `perf report`; `perf script -F ip,brstack` has the branches"),
    (
        b"# Total Lost Samples",
        "this is text of `perf report`; `perf script -F ip,brstack` has the branches",
    ),
    (b"# Func Hash:", "this is a profile of an instrumented kernel, as text"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_known_by_its_beginning() {
        for (head, format) in [
            (&b"PERFILE2\x68\0\0\0"[..], Format::PerfData),
            (b"2ELIFREP", Format::PerfData),
            (b"MEPOFTRC\x01\0\0\0", Format::Recorder),
            (b"\x0a\x18simpleperf:EtmBranchList\x12", Format::BranchList),
            (b"2\n10-20:3\n30-40:1\n1\n20->30:7\n", Format::Unsymbolized),
            (b"0\n1\n20->30:7\n", Format::Unsymbolized),
            (b"[main:1 @ f]\n  1\n  10-20:3\n", Format::Unsymbolized),
            (b" ffffffff81000000 0x1/0x2/P/-/-/0\n", Format::PerfScript),
            (b"0x1/0x2/P/-/-/0", Format::PerfScript),
            (b"# ========\n# captured on\n\n 4005dc 0x1/0x2/P\n", Format::PerfScript),
            (b"3\n\t4005dc\n 0x1/0x2/P/-/-/0\n", Format::PerfScript),
            (b" a 1 PERF_RECORD_MMAP -1/0: [", Format::PerfScript),
            (b" ffffffff81000000 \n", Format::PerfScript),
            (b" f+0x1/g+0x2/P/-/-/0", Format::PerfScript),
        ] {
            assert_eq!(detect(head), Ok(format), "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn what_is_no_branch_record_is_named() {
        for (head, what) in [
            (&b""[..], "empty"),
            (b"\x7fELF\x02", "ELF"),
            (b"\x1f\x8b\x08", "gunzip"),
            (b"\x28\xb5\x2f\xfd", "unzstd"),
            (b"# Samples: 10K of event 'cycles'\n#\n# Overhead  Command\n", "perf script -F"),
            (b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8Sg\x07\0", "AutoFDO profile already"),
            (b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8Sg\xdd\x50", "AutoFDO profile already"),
            (b"# c\nmain:184019:0\n 4: 534 deadbeef:3\n", "AutoFDO profile already"),
            (b"[main:3 @ facade00]:9:1\n 0: 6\n", "AutoFDO profile already"),
            (b":ir\nf\n# Func Hash:\n94238966\n", "instrumented kernel"),
            (b"hello, world\n", "text of an unknown kind"),
            (b"\0\0\0\0", "binary data"),
        ] {
            let found = detect(head).unwrap_err();
            assert!(found.contains(what), "{found}");
        }
    }
}
