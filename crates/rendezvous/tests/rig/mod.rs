//! A server, a caller and a listener behind NATs, in virtual time.

pub(crate) mod nat;
pub(crate) mod world;
