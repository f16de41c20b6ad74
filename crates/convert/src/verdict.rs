//! Whether a conversion's data can be trusted, and why not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mepof_trace::Tally;
use serde::Serialize;

use crate::Subject;

/// Below this expected overlap with a profile of infinitely many samples, more samples are worth
/// branch_trace.
const MIN_OVERLAP: f64 = 0.80;
/// Above this share of branches from instructions that are not branches, the binary is another one:
/// interrupts and exceptions make up a few per mille of a kernel's branches.
pub(crate) const MAX_IMPOSSIBLE: f64 = 0.10;
/// Above this share of executed code without debug information, the profile says little.
const MAX_UNMAPPED: f64 = 0.50;

/// Whether a profile is worth building a kernel with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quality {
    /// There is no reason against it.
    Good,
    /// There is at least one reason against it.
    Poor,
}

/// What is wrong with data that can be read.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Reason {
    /// The build-ids differ.
    #[error(
        "the input was recorded {ran} with build-id {traced}, but {binary} has {given}; give \
         {file} of the exact build that ran", ran = subject.ran(), file = subject.file()
    )]
    OtherBuild {
        /// The build-id in the input.
        traced: String,
        /// The binary's file.
        binary: PathBuf,
        /// The binary's build-id.
        given: String,
        /// What the binary is.
        subject: Subject,
    },
    /// Addresses are not where the binary has branches.
    #[error(
        "{percent:.0} % of the recorded branches come from instructions that are not branches in \
         {binary}; give {file} of the exact build that ran{location}", file = subject.file(),
        location = subject.or_place()
    )]
    ImpossibleBranches {
        /// The binary's file.
        binary: PathBuf,
        /// The share of branches.
        percent: f64,
        /// What the binary is.
        subject: Subject,
    },
    /// Hardly anything was recorded.
    #[error(
        "{samples} samples: recording the same work again would overlap by only about \
         {overlap_percent:.0} %; record {factor:.0} times as long, or at a shorter period"
    )]
    TooFewSamples {
        /// Samples used.
        samples: u64,
        /// See [`Verdict::expected_overlap_percent`].
        overlap_percent: f64,
        /// How many times as many samples would do.
        factor: f64,
    },
    /// The branch filter kept only some kinds of branches, and of no range is known that it ran.
    #[error(
        "the branch filter kept only some kinds of branches, so nothing is known of the code \
         between them; record with `-j any,k`, or `-j any,u` for a program"
    )]
    FilteredBranches,
    /// Executed code has no debug information.
    #[error(
        "{percent:.0} % of what ran has no debug lines in {binary}; build with {flags}",
        flags = subject.with_lines()
    )]
    UnmappedCode {
        /// The binary's file.
        binary: PathBuf,
        /// The share of executed bytes.
        percent: f64,
        /// What the binary is.
        subject: Subject,
    },
    /// Executed code has no pseudo probes.
    #[error(
        "{percent:.0} % of what ran has no pseudo probes in {binary}; build all of it with \
         -fpseudo-probe-for-profiling, or use debug lines (--lines)"
    )]
    UnprobedCode {
        /// The binary's file.
        binary: PathBuf,
        /// The share of executed bytes.
        percent: f64,
    },
}

/// What happened to records of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// All of them.
    pub read: u64,
    /// Those that the profile rests on.
    pub used: u64,
    /// The others, by the name of the cause.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl From<&Tally> for Count {
    fn from(tally: &Tally) -> Self {
        let dropped = tally.dropped().map(|(cause, count)| (cause.name(), count)).collect();
        Self { read: tally.read(), used: tally.used, dropped }
    }
}

/// One input.
#[derive(Clone, Debug, Serialize)]
pub struct InputVerdict {
    /// The file.
    pub path: PathBuf,
    /// What it was.
    pub format: String,
    /// The CPU, where the input says.
    pub cpu: Option<String>,
    /// The kernel's release, where the input says.
    pub kernel_release: Option<String>,
    /// The events.
    pub events: Vec<String>,
    /// Samples, or aggregated lines.
    pub samples: Count,
    /// Entries of branch stacks.
    pub entries: Count,
    /// Notes on it.
    pub notes: Vec<String>,
}

/// How the input's and the binary's build-ids compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildIdMatch {
    /// They are the same.
    Same,
    /// They differ.
    Different,
    /// One of them is not known.
    Unknown,
}

impl BuildIdMatch {
    /// That of two inputs together.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Different, _) | (_, Self::Different) => Self::Different,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Same, Self::Same) => Self::Same,
        }
    }
}

/// One binary.
#[derive(Clone, Debug, Serialize)]
pub struct BinaryVerdict {
    /// The file.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: Option<String>,
    /// Whether the inputs come from this exact build.
    pub build_id_match: BuildIdMatch,
    /// Branches with a side in the binary; and those outside of it.
    pub branches: Count,
    /// Fall-through ranges.
    pub ranges: Count,
    /// Share of branches whose source is not a branch instruction, in per cent: interrupts and
    /// exceptions.
    pub asynchronous_percent: f64,
    /// Branches whose source was moved on to the instruction that it was fused with.
    pub fused: u64,
    /// Functions of the binary.
    pub functions: u64,
    /// Functions that ran.
    pub functions_executed: u64,
    /// Bytes of code.
    pub text_bytes: u64,
    /// Bytes of code that ran.
    pub text_bytes_executed: u64,
    /// Bytes that 99 % of all executions fall on.
    pub text_bytes_hot: u64,
    /// Share of executions that fell on code with pseudo probes, or debug lines where the profile
    /// goes by these, in per cent; nothing where what was asked for needs none.
    pub mapped_percent: Option<f64>,
    /// What it is.
    #[serde(skip)]
    pub subject: Subject,
    /// Whether the profile uses its pseudo probes.
    #[serde(skip)]
    pub by_probes: bool,
}

/// What a conversion rests on, and whether that is enough.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Good or poor.
    pub quality: Quality,
    /// Why the profile is poor; empty if it is good.
    pub reasons: Vec<Reason>,
    /// The inputs, in the order given.
    pub inputs: Vec<InputVerdict>,
    /// The binaries, in the order given.
    pub binaries: Vec<BinaryVerdict>,
    /// Notes on the whole.
    pub notes: Vec<String>,
    /// By how much the profile is expected to overlap with one of infinitely many samples of the
    /// same work, function by function, in per cent; 100 for an exact branch trace. With shares p_i
    /// of n samples this is 1 - 1/2 sum_i sqrt(2 p_i (1 - p_i) / (pi n)): the mean absolute
    /// deviation of a binomial share, normally approximated.
    pub expected_overlap_percent: f64,
}

/// See [`Verdict::expected_overlap_percent`]; a share of 1. `counts` are the functions' weights.
pub(crate) fn expected_overlap(counts: impl Iterator<Item = u64> + Clone, samples: u64) -> f64 {
    let total: f64 = counts.clone().map(|count| count as f64).sum();
    if total == 0.0 || samples == 0 {
        return 0.0;
    }
    let deviation: f64 = counts
        .map(|count| count as f64 / total)
        .map(|p| (2.0 * p * (1.0 - p) / (std::f64::consts::PI * samples as f64)).sqrt())
        .sum();
    (1.0 - deviation / 2.0).max(0.0)
}

/// Why the profile is poor. `has_gaps`: a branch filter left branches out.
pub(crate) fn reasons(
    binaries: &[BinaryVerdict],
    other_build: Option<Reason>,
    has_gaps: bool,
    overlap: Option<f64>,
    samples: u64,
) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = other_build.into_iter().collect();
    if has_gaps && binaries.iter().all(|binary| binary.ranges.read == 0) {
        reasons.push(Reason::FilteredBranches);
    }
    for binary in binaries {
        let path = || binary.path.clone();
        if binary.branches.used == 0 {
            continue;
        }
        if binary.asynchronous_percent > 100.0 * MAX_IMPOSSIBLE {
            let percent = binary.asynchronous_percent;
            let subject = binary.subject;
            reasons.push(Reason::ImpossibleBranches { binary: path(), percent, subject });
        } else if let Some(percent) = binary
            .mapped_percent
            .map(|mapped| 100.0 - mapped)
            .filter(|&unmapped| unmapped > 100.0 * MAX_UNMAPPED)
        {
            let (path, subject) = (path(), binary.subject);
            reasons.push(match binary.by_probes {
                true => Reason::UnprobedCode { binary: path, percent },
                false => Reason::UnmappedCode { binary: path, percent, subject },
            });
        }
    }
    if let Some(overlap) = overlap.filter(|&overlap| overlap < MIN_OVERLAP) {
        // The deviation shrinks with the root of the samples.
        let factor = ((1.0 - overlap) / (1.0 - MIN_OVERLAP)).powi(2).max(2.0);
        let overlap_percent = 100.0 * overlap;
        reasons.push(Reason::TooFewSamples { samples, overlap_percent, factor });
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_the_samples_halve_the_deviation() {
        let counts = [5u64, 3, 2];
        let missing = |samples| 1.0 - expected_overlap(counts.iter().copied(), samples);
        assert!((missing(100) / missing(400) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_expected_overlap_is_what_a_simulation_gives() {
        let (counts, samples, rounds) = ([50u64, 30, 15, 5], 200u64, 2000);
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % 100
        };
        let mut sum = 0.0;
        for _ in 0..rounds {
            let mut drawn = [0u64; 4];
            for _ in 0..samples {
                let mut at = random();
                let index = counts.iter().position(|&count| {
                    let inside = at < count;
                    at = at.wrapping_sub(count);
                    inside
                });
                drawn[index.unwrap()] += 1;
            }
            let shares = counts.iter().zip(drawn);
            sum += shares
                .map(|(&p, d)| (p as f64 / 100.0).min(d as f64 / samples as f64))
                .sum::<f64>();
        }
        let expected = expected_overlap(counts.iter().copied(), samples);
        assert!((sum / f64::from(rounds) - expected).abs() < 0.003, "{expected}");
    }

    #[test]
    fn nothing_recorded_overlaps_with_nothing() {
        assert_eq!(expected_overlap([].into_iter(), 10), 0.0);
        assert_eq!(expected_overlap([1].into_iter(), 0), 0.0);
    }

    #[test]
    fn the_remedy_is_for_what_was_given() {
        for (subject, named) in [
            (Subject::Kernel, "vmlinux"),
            (Subject::Module, "module"),
            (Subject::Program, "program"),
        ] {
            let (traced, given) = ("aa".to_owned(), "bb".to_owned());
            let binary = PathBuf::from("x");
            let other =
                Reason::OtherBuild { traced, binary: binary.clone(), given, subject }.to_string();
            let impossible = Reason::ImpossibleBranches { binary, percent: 50.0, subject };
            for said in [other, impossible.to_string()] {
                assert!(said.contains(&format!("give the {named}")), "{said}");
                assert_eq!(said.contains("vmlinux"), subject == Subject::Kernel, "{said}");
            }
        }
    }

    #[test]
    fn filtered_branches_without_ranges_are_poor() {
        assert_eq!(reasons(&[], None, true, None, 0), [Reason::FilteredBranches]);
        assert_eq!(reasons(&[], None, false, None, 0), []);
    }

    #[test]
    fn the_remedy_for_few_samples_says_how_many_more() {
        let reasons = reasons(&[], None, false, Some(0.6), 100);
        let [Reason::TooFewSamples { samples: 100, factor, .. }] = reasons[..] else {
            panic!("{reasons:?}");
        };
        assert!((factor - 4.0).abs() < 1e-9);
    }
}
