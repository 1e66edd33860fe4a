//! Buffer sharing between paths.

pub(crate) mod unshared;

pub use unshared::Unshared;
