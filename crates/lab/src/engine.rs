//! Identity of the engine.

/// Version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// SHA-256 in hexadecimal over all sources that determine the result of a run: those of this crate and of its dependencies in the
/// workspace, and the packages they are built with. Engines with the same fingerprint give the same results. Tests and documents
/// are not included.
pub const FINGERPRINT: &str = env!("ANABRANCH_FINGERPRINT");
