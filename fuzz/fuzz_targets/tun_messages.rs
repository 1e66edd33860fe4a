//! Any bytes, read as messages of a tunnel and as IP packets.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    anabranch_tun::message::decode_all(bytes);
    anabranch_tun::read_all(bytes);
});
