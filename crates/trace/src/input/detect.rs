//! Tells formats apart by their content.

use memchr::memmem;

use super::foreign;
use super::format::Format;
use super::preaggregated;
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
    if let Some(name) = foreign::binary(head) {
        return Err(name.to_owned());
    }
    if head.is_empty() {
        return Err("this is empty".to_owned());
    }
    // A few unreadable bytes within text are a damaged line.
    if head.contains(&0) || head.iter().take(64).any(|&byte| byte < b'\t') {
        return Err("this is binary data of an unknown kind".to_owned());
    }
    text(head)
}

fn text(head: &[u8]) -> Result<Format, String> {
    let lines = || {
        head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
    };
    // A comment or a context, numbers, and then something that counts.
    if lines().take(4).any(is_counted) {
        return Ok(Format::Unsymbolized);
    }
    // After the names of events.
    if lines().find(|line| !line.starts_with(b"E ")).is_some_and(preaggregated::is_one) {
        return Ok(Format::Preaggregated);
    }
    if let Some(name) = foreign::text(head) {
        return Err(name.to_owned());
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
            (b"B 4b196f X:0 2 0\nF 41be50 41be50 3\n", Format::Preaggregated),
            (b"E cycles\nE br\nT 4b196f 4b19e0 4b19ef 2\n", Format::Preaggregated),
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
            (b"\x01\x02abc", "binary data"),
            (&[&[b'a'; 257][..], b"ustar"].concat(), "tar archive"),
            (b"BZh91AY&SY", "perf archive"),
            (b"adcg*22B", ".gcda"),
            (b"adcge51B", ".gcda"),
            (b"adcg*704", "AutoFDO profile already"),
            (b"adcg\x02\0\0\0", "AutoFDO profile already"),
            (b"oncg*22B", ".gcno"),
            (b"SIMPLEPERF\x01\0", "report of simpleperf"),
            (b"Cmdline: /system/bin/simpleperf record\nArch: arm64\n", "report of simpleperf"),
            (b"\x17\x08Dtracing6\0", "ftrace"),
            (b"# tracer: function\n#\n  bash-1 [000] 12.3: do_sys_open <-x64\n", "ftrace"),
            (b"\xc1\x1f\xfc\xc1", "LTTng"),
            (b"/* CTF 1.8 */\n\ntrace {\n", "LTTng"),
            (b"\x02\x82\x02\x82\x02\x82\x02\x82", "Intel PT"),
            (b"\xff\xfe \0f\0", "UTF-16"),
            (b"\n0x100@perf.data [0x80]: event: 10\n.\n. ... raw event: size 128 bytes\n", "-D"),
            (b"\n Performance counter stats for 'ls':\n\n", "perf stat"),
            (b"1 main 2a 1 foo 0 0 12\n1 foo 5 1 main 2f 0 12\n", "BOLT"),
            (b"boltedcollection\n1 main 2a 1 foo 0 0 12\n", "BOLT"),
            (b"---\nheader:\n  profile-version: 1\n", "BOLT"),
            (b"v1\nf main\nc 0 1 2\n", "Propeller"),
            (b"!main\n!!0 1 2\n", "Propeller"),
            (b"swapper;do_idle;0x12 12\n", "flame graph"),
            (b"{\"linux-perf-json-version\": 1}\n", "JSON"),
        ] {
            let found = detect(head).unwrap_err();
            assert!(found.contains(what), "{found}");
        }
    }
}
