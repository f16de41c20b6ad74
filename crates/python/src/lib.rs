//! The profile engine for Python: the module `mepof._engine`.
//!
//! Thin on purpose. What the functions do is in the crates that they call; here are only the
//! types that cross, the errors (`mepof.errors`), outputs that are whole or not there, and work
//! that can be interrupted. Results are JSON documents: they go to a terminal or to a file, and
//! Python's side types what it looks at.

mod convert;
mod fault;
mod formats;
mod heat;
mod output;
mod profiles;
mod reading;
mod work;

use pyo3::prelude::*;
use serde::Serialize;

use crate::fault::Fault;

/// The result of some work as a JSON document.
fn document<T: Serialize>(outcome: Result<T, Fault>) -> PyResult<String> {
    let value = outcome?;
    Ok(serde_json::to_string(&value).map_err(Fault::work)?)
}

/// The compiled part of mepof; `_engine.pyi` describes it.
#[pymodule]
mod _engine {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use mepof_convert::{Locations, ProfileOptions};
    use mepof_trace::Cause;
    use mepof_trace::input::Format;
    use mepof_trace::probe;
    use pyo3::prelude::*;

    use crate::convert::{Conversion, INFERENCES};
    use crate::fault::Fault;
    use crate::formats::Writer;
    use crate::heat::{self, Drawing, Picture};
    use crate::reading::{Records, SPACES};
    use crate::{document, formats, profiles, work};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("INPUT_FORMATS", Format::ALL.map(Format::name))?;
        module.add("OUTPUT_FORMATS", formats::names().collect::<Vec<_>>())?;
        module.add("PROFILE_FORMATS", formats::profile_names().collect::<Vec<_>>())?;
        let causes = Cause::ALL.map(|cause| (cause.name(), cause.explanation()));
        module.add("CAUSES", BTreeMap::from(causes))
    }

    /// What `name` stands for, or an error that lists what there is.
    fn named<T>(
        what: &str,
        name: &str,
        found: Option<T>,
        known: impl Iterator<Item = &'static str>,
    ) -> Result<T, Fault> {
        found.ok_or_else(|| {
            let known: Vec<&str> = known.collect();
            Fault::Input(format!("unknown {what} `{name}` (known: {})", known.join(", ")))
        })
    }

    /// A branch trace, and the binaries that ran.
    #[pyclass(frozen)]
    struct Recording {
        records: Records,
        on_progress: Option<Py<PyAny>>,
    }

    #[pymethods]
    impl Recording {
        #[new]
        #[pyo3(signature = (
            binary, inputs, *, names=Vec::new(), input_format=None, modules=Vec::new(), kallsyms=None,
            space="kernel", events=Vec::new(), on_progress=None
        ))]
        #[allow(clippy::too_many_arguments)] // Python calls it by keywords
        fn new(
            binary: PathBuf,
            inputs: Vec<PathBuf>,
            names: Vec<PathBuf>,
            input_format: Option<&str>,
            modules: Vec<PathBuf>,
            kallsyms: Option<PathBuf>,
            space: &str,
            events: Vec<String>,
            on_progress: Option<Py<PyAny>>,
        ) -> PyResult<Self> {
            let formats = || Format::ALL.into_iter().map(Format::name);
            let format = input_format
                .map(|name| named("input format", name, name.parse().ok(), formats()))
                .transpose()?;
            let spaces = || SPACES.into_iter();
            let found = spaces().find(|(known, _)| *known == space).map(|(_, space)| space);
            let space = named("space", space, found, spaces().map(|(name, _)| name))?;
            let records =
                Records { binary, modules, inputs, names, format, kallsyms, space, events };
            Ok(Self { records, on_progress })
        }
    }

    #[pyfunction]
    #[pyo3(signature = (recording, to, output, *, lines=false, infer="single", md5_names=false, symbol_list=false, path_cloning=false, allow_poor=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn convert(
        py: Python<'_>,
        recording: &Bound<'_, Recording>,
        to: &str,
        output: PathBuf,
        lines: bool,
        infer: &str,
        md5_names: bool,
        symbol_list: bool,
        path_cloning: bool,
        allow_poor: bool,
    ) -> PyResult<String> {
        let format = named("format", to, formats::named(to), formats::names())?;
        let locations = if lines { Locations::Lines } else { Locations::Best };
        let found = INFERENCES.iter().find(|(known, _)| *known == infer).map(|&(_, infer)| infer);
        let inference = named("inference", infer, found, INFERENCES.iter().map(|&(name, _)| name))?;
        let options = ProfileOptions { locations, inference, symbol_list };
        let conversion =
            Conversion { format, output, options, md5_names, path_cloning, allow_poor };
        let Recording { records, on_progress } = recording.get();
        let tell = on_progress.as_ref().map(|tell| tell.bind(py));
        document(work::run(py, tell, |cancelled, progress| {
            crate::convert::convert(records, &conversion, cancelled, progress)
        })?)
    }

    #[pyfunction]
    #[pyo3(signature = (recording, output, *, form, rows, section=None))]
    fn heatmap(
        py: Python<'_>,
        recording: &Bound<'_, Recording>,
        output: PathBuf,
        form: &str,
        rows: usize,
        section: Option<String>,
    ) -> PyResult<String> {
        let found = Picture::ALL.into_iter().find(|(name, _)| *name == form);
        let names = Picture::ALL.into_iter().map(|(name, _)| name);
        let picture = named("picture", form, found.map(|(_, picture)| picture), names)?;
        let drawing = Drawing { picture, output, rows, section };
        let Recording { records, on_progress } = recording.get();
        let tell = on_progress.as_ref().map(|tell| tell.bind(py));
        document(work::run(py, tell, |cancelled, progress| {
            heat::heatmap(records, &drawing, cancelled, progress)
        })?)
    }

    #[pyfunction]
    #[pyo3(signature = (profile, new, old))]
    fn drift(
        py: Python<'_>,
        profile: PathBuf,
        new: PathBuf,
        old: Option<PathBuf>,
    ) -> PyResult<String> {
        document(work::run(py, None, |_, _| profiles::drifted(&profile, &new, old.as_deref()))?)
    }

    #[pyfunction]
    #[pyo3(signature = (weighted, output, format, *, names=Vec::new(), like=None))]
    fn merge(
        py: Python<'_>,
        weighted: Vec<(PathBuf, u64)>,
        output: PathBuf,
        format: &str,
        names: Vec<String>,
        like: Option<PathBuf>,
    ) -> PyResult<String> {
        let writer = formats::named(format).and_then(|format| match format.writer {
            Writer::Profile(write) => Some(write),
            _ => None,
        });
        let write = named("format", format, writer, formats::profile_names())?;
        document(work::run(py, None, |cancelled, _| {
            profiles::merge(&weighted, &names, &output, write, like.as_deref(), cancelled)
        })?)
    }

    #[pyfunction]
    fn conflicts(py: Python<'_>, like: PathBuf, other: PathBuf) -> PyResult<String> {
        document(work::run(py, None, |_, _| profiles::conflicts(&like, &other))?)
    }

    #[pyfunction]
    fn compare(py: Python<'_>, base: PathBuf, test: PathBuf, limit: usize) -> PyResult<String> {
        document(work::run(py, None, |_, _| profiles::compared(&base, &test, limit))?)
    }

    #[pyfunction]
    fn trace_format(py: Python<'_>, path: PathBuf) -> PyResult<String> {
        Ok(work::run(py, None, |stop, _| Ok::<_, Fault>(probe(&path, stop)?.to_string()))??)
    }

    #[pyfunction]
    fn show(py: Python<'_>, profile: PathBuf, functions: usize, lines: usize) -> PyResult<String> {
        document(work::run(py, None, |_, _| profiles::show(&profile, functions, lines))?)
    }
    #[pyfunction]
    fn prune(py: Python<'_>, text: &[u8]) -> Option<Vec<u8>> {
        py.detach(|| mepof_prune::prune(text))
    }
}
