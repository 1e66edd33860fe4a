//! Any bytes, read as a key log.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_keylog::fuzz_lines(bytes));
