//! One-time codes: `anabranch send --code` and `anabranch recv CODE@HOST`.

mod exchange;
mod fetch;
mod offer;

pub(super) use fetch::{CodeAt, fetch_by_code};
pub(super) use offer::offer_with_code;
