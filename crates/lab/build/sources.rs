//! Which files decide what a run gives. Shared by the build scripts of this crate and of the Python module.

use std::path::{Path, PathBuf};

/// The crates that a run goes through.
pub(crate) const CRATES: [&str; 6] = ["wire", "core", "schemes", "sim", "scenario", "lab"];

/// The workspace of the crate that is being built, at whose top `Cargo.lock` is.
pub(crate) fn workspace() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    Path::new(&package).join("../..")
}

/// Folders and files of the workspace with the engine in them. Tests, benchmarks and documents are in none of them.
pub(crate) fn engine_paths() -> Vec<String> {
    let mut paths = vec!["Cargo.lock".to_owned()];
    for name in CRATES {
        paths.push(format!("crates/{name}/Cargo.toml"));
        paths.push(format!("crates/{name}/src"));
    }
    paths
}
