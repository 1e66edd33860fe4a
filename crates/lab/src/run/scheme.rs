//! What a run is told to use: a scheme of the registry, or anybody's own.

use std::fmt;
use std::sync::Arc;

use anabranch_core::policy::Scheme;
use anabranch_schemes::registry::NamedScheme;

/// A scheme with the name that results give it.
#[derive(Clone)]
pub struct JobScheme {
    name: String,
    scheme: Arc<dyn Scheme>,
}

impl JobScheme {
    /// Any scheme under a name of its own.
    pub fn new(name: impl Into<String>, scheme: Arc<dyn Scheme>) -> Self {
        JobScheme { name: name.into(), scheme }
    }

    /// As an association's configuration wants it.
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
