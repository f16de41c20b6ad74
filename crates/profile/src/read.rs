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

/// LLVM's indexed form, and its raw form of 64-bit programs in either byte order.
const COUNTS: [&[u8]; 3] = [b"\xfflprofi\x81", b"\xfflprofr\x81", b"\x81rforpl\xff"];

const INSTRUMENTED: &str =
    "a profile of an instrumented kernel: use it with `pgo`, by the name of NAME.profdata";

fn foreign(bytes: &[u8]) -> ReadError {
    let is_counts = COUNTS.iter().any(|magic| bytes.starts_with(magic));
    if is_counts { ReadError::OtherFormat(INSTRUMENTED) } else { ReadError::UnknownFormat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_made_a_profile_is_told_how() {
        for (bytes, remedy) in [
            (&b"\xfflprofi\x81\x0c"[..], "NAME.profdata"),
            (b"\x81rforpl\xff\x0a", "NAME.profdata"),
            (b"[main:3 @ f]:9:1\n 0: 6\n", "--convert-sample-profile-layout=nest"),
        ] {
            let told = read(bytes).unwrap_err().to_string();
            assert!(told.contains(remedy) && !told.contains('\n'), "{told}");
        }
    }
}
