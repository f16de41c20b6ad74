//! Lists the sections with code and the functions of a binary.

use std::path::Path;
use std::time::Instant;

use mepof_binary::Binary;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: functions BINARY")?;
    let start = Instant::now();
    let binary = Binary::open(Path::new(&path))?;
    eprintln!("opened in {:?}", start.elapsed());
    println!("{} {:?} {:?}", binary.machine(), binary.build_id(), binary.executable_base());
    for section in binary.sections() {
        println!("{section:x?}");
    }
    for function in binary.functions() {
        let entry = if function.is_entry { "" } else { " (part)" };
        let code = binary.code(function.addresses.clone()).len();
        let end = function.addresses.end;
        println!("{} {end} {code:#x} {}{entry}", function.addresses.start, function.name);
    }
    Ok(())
}
