//! How buffers are shared by paths.

mod split;
mod unshared;

pub use split::{Occupancy, Sharers, Side, Split};
pub use unshared::Unshared;
