//! Hash over all sources that determine the result of a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{lock, sources};

/// Returns the SHA-256, in hexadecimal, of the engine's sources in a workspace and of the packages that they are built with.
///
/// Files are sorted by path, and their line endings make no difference. A missing file, such as `Cargo.lock` of a crate that was
/// unpacked alone, counts as empty.
pub(crate) fn of(workspace: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for path in sources::engine_paths() {
        let mut files = Vec::new();
        collect(&workspace.join(&path), &path, &mut files)?;
        files.sort();
        for (name, file) in files {
            let text = fs::read_to_string(file)?.replace("\r\n", "\n");
            let text = match name.as_str() {
                "Cargo.lock" => lock::packages(&text, "anabranch-lab").join("\n"),
                _ => text,
            };
            // The length separates the end of one file from the beginning of the next one.
            hash.update(format!("{name}\n{}\n{text}", text.len()));
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Collects the file of this name, or all Rust files in the folder of this name. Their names have slashes on every system.
fn collect(path: &Path, name: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    if path.is_file() && (name.ends_with(".rs") || !name.contains("/src/")) {
        files.push((name.to_owned(), path.to_owned()));
    } else if path.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            collect(&entry.path(), &name, files)?;
        }
    }
    Ok(())
}
