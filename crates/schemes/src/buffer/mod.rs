//! How buffers are shared by paths.

pub(crate) mod unshared;

pub use unshared::Unshared;
