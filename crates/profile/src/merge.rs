use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::samples::{Merge, merge_into};
use crate::sum::{Addition, Sum};
use crate::{Profile, ReadError, ext_binary, read};

/// What a merged profile was made from. Callers keep it beside the profile, whose forms cannot
/// hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The profiles, in the order in which they were merged.
    pub inputs: Vec<Origin>,
}

/// A profile that went into another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What the user calls it; a path mostly.
    pub name: String,
    /// Identifies its contents: a digest of the file.
    pub id: Option<String>,
    /// By what its counts were multiplied.
    pub weight: u64,
    /// Functions in it, inlined copies aside.
    pub functions: u64,
    /// The totals of its functions together, before weighting.
    pub total: u64,
}

/// Why profiles cannot be merged or compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// They measure in different terms.
    #[error(
        "cannot merge {first} with {second}: only one of them has {what}; \
         use profiles of the same kind of build"
    )]
    Mixed {
        /// The first profile.
        first: String,
        /// The one that differs from it.
        second: String,
        /// What one has and the other not.
        what: &'static str,
    },
    /// A weight of zero.
    #[error("the weight of {name} is 0: omit the profile, or give it a weight of at least 1")]
    NoWeight {
        /// The profile.
        name: String,
    },
}

/// Why a file cannot be added to a merge.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It is not a profile.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is of another kind.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// A function that was left out of a merge in part: its control flow, by its checksum, is not
/// the one that it has in earlier profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The profile in which it differs.
    pub input: String,
    /// The function.
    pub function: String,
    /// How many copies of it, or of functions inlined into it, were left out.
    pub copies: usize,
}

/// Profiles merged into one.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// The sum.
    pub profile: Profile,
    /// What it is the sum of.
    pub provenance: Provenance,
    /// What was left out.
    pub conflicts: Vec<Conflict>,
    /// Names of inputs on which a counter reached `u64::MAX` and stayed there.
    pub saturated: Vec<String>,
}

/// Merges profiles one at a time, so that only the sum and one of them need to be in memory.
///
/// The result is what `llvm-profdata merge --sample --weighted-input=…` of LLVM 22 gives.
#[derive(Debug, Default)]
pub struct Merger {
    merged: Merged,
    symbols: BTreeSet<Arc<str>>,
    /// What was added last, unless it is in `merged` already.
    sum: Sum,
}

impl Merger {
    /// Nothing merged yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `profile`, every count multiplied by `weight`. `name` is for messages and the
    /// provenance, `id` for the latter.
    ///
    /// # Errors
    /// A weight of zero, and a profile that is of another kind than those before: with probes,
    /// flow-sensitive discriminators or MD5 names where they have not. The sum is then unchanged.
    pub fn add(
        &mut self,
        profile: &Profile,
        name: &str,
        id: Option<&str>,
        weight: u64,
    ) -> Result<(), MergeError> {
        self.flush();
        self.check(profile, name, weight)?;
        self.merged.provenance.inputs.push(Origin {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            weight,
            functions: profile.functions.len() as u64,
            total: profile.total(),
        });
        let sum = &mut self.merged;
        let mut saturated = false;
        for (function, theirs) in &profile.functions {
            let merge = merge_into(&mut sum.profile.functions, function, theirs, weight);
            saturated |= merge.overflowed;
            if merge.mismatched > 0 {
                sum.conflicts.push(Conflict {
                    input: name.to_owned(),
                    function: function.to_string(),
                    copies: merge.mismatched,
                });
            }
        }
        if saturated {
            sum.saturated.push(name.to_owned());
        }
        self.symbols.extend(profile.symbols.iter().cloned());
        Ok(())
    }

    /// Adds the profile that a file has, as [`Self::add`]. Of binaries without metadata, as fleets
    /// have them, no [`Profile`] is made, which takes a fifth of the time.
    ///
    /// # Errors
    /// As of [`Self::add`] and [`crate::read`]. The sum is then lost.
    pub fn add_file(
        mut self,
        bytes: &[u8],
        name: &str,
        id: Option<&str>,
        weight: u64,
    ) -> Result<Self, AddError> {
        if ext_binary::format_of(bytes).is_none() || ext_binary::has_metadata(bytes) {
            self.add(&read(bytes)?.0, name, id, weight)?;
            return Ok(self);
        }
        let input = self.merged.provenance.inputs.len() + 1;
        let mut addition = Addition::new(&mut self.sum, input, weight);
        let kind = ext_binary::add(bytes, &mut addition)?;
        let Addition { functions, total, merge, .. } = addition;
        self.check(&kind, name, weight)?;
        let (name, id) = (name.to_owned(), id.map(str::to_owned));
        if merge.overflowed {
            self.merged.saturated.push(name.clone());
        }
        self.merged.provenance.inputs.push(Origin { name, id, weight, functions, total });
        Ok(self)
    }

    /// Whether a profile of that kind can be added; the first one decides of what kind all are.
    fn check(&mut self, kind: &Profile, name: &str, weight: u64) -> Result<(), MergeError> {
        if weight == 0 {
            return Err(MergeError::NoWeight { name: name.to_owned() });
        }
        let sum = &mut self.merged.profile;
        if let Some(first) = self.merged.provenance.inputs.first() {
            if let Some(what) = difference(sum, kind) {
                let (first, second) = (first.name.clone(), name.to_owned());
                return Err(MergeError::Mixed { first, second, what });
            }
            sum.partial &= kind.partial;
        } else {
            sum.probe_based = kind.probe_based;
            sum.flow_sensitive = kind.flow_sensitive;
            sum.md5_names = kind.md5_names;
            sum.partial = kind.partial;
        }
        Ok(())
    }

    /// Brings what files have added into the profile.
    fn flush(&mut self) {
        if self.sum.is_empty() {
            return;
        }
        let (functions, symbols) = std::mem::take(&mut self.sum).into_parts();
        self.symbols.extend(symbols);
        let sum = &mut self.merged.profile.functions;
        if sum.is_empty() {
            *sum = functions;
            return;
        }
        let mut merge = Merge::default();
        for (name, function) in &functions {
            merge.join(merge_into(sum, name, function, 1));
        }
        if let (true, Some(last)) = (merge.overflowed, self.merged.provenance.inputs.last()) {
            self.merged.saturated.push(last.name.clone());
        }
    }

    /// What was left out so far.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.merged.conflicts
    }

    /// The sum.
    pub fn finish(mut self) -> Merged {
        self.flush();
        self.merged.profile.symbols = self.symbols.into_iter().collect();
        self.merged
    }
}

/// What one of two profiles has and the other not, so that their counts do not belong together.
pub(crate) fn difference(a: &Profile, b: &Profile) -> Option<&'static str> {
    [
        (a.probe_based != b.probe_based, "pseudo probes"),
        (a.flow_sensitive != b.flow_sensitive, "flow-sensitive discriminators"),
        (a.md5_names != b.md5_names, "MD5 names"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LineLocation, text};

    fn profile(text: &str) -> Profile {
        text::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn counts_are_weighted_and_origins_kept() {
        let mut merger = Merger::new();
        merger.add(&profile("f:5:1\n 1: 5 g:2\n"), "a", Some("sha256:1"), 3).unwrap();
        merger.add(&profile("f:2:1\n 1: 2\nh:1:0\n 1: 1\n"), "b", None, 1).unwrap();
        let merged = merger.finish();
        let function = &merged.profile.functions["f"];
        assert_eq!((function.total, function.head), (17, 4));
        assert_eq!(function.body[&LineLocation::new(1, 0)].targets["g"], 6);
        let origin = |name: &str, id: Option<&str>, weight, functions, total| Origin {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            weight,
            functions,
            total,
        };
        let inputs = vec![origin("a", Some("sha256:1"), 3, 1, 5), origin("b", None, 1, 2, 3)];
        assert_eq!(merged.provenance.inputs, inputs);
        assert!(merged.saturated.is_empty() && merged.conflicts.is_empty());
        let stored = serde_json::to_string(&merged.provenance).unwrap();
        assert_eq!(serde_json::from_str::<Provenance>(&stored).unwrap(), merged.provenance);
    }

    #[test]
    fn counters_stay_at_their_greatest() {
        let mut merger = Merger::new();
        merger.add(&profile("f:5:1\n 1: 5\n"), "a", None, u64::MAX).unwrap();
        let merged = merger.finish();
        assert_eq!(merged.profile.functions["f"].total, u64::MAX);
        assert_eq!(merged.profile.functions["f"].head, u64::MAX);
        assert_eq!(merged.saturated, ["a"]);
    }

    #[test]
    fn kinds_do_not_mix() {
        let probes = profile("f:5:1\n 1: 5\n !CFGChecksum: 3\n");
        let lines = profile("f:5:1\n 1: 5\n");
        let mut merger = Merger::new();
        merger.add(&lines, "lines.txt", None, 1).unwrap();
        let error = merger.add(&probes, "probes.txt", None, 1).unwrap_err().to_string();
        assert!(error.contains("lines.txt") && error.contains("probes.txt"), "{error}");
        assert!(error.contains("pseudo probes"), "{error}");
        for other in [
            Profile { flow_sensitive: true, ..lines.clone() },
            Profile { md5_names: true, ..lines.clone() },
        ] {
            assert!(matches!(merger.add(&other, "other", None, 1), Err(MergeError::Mixed { .. })));
        }
        assert!(matches!(merger.add(&lines, "x", None, 0), Err(MergeError::NoWeight { .. })));
        assert_eq!(merger.finish().profile, lines);
    }

    #[test]
    fn functions_of_another_control_flow_are_left_out() {
        let mut merger = Merger::new();
        let nested = |checksum| {
            format!("f:5:1\n 1: 5\n 2: g:3\n  1: 3\n  !CFGChecksum: {checksum}\n !CFGChecksum: 1\n")
        };
        merger.add(&profile(&nested(7)), "a", None, 1).unwrap();
        merger.add(&profile(&nested(8)), "b", None, 1).unwrap();
        merger.add(&profile("f:9:1\n 1: 9\n !CFGChecksum: 2\n"), "c", None, 1).unwrap();
        let merged = merger.finish();
        let function = &merged.profile.functions["f"];
        assert_eq!(function.total, 10);
        assert_eq!(function.inlined[&LineLocation::new(2, 0)]["g"].total, 3);
        let conflicts: Vec<_> =
            merged.conflicts.iter().map(|c| (c.input.as_str(), c.function.as_str())).collect();
        assert_eq!(conflicts, [("b", "f"), ("c", "f")]);
    }
}
