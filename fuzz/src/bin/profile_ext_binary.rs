//! LLVM's binary profiles, of sections and plain: what can be read can be processed and written
//! in every form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mepof_fuzz::profile::work_with;
use mepof_profile::ext_binary;

fuzz_target!(|bytes: &[u8]| {
    match ext_binary::read(bytes) {
        Ok(profile) => work_with(&profile),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
