//! Any bytes, read as a packet, written again chunk by chunk, and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_wire::fuzzing::reemit(bytes));
