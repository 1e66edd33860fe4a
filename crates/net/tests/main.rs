//! Tests of endpoints on real sockets. The one that counts memory of its process is `strangers.rs`.

mod clock;
mod examples;
mod flood;
mod interfaces;
mod loopback;
mod namespace;
mod refusals;
mod wire;
