use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{FunctionProfile, Profile};

/// Drops functions whose total is below `threshold`, as `llvm-profgen --trim-cold-profile` does
/// with the summary's [cold threshold](crate::Summary::cold_threshold). Says how many went.
pub fn trim_cold(profile: &mut Profile, threshold: u64) -> usize {
    let before = profile.functions.len();
    profile.functions.retain(|_, function| function.total >= threshold);
    before - profile.functions.len()
}

/// Compilers make these for every unit, all by the same name once its suffix is cut off.
const AMBIGUOUS: [&str; 2] = ["__cxx_global_var_init", "__tls_init"];

/// Drops functions, inlined copies too, whose name stands for a different function in each unit,
/// so that their samples would be a mix (`llvm-profgen`'s `filterAmbiguousProfile`).
///
/// What they were inlined into keeps its total, as in LLVM. Says how many went.
pub fn filter_ambiguous(profile: &mut Profile) -> usize {
    filter(&mut profile.functions)
}

fn filter(functions: &mut BTreeMap<Arc<str>, FunctionProfile>) -> usize {
    let before = functions.len();
    functions.retain(|name, _| !AMBIGUOUS.iter().any(|prefix| name.starts_with(prefix)));
    let mut dropped = before - functions.len();
    for function in functions.values_mut() {
        dropped += function.inlined.values_mut().map(filter).sum::<usize>();
        function.inlined.retain(|_, callees| !callees.is_empty());
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn functions_below_the_threshold_go() {
        let mut profile = text::read(b"f:10:0\n 1: 1\ng:9:0\n 1: 1\n").unwrap();
        assert_eq!(trim_cold(&mut profile, 10), 1);
        assert_eq!(profile.functions.keys().map(AsRef::as_ref).collect::<Vec<&str>>(), ["f"]);
    }

    #[test]
    fn ambiguous_functions_go_wherever_they_are() {
        let text = "f:10:0\n 1: g:5\n  1: __tls_init:5\n 2: __cxx_global_var_init.3:2\n  1: 2\n\
                    __tls_init:3:1\n 1: 3\n";
        let mut profile = text::read(text.as_bytes()).unwrap();
        assert_eq!(filter_ambiguous(&mut profile), 3);
        let mut left = Vec::new();
        text::write(&profile, &mut left).unwrap();
        assert_eq!(String::from_utf8(left).unwrap(), "f:10:0\n 1: g:5\n");
    }
}
