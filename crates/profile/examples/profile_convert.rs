//! Converts a profile: `profile_convert INPUT text|ext-binary|md5|gcov OUTPUT`.

use std::error::Error;
use std::io::BufWriter;
use std::{env, fs};

use mepof_profile::{ext_binary, gcov, read, text};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [input, form, output] = arguments.as_slice() else {
        return Err("usage: profile_convert INPUT text|ext-binary|md5|gcov OUTPUT".into());
    };
    let started = std::time::Instant::now();
    let (profile, format) = read(&fs::read(input)?)?;
    let read = started.elapsed();
    let mut out = BufWriter::new(fs::File::create(output)?);
    match form.as_str() {
        "text" => text::write(&profile, &mut out)?,
        "ext-binary" => ext_binary::write(&profile, ext_binary::Options::default(), &mut out)?,
        "md5" => {
            let options = ext_binary::Options { md5_names: true, ..Default::default() };
            ext_binary::write(&profile, options, &mut out)?;
        }
        "gcov" => gcov::write(&profile, gcov::Version::default(), &mut out)?,
        other => return Err(format!("unknown form {other}").into()),
    }
    let written = started.elapsed() - read;
    eprintln!("{format}: read in {read:.1?}, written as {form} in {written:.1?}");
    Ok(())
}
