//! Split debug information: `.dwo` files and `.dwp` packages.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gimli::{Dwarf, DwarfPackage, DwarfPackageSections, EndianSlice, Unit};

use super::section::{self, Reader, Sections};
use crate::{Binary, BinaryError};

pub type PackageSections<'d> = DwarfPackageSections<Cow<'d, [u8]>>;

/// Opens the package at `path`, or the one beside `binary` if there is one.
pub fn open_package(binary: &Binary, path: Option<&Path>) -> Result<Option<Binary>, BinaryError> {
    if let Some(path) = path {
        return Binary::open(path).map(Some);
    }
    let mut beside: OsString = binary.path().as_os_str().to_owned();
    beside.push(".dwp");
    Ok(Binary::open(Path::new(&beside)).ok())
}

/// The sections of a package.
pub fn package_sections(package: &Binary) -> Result<PackageSections<'_>, BinaryError> {
    let mut failed = None;
    let sections = PackageSections::load(|id| {
        section::read(package, id.dwo_name().unwrap_or_else(|| id.name())).or_else(|error| {
            failed = Some(error);
            Ok::<_, gimli::Error>(Cow::Borrowed(&[][..]))
        })
    });
    match (failed, sections) {
        (Some(error), _) => Err(error),
        (None, sections) => sections.map_err(|error| damaged(package, error)),
    }
}

fn damaged(package: &Binary, error: gimli::Error) -> BinaryError {
    BinaryError::Corrupt {
        path: package.path().to_owned(),
        section: "the package's index".to_owned(),
        what: error.to_string(),
    }
}

/// A view of a package's sections.
pub fn view<'a>(
    package: &Binary,
    sections: &'a PackageSections<'_>,
) -> Result<DwarfPackage<Reader<'a>>, BinaryError> {
    let endian = section::endian(package);
    sections
        .borrow(|data| EndianSlice::new(data, endian), EndianSlice::new(&[], endian))
        .map_err(|error| damaged(package, error))
}

/// The `.dwo` file that a skeleton unit names, looked for where it was made and beside the
/// binary.
pub fn dwo_file(
    binary: &Binary,
    dwarf: &Dwarf<Reader<'_>>,
    skeleton: &Unit<Reader<'_>>,
) -> Option<Binary> {
    let name = dwarf.attr_string(skeleton, skeleton.dwo_name().ok()??).ok()?;
    let name = Path::new(OsStr::from_bytes(name.slice()));
    let directory = skeleton.comp_dir.map(|directory| OsStr::from_bytes(directory.slice()));
    let made: PathBuf = directory.map(Path::new).unwrap_or(Path::new("")).join(name);
    let beside = binary.path().parent().unwrap_or(Path::new(""));
    let file_name = name.file_name()?;
    [made, beside.join(name), beside.join(file_name)]
        .iter()
        .find_map(|path| Binary::open(path).ok())
}

/// The sections of a `.dwo` file.
pub fn dwo_sections(dwo: &Binary) -> Result<Sections<'_>, BinaryError> {
    Sections::load(|id| match id.dwo_name() {
        Some(name) => section::read(dwo, name),
        None => Ok(Cow::Borrowed(&[][..])),
    })
}
