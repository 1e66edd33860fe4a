//! Any bytes, read as a packet with everything in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_wire::fuzzing::parse_packet(bytes));
