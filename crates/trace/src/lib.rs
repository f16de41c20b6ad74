//! Branch traces of every kind, read as one stream.
//!
//! Constraints that shaped this crate:
//!
//! - An input may be larger than memory, so readers push what they read into a [`Sink`] and
//!   keep nothing; [`Aggregate`] grows with the number of distinct branches only.
//! - An input is hostile until proven otherwise: every reader returns [`TraceError`] and
//!   none panics.
//! - Nothing is dropped in silence: a reader counts in a [`Tally`] what it read, what it
//!   used, and what it dropped by [`Cause`].
//! - Readers need no binary. Addresses stay as the CPU saw them; what the input knows about
//!   where binaries ran is in [`Facts`], and [`place()`] brings an aggregate and a binary
//!   together.

mod aggregate;
mod error;
mod facts;
mod image_trace;
pub mod input;
mod kallsyms;
mod locate;
pub mod output;
mod pair_counts;
mod probe;
mod record;
mod recorder_trace;
mod tally;

pub use aggregate::Aggregate;
pub use error::{TraceError, reason};
pub use facts::{Addressing, Event, Facts, Mapping, Space, TracedImage};
pub use image_trace::{Branch, FallThrough, ImageTrace, map_to_image};
pub use kallsyms::{module_symbols, read_kallsyms};
pub use locate::{BinaryFacts, BinaryKind, CodeSection, Hints, LocateError, Located, locate};
pub use probe::probe;
pub use record::{BranchEntry, BranchKind, OTHER_SIDE, Sample, Sink, Speculation};
pub use tally::{Cause, Tally};
