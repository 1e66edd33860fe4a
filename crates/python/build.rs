//! Finds the commit of the sources.

#![allow(clippy::disallowed_macros, reason = "cargo reads what a build script prints")]

#[path = "../lab/build/sources.rs"]
mod sources;

use std::path::Path;
use std::process::Command;

fn main() {
    let workspace = sources::workspace();
    // A change of a source decides again whether the sources are those of the commit. Dependent code is rebuilt in any case.
    for path in sources::engine_paths() {
        watch(&workspace.join(path));
    }
    let commit = commit(&workspace).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ANABRANCH_COMMIT={commit}");
}

/// Returns the commit, with the suffix "-dirty" if the engine's sources differ from it. Returns `None` outside of a checkout, and
/// if the checkout belongs to a project that contains this one.
fn commit(workspace: &Path) -> Option<String> {
    if !git(workspace, &["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let commit = git(workspace, &["rev-parse", "HEAD"])?;
    // A commit changes the target of HEAD, and not HEAD itself. The log of HEAD grows with both.
    for name in ["HEAD", "logs/HEAD"] {
        watch(&workspace.join(git(workspace, &["rev-parse", "--git-path", name])?));
    }
    let paths = sources::engine_paths();
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(paths.iter().map(String::as_str));
    let clean = git(workspace, &status)?.is_empty();
    Some(if clean { commit } else { format!("{commit}-dirty") })
}

/// Returns the output of git without the trailing line break, or `None` if git is missing or fails.
fn git(workspace: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(workspace).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Makes Cargo rebuild when a file changes, if it exists: for a missing file, Cargo would always rebuild.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
