//! Protected restarts (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "SCTP Restart Considerations"): INIT and INIT ACK are in
//! the clear as in RFC 9260 section 5.2.2, and from the COOKIE ECHO on everything is a record under keys that both sides have kept.

use anabranch_wire::{Chunk, ChunkType, Chunks, DtlsUse, Header, PacketView, RawChunk};

use crate::address::{Origin, PathAddress};
use crate::config::AssociationConfig;
use crate::endpoint::{AssociationId, Endpoint, Handled};
use crate::error::ConnectError;
use crate::protection::RestartContext;
use crate::stats::Discard;
use crate::time::Time;

/// How a COOKIE ECHO came, with what stands behind it.
#[derive(Clone, Debug)]
pub(super) enum Echo<'a> {
    /// First in a packet without protection.
    Plain(&'a PacketView<'a>),
    /// First in a record of this association.
    Record { id: AssociationId, keys: RestartKeys, behind: Chunks<'a> },
}

/// Which of an association's restart keys have opened a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartKeys {
    /// Those that are kept, of this epoch.
    Kept(u64),
    /// Those that a restart has made the ones in use.
    InUse,
}

impl<'a> Echo<'a> {
    /// The cookie in the chunks of a record, and the rest of them; `None` if they do not begin with a COOKIE ECHO.
    pub(super) fn of_record(
        id: AssociationId,
        keys: RestartKeys,
        mut chunks: Chunks<'a>,
    ) -> Option<(&'a [u8], Self)> {
        let first = chunks.next()?.ok().filter(|first| first.kind() == ChunkType::COOKIE_ECHO)?;
        let Ok(Chunk::CookieEcho { cookie }) = first.decode() else { return None };
        Some((cookie, Echo::Record { id, keys, behind: chunks }))
    }

    /// Whether a cookie may do what these tags make of it (RFC 9260 section 5.2.4, table 12). A record under kept keys restarts the
    /// association, which has neither of the tags. One under keys in use is that COOKIE ECHO again because its answer was lost, or
    /// the peer's when both sides restart at once, and has both.
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
    /// Opens an association in the place of one with this peer that was lost without an end, such as in a crash, with the keys that
    /// were kept for it: over the same addresses and ports, and with a configuration that offers restarts. The peer goes on with it as
    /// with one that has [restarted](crate::AssociationEvent::Restarted). These keys carry the agreement on
    /// new ones, and user messages wait for those; the same keys restart no second time.
    ///
    /// # Errors
    /// [`ConnectError`].
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

    /// The association whose peer seems to restart: a record under restart keys and a tag that is nobody's. The tag is the one that
    /// our INIT ACK has named, so that only the addresses tell.
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

    /// A record that is to restart an association. Whoever keeps no keys for that drops it without an answer, and whoever does drops
    /// all but a COOKIE ECHO.
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

    /// The cookie of a COOKIE ECHO that comes again under the keys of the restart that it has brought about.
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
