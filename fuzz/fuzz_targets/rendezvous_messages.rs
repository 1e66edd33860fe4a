//! Any bytes, read as a message of the rendezvous.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anabranch_rendezvous::fuzz_message(bytes));
