//! Any bytes, read as messages of forwarding and as requests to its proxy.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    anabranch_forward::message::decode_all(bytes);
    anabranch_forward::fuzz_proxy(bytes);
});
