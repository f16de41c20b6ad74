//! What this crate reads, against what LLVM's own tools say of the same files.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)] // it is a test throughout

mod bb_address_map;
mod instructions;
mod llvm;
mod pseudo_probe;
