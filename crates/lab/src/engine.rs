//! Which engine this is.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A SHA-256 in hexadecimal over everything that decides what a run gives: the sources of this crate and of those below it, and
/// the packages they are built with. Engines that share it give the same runs; tests and documents have no part in it.
pub const FINGERPRINT: &str = env!("ANABRANCH_FINGERPRINT");
