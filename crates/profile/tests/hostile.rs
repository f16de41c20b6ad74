//! No input makes a reader panic, loop or take memory that the input does not pay for.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test throughout

mod generate;
mod tool;

use generate::{Kind, profiles};
use mepof_profile::{Profile, ReadError, ext_binary, gcov, read, text};
use proptest::prelude::RngCore;
use proptest::test_runner::{RngAlgorithm, TestRng};
use tool::{as_ext_binary, as_text};

/// Every form of some profiles.
fn forms() -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for kind in [Kind::Lines, Kind::Probes, Kind::Preinlined] {
        for profile in profiles(kind, 4) {
            forms.push(as_text(&profile).into_bytes());
            for (compress, md5_names) in [(false, false), (true, false), (false, true)] {
                let options = ext_binary::Options { compress, md5_names, ..Default::default() };
                forms.push(as_ext_binary(&profile, options));
            }
        }
    }
    let profile = text::read(b"f:9:2\n 1: 4 g:2 h:1\n 2: g:5\n  3: 5\n  4: h:0\n").unwrap();
    for version in [gcov::Version::Gcc5, gcov::Version::Gcc12, gcov::Version::Gcc13] {
        let mut data = Vec::new();
        gcov::write(&profile, version, &mut data).unwrap();
        forms.push(data);
    }
    forms
}

#[test]
fn damage_anywhere_is_an_error_or_another_profile() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for form in forms() {
        for _ in 0..300 {
            let mut damaged = form.clone();
            for _ in 0..1 + random.next_u32() % 3 {
                let at = random.next_u64() as usize % damaged.len().max(1);
                let byte = match random.next_u32() % 4 {
                    0 => 0xff,
                    1 => 0,
                    2 => damaged.get(at).copied().unwrap_or(0) ^ 1 << (random.next_u32() % 8),
                    _ => random.next_u32() as u8,
                };
                if let Some(damaged) = damaged.get_mut(at) {
                    *damaged = byte;
                }
            }
            let read = read(&damaged).map(|(profile, _)| profile);
            same_if_added(&read, &damaged);
            if let Ok(profile) = read {
                use_everything(&profile);
            }
        }
    }
}

/// A file is added to a merge as the profile that it has is, or refused for the same reason.
fn same_if_added(read: &Result<Profile, ReadError>, file: &[u8]) {
    let added = mepof_profile::Merger::new().add_file(file, "a", None, 3);
    match (read, added) {
        (Ok(profile), Ok(added)) => {
            let mut merger = mepof_profile::Merger::new();
            merger.add(profile, "a", None, 3).unwrap();
            let (ours, wanted) = (added.finish(), merger.finish());
            assert_eq!(ours.profile, wanted.profile);
            assert_eq!(ours.provenance, wanted.provenance);
        }
        (Err(read), Err(added)) => assert_eq!(read.to_string(), added.to_string()),
        (read, added) => panic!("read {read:?}, but added {added:?}"),
    }
}

/// Whatever is read can be worked with.
fn use_everything(profile: &Profile) {
    let mut out = Vec::new();
    let _ = text::write(profile, &mut out);
    let _ = ext_binary::write(profile, Default::default(), &mut out);
    for version in [gcov::Version::Gcc12, gcov::Version::Gcc13] {
        let _ = gcov::write(profile, version, &mut out);
    }
    let mut merger = mepof_profile::Merger::new();
    merger.add(profile, "a", None, u64::MAX).unwrap();
    let _ = mepof_profile::compare(profile, &merger.finish().profile, 9);
    let _ = mepof_profile::Statistics::of(profile);
}

#[test]
fn cut_off_binaries_are_errors() {
    let profile = profiles(Kind::Preinlined, 3).pop().unwrap();
    let whole = as_ext_binary(&profile, Default::default());
    assert_eq!(ext_binary::read(&whole).unwrap(), profile);
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} of {}", whole.len());
    }
}

/// An extensible binary of one section.
fn one_section(kind: u64, flags: u64, bytes: &[u8]) -> Vec<u8> {
    sections(&[(kind, flags, bytes)])
}

fn sections(sections: &[(u64, u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0x84, 0xe4, 0xd0, 0xb1, 0xf4, 0xc9, 0x94, 0xa8, 0x53, 103];
    file.extend((sections.len() as u64).to_le_bytes());
    let mut offset = file.len() + 32 * sections.len();
    for (kind, flags, bytes) in sections {
        for number in [*kind, *flags, offset as u64, bytes.len() as u64] {
            file.extend(number.to_le_bytes());
        }
        offset += bytes.len();
    }
    sections.iter().for_each(|(_, _, bytes)| file.extend(*bytes));
    file
}

fn malformed(file: &[u8], words: &str) {
    let error = read(file).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn lengths_are_checked_against_what_is_there() {
    let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    malformed(&one_section(2, 0, &greatest), "truncated");
    malformed(&one_section(2, 3 << 32, &greatest), "truncated");
    malformed(&one_section(2, 1 << 32, &greatest), "truncated");
    let names = (2, 0, &b"\x01f\0"[..]);
    let many_lines = [0, 0, 0, 0xff, 0xff, 3];
    malformed(&sections(&[names, (32, 0, &many_lines)]), "truncated");
    let many_headers = [&one_section(2, 0, b"")[..10], &u64::MAX.to_le_bytes()].concat();
    malformed(&many_headers, "section headers");
}

#[test]
fn headers_cannot_share_their_bytes() {
    let mut file = sections(&[(2, 0, b"\x01f\0"), (32, 0, b"\0\0\0\0\0"), (32, 0, b"")]);
    let shared: Vec<u8> = file[10 + 8 + 32..10 + 8 + 64].to_vec();
    file[10 + 8 + 64..10 + 8 + 96].copy_from_slice(&shared);
    malformed(&file, "the sections");
}

#[test]
fn sections_do_not_inflate_without_end() {
    let mut bomb = vec![0x80, 0x80, 0x80, 0x80, 0x10, 3];
    bomb.extend([0, 0, 0]);
    malformed(&one_section(2, 1, &bomb), "64 times");
    malformed(&one_section(2, 1, &[9, 3, 0, 0, 0]), "inflate");
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let mut functions = vec![0, 0];
    for _ in 0..100_000 {
        // Total 0, no lines, one call at 0.0 of name 0.
        functions.extend([0, 0, 1, 0, 0, 0]);
    }
    malformed(&sections(&[(2, 0, b"\x01f\0"), (32, 0, &functions)]), "nest deeper");
    let mut metadata = vec![0];
    for _ in 0..100_000 {
        metadata.extend([1, 0, 0, 0]);
    }
    malformed(&sections(&[(2, 0, b"\x01f\0"), (5, 0, &metadata)]), "nest deeper");
}

#[test]
fn the_deepest_nesting_that_is_read_is_written_again() {
    let mut text = String::from("f:1:1\n");
    for depth in 1..=mepof_profile::MAX_INLINE_DEPTH {
        text.push_str(&format!("{:depth$}1: f:1\n", ""));
    }
    let profile = text::read(text.as_bytes()).unwrap();
    let binary = as_ext_binary(&profile, Default::default());
    assert_eq!(ext_binary::read(&binary).unwrap(), profile);
    let mut data = Vec::new();
    gcov::write(&profile, gcov::Version::Gcc12, &mut data).unwrap();
    assert!(gcov::read(&data).is_ok());
    use_everything(&profile);
}

#[test]
fn other_versions_and_sections_are_named() {
    let mut file = one_section(2, 0, b"\x01f\0");
    file[9] = 104;
    assert!(matches!(read(&file), Err(ReadError::Version { version: 104, .. })));
    malformed(&one_section(7, 0, b"x"), "newer LLVM");
    malformed(&one_section(2, 0, b"\x01f\0x"), "longer than its contents");
    malformed(&sections(&[(2, 0, b"\x01f\0"), (2, 3 << 32, &[1, 0, 0, 0, 0, 0, 0, 0, 0])]), "MD5");
    assert!(matches!(read(b""), Err(ReadError::UnknownFormat)));
    assert!(matches!(read(b"\x7fELF"), Err(ReadError::UnknownFormat)));
    assert!(matches!(read(b"adcg*22B\0\0\0\0"), Err(ReadError::UnknownFormat)), "a .gcda");
    assert!(matches!(read(b"adcg*704"), Err(ReadError::Truncated { .. })));
}
