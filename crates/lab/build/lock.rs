//! What `Cargo.lock` says of the packages that a crate is built with.

use std::collections::{BTreeMap, BTreeSet};

/// One `[[package]]`.
#[derive(Default)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// Only packages from outside the workspace have one.
    checksum: Option<&'a str>,
    /// Names, each with a version behind it where there are several of them.
    dependencies: Vec<&'a str>,
}

/// Name, version and checksum of every package from outside the workspace that `crate_name` is built with, sorted.
///
/// Cargo does not tell what only tests need, so packages for tests are among them.
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
