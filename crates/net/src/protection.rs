//! Protection of the packets of associations.

use crate::keying::{Credentials, KeyPolicy};
use anabranch_core::AssociationConfig;
use anabranch_core::protection::{KeyManagementRoles, ProtectionMode};

/// Protection of packets.
///
/// There is no default: protected endpoints need identities, and to do without protection is an explicit choice.
#[derive(Clone, Debug)]
pub enum Protection {
    /// No protection: any host on the path can read and change the packets.
    Insecure,
    /// DTLS chunks, with keys negotiated by TLS 1.3. Peers without them are refused.
    Dtls(DtlsProtection),
}

/// Settings of protection by DTLS chunks.
#[derive(Clone, Debug)]
pub struct DtlsProtection {
    /// Identity of this endpoint, and the accepted peers.
    pub credentials: Credentials,
    /// Limits for the use of keys.
    pub policy: KeyPolicy,
    /// Set to keep keys for a restart of either endpoint, if the peer keeps them too. An endpoint that has stored its keys
    /// ([`Association::restart_keys`](crate::Association::restart_keys)) can resume after a crash
    /// ([`Endpoint::restart`](crate::Endpoint::restart)). An attacker who steals stored keys can end the association.
    pub restart: bool,
}

impl Protection {
    /// Creates protection by DTLS chunks with these credentials, and the default lifetimes and limits of keys.
    pub fn dtls(credentials: Credentials) -> Self {
        Self::Dtls(DtlsProtection { credentials, policy: KeyPolicy::default(), restart: false })
    }

    /// Requests that this endpoint [keeps keys for a restart](DtlsProtection::restart).
    #[must_use]
    pub fn with_restart(self) -> Self {
        match self {
            Self::Insecure => Self::Insecure,
            Self::Dtls(dtls) => Self::Dtls(DtlsProtection { restart: true, ..dtls }),
        }
    }

    pub(crate) fn into_dtls(self) -> Option<DtlsProtection> {
        match self {
            Self::Insecure => None,
            Self::Dtls(dtls) => Some(dtls),
        }
    }
}

/// Configures an association of this role. If `dtls` is not given, the protection of the configuration is unchanged. Key management
/// methods named in the configuration are the ones offered.
pub(crate) fn configure(
    config: &mut AssociationConfig,
    dtls: Option<&DtlsProtection>,
    roles: KeyManagementRoles,
) {
    if let Some(dtls) = dtls {
        let named = config.protection.take().map(|wanted| wanted.methods);
        config.protection = Some(anabranch_core::protection::Protection {
            mode: ProtectionMode::Strict,
            roles,
            methods: named.unwrap_or_else(anabranch_core::protection::Protection::tls_methods),
            restart: dtls.restart,
        });
    }
}
