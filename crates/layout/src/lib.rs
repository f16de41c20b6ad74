//! Where basic blocks and functions should lie, from a trace and the binary's basic-block
//! address maps.
//!
//! The flow of the data:
//!
//! 1. [`BlockMap`] finds the block at an address.
//! 2. [`count()`] turns an [`ImageTrace`](mepof_trace::ImageTrace) into a [`ProgramGraph`]:
//!    control-flow graphs with counts, and the calls between them. Code that smooths sparse
//!    counts belongs here: the graph's fields are public, and nothing later looks at the trace.
//! 3. [`Layout::new`] copies blocks where the paths that a [`Paths`] gathered ask for it, and
//!    orders the blocks of every hot function ([`ext_tsp`]) and the functions
//!    ([`order_functions`]).
//! 4. [`propeller`] writes it for Clang and LLD. [`bolt`] writes the trace for BOLT, which
//!    does its own layout.
//!
//! Constraints that shaped this crate:
//!
//! - The outcome is a function of the input: no step depends on a hash's order or on threads.
//! - Maps and counts are hostile until proven otherwise. A function whose map contradicts
//!   itself or another is left out and counted; counts saturate.

mod block_map;
pub mod bolt;
mod clone_path;

mod count;
pub mod ext_tsp;
mod function_layout;
mod function_order;
mod graph;
mod layout;
mod options;
mod path;

pub mod propeller;
mod symbol;

pub use block_map::{BlockMap, BlockRef, MapTally};
pub use count::count;
pub use function_layout::{ClonedPath, FunctionLayout};
pub use function_order::{CallArc, HotFunction, order_functions};
pub use graph::{CallEdge, CountTally, Edge, FunctionGraph, Node, ProgramGraph};
pub use layout::Layout;
pub use options::{CloneOptions, LayoutOptions};
pub use path::{BlockPath, Paths};
pub use symbol::{FunctionSymbol, Symbols};
