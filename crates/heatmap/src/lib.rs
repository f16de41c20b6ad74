//! Which code ran when: a picture of a branch trace.
//!
//! Constraints that shaped this crate:
//!
//! - The span of time and the locations of binaries are known only once an input has been read, so
//!   [`HeatCounter`] counts at run-time addresses and widens its buckets as the record grows.
//!   Its memory has a bound whatever the input, and the outcome does not depend on how the
//!   input was split among threads.
//! - [`Heatmap`] holds the counts of one binary. Numbers that are drawn come from it alone, so
//!   that the picture and the data never disagree.

mod axis;
mod canvas;
mod colour;
mod counter;
mod drawing;
mod heatmap;
mod raster;
mod svg;

pub use counter::{COLUMNS, HeatCounter};
pub use drawing::Caption;
pub use heatmap::{Heatmap, HeatmapError, HotFunction, SectionRows, TimeAxis};
pub use raster::{PngError, png};
pub use svg::svg;
