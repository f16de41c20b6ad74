use crate::{Format, Profile, ReadError, ext_binary, gcov, text};

/// Reads a profile in whichever form it is.
pub fn read(bytes: &[u8]) -> Result<(Profile, Format), ReadError> {
    if gcov::is_gcov(bytes) {
        Ok((gcov::read(bytes)?, Format::Gcov))
    } else if let Some(format) = ext_binary::format_of(bytes) {
        Ok((ext_binary::read(bytes)?, format))
    } else if text::is_text(bytes) {
        Ok((text::read(bytes)?, Format::Text))
    } else {
        Err(foreign(bytes))
    }
}

/// What begins otherwise than a profile, and what makes one of it.
const FOREIGN: [(&[u8], &str); 8] = [
    (b"\x1f\x8b", "compressed with gzip: decompress it with `gunzip` first"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it with `unzstd` first"),
    (b"\xfd7zXZ\0", "compressed with xz: decompress it with `unxz` first"),
    (b"BZh", "compressed with bzip2: decompress it with `bunzip2` first"),
    (b"PERFILE2", "a branch trace: convert it with `mepof profile convert`"),
    // LLVM's indexed form, and its raw form of 64-bit programs in either byte order.
    (b"\xfflprofi\x81", INSTRUMENTED),
    (b"\xfflprofr\x81", INSTRUMENTED),
    (b"\x81rforpl\xff", INSTRUMENTED),
];

const INSTRUMENTED: &str = "a profile of an instrumented kernel: name it NAME.profdata";

fn foreign(bytes: &[u8]) -> ReadError {
    let known = FOREIGN.iter().find(|(magic, _)| bytes.starts_with(magic));
    known.map_or(ReadError::UnknownFormat, |&(_, what)| ReadError::OtherFormat(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_made_a_profile_is_told_how() {
        for (bytes, remedy) in [
            (&b"\x1f\x8b\x08"[..], "`gunzip`"),
            (b"\x28\xb5\x2f\xfd", "`unzstd`"),
            (b"PERFILE2h", "`mepof profile convert`"),
            (b"\xfflprofi\x81\x0c", "NAME.profdata"),
            (b"\x81rforpl\xff\x0a", "NAME.profdata"),
            (b"[main:3 @ f]:9:1\n 0: 6\n", "--convert-sample-profile-layout=nest"),
        ] {
            let told = read(bytes).unwrap_err().to_string();
            assert!(told.contains(remedy) && !told.contains('\n'), "{told}");
        }
    }
}
