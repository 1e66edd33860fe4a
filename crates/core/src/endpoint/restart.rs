//! Protected restarts (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "SCTP Restart Considerations"): INIT and INIT ACK are
//! in the clear as in RFC 9260 section 5.2.2. From the COOKIE ECHO on, all packets are records under kept keys.

use anabranch_wire::{Chunk, ChunkType, Chunks, DtlsUse, Header, PacketView, RawChunk};

use crate::address::{Origin, PathAddress};
use crate::config::AssociationConfig;
use crate::endpoint::{AssociationId, Endpoint, Handled};
use crate::error::ConnectError;
use crate::protection::RestartContext;
use crate::stats::Discard;
use crate::time::Time;

/// Origin of a COOKIE ECHO, with the chunks behind it.
#[derive(Clone, Debug)]
pub(super) enum Echo<'a> {
    /// First chunk of a plain packet.
    Plain(&'a PacketView<'a>),
    /// First chunk in a record of this association.
    Record { id: AssociationId, keys: RestartKeys, behind: Chunks<'a> },
}

/// Restart keys of an association that have opened a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartKeys {
    /// Kept keys of this epoch.
    Kept(u64),
    /// Keys in use since a restart.
    InUse,
}

impl<'a> Echo<'a> {
    /// Returns the cookie in the chunks of a record, and the other chunks; `None` if they do not begin with a COOKIE ECHO.
    pub(super) fn of_record(
        id: AssociationId,
        keys: RestartKeys,
        mut chunks: Chunks<'a>,
    ) -> Option<(&'a [u8], Self)> {
        let first = chunks.next()?.ok().filter(|first| first.kind() == ChunkType::COOKIE_ECHO)?;
        let Ok(Chunk::CookieEcho { cookie }) = first.decode() else { return None };
        Some((cookie, Echo::Record { id, keys, behind: chunks }))
    }

    /// Returns `true` if a cookie may have the effect of these matching tags (RFC 9260 section 5.2.4, table 12). A record under
    /// kept keys restarts the association, and none of the tags match. A record under keys in use repeats that COOKIE ECHO after
    /// the loss of its answer, or is the peer's when both sides restart at once, and both tags match.
    pub(super) fn admits(&self, ours: bool, theirs: bool) -> bool {
        match self {
            Echo::Plain(_) => true,
            Echo::Record { keys: RestartKeys::Kept(_), .. } => !ours && !theirs,
            Echo::Record { keys: RestartKeys::InUse, .. } => ours && theirs,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Echo::Plain(_))
    }
}

impl Endpoint {
    /// Restarts an association that ended without notice to the peer, for example in a crash, with the keys that were kept for it.
    /// Addresses and ports must be the same, and the configuration must offer restarts. The peer reports
    /// [`Restarted`](crate::AssociationEvent::Restarted). The kept keys protect the agreement on new keys, and user messages wait
    /// until it is complete. The same keys cannot restart an association twice.
    ///
    /// # Errors
    /// Returns [`ConnectError`].
    pub fn restart(
        &mut self,
        now: Time,
        peer_port: u16,
        paths: &[impl Into<PathAddress> + Copy],
        config: AssociationConfig,
        keys: RestartContext,
    ) -> Result<AssociationId, ConnectError> {
        if !config.protection.as_ref().is_some_and(|protection| protection.restart) {
            return Err(ConnectError::NoRestart);
        }
        self.open(now, peer_port, paths, config, Some(keys))
    }

    /// Returns the association whose peer seems to restart, for a record under restart keys with an unknown tag. The tag is that of
    /// the own INIT ACK, so only the addresses identify the association.
    pub(super) fn restarting(
        &self,
        origin: Origin,
        header: Header,
        first: &RawChunk<'_>,
    ) -> Option<AssociationId> {
        let Ok(Chunk::Dtls(dtls)) = first.decode() else { return None };
        let unknown = self.table.by_tag(header.verification_tag).is_none();
        let restart = unknown && dtls.context() == DtlsUse::Restart;
        restart.then(|| self.by_address(origin, header.source_port)).flatten()
    }

    /// Handles a record that requests the restart of an association. An endpoint without kept keys drops the record without an
    /// answer. An endpoint with kept keys processes only a COOKIE ECHO, and drops all other chunks.
    pub(super) fn handle_restart(
        &mut self,
        id: AssociationId,
        origin: Origin,
        packet: &PacketView<'_>,
    ) -> Handled {
        let mut record = std::mem::take(&mut self.record);
        let opened = match self.table.get_mut(id) {
            Some(association) => association.uncover_restart(packet, &mut record),
            None => Err(Discard::NoKey),
        };
        let handled = match opened {
            Err(reason) => Handled::Discarded(reason),
            Ok((epoch, content)) => {
                match Echo::of_record(id, RestartKeys::Kept(epoch), Chunks::of(content)) {
                    Some((cookie, echo)) => self.handle_cookie_echo(origin, packet.header(), cookie, echo),
                    None => Handled::Discarded(Discard::Unexpected),
                }
            }
        };
        self.record = record;
        handled
    }

    /// Returns the cookie of a COOKIE ECHO that is repeated under the keys of the restart that it has caused.
    pub(super) fn repeated_cookie<'a>(
        id: AssociationId,
        packet: &PacketView<'_>,
        chunks: &Chunks<'a>,
    ) -> Option<(&'a [u8], Echo<'a>)> {
        let first = packet.chunks().next()?.ok()?.decode().ok()?;
        let restart = matches!(first, Chunk::Dtls(dtls) if dtls.context() == DtlsUse::Restart);
        restart.then(|| Echo::of_record(id, RestartKeys::InUse, chunks.clone())).flatten()
    }
}
