//! Computes the engine's fingerprint, which identifies the engine of stored results.

#![allow(clippy::disallowed_macros, reason = "cargo reads what a build script prints")]

#[path = "build/fingerprint.rs"]
mod fingerprint;
#[path = "build/lock.rs"]
mod lock;
#[path = "build/sources.rs"]
mod sources;

fn main() {
    let workspace = sources::workspace();
    for path in sources::engine_paths() {
        let path = workspace.join(path);
        // Cargo would always rebuild if it waited for a file that does not exist.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let fingerprint = fingerprint::of(&workspace).expect("the engine's sources can be read");
    println!("cargo::rustc-env=ANABRANCH_FINGERPRINT={fingerprint}");
}
