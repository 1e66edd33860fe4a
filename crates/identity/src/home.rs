//! Location of a user's keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::IdentityError;

/// Folder with a user's key and lists of trusted keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// Selects this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Home(folder.into())
    }

    /// Selects the folder that `ANABRANCH_HOME` names, or else `anabranch` in the user's configuration folder (XDG base directory
    /// specification).
    ///
    /// # Errors
    /// Returns [`IdentityError::NoHome`] if neither a variable nor a home folder is known.
    pub fn of_user() -> Result<Self, IdentityError> {
        Self::from_variables(|name| std::env::var_os(name), std::env::home_dir())
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<PathBuf>,
    ) -> Result<Self, IdentityError> {
        // "All paths set in these environment variables must be absolute"; relative paths are ignored.
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = || {
            absolute("XDG_CONFIG_HOME")
                .or_else(|| home.filter(|path| path.is_absolute()).map(|home| home.join(".config")))
                .map(|config| config.join("anabranch"))
        };
        absolute("ANABRANCH_HOME").or_else(config).map(Home).ok_or(IdentityError::NoHome)
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the private key.
    pub fn key(&self) -> PathBuf {
        self.0.join("identity.pem")
    }

    /// Returns the path of the list of known hosts.
    pub fn known_hosts(&self) -> PathBuf {
        self.0.join("known_hosts")
    }

    /// Returns the path of the list of authorized keys.
    pub fn authorized_keys(&self) -> PathBuf {
        self.0.join("authorized_keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)], home: Option<&str>) -> Option<PathBuf> {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
        };
        Home::from_variables(variable, home.map(PathBuf::from)).ok().map(|home| home.0)
    }

    #[test]
    fn the_first_variable_that_names_an_absolute_path_counts() {
        let both = [("ANABRANCH_HOME", "/a"), ("XDG_CONFIG_HOME", "/x")];
        assert_eq!(folder(&both, Some("/h")), Some("/a".into()));
        assert_eq!(folder(&both[1..], Some("/h")), Some("/x/anabranch".into()));
        assert_eq!(folder(&[("XDG_CONFIG_HOME", "x")], Some("/h")), Some("/h/.config/anabranch".into()));
        assert_eq!(folder(&[("ANABRANCH_HOME", "a")], None), None);
    }
}
