//! Any bytes, read as known hosts, authorised keys and one-time codes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_identity::fuzz_texts(bytes));
