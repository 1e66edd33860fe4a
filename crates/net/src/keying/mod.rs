//! Key management of protected associations. Without the feature `dtls`, its types have no values.

#[cfg(not(feature = "dtls"))]
mod absent;
#[cfg(feature = "dtls")]
mod tls;

#[cfg(not(feature = "dtls"))]
pub use absent::{
    Credentials, ExportError, IdentityForm, KeyPolicy, PeerIdentity, RestartKeys, RestartKeysError,
};
#[cfg(not(feature = "dtls"))]
pub(crate) use absent::{KeyManager, KeyingError, KeyingEvent, manager};
#[cfg(feature = "dtls")]
pub use tls::{
    Credentials, ExportError, IdentityForm, KeyPolicy, PeerIdentity, RestartKeys, RestartKeysError,
};
#[cfg(feature = "dtls")]
pub(crate) use tls::{KeyManager, KeyingError, KeyingEvent, manager};
