//! simpleperf's branch lists, walked over code where every fourth instruction is a branch.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_fuzz::read;
use mepof_trace::input::branch_list::{Step, Walk, parse};

fuzz_target!(|data: &[u8]| {
    read(1, |path, options, sink| {
        let list = parse(data, path, options)?;
        let mut walk = Walk::new(path, options);
        for binary in &list.binaries {
            walk.follow(
                binary,
                0,
                |address| {
                    let step = match address >> 2 & 15 {
                        3 => Step::Branch(address.wrapping_sub(64)),
                        7 => Step::Branch(address.wrapping_add(1 << 12)),
                        11 => Step::Indirect,
                        15 => Step::Marker,
                        _ => Step::Next,
                    };
                    Some((step, 4))
                },
                sink,
            )?;
        }
        list.give_stacks(|binary| binary < 4, path, options, sink)?;
        Ok(list.facts())
    });
});
