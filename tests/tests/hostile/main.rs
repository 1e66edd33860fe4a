//! Peers that complete a handshake and then misbehave, or are never heard of again.

mod heap;
mod random;
mod vanishing;
