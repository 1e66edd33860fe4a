//! Types in the place of those of the key management, for a build without it. No value of them exists, except of errors and limits.

use anabranch_core::protection::{Agreement, RestartContext};
use anabranch_core::time::Time;
use anabranch_core::{Association, ReceivedMessage};
use thiserror::Error;

/// Identity of an endpoint. It has no values in a build without the feature `dtls`.
#[derive(Clone, Debug)]
pub enum Credentials {}

/// Form of identities. It has no values in a build without the feature `dtls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityForm {}

/// Proved identity of a peer. It has no values in a build without the feature `dtls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerIdentity {}

/// Limits for the use of keys, without content in a build without the feature `dtls`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPolicy {}

/// Keys for a restart. They have no values in a build without the feature `dtls`.
#[derive(Debug)]
pub enum RestartKeys {}

/// Error of stored keys. It has no values in a build without the feature `dtls`.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RestartKeysError {}

/// Reason for which no bytes were exported.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// The association is not protected.
    #[error("this build has no key management; enable the feature dtls of anabranch-net")]
    NotEstablished,
}

/// Error of a key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "no key management reports it")]
pub(crate) enum KeyingError {
    Absent,
}

#[derive(Debug)]
pub(crate) enum KeyManager {}

/// Event of a key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "no key management reports them")]
pub(crate) enum KeyingEvent {
    Established,
    Restarted,
    Rekeyed { epoch: u64 },
    RekeyFailed(KeyingError),
    Failed(KeyingError),
}

/// Counters of a key management.
pub(crate) struct KeyingStatistics {
    pub(crate) handshakes: u64,
}

pub(crate) fn manager(
    _: Time,
    _: &Association,
    _: &Agreement,
    credentials: &Credentials,
    _: &KeyPolicy,
    _: Option<&PeerIdentity>,
) -> Result<KeyManager, KeyingError> {
    match *credentials {}
}

impl RestartKeys {
    pub(crate) fn context(&self) -> RestartContext {
        match *self {}
    }
}

impl KeyingError {
    pub(crate) fn text(self) -> &'static str {
        "this build has no key management"
    }

    pub(crate) fn is_refusal(self) -> bool {
        false
    }

    pub(crate) fn is_transient(self) -> bool {
        false
    }
}

impl KeyManager {
    pub(crate) fn start(&mut self, _: &mut Association) {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: Time, _: &ReceivedMessage, _: &[u8], _: &mut Association) {
        match *self {}
    }

    pub(crate) fn poll(&mut self, _: Time, _: &mut Association) {
        match *self {}
    }

    pub(crate) fn poll_event(&mut self) -> Option<KeyingEvent> {
        match *self {}
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        match *self {}
    }

    pub(crate) fn is_established(&self) -> bool {
        match *self {}
    }

    pub(crate) fn peer_identity(&self) -> Option<&PeerIdentity> {
        match *self {}
    }

    pub(crate) fn unconfirmed_identity(&self) -> Option<&PeerIdentity> {
        match *self {}
    }

    pub(crate) fn take_restart_keys(&mut self) -> Option<RestartKeys> {
        match *self {}
    }

    pub(crate) fn export(&self, _: &[u8], _: Option<&[u8]>, _: &mut [u8]) -> Result<(), ExportError> {
        match *self {}
    }

    pub(crate) fn meaning_of_abort(&self) -> Option<KeyingError> {
        match *self {}
    }

    pub(crate) fn statistics(&self) -> KeyingStatistics {
        match *self {}
    }
}
