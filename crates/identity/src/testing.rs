//! Keys and files for the tests of this crate.

use std::fs;
use std::path::Path;

use crate::public_key::PublicKey;

/// Returns a key whose bytes all have this value.
pub(crate) fn key(byte: u8) -> PublicKey {
    PublicKey::from_bytes([byte; PublicKey::LEN])
}

/// Writes a file that only the current user can change.
pub(crate) fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    set_mode(path, 0o600);
}

#[cfg(unix)]
pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_: &Path, _: u32) {}

#[cfg(unix)]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}
