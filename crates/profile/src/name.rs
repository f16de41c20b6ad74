/// What to cut off a symbol's name, as the function attribute
/// `sample-profile-suffix-elision-policy` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuffixElision {
    /// Everything from the first dot on.
    All,
    /// The suffixes that LLVM's passes append to a copy: `.llvm.N` of promotion, `.part.N` of
    /// partial inlining and, unless the profile has it, `.__uniq.N`.
    #[default]
    Selected,
    /// Nothing.
    None,
}

/// The suffixes, outermost first: one that is appended later stands earlier.
const SELECTED: [&str; 3] = [".llvm.", ".part.", UNIQUE_SUFFIX];

/// Marks a local symbol's name as made unique by `-funique-internal-linkage-names`.
pub const UNIQUE_SUFFIX: &str = ".__uniq.";

/// The name that a profile has for the symbol `name`: LLVM's
/// `FunctionSamples::getCanonicalFnName`.
///
/// `keeps_unique` says that names in the profile have their `.__uniq.N` suffix, which then stays;
/// `llvm-profgen` makes profiles that way, and it is the default of the compiler.
pub fn canonical_name(name: &str, elision: SuffixElision, keeps_unique: bool) -> &str {
    match elision {
        SuffixElision::All => name.split_once('.').map_or(name, |(stem, _)| stem),
        SuffixElision::None => name,
        SuffixElision::Selected => SELECTED.iter().fold(name, |name, &suffix| {
            if suffix == UNIQUE_SUFFIX && keeps_unique {
                return name;
            }
            match name.rsplit_once(suffix) {
                // Only as the last part: what follows is the number alone.
                Some((stem, number)) if !number.contains('.') => stem,
                _ => name,
            }
        }),
    }
}

/// The 64-bit hash that stands for a function's name in profiles with MD5 names: the low half of
/// its MD5 digest, little endian (LLVM's `MD5Hash`).
pub fn guid(name: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = md5::compute(name).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The GUID that `name` is the decimal of, in the one form that LLVM writes.
pub(crate) fn parse_guid(name: &str) -> Option<u64> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit())
        && (name.len() == 1 || !name.starts_with('0'));
    if plain { name.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_suffixes_are_cut_off_from_the_end() {
        let selected = |name| canonical_name(name, SuffixElision::Selected, true);
        assert_eq!(selected("foo"), "foo");
        assert_eq!(selected("foo.llvm.123"), "foo");
        assert_eq!(selected("foo.part.0.llvm.123"), "foo");
        assert_eq!(selected("foo.part.0"), "foo");
        assert_eq!(selected("foo.isra.0"), "foo.isra.0");
        assert_eq!(selected("foo.part.0.cold"), "foo.part.0.cold");
        assert_eq!(selected("foo.llvm.1.part.2"), "foo.llvm.1");
        assert_eq!(selected("foo.__uniq.55.llvm.9"), "foo.__uniq.55");
        assert_eq!(selected(".llvm."), "");
    }

    #[test]
    fn the_unique_suffix_goes_if_the_profile_has_none() {
        let name = "foo.__uniq.55.part.1.llvm.9";
        assert_eq!(canonical_name(name, SuffixElision::Selected, false), "foo");
        assert_eq!(canonical_name(name, SuffixElision::Selected, true), "foo.__uniq.55");
    }

    #[test]
    fn the_other_policies_cut_all_or_nothing() {
        assert_eq!(canonical_name("foo.isra.0.cold", SuffixElision::All, true), "foo");
        assert_eq!(canonical_name("foo.llvm.1", SuffixElision::None, true), "foo.llvm.1");
    }

    #[test]
    fn a_guid_is_the_low_half_of_the_digest() {
        // `llvm-profdata merge --sample --extbinary --use-md5` writes this for `main`.
        assert_eq!(guid("main"), 15822663052811949562);
        assert_eq!(guid(""), u64::from_le_bytes([0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0, 0xb2, 0x04]));
    }

    #[test]
    fn only_plain_decimals_are_guids() {
        assert_eq!(parse_guid("0"), Some(0));
        assert_eq!(parse_guid("18446744073709551615"), Some(u64::MAX));
        for name in ["", "00", "01", "+1", "18446744073709551616", "1a"] {
            assert_eq!(parse_guid(name), None, "{name}");
        }
    }
}
