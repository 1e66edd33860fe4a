//! Any bytes, read as messages and segments of a file transfer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_transfer::protocol::fuzzing::decode(bytes));
