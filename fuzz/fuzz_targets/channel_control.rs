//! Any bytes, read as a control message of data channels.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_datachannel::fuzz_control(bytes));
