//! Any bytes, as a message of the key management from a peer without keys.
#![no_main]

use std::sync::LazyLock;

use anabranch_identity::{Admission, KeyPair};
use anabranch_keying::Credentials;
use libfuzzer_sys::fuzz_target;

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| {
    let pair = KeyPair::generate().expect("a key pair");
    pair.credentials(Admission::Anyone).expect("credentials")
});

fuzz_target!(|bytes: &[u8]| anabranch_keying::fuzz_message(&CREDENTIALS, bytes));
