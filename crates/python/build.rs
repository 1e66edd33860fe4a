//! Finds the commit that this is built from.

#![allow(clippy::disallowed_macros, reason = "cargo reads what a build script prints")]

#[path = "../lab/build/sources.rs"]
mod sources;

use std::path::Path;
use std::process::Command;

fn main() {
    let workspace = sources::workspace();
    // Whether the sources are the commit's is asked again when one of them changes, and whatever depends on them is built anyway.
    for path in sources::engine_paths() {
        watch(&workspace.join(path));
    }
    let commit = commit(&workspace).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ANABRANCH_COMMIT={commit}");
}

/// The commit, with "-dirty" behind it if the engine's sources are others than its own; nothing outside a checkout, and nothing if
/// the checkout is that of a project that this one lies in.
fn commit(workspace: &Path) -> Option<String> {
    if !git(workspace, &["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let commit = git(workspace, &["rev-parse", "HEAD"])?;
    // A commit moves what HEAD names, and not HEAD itself; the log of HEAD grows with both.
    for name in ["HEAD", "logs/HEAD"] {
        watch(&workspace.join(git(workspace, &["rev-parse", "--git-path", name])?));
    }
    let paths = sources::engine_paths();
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(paths.iter().map(String::as_str));
    let clean = git(workspace, &status)?.is_empty();
    Some(if clean { commit } else { format!("{commit}-dirty") })
}

/// What git prints, without the end of the line; nothing if there is no git or it fails.
fn git(workspace: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(workspace).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Cargo builds again and again what waits for a file that does not exist.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
