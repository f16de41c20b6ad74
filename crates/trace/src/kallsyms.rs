//! Copies of /proc/kallsyms.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use mepof_address::RuntimeAddress;

use crate::TraceError;
use crate::input::compression;
use crate::input::perf_data::module_name;

/// Bytes that are read: it has a few megabytes, and more is something else.
const MAX_BYTES: u64 = 64 << 20;

/// The text of the copy of /proc/kallsyms at `path`.
///
/// # Errors
/// [`TraceError::Io`], and [`TraceError::NotKallsyms`] if it has not a single symbol.
pub fn read_kallsyms(path: &Path) -> Result<String, TraceError> {
    let io = |source| TraceError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(io)?;
    // Names are bytes of any kind.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.lines().any(|line| symbol(line).is_some()) {
        return Ok(text);
    }
    let found = match compression(&bytes) {
        Some(found) => found,
        None if bytes.is_empty() => "this is empty",
        None if bytes.contains(&0) => "this is binary data",
        None => "this text has no lines such as `ffffffff81000000 T _text`",
    };
    Err(TraceError::NotKallsyms { path: path.to_owned(), found: found.to_owned() })
}

/// Address and name, from a line such as `ffffffff81000000 T _stext`.
pub(crate) fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_type = words.next()?.len() == 1;
    words.next().filter(|_| is_type).map(|name| (address, name))
}

/// Where the symbols of the module in the file `path` were, by a copy of /proc/kallsyms, from
/// lines such as `ffffffffc0a00000 t nft_init\t[nf_tables]`. Those that are hidden are left out.
pub fn module_symbols<'a>(
    kallsyms: &'a str,
    path: &Path,
) -> impl Iterator<Item = (RuntimeAddress, &'a str)> {
    let module = module_name(&path.to_string_lossy());
    let of_module = kallsyms.lines().filter(move |line| {
        let name = line.trim_ascii_end().strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        name.is_some_and(|(_, name)| module.as_deref() == Some(name))
    });
    let symbols = of_module.filter_map(symbol).filter(|&(address, _)| address != 0);
    symbols.map(|(address, name)| (RuntimeAddress(address), name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_copy_of_kallsyms_is_told_apart() {
        let path = std::env::temp_dir().join(format!("mepof-kallsyms-{}", std::process::id()));
        for (contents, what) in [
            (&b""[..], "empty"),
            (b"\x1f\x8b\x08\0rest", "gunzip"),
            (b"\x28\xb5\x2f\xfdrest", "unzstd"),
            (b"\x7fELF\x02\0", "binary data"),
            (b"add the numbers\n", "no lines such as"),
        ] {
            fs::write(&path, contents).unwrap();
            let said = read_kallsyms(&path).unwrap_err().to_string();
            assert!(said.starts_with(&path.display().to_string()), "{said}");
            assert!(said.contains("/proc/kallsyms") && said.contains(what), "{said}");
        }
        for text in ["0000000000000000 T _text\r\n", "\nffffffff81000000 t f\t[m]\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(read_kallsyms(&path).unwrap(), text);
        }
        fs::remove_file(&path).unwrap();
        let said = read_kallsyms(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(said.contains("directory") && !said.contains("os error"), "{said}");
    }
}
