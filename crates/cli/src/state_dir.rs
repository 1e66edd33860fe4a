//! Folder for state that outlives commands.

use std::path::PathBuf;

/// Returns the folder for state of the XDG base directory specification. A relative `XDG_STATE_HOME` is ignored, as the specification
/// requires.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))
}
