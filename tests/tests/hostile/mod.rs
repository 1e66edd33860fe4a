//! Peers that complete a handshake and then misbehave or become silent.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod random;
mod vanishing;
