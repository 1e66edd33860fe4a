//! Files that determine the result of a run. The build scripts of this crate and of the Python module share this list.

use std::path::{Path, PathBuf};

/// Crates that take part in a run.
pub(crate) const CRATES: [&str; 7] = ["wire", "core", "schemes", "sim", "trace", "scenario", "lab"];

/// Returns the workspace of the crate that is being built. `Cargo.lock` is in that folder.
pub(crate) fn workspace() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    Path::new(&package).join("../..")
}

/// Returns folders and files of the workspace that contain the engine, without tests, benchmarks and documents.
pub(crate) fn engine_paths() -> Vec<String> {
    let mut paths = vec!["Cargo.lock".to_owned()];
    for name in CRATES {
        paths.push(format!("crates/{name}/Cargo.toml"));
        paths.push(format!("crates/{name}/src"));
    }
    paths
}
