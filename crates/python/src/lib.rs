//! The profile engine for Python: the module `mepof._engine`.
//!
//! Thin on purpose. What the functions do is in the crates that they call; here are only the
//! types that cross, the errors (`mepof.errors`), and work that can be interrupted.

use pyo3::prelude::*;

/// The compiled part of mepof; `_engine.pyi` describes it.
#[pymodule]
mod _engine {
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
