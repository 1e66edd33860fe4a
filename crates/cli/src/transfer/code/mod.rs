//! One-time codes: `anabranch send --code` and `anabranch recv CODE@HOST`.

mod exchange;
mod fetch;
mod offer;
#[cfg(test)]
mod tests;

pub(super) use fetch::{CodeAndHost, fetch};
pub(super) use offer::offer;
