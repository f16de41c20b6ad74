use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mepof_binary::Binary;
use mepof_trace::ImageTrace;
use mepof_trace::input::Wanted;

use crate::ConvertError;
use crate::verdict::BuildIdMatch;

/// One binary, and what ran of it.
#[derive(Debug)]
pub struct Image {
    /// The binary.
    pub binary: Binary,
    /// Its branches and ranges, of all inputs.
    pub trace: ImageTrace,
    /// Whether the inputs come from this exact build.
    pub build_id_match: BuildIdMatch,
}

impl Image {
    /// Opens `binary` and `modules`, each of which may be given once: the branches of one that is
    /// there twice would count twice.
    pub(crate) fn open_all(binary: &Path, modules: &[PathBuf]) -> Result<Vec<Self>, ConvertError> {
        let mut images = vec![Self::unread(Binary::open(binary)?)];
        for path in modules {
            let module = Binary::open(path)?;
            let mut others = images.iter().map(|image| &image.binary);
            if let Some(other) = others.find(|other| are_same(other, &module)) {
                let (other, path) = (other.path().to_owned(), path.clone());
                return Err(ConvertError::GivenTwice { path, other });
            }
            if !module.is_relocatable() {
                return Err(ConvertError::NotAModule { path: path.clone() });
            }
            images.push(Self::unread(module));
        }
        Ok(images)
    }

    fn unread(binary: Binary) -> Self {
        Self { binary, trace: ImageTrace::default(), build_id_match: BuildIdMatch::Same }
    }
}

/// `binary`, as the one to read of an input of several.
pub fn wanted(binary: &Binary) -> Wanted<'_> {
    let is_kernel = binary.symbol("_stext").or_else(|| binary.symbol("_text")).is_some();
    let program = (!is_kernel).then(|| binary.path());
    Wanted { program, build_id: binary.build_id() }
}

/// Whether both are the same file, under whatever names, or the same build.
fn are_same(one: &Binary, other: &Binary) -> bool {
    if one.build_id().is_some() && one.build_id() == other.build_id() {
        return true;
    }
    let file = |binary: &Binary| {
        let metadata = fs::metadata(binary.path()).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    file(one).is_some_and(|one| file(other) == Some(one))
}
