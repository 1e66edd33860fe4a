//! INIT and COOKIE-ECHO (RFC 9260 sections 5.1 and 5.2): nothing is kept for a stranger until its cookie comes back.

use anabranch_wire::{Cause, Header, InitRepr, InitView, PacketView, PacketWriter, Param, ParamList, Tsn};
use arrayvec::ArrayVec;

use crate::association::dialect;
use crate::association::{
    Announced, Association, Origin, Peer, Source, address_params, announced, extensions, listed_addresses,
    reportable_params,
};
use crate::authentication::{AuthOffer, BadRandom, RANDOM_LEN};
use crate::config::LEAST_FIRST_WINDOW;
use crate::cookie::{CookieBody, Offers};
use crate::endpoint::{AssociationId, Endpoint, Handled};
use crate::path::{MAX_PATHS, PathId};
use crate::stats::Discard;
use crate::time::Span;

/// Enough for any reply made here.
const REPLY_BYTES: usize = 1400;

/// What our side of a new or existing association would say in an INIT-ACK.
struct OurSide {
    local_tag: u32,
    initial_tsn: u32,
    tie_tags: (u32, u32),
}

impl Endpoint {
    pub(super) fn handle_init(&mut self, origin: Origin, header: Header, init: &InitView<'_>) -> Handled {
        if let Some(gates) = &mut self.gates {
            if !gates.inits.admits(self.now, origin.remote) {
                return Handled::Discarded(Discard::Flood);
            }
            gates.inits.charge(self.now, origin.remote);
        }
        let silent = init.inbound_streams() == 0 || init.outbound_streams() == 0;
        if init.initiate_tag() == 0 || silent || init.a_rwnd() < LEAST_FIRST_WINDOW {
            return self.refuse_init(origin, header, init, Cause::InvalidParameter);
        }
        if init.params().any(|p| matches!(p, Ok(Param::HostNameAddress(_)))) {
            return self.refuse_init(origin, header, init, Cause::UnresolvableAddress(&[]));
        }
        let existing = self.by_address(origin, header.source_port);
        if let Some(id) = existing
            && self.repeat_shutdown_ack(id)
        {
            // RFC 9260 section 9.2: the INIT is dropped; the peer will see that it has to end the old association first.
            return Handled::Delivered(id);
        }
        if self.config.accept.is_none() && existing.is_none() {
            return self.refuse_init(origin, header, init, Cause::OutOfResource);
        }
        if existing.is_none() && self.table.len() >= self.config.max_associations {
            return Handled::Discarded(Discard::Full);
        }
        match self.our_side(existing, init) {
            Some(ours) => self.answer_init(origin, header, init, &ours),
            None => self.refuse_restart(origin, header, init, existing),
        }
    }

    /// Sends the SHUTDOWN-ACK again if the association waits for its answer.
    fn repeat_shutdown_ack(&mut self, id: AssociationId) -> bool {
        let now = self.now;
        if !self.table.get(id).is_some_and(Association::awaits_shutdown_complete) {
            return false;
        }
        if let Some(association) = self.table.get_mut(id) {
            association.clock(now);
            association.send_shutdown_ack();
        }
        true
    }

    /// RFC 9260 sections 5.1, 5.2.1 and 5.2.2; `None` for an INIT that would add addresses to an association whose peer has
    /// named its own.
    fn our_side(&mut self, existing: Option<AssociationId>, init: &InitView<'_>) -> Option<OurSide> {
        let Some(association) = existing.and_then(|id| self.table.get(id)).filter(|a| !a.is_closed()) else {
            let initial_tsn = self.config.accept.as_ref().and_then(|c| c.initial_tsn);
            let local_tag = self.fresh_tag();
            let initial_tsn = initial_tsn.unwrap_or_else(|| self.entropy.next_u32());
            return Some(OurSide { local_tag, initial_tsn, tie_tags: (0, 0) });
        };
        let echoed = association.awaits_cookie_ack();
        if echoed && association.lacks_any(&listed_addresses(init)) {
            return None;
        }
        if association.is_opening() {
            // A collision: the answer repeats what our own INIT said.
            let repr = association.init_repr();
            let tie_tags = (association.local_tag, association.peer_tag);
            return Some(OurSide {
                local_tag: repr.initiate_tag,
                initial_tsn: repr.initial_tsn.get(),
                tie_tags,
            });
        }
        if association.lacks_any(&listed_addresses(init)) {
            return None;
        }
        let tie_tags = (association.local_tag, association.peer_tag);
        let local_tag = self.fresh_tag();
        Some(OurSide { local_tag, initial_tsn: self.entropy.next_u32(), tie_tags })
    }

    fn answer_init(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        ours: &OurSide,
    ) -> Handled {
        let Some((streams, window)) = self.offered(origin, header.source_port) else {
            return Handled::Discarded(Discard::BadInit);
        };
        let Ok(authentication) = self.offers(origin, header.source_port, init) else {
            // RFC 4895 section 6.1.
            let cause = Cause::ProtocolViolation(b"RANDOM is not of 32 bytes");
            return self.refuse_init(origin, header, init, cause);
        };
        let body = CookieBody {
            local_tag: ours.local_tag,
            peer_tag: init.initiate_tag(),
            local_initial_tsn: ours.initial_tsn,
            peer_initial_tsn: init.initial_tsn().get(),
            peer_a_rwnd: init.a_rwnd(),
            local_port: header.destination_port,
            peer_port: header.source_port,
            outbound_streams: init.inbound_streams().min(streams),
            inbound_streams: init.outbound_streams().min(streams),
            tie_tags: ours.tie_tags,
            peer_address: origin.remote,
            peer_udp_port: origin.udp_port,
            peer_addresses: listed_addresses(init).into_iter().collect(),
            peer_features: announced(init).bits(),
            authentication,
        };
        let mut cookie = Vec::new();
        self.jar.seal(self.now, &body, &mut cookie);
        let repr = InitRepr {
            initiate_tag: ours.local_tag,
            a_rwnd: window,
            // No more than the peer takes (RFC 9260 section 3.3.3).
            outbound_streams: body.outbound_streams,
            inbound_streams: streams,
            initial_tsn: Tsn::new(ours.initial_tsn),
        };
        let random = body.authentication.as_ref().map(|offers| offers.local_random);
        self.send_init_ack(origin, header, init, &repr, &cookie, random)
    }

    /// Streams and window of the association that would come of it.
    fn offered(&self, origin: Origin, peer_port: u16) -> Option<(u16, u32)> {
        if let Some(association) = self.by_address(origin, peer_port).and_then(|id| self.table.get(id)) {
            let repr = association.init_repr();
            return Some((repr.outbound_streams, repr.a_rwnd));
        }
        let accept = self.config.accept.as_ref()?;
        Some((accept.offered_streams(), accept.first_window()))
    }

    /// What both sides offer for authentication, if both offer something that is of use. A collision repeats the random number
    /// of our own INIT, as it repeats the tag (RFC 4895 section 6.1).
    fn offers(
        &mut self,
        origin: Origin,
        peer_port: u16,
        init: &InitView<'_>,
    ) -> Result<Option<Offers>, BadRandom> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let (wanted, repeated) = match existing {
            Some(association) => {
                let random = association.local_random();
                (association.announces().asconf, random.filter(|_| association.is_opening()))
            }
            None => (self.config.accept.as_ref().is_some_and(|accept| accept.address_changes.asconf), None),
        };
        if !wanted {
            return Ok(None);
        }
        let Some(peer) = AuthOffer::read(init)? else { return Ok(None) };
        let local_random = repeated.unwrap_or_else(|| {
            let mut random = [0; RANDOM_LEN];
            self.entropy.fill(&mut random);
            random
        });
        Ok(Some(Offers { local_random, peer }))
    }

    /// Whether the association that would come of it acknowledges with NR-SACK.
    fn announces_nr_sack(&self, origin: Origin, peer_port: u16) -> bool {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        existing.map_or(self.accept_announces_nr_sack, |association| association.announces().nr_sack)
    }

    /// What the association that would come of it says about the flags of its SACKs.
    fn announced_dialect(&self, origin: Origin, peer_port: u16) -> Option<Param<'static>> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = self.config.accept.as_ref().map(|config| &config.profile);
        dialect::param(existing.map(Association::profile).or(accepted)?)
    }

    fn send_init_ack(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        repr: &InitRepr,
        cookie: &[u8],
        random: Option<[u8; RANDOM_LEN]>,
    ) -> Handled {
        let listed = if self.config.addresses.len() > 1 { &self.config.addresses[..] } else { &[] };
        let addresses = address_params(listed);
        let auth = random.as_ref().map(AuthOffer::our_params).into_iter().flatten();
        let needed: Vec<Param<'_>> = [Param::StateCookie(cookie)].into_iter().chain(auth).collect();
        let nr_sack = self.announces_nr_sack(origin, header.source_port);
        let extensions = extensions(Announced { nr_sack, asconf: random.is_some(), ..Announced::default() });
        let optional = [Param::ForwardTsnSupported].into_iter().chain(extensions);
        let optional = optional.chain(self.announced_dialect(origin, header.source_port));
        let optional: Vec<Param<'_>> = optional.chain(unrecognized(init)).collect();
        let mut bytes = vec![0; REPLY_BYTES.min(self.longest_reply(origin))];
        let Ok(mut writer) = PacketWriter::new(&mut bytes, answer(header, init.initiate_tag())) else {
            return Handled::Discarded(Discard::ShortQuestion);
        };
        // What does not fit is left out: first the addresses, from which packets may come unannounced.
        let none: &[Param<'_>] = &[];
        let written =
            [(&addresses[..], &optional[..]), (none, &optional[..]), (&addresses[..], none), (none, none)]
                .into_iter()
                .any(|(addresses, optional)| {
                    let params = addresses.iter().chain(&needed).chain(optional).copied();
                    writer.init_ack(repr, params).is_ok()
                });
        if !written {
            return Handled::Discarded(Discard::ShortQuestion);
        }
        let length = writer.finish();
        bytes.truncate(length);
        self.reply(origin, bytes)
    }

    fn refuse_init(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        cause: Cause<'_>,
    ) -> Handled {
        if init.initiate_tag() == 0 {
            return Handled::Discarded(Discard::BadInit);
        }
        self.send_abort(origin, answer(header, init.initiate_tag()), false, [cause])
    }

    fn refuse_restart(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        existing: Option<AssociationId>,
    ) -> Handled {
        let Some(association) = existing.and_then(|id| self.table.get(id)) else {
            return Handled::Discarded(Discard::BadInit);
        };
        let listed = listed_addresses(init);
        let new: ArrayVec<Param<'_>, MAX_PATHS> = listed
            .iter()
            .filter(|a| association.lacks_any(std::slice::from_ref(*a)))
            .flat_map(|a| address_params(std::slice::from_ref(a)))
            .collect();
        let cause = Cause::RestartWithNewAddresses(ParamList::new(&new));
        self.send_abort(origin, answer(header, init.initiate_tag()), false, [cause])
    }

    pub(super) fn send_abort<'c>(
        &mut self,
        origin: Origin,
        header: Header,
        reflected: bool,
        causes: impl IntoIterator<Item = Cause<'c>>,
    ) -> Handled {
        let mut bytes = vec![0; REPLY_BYTES];
        let Ok(mut writer) = PacketWriter::new(&mut bytes, header) else {
            return Handled::Discarded(Discard::BadInit);
        };
        if writer.abort(reflected, causes).is_err() {
            return Handled::Discarded(Discard::BadInit);
        }
        let length = writer.finish();
        bytes.truncate(length);
        self.reply(origin, bytes)
    }

    pub(super) fn handle_cookie_echo(
        &mut self,
        origin: Origin,
        header: Header,
        cookie: &[u8],
        packet: &PacketView<'_>,
    ) -> Handled {
        if !self.gates.as_ref().is_none_or(|gates| gates.cookies.admits(self.now, origin.remote)) {
            return Handled::Discarded(Discard::Flood);
        }
        let Ok(genuine) = self.jar.open_at_any_age(cookie, header) else {
            // A genuine one is no sign of a flood: somebody is where it was sent.
            if let Some(gates) = &mut self.gates {
                gates.cookies.charge(self.now, origin.remote);
            }
            return Handled::Discarded(Discard::CookieForged);
        };
        let life = self.config.accept.as_ref().map_or(Span::from_secs(60), |c| c.profile.cookie_life);
        let stale = genuine.stale_by(self.now, life);
        let body = genuine.body.clone();
        match (self.existing_for(&body, origin), stale) {
            // Section 5.2.4, step 3: age does not matter where both tags are those of the association.
            (Some(id), Some(by)) if !self.has_tags(id, (body.local_tag, body.peer_tag)) => {
                self.report_stale(origin, header, &body, by)
            }
            (Some(id), _) => self.cookie_for_existing(id, origin, header, &body, packet),
            (None, Some(by)) => self.report_stale(origin, header, &body, by),
            (None, None) => self.open_from_cookie(origin, header, &body, packet),
        }
    }

    /// The association that a cookie is about: the one with our tag, the one whose tags tied it when the INIT came, or else the
    /// one with the peer that sends it. A peer whose UDP port has changed since its INIT is found all the same.
    fn existing_for(&self, body: &CookieBody, origin: Origin) -> Option<AssociationId> {
        let live = |id: &AssociationId| self.table.get(*id).is_some_and(|a| !a.is_closed());
        let tied = || self.table.by_tag(body.tie_tags.0).filter(|id| self.has_tags(*id, body.tie_tags));
        let by_tag = self.table.by_tag(body.local_tag).filter(live);
        by_tag.or_else(|| tied().filter(live)).or_else(|| self.by_address(origin, body.peer_port))
    }

    fn has_tags(&self, id: AssociationId, (local, peer): (u32, u32)) -> bool {
        self.table.get(id).is_some_and(|association| association.has_tags(local, peer))
    }

    fn open_from_cookie(
        &mut self,
        origin: Origin,
        header: Header,
        body: &CookieBody,
        packet: &PacketView<'_>,
    ) -> Handled {
        if self.table.by_tag(body.local_tag).is_some() {
            // A late copy of the cookie of an association that is over: it is not to open another one with the same tag.
            return self.send_abort(origin, answer(header, header.verification_tag), true, []);
        }
        let Some(config) = self.config.accept.clone() else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        if self.table.len() >= self.config.max_associations {
            return Handled::Discarded(Discard::Full);
        }
        if body.tie_tags != (0, 0) {
            // It was made for an association that is gone: RFC 9260 section 5.2.4 C, a late echo.
            return Handled::Discarded(Discard::CookieUnexpected);
        }
        let seed = self.seed(body.local_tag, body.local_initial_tsn, body.peer_port, false);
        let mut association = Association::new(self.now, config, seed);
        let Ok(path) = association.new_path(origin.local, origin.remote, origin.udp_port) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        association.accept(source(path, origin, body, self.config.guard.is_some()), &Peer::from(body));
        let id = self.table.insert(association);
        // Its length counts once.
        self.deliver_to(id, Origin { bytes: 0, ..origin }, packet, 1);
        Handled::New(id)
    }

    /// RFC 9260 section 5.2.4, actions A to D by which tags match.
    fn cookie_for_existing(
        &mut self,
        id: AssociationId,
        origin: Origin,
        header: Header,
        body: &CookieBody,
        packet: &PacketView<'_>,
    ) -> Handled {
        let guarded = self.config.guard.is_some();
        let Some(association) = self.table.get_mut(id) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        association.clock(self.now);
        // A retry may come over another pair of addresses than the first try.
        let Some(path) = association.path_of_origin(origin) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        let ours = association.local_tag == body.local_tag;
        let theirs = association.peer_tag == body.peer_tag;
        let tied = body.tie_tags == (association.local_tag, association.peer_tag);
        match (ours, theirs) {
            (true, true) => {
                association.handle_cookie_ack(path);
                association.send_cookie_ack(path);
            }
            (true, false) => association.collide(path, &Peer::from(body)),
            (false, false) if tied && association.awaits_shutdown_complete() => {
                self.repeat_shutdown_ack(id);
                let causes = [Cause::CookieWhileShuttingDown];
                self.send_error(origin, answer(header, body.peer_tag), causes);
                return Handled::Delivered(id);
            }
            (false, false) if tied => {
                let old = association.local_tag;
                association.restart(source(path, origin, body, guarded), body);
                self.table.retag(id, old, body.local_tag);
            }
            _ => return Handled::Discarded(Discard::CookieUnexpected),
        }
        // Its length has been counted.
        self.deliver_to(id, Origin { bytes: 0, ..origin }, packet, 1)
    }

    fn report_stale(&mut self, origin: Origin, header: Header, body: &CookieBody, by: Span) -> Handled {
        let staleness_us = u32::try_from(by.as_nanos() / 1_000).unwrap_or(u32::MAX);
        self.send_error(origin, answer(header, body.peer_tag), [Cause::StaleCookie { staleness_us }]);
        Handled::Discarded(Discard::CookieStale)
    }

    fn send_error<'c>(
        &mut self,
        origin: Origin,
        header: Header,
        causes: impl IntoIterator<Item = Cause<'c>>,
    ) {
        let mut bytes = vec![0; REPLY_BYTES];
        let written = PacketWriter::new(&mut bytes, header).and_then(|mut writer| {
            writer.error(causes)?;
            Ok(writer.finish())
        });
        if let Ok(length) = written {
            bytes.truncate(length);
            let _ = self.reply(origin, bytes);
        }
    }
}

/// Whether the one who sends a cookie is where the cookie was sent.
fn source(path: PathId, origin: Origin, body: &CookieBody, guarded: bool) -> Source {
    let same = (origin.remote, origin.udp_port) == (body.peer_address, body.peer_udp_port);
    Source { path, proved: same || !guarded, bytes: origin.bytes }
}

/// The header of an answer to `header`.
pub(super) fn answer(header: Header, tag: u32) -> Header {
    Header {
        source_port: header.destination_port,
        destination_port: header.source_port,
        verification_tag: tag,
    }
}

/// RFC 9260 section 3.2.1: parameters nobody here knows, reported as their type's high bits ask.
fn unrecognized<'a>(init: &InitView<'a>) -> impl Iterator<Item = Param<'a>> + Clone + use<'a> {
    reportable_params(init).map(|raw| Param::UnrecognizedParameter(raw.bytes()))
}
