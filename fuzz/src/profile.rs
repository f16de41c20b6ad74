//! What the fuzz targets for profiles share.

use mepof_profile::{Merger, Profile, Statistics, compare, ext_binary, gcov, text};

/// Does with a profile that was read all that can be done with one.
///
/// # Panics
/// If the extensible binary, which can hold every profile, does not bring it back.
pub fn work_with(profile: &Profile) {
    let mut out = Vec::new();
    if ext_binary::write(profile, ext_binary::Options::default(), &mut out).is_ok() {
        let again = ext_binary::read(&out).unwrap();
        assert_eq!(again.functions, profile.functions);
    }
    let mut out = Vec::new();
    if text::write(profile, &mut out).is_ok() {
        // Names are whatever the input says: not all can be separated from the text around them.
        let _ = text::read(&out);
    }
    let mut out = Vec::new();
    if gcov::write(profile, gcov::Version::default(), &mut out).is_ok() {
        gcov::read(&out).unwrap();
    }
    let mut merger = Merger::new();
    merger.add(profile, "twice", None, 2).unwrap();
    if let Ok(comparison) = compare(profile, &merger.finish().profile, 9) {
        assert!((0.0..=1.0).contains(&comparison.flow_overlap), "{comparison:?}");
    }
    let _ = Statistics::of(profile);
}
