//! Packages of `Cargo.lock` that a crate is built with.

use std::collections::{BTreeMap, BTreeSet};

/// A `[[package]]` table.
#[derive(Default)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// Checksum, only of packages from outside the workspace.
    checksum: Option<&'a str>,
    /// Names, followed by a version if several versions exist.
    dependencies: Vec<&'a str>,
}

/// Returns name, version and checksum of every package from outside the workspace that `crate_name` is built with, sorted.
///
/// The lock file does not mark the dependencies of tests, so their packages are included.
pub(crate) fn packages(lock: &str, crate_name: &str) -> Vec<String> {
    let packages: Vec<Package<'_>> = lock.split("[[package]]").skip(1).map(package).collect();
    let mut by_name: BTreeMap<&str, Vec<&Package<'_>>> = BTreeMap::new();
    for package in &packages {
        by_name.entry(package.name).or_default().push(package);
    }
    let mut used = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![crate_name];
    while let Some(reference) = open.pop() {
        if !seen.insert(reference) {
            continue;
        }
        let mut words = reference.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        for package in by_name.get(name).into_iter().flatten() {
            if version.is_some_and(|version| version != package.version) {
                continue;
            }
            open.extend(&package.dependencies);
            if let Some(checksum) = package.checksum {
                used.insert(format!("{name} {} {checksum}", package.version));
            }
        }
    }
    used.into_iter().collect()
}

fn package(block: &str) -> Package<'_> {
    let mut package = Package::default();
    for line in block.lines().map(str::trim) {
        let value = line.split('"').nth(1).unwrap_or_default();
        match line.split(' ').next() {
            Some("name") => package.name = value,
            Some("version") => package.version = value,
            Some("checksum") => package.checksum = Some(value),
            Some(entry) if entry.starts_with('"') => package.dependencies.push(value),
            _ => {}
        }
    }
    package
}
