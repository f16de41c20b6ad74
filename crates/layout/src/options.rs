use std::ops::Range;

use mepof_address::ImageAddress;

use crate::ext_tsp::{Limits, Score};

/// When blocks are copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloneOptions {
    /// The lowest gain of a path, as a share of the function's score.
    pub min_gain: f64,
    /// What a copied byte must gain, as a share of what a hot byte of the function scores.
    pub byte_worth: f64,
    /// The most paths that are copied in a function.
    pub paths: usize,
    /// The most paths that are tried in a function, the hottest first.
    pub tries: usize,
}

impl Default for CloneOptions {
    fn default() -> Self {
        Self { min_gain: 0.02, byte_worth: 0.5, paths: 4, tries: 8 }
    }
}

/// How to lay out a program.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutOptions {
    /// Blocks that ran less often are cold. At least 1.
    pub hot_count: u64,
    /// Blocks at a function's end that together are less dense than this share of the function
    /// become a section of their own, which lies behind the hot sections. `None` keeps a
    /// function's hot blocks in one section, which is what objtool expects of a kernel.
    pub warm_density: Option<f64>,
    /// What jumps are worth.
    pub score: Score,
    /// What bounds the work on one function.
    pub limits: Limits,
    /// When blocks are copied, if there are paths to go by.
    pub clones: CloneOptions,
    /// Parts of the image that the linker keeps apart: a call from one into another has no say
    /// in the order of functions. Empty if there is only one.
    pub regions: Vec<Range<ImageAddress>>,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self {
            hot_count: 1,
            warm_density: None,
            score: Score::default(),
            limits: Limits::default(),
            clones: CloneOptions::default(),
            regions: Vec::new(),
        }
    }
}
