//! Tests of the ciphers against other implementations.

mod independent;
mod known_answers;
