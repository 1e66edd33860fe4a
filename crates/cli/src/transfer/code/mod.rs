//! One-time codes: `anabranch send --code` and `anabranch recv CODE@HOST`.

mod exchange;
mod fetch;
mod offer;

pub(super) use fetch::{CodeAt, fetch};
pub(super) use offer::offer;
