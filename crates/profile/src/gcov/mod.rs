//! GCC's AutoFDO data, what `gcc -fauto-profile=FILE` reads.
//!
//! GCC 12 and 16, `gcc/auto-profile.cc`; google/autofdo, `profile_writer.cc` and `gcov.cc`. Words of
//! 32 bits, little endian; what is in brackets only version 3 has:
//!
//! ```text
//! file      "adcg" version 0 [summary] names functions modules working-sets
//! summary   0xa8000000 total:u64 max:u64 max-head:u64 counts:u64 functions:u64 16:u64 entry…
//! entry     millionths least:u64 counts:u64
//! names     0xaa000000 length [count string…] count (string [file])…
//! functions 0xac000000 length count (head:u64 [time:u64] function)…
//! function  name lines calls line… (location function)…
//! line      location targets count:u64 (7 name:u64 count:u64)…
//! location  line offset << 16 | discriminator
//! ```
//!
//! Version 3 is that of GCC 16, which has files by which static functions of one name differ, and
//! when each function ran first; version 2 that of GCC 12 to 15, whose strings are counted in bytes;
//! in version 1, of GCC 5 to 11, in words. GCC cuts names at their first dot and sums up the totals
//! itself. Until GCC 13 told apart the blocks of a line (`get_combined_location`), it looked up
//! discriminator 0 alone.

mod form;
mod read;
mod write;

pub use form::{Version, is_gcov};
pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionProfile, ReadError, WriteError, text};

    const TEXT: &str = "f:66:3\n 1: 10\n 2.5: 7 g:4 h:3\n 3: g:49\n  1: 40\n  2: h:9\n   65535: 9\n\
                        g:5:2\n 0: 5\n";

    fn written(text: &str, version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        write(&text::read(text.as_bytes()).unwrap(), version, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = text::read(TEXT.as_bytes()).unwrap();
        for version in [Version::Gcc13, Version::Gcc16] {
            assert_eq!(read(&written(TEXT, version)).unwrap(), profile);
        }
    }

    #[test]
    fn compilers_that_look_up_lines_alone_get_the_highest_count_of_each() {
        let text = "f:60:3\n 1: 3\n 1.2: 9 g:4\n 1.4: 5 g:1 h:4\n 2.1: g:20\n  1: 20\n \
                    2.3: g:22\n  1: 12\n  2.1: 10\n";
        let by_line = "f:41:3\n 1: 9 g:5 h:4\n 2: g:30\n  1: 20\n  2: 10\n";
        let mut expected = text::read(by_line.as_bytes()).unwrap();
        expected.functions.values_mut().for_each(FunctionProfile::update_total);
        for version in [Version::Gcc5, Version::Gcc12] {
            assert_eq!(read(&written(text, version)).unwrap(), expected);
        }
    }

    #[test]
    fn blocks_that_optimisation_copied_are_added_up_where_they_can_be_told() {
        // Of block 2, a copy, and what is unrolled four times.
        let text = "f:60:3\n 1.2: 9 g:4\n 1.65538: 5 g:1\n 1.1026: 2\n 3.32769: g:7\n  1: 7\n";
        let expected = "f:29:3\n 1.2: 22 g:5\n 3.1: g:7\n  1: 7\n";
        let mut expected = text::read(expected.as_bytes()).unwrap();
        expected.functions.values_mut().for_each(FunctionProfile::update_total);
        assert_eq!(read(&written(text, Version::Gcc16)).unwrap(), expected);
    }

    #[test]
    fn copies_of_a_function_are_added_up() {
        let text =
            "f.constprop.0:3:1\n 1: 3 g.part.1:2 g:1\nf.isra.0:4:1\n 1: 4\n 2: g.x:2\n  1: 2\n";
        let profile = read(&written(text, Version::Gcc12)).unwrap();
        let expected = "f:9:2\n 1: 7 g:3\n 2: g:2\n  1: 2\n";
        assert_eq!(profile, text::read(expected.as_bytes()).unwrap());
    }

    #[test]
    fn profiles_of_other_compilers_are_refused() {
        let refused = |text: &str| {
            let mut out = Vec::new();
            write(&text::read(text.as_bytes()).unwrap(), Version::Gcc13, &mut out).unwrap_err()
        };
        let error = refused("f:3:1\n 1.65536: 3\n");
        assert!(matches!(error, WriteError::Discriminator { discriminator: 65536, .. }));
        assert!(matches!(refused("f:3:1\n 1: 3\n !CFGChecksum: 1\n"), WriteError::Kind { .. }));
        assert!(matches!(refused("7:3:1\n 1: 3\n"), WriteError::Kind { .. }));
        assert!(matches!(refused(".f:3:1\n 1: 3\n"), WriteError::Name { .. }));
    }

    #[test]
    fn cut_off_data_are_errors_at_every_byte() {
        for version in [Version::Gcc12, Version::Gcc16] {
            let whole = written(TEXT, version);
            let functions_end = whole.len() - 12 - 8 - 12 * 128;
            for length in 0..functions_end {
                assert!(read(&whole[..length]).is_err(), "{length}");
            }
            assert!(read(&whole[..functions_end]).is_ok());
        }
    }

    #[test]
    fn damage_is_told_from_data() {
        let whole = written(TEXT, Version::Gcc12);
        let with = |at: usize, word: u32| {
            let mut damaged = whole.clone();
            damaged[at..at + 4].copy_from_slice(&word.to_le_bytes());
            read(&damaged)
        };
        assert!(matches!(with(0, 1), Err(ReadError::UnknownFormat)));
        assert!(matches!(with(4, 4), Err(ReadError::Version { version: 4, .. })));
        assert!(matches!(with(12, 1), Err(ReadError::Malformed { .. })));
        assert!(matches!(with(20, u32::MAX), Err(ReadError::Truncated { .. })));
        assert!(matches!(with(24, u32::MAX), Err(ReadError::Truncated { .. })));
    }
}
