//! How buffers are shared by paths.

mod unshared;

pub use unshared::Unshared;
