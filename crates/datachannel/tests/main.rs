//! Channels between two endpoints over a network that delays and loses packets, in virtual time.

mod channels;
mod hostile;
mod pair;
mod random;
