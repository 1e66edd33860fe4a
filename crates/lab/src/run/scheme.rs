//! Scheme of a run: one of the registry, or a caller's own.

use std::fmt;
use std::sync::Arc;

use anabranch_core::policy::Scheme;
use anabranch_schemes::registry::NamedScheme;

/// A scheme with its name in results.
#[derive(Clone)]
pub struct JobScheme {
    name: String,
    scheme: Arc<dyn Scheme>,
}

impl JobScheme {
    /// Returns a scheme with this name.
    pub fn new(name: impl Into<String>, scheme: Arc<dyn Scheme>) -> Self {
        JobScheme { name: name.into(), scheme }
    }

    /// Returns the scheme for an association's configuration.
    pub fn scheme(&self) -> Arc<dyn Scheme> {
        Arc::clone(&self.scheme)
    }
}

impl From<NamedScheme> for JobScheme {
    fn from(scheme: NamedScheme) -> Self {
        JobScheme { name: scheme.to_string(), scheme: scheme.into_scheme() }
    }
}

impl fmt::Display for JobScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for JobScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobScheme").field(&self.name).finish()
    }
}
