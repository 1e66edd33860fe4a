//! Handshake of an association from either side (RFC 9260 section 5.1), and restart (section 5.2.4.1).

use std::net::IpAddr;

use anabranch_wire::{COMMON_HEADER_LEN, InitRepr, InitView, NoSpace, PacketWriter, Param, RawParam, Tsn};
use arrayvec::ArrayVec;

use crate::address::PathAddress;
use crate::association::ack_state::AckState;
use crate::association::control::Control;
use crate::association::cookie_echo::CookieEcho;
use crate::association::recovery::LossRecovery;
use crate::association::state::{Opening, Stagger, State};
use crate::association::stream_changes::StreamChangeState;
use crate::association::zero_checksum::ZeroChecksum;
use crate::association::{Association, AssociationEvent};
use crate::authentication::{AuthOffer, BadRandom, Keys, RANDOM_LEN};
use crate::config::{ErrorDetection, ListedAddresses};
use crate::cookie::{CookieBody, Offers};
use crate::error::AbortReason;
use crate::init::{
    Announced, address_params, announced, chunk_types, extensions, init_ack_violation, init_padding,
    listed_addresses, listed_locals, reportable_params, sack_flags, stream_control, zero_checksum,
};
use crate::path_id::{MAX_PATHS, PathId, PathSet, PathState};
use crate::policy::{AckForm, Event, LivenessProof, LossCause, StateCause};
use crate::profile::{SackFlags, Start as DataStart};
use crate::protection::{Agreement, Start, Transcript, agree};
use crate::recv::Receiver;
use crate::send::SendQueue;
use crate::units::WindowBytes;

/// Content of an INIT or INIT-ACK of the peer.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) tag: u32,
    pub(crate) initial_tsn: u32,
    pub(crate) a_rwnd: u32,
    /// Number of streams on which this side may send.
    pub(crate) outbound_streams: u16,
    /// Number of streams on which this side receives.
    pub(crate) inbound_streams: u16,
    pub(crate) addresses: ArrayVec<IpAddr, MAX_PATHS>,
    /// Extensions that the peer announces.
    pub(crate) announced: Announced,
    /// Offers of both sides for authentication, if the peer's offer is usable.
    pub(crate) authentication: Option<Offers>,
    /// Agreement on keys for the DTLS chunk, if packets are protected.
    pub(crate) protection: Option<Agreement>,
    /// Digest of the handshake, if both sides confirm it.
    pub(crate) transcript: Option<Transcript>,
}

/// Source of a valid cookie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieSource {
    pub(crate) path: PathId,
    /// `true` if the cookie proves the address (RFC 9260 section 5.4). If it does not, at most three times the bytes that came from
    /// the address are sent to it, without DATA and MTU probes, until it has answered a HEARTBEAT.
    pub(crate) proved: bool,
    /// Length of the packet in bytes.
    pub(crate) bytes: usize,
}

impl CookieSource {
    fn confirmed(self) -> Option<PathId> {
        self.proved.then_some(self.path)
    }
}

impl From<&CookieBody> for Peer {
    fn from(body: &CookieBody) -> Self {
        Peer {
            tag: body.peer_tag,
            initial_tsn: body.peer_initial_tsn,
            a_rwnd: body.peer_a_rwnd,
            outbound_streams: body.outbound_streams,
            inbound_streams: body.inbound_streams,
            addresses: body.peer_addresses.iter().copied().take(MAX_PATHS).collect(),
            announced: Announced::of_bits(body.peer_features),
            authentication: body.authentication.clone(),
            protection: body.protection.as_ref().and_then(|parameters| agree(parameters).ok()),
            transcript: body.transcript,
        }
    }
}

impl Association {
    /// Starts the handshake with an INIT on the first path.
    pub(crate) fn begin(&mut self) {
        let give_up = self.config.connect_timeout.map(|limit| self.now + limit);
        self.restart_handshake(Opening { give_up, ..Opening::default() });
        self.send_init(PathId::new(0));
    }

    /// Enters COOKIE-WAIT.
    pub(crate) fn restart_handshake(&mut self, opening: Opening) {
        self.state =
            State::CookieWait { opening, stagger: Stagger { path: PathId::new(0), left: 0, next_at: None } };
    }

    /// Sends the first INIT of a round over the paths, and starts T1-init.
    //= docs/rfc9260.txt#section-5.1
    //# The T1-init timer and T1-cookie timer SHOULD follow the same rules given in Section 6.3.
    pub(crate) fn send_init(&mut self, path: PathId) {
        self.start_t1(path);
        self.control.clear();
        self.note_init();
        self.control.push(Control::Init { path });
        self.stagger_init(path, self.unrefused_paths().count().saturating_sub(1));
    }

    /// Schedules the INIT of the next path, until all paths have had one since T1 started.
    fn stagger_init(&mut self, path: PathId, left: usize) {
        let wait = self.profile.init_stagger.filter(|_| left > 0);
        let next_at = wait.map(|wait| self.now + wait);
        if let Some(stagger) = self.state.stagger_mut() {
            *stagger = Stagger { path, left, next_at };
        }
        if let Some(opening) = self.state.opening_mut() {
            opening.tried.insert(path);
        }
    }

    /// Returns the number of paths on which INIT was sent, while no peer has answered; 0 otherwise.
    pub fn paths_tried(&self) -> usize {
        match &self.state {
            State::CookieWait { opening, .. } => opening.tried.len(),
            _ => 0,
        }
    }

    fn start_t1(&mut self, path: PathId) {
        let t1 = self.now + self.paths.facts(path).rto;
        if let Some(opening) = self.state.opening_mut() {
            opening.t1 = Some(t1);
        }
    }

    /// Sends INIT on the next path as well. The first answer decides; later ones are ignored.
    pub(crate) fn send_staggered_init(&mut self) {
        let State::CookieWait { stagger, .. } = self.state else { return };
        let path = self.path_after(stagger.path);
        self.note_init();
        self.control.push(Control::Init { path });
        self.stagger_init(path, stagger.left.saturating_sub(1));
    }

    pub(super) fn path_after(&self, path: PathId) -> PathId {
        let next = self.unrefused_paths().find(|id| *id > path);
        next.or_else(|| self.unrefused_paths().next()).unwrap_or(path)
    }

    pub(crate) fn write_init(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let repr = self.init_repr();
        let chunks = chunk_types(self.announces(), self.asconf_proof());
        let listed = listed_locals(self.addresses.local());
        //= docs/rfc9260.txt#section-3.3.2
        //# Unless otherwise noted, each parameter MUST only be included once in the INIT chunk.
        //= docs/rfc9260.txt#section-3.3.2
        //# Note 3: An INIT chunk MUST NOT contain the Host Name Address parameter.
        //= docs/rfc9260.txt#section-3.3.2.1.4
        //# The sender of an INIT chunk or INIT ACK chunk MUST NOT include this parameter.
        let params = address_params(&listed).into_iter().chain([Param::ForwardTsnSupported]);
        let sack_flags = sack_flags::param(&self.profile);
        let stream_control = stream_control::param(self.config.stream_control);
        let auth = self.addresses.local_random().map(AuthOffer::our_params).into_iter().flatten();
        let extensions = extensions(&chunks);
        let params = params
            .chain(extensions)
            .chain(auth)
            .chain(sack_flags)
            .chain(stream_control)
            .chain(zero_checksum::param(self.announces().zero_checksum))
            .chain(self.protection_param());
        if self.protection.offer().is_none() {
            return writer.init(&repr, params);
        }
        let padding = init_padding(&repr, params.clone(), writer.remaining() + COMMON_HEADER_LEN);
        writer.init(&repr, params.chain(RawParam::parse(&padding).ok().map(Param::Unknown)))
    }

    /// Returns the extensions in the INIT of this side: NR-SACK if the scheme acknowledges with it, ASCONF and RE-CONFIG
    /// if they are configured.
    pub(crate) fn announces(&self) -> Announced {
        Announced {
            nr_sack: self.policies.ack_form() != AckForm::Sack,
            asconf: self.config.address_changes.asconf,
            sack_flags: sack_flags::param(&self.profile).is_some(),
            forward_tsn: true,
            stream_control: self.config.stream_control,
            re_config: self.config.stream_changes.is_some(),
            i_data: self.config.interleaving,
            i_forward_tsn: self.config.interleaving,
            zero_checksum: self.config.error_detection == ErrorDetection::LowerLayerDtls,
        }
    }

    /// Returns the random number in the INIT of this side, if this side authenticates chunks.
    pub(crate) fn local_random(&self) -> Option<[u8; RANDOM_LEN]> {
        self.addresses.local_random().copied()
    }

    pub(crate) fn init_repr(&self) -> InitRepr {
        InitRepr {
            //= docs/rfc9260.txt#section-5.1
            //# In the INIT chunk, "A" MUST provide its Verification Tag (Tag_A) in the Initiate Tag field.
            initiate_tag: self.identity.local_tag,
            //= docs/rfc9260.txt#section-3.3.2
            //# The Advertised Receiver Window Credit MUST NOT be smaller than 1500.
            a_rwnd: self.config.first_window(),
            //= docs/rfc9260.txt#section-5.1.1
            //# In the INIT and INIT ACK chunks, the sender of the chunk MUST indicate the number of outbound streams (OS)
            //# it wishes to have in the association, as well as the maximum inbound streams (MIS) it will accept from the
            //# other endpoint.
            outbound_streams: self.config.offered_streams(),
            inbound_streams: self.config.offered_streams(),
            initial_tsn: Tsn::from_unwrapped(self.identity.initial_tsn),
        }
    }

    /// Handles the expiry of T1: sends the same chunk again on the next path, with a longer time-out.
    pub(crate) fn handle_t1(&mut self) {
        let limit = self.profile.max_init_retransmits;
        let stagger = match &self.state {
            State::CookieWait { stagger, .. } => Some(*stagger),
            _ => None,
        };
        let Some(opening) = self.state.opening_mut() else { return };
        opening.tries += 1;
        let tries = opening.tries;
        if tries > limit {
            //= docs/rfc9260.txt#section-4
            //# This MUST be repeated up to 'Max.Init.Retransmits' times.
            //= docs/rfc9260.txt#section-4
            //# After that, the endpoint MUST abort the initialization process and report the error to the SCTP user.
            self.abort_with(AbortReason::NoAnswer);
            return;
        }
        let staggers = self.profile.init_stagger.is_some();
        let path = match stagger.filter(|_| staggers) {
            // The round continues on the next path.
            Some(stagger) => self.path_after(stagger.path),
            //= docs/rfc9260.txt#section-5.1
            //# Retransmissions of INIT chunks and COOKIE ECHO chunks SHOULD use all addresses of the peer similar to
            //# retransmissions of DATA chunks.
            None => self.unrefused_or_next(PathId::new(tries as usize % self.paths.len())),
        };
        for id in self.paths.ids() {
            //= docs/rfc9260.txt#section-5.1.6
            //# When retransmitting the INIT chunk, the endpoint MUST follow the rules defined in Section 6.3 to determine
            //# the proper timer value.
            self.paths.back_off(id);
        }
        if stagger.is_none() {
            //= docs/rfc9260.txt#section-4
            //# 3)  If the T1-cookie timer expires, the endpoint MUST retransmit COOKIE ECHO chunk and restart the
            //# T1-cookie timer.
            //= docs/rfc9260.txt#section-5.1.4
            //# If the timer expires, the endpoint MUST retransmit the COOKIE ECHO chunk and restart the T1-cookie timer.
            self.discard_data_bundled_with_cookie();
            self.send_cookie_echo(path);
        } else {
            //= docs/rfc9260.txt#section-4
            //# 2)  If the T1-init timer expires, the endpoint MUST retransmit the INIT chunk and restart the T1-init
            //# timer.
            self.send_init(path);
        }
    }

    //= docs/rfc9260.txt#section-5.1.4
    //# The endpoint MUST also start the T1-cookie timer after sending the COOKIE ECHO chunk.
    //= docs/rfc9260.txt#section-5.4
    //= type=implication
    //# *  A COOKIE ECHO chunk MAY be sent to an UNCONFIRMED address, but it MUST be bundled with a HEARTBEAT chunk
    //# including a nonce, and the size of the SCTP packet MUST NOT exceed the PMTU.
    //= docs/rfc9260.txt#section-5.4
    //= type=implication
    //# If the implementation does not support bundling or if the bundled COOKIE ECHO chunk plus HEARTBEAT chunk
    //# (including nonce) would result in an SCTP packet larger than the PMTU, then the implementation MUST NOT send a
    //# COOKIE ECHO chunk to an UNCONFIRMED address.
    fn send_cookie_echo(&mut self, path: PathId) {
        self.start_t1(path);
        if let State::CookieEchoed { echo, .. } = &mut self.state {
            echo.begin_on(path);
        }
        self.control.clear();
    }

    /// Handles an INIT-ACK: adopts its content and echoes its cookie.
    pub(crate) fn handle_init_ack(&mut self, source: PathId, init: &InitView<'_>) {
        let State::CookieWait { opening, .. } = self.state else { return };
        let cookie = init.params().find_map(|param| match param {
            Ok(Param::StateCookie(cookie)) => Some(cookie.to_vec()),
            _ => None,
        });
        if let Some(flaw) = init_ack_violation(init) {
            self.refuse_init_ack(init, flaw, AbortReason::Protocol(flaw));
            return;
        }
        let Some(cookie) = cookie else {
            // RFC 9260 section 5.1: the handshake needs a cookie.
            self.refuse_init_ack(
                init,
                "INIT-ACK without cookie",
                AbortReason::Protocol("INIT-ACK without cookie"),
            );
            return;
        };
        if self.addresses.local_random().is_some() && AuthOffer::requires_more_authentication(init) {
            self.refuse_init_ack(
                init,
                "it takes chunks only authenticated that are not here",
                AbortReason::Protocol("it takes chunks only authenticated that are not here"),
            );
            return;
        }
        let Ok(authentication) = self.offers(init) else {
            // RFC 4895 section 6.1.
            self.refuse_init_ack(
                init,
                "RANDOM is not of 32 bytes",
                AbortReason::Protocol("RANDOM is not of 32 bytes"),
            );
            return;
        };
        let protection = match self.agree_on_protection(init) {
            Ok(protection) => protection,
            Err(why) => return self.refuse_init_ack(init, why, AbortReason::NotProtected(why)),
        };
        let peer = Peer {
            //= docs/rfc9260.txt#section-3.3.3
            //# This value MUST be placed into the Verification Tag field of every SCTP packet that the receiver of the
            //# INIT ACK chunk transmits within this association.
            tag: init.initiate_tag(),
            initial_tsn: init.initial_tsn().get(),
            a_rwnd: init.a_rwnd(),
            //= docs/rfc9260.txt#section-5.1.1
            //# After receiving the stream configuration information from the other side, each endpoint MUST perform the
            //# following check: If the peer's MIS is less than the endpoint's OS, meaning that the peer is incapable of
            //# supporting all the outbound streams the endpoint wants to configure, the endpoint MUST use MIS outbound
            //# streams and MAY report any shortage to the upper layer.
            outbound_streams: init.inbound_streams().min(self.config.offered_streams()),
            inbound_streams: init.outbound_streams().min(self.config.offered_streams()),
            addresses: listed_addresses(init),
            announced: announced(init),
            authentication,
            transcript: protection
                .as_ref()
                .filter(|agreed| agreed.confirms())
                .map(|_| self.transcript_with(init)),
            protection,
        };
        self.adopt_peer(&peer);
        let report = reportable_params(init).map(|raw| raw.bytes().to_vec()).collect();
        // After an answer, refusals by other paths count as transient.
        let opening = Opening { tries: 0, refused: PathSet::EMPTY, ..opening };
        self.state = State::CookieEchoed { opening, echo: CookieEcho::new(cookie, report, source) };
        //= docs/rfc9260.txt#section-3.3.3
        //# If an INIT ACK chunk is received with all mandatory parameters that are specified for the INIT ACK chunk, then
        //# the receiver SHOULD process the INIT ACK chunk and send back a COOKIE ECHO chunk.
        //= docs/rfc9260.txt#section-5.1.4
        //# When an endpoint (in the COOKIE-WAIT state) receives an INIT ACK chunk with a State Cookie parameter, it MUST
        //# immediately send a COOKIE ECHO chunk to its peer with the received State Cookie.
        self.send_cookie_echo(source);
    }

    /// Rejects an INIT ACK: reports the reason to the peer and ends the attempt.
    fn refuse_init_ack(&mut self, init: &InitView<'_>, why: &'static str, reason: AbortReason) {
        self.identity.peer_tag = init.initiate_tag();
        if self.identity.peer_tag == 0 {
            //= docs/rfc9260.txt#section-3.3.3
            //# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the Initiate Tag set to 0, it MUST
            //# destroy the TCB and SHOULD send an ABORT chunk with the T bit set.
            // Only the tag of this side identifies the INIT to the peer (RFC 9260 section 3.3.3).
            self.send_reflected_abort();
        } else {
            self.send_abort(why);
        }
        self.abort_with(reason);
    }

    /// Returns the offers of both sides for authentication, if both are usable.
    fn offers(&self, init: &InitView<'_>) -> Result<Option<Offers>, BadRandom> {
        let Some(&local_random) = self.addresses.local_random() else { return Ok(None) };
        Ok(AuthOffer::read(init)?.map(|peer| Offers { local_random, peer }))
    }

    /// Agrees on keys, and on ASCONF if both announce it. Sequence numbers of ASCONFs start again with the association.
    fn agree_on_authentication(&mut self, peer: &Peer) {
        let keys = peer.authentication.as_ref().and_then(|Offers { local_random, peer: theirs }| {
            self.addresses.set_local_random(*local_random);
            let ours = AuthOffer::ours(*local_random);
            Keys::agree(&ours, theirs, self.config.address_changes.shared_key.as_ref())
        });
        self.addresses.set_keys(keys);
        // Records authenticate as AUTH does.
        let by_records = peer.protection.is_some() && self.config.address_changes.asconf;
        if !peer.announced.asconf || !(by_records || self.addresses.keys().is_some()) {
            self.addresses.end_asconf();
            return;
        }
        let ours = Tsn::from_unwrapped(self.identity.initial_tsn).get();
        self.addresses.begin_asconf(ours, peer.initial_tsn);
    }

    /// Adopts the peer's content, on either side of the handshake.
    fn adopt_peer(&mut self, peer: &Peer) {
        //= docs/rfc9260.txt#section-5.3.1
        //# Moreover, the Verification Tag value used by either endpoint in a given association MUST NOT change during the
        //# life time of an association.
        //= docs/rfc9260.txt#section-8.5.1
        //# D) Rules for packets carrying a COOKIE ECHO chunk: *  When sending a COOKIE ECHO chunk, the endpoint MUST use
        //# the value of the Initiate Tag received in the INIT ACK chunk.
        self.identity.peer_tag = peer.tag;
        //= docs/rfc9260.txt#section-5.1.2
        //# C)  If there are only IPv4/IPv6 addresses present in the received INIT or INIT ACK chunk, the receiver MUST
        //# derive and record all the transport addresses from the received chunk AND the source IP address that sent the
        //# INIT or INIT ACK chunk.
        self.addresses.set_peer(peer.addresses.clone());
        let uses_nr_sack = peer.announced.nr_sack && self.announces().nr_sack;
        self.ack.agree_on_nr_sack(uses_nr_sack);
        let initial_tsn = (1 << 32) + u64::from(peer.initial_tsn);
        let start = Start {
            own_initial: self.identity.initial_tsn,
            peer_initial: initial_tsn,
            first_ssn: self.config.first_ssn,
            transcript: peer.transcript,
        };
        self.protection.begin(peer.protection.clone(), start);
        self.agree_on_authentication(peer);
        let changes_streams = peer.announced.re_config && self.announces().re_config;
        let own_initial_tsn = Tsn::from_unwrapped(self.identity.initial_tsn).get();
        self.stream_changes =
            changes_streams.then(|| Box::new(StreamChangeState::new(own_initial_tsn, peer.initial_tsn)));
        let foreign = self.profile.sack_flags == SackFlags::Announced && !peer.announced.sack_flags;
        self.sender.set_foreign_sack_flags(foreign);
        self.identity.peer_controls_streams = peer.announced.stream_control;
        self.identity.zero_checksum.agree(self.config.error_detection, peer.announced.zero_checksum);
        let buffer = self.config.recv_buffer_bytes;
        let first = self.config.first_ssn;
        let interleaves = peer.announced.i_data && self.announces().i_data;
        let receiver = Receiver::new(initial_tsn, peer.inbound_streams, first, buffer);
        let receiver = if interleaves { receiver.interleaved(first) } else { receiver };
        self.receiver = Some(receiver.with_contents(self.identity.contents));
        // RFC 8260 section 2.3.1: I-FORWARD-TSN replaces FORWARD-TSN.
        let skips = if interleaves { peer.announced.i_forward_tsn } else { peer.announced.forward_tsn };
        let window = WindowBytes::new(u64::from(peer.a_rwnd));
        self.take_streams(peer.outbound_streams);
        let unmet = self.update_sender(|sender| {
            sender.interleave(interleaves);
            sender.begin_window(window);
            sender.learn_support(skips)
        });
        if unmet {
            self.outputs.report(AssociationEvent::NoPartialReliability);
        }
        self.bound_packet_sizes();
    }

    /// Marks the data behind a COOKIE ECHO as lost, because the peer did not accept it. The next one carries it again.
    pub(crate) fn discard_data_bundled_with_cookie(&mut self) {
        for id in self.paths.ids() {
            self.paths.cancel_measurement(id);
            self.mark_path_lost(id, LossCause::Timeout, true);
        }
    }

    /// Handles a COOKIE-ACK, or a COOKIE-ECHO with the same meaning: the association is established.
    pub(crate) fn handle_cookie_ack(&mut self, source: PathId) {
        if matches!(self.state, State::CookieEchoed { .. }) {
            self.become_established(Some(source));
        }
    }

    fn become_established(&mut self, confirmed: Option<PathId>) {
        let shutdown = self.state.opening().is_some_and(|opening| opening.shutdown_when_up);
        self.state = State::Established;
        self.dispatch_event(&Event::Established);
        self.outputs.report(AssociationEvent::Connected);
        for id in self.paths.ids() {
            if self.paths[id].removed {
                continue;
            }
            // Retries of the handshake do not raise later time-outs.
            self.paths.cap_rto(id);
            // RFC 9260 section 5.4: the handshake confirms the address on which it took place. ns-2 confirms it with a HEARTBEAT as
            // well, which gives every path an RTT sample before data starts.
            let by_handshake = Some(id) == confirmed && !(self.identity.initiator && self.waits_for_all());
            if by_handshake {
                self.paths.trust(id);
                self.set_state(id, PathState::Active, StateCause::Proof(LivenessProof::Heartbeat));
                self.dispatcher().schedule_heartbeat(id);
            } else if self.addresses.local().contains(&self.paths[id].address.local_end()) {
                self.verify_path(id);
            } else {
                // The INIT of this side did not list the address yet.
                self.announce_added(id);
            }
        }
        self.report_costs();
        self.drop_gone_addresses();
        self.advance_asconf();
        self.check_start();
        if shutdown {
            self.begin_shutdown();
        }
    }

    fn waits_for_all(&self) -> bool {
        self.profile.start == DataStart::AfterAllConfirmed
    }

    /// Establishes the association on the passive side after a valid cookie came back on `source`.
    pub(crate) fn accept(&mut self, source: CookieSource, peer: &Peer) {
        self.adopt_peer(peer);
        self.note_source(source);
        if self.config.listed_addresses == ListedAddresses::Use {
            self.add_listed_paths(source.path);
        }
        self.become_established(source.confirmed());
        self.send_cookie_ack(source.path);
    }

    fn note_source(&mut self, source: CookieSource) {
        if !source.proved {
            self.paths.limit_to_reply(source.path, source.bytes);
        }
    }

    /// Adds a path for each address that the peer listed. The local address of the path is a guess until packets of the peer
    /// arrive: the local address at the same position of the list if both sides have equally many addresses, otherwise the address
    /// of the handshake.
    fn add_listed_paths(&mut self, source: PathId) {
        let listed = self.addresses.peer().clone();
        let paired = listed.len() == self.addresses.local().len();
        let from = self.paths[source].address;
        for (index, &remote) in listed.iter().enumerate() {
            let known = self.paths.iter().any(|p| p.address.remote == remote);
            let local = if paired { self.addresses.local()[index] } else { from.local_end() };
            //= docs/rfc9260.txt#section-5.1.2
            //# If an SCTP endpoint that only supports either IPv4 or IPv6 receives IPv4 and IPv6 addresses in an INIT or
            //# INIT ACK chunk from its peer, it MUST use all the addresses belonging to the supported address family.
            //= docs/rfc9260.txt#section-5.1.2
            //# The endpoint SHOULD NOT respond with any kind of error indication.
            if !known && local.address.is_ipv4() == remote.is_ipv4() {
                // A ninth address is ignored.
                if let Ok(id) = self.new_path(PathAddress { remote, ..from.from_end(local) }) {
                    self.paths.mark_listed(id);
                }
            }
        }
    }

    pub(crate) fn send_cookie_ack(&mut self, path: PathId) {
        if self.addresses.is_guarded() && self.paths.facts(path).state == PathState::Unconfirmed {
            self.send_heartbeat(path);
        }
        //= docs/rfc9260.txt#section-3.3.12
        //# This chunk MUST precede any DATA or SACK chunk sent within the association but MAY be bundled with one or more
        //# DATA chunks or SACK chunk's in the same SCTP packet.
        //= docs/rfc9260.txt#section-5.1
        //# A COOKIE ACK chunk MAY be bundled with any pending DATA chunks (and/or SACK chunks), but the COOKIE ACK chunk
        //# MUST be the first chunk in the packet.
        //= docs/rfc9260.txt#section-5.1.5
        //# The COOKIE ACK chunk MAY be bundled with an outbound DATA chunk or SACK chunk; however, the COOKIE ACK chunk
        //# MUST be the first chunk in the SCTP packet.
        //= docs/rfc9260.txt#section-5.1.5
        //# As mentioned in step 6, if the SACK chunk is bundled with the COOKIE ACK chunk, the COOKIE ACK chunk MUST
        //# appear first in the SCTP packet.
        self.control.push_first(Control::CookieAck { path });
    }

    /// Handles an INIT collision (RFC 9260 section 5.2.4 B): the peer's newer tag and numbers are valid.
    pub(crate) fn collide(&mut self, source: PathId, peer: &Peer) {
        if matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. }) {
            self.control.clear();
            self.discard_data_bundled_with_cookie();
            self.adopt_peer(peer);
            self.become_established(Some(source));
        }
        self.send_cookie_ack(source);
    }

    /// Handles a restart of the peer under the keys of this epoch that were kept for it. Returns `true` if the restart takes place:
    /// both sides must have set bit R again (draft-porfiri-tsvwg-sctp-dtls-handshake, section "SCTP Association Restart").
    pub(crate) fn restart_protected(&mut self, source: CookieSource, body: &CookieBody, epoch: u64) -> bool {
        let agreed = Peer::from(body).protection.is_some_and(|agreed| agreed.restart());
        let restarts = agreed && self.protection.follow_restart(epoch);
        if restarts {
            self.restart(source, body);
        }
        restarts
    }

    /// Handles a restart of the peer (RFC 9260 section 5.2.4.1): outstanding data is lost, and windows are reset.
    pub(crate) fn restart(&mut self, source: CookieSource, body: &CookieBody) {
        self.identity.restarts = self.identity.restarts.wrapping_add(1);
        self.identity.local_tag = body.local_tag;
        self.identity.zero_checksum = ZeroChecksum::default();
        self.identity.initial_tsn = (1 << 32) + u64::from(body.local_initial_tsn);
        let config = &self.config;
        let queue = SendQueue::new(config.streams, config.first_ssn, config.stream_scheduler);
        let awaited_room = self.sender.restart(queue, self.identity.initial_tsn);
        self.recovery = LossRecovery::new(self.identity.initial_tsn, self.paths.len());
        self.transmission.restart();
        self.reachability.note_answer();
        self.addresses.restart();
        self.control.clear();
        self.ack = AckState::default();
        self.policies.restart(self.config.scheme.policies(), &self.profile);
        self.reset_paths();
        self.adopt_peer(&Peer::from(body));
        //= docs/rfc9260.txt#section-5.2.4
        //# *  A RESTART notification SHOULD be sent to the ULP instead of a COMMUNICATION LOST notification.
        self.outputs.report(AssociationEvent::Restarted);
        if awaited_room {
            self.outputs.report(AssociationEvent::Writable);
        }
        self.become_established(source.confirmed());
        self.send_cookie_ack(source.path);
    }

    //= docs/rfc9260.txt#section-5.2.4
    //# All the congestion control parameters (e.g., cwnd, ssthresh) related to this peer MUST be reset to their initial
    //# values (see Section 6.2.1).
    fn reset_paths(&mut self) {
        for id in self.paths.ids() {
            let mtu = self.new_mtu_search(self.paths[id].address);
            self.paths.restart(id, mtu);
            let now = self.now;
            self.update_sender(|sender| sender.begin_path(id, now));
            self.begin_facts(id);
        }
    }

    /// Returns `true` if an INIT of a restarting peer names an address that this association does not have. Such a restart is
    /// refused, because an attacker could add an address (RFC 9260 section 5.2.2).
    pub(crate) fn lacks_any(&self, addresses: &[IpAddr]) -> bool {
        addresses
            .iter()
            .any(|a| !self.paths.iter().any(|p| p.address.remote == *a) && !self.addresses.peer().contains(a))
    }

    /// Returns `true` if the tags are the verification tags of both sides.
    pub(crate) fn has_tags(&self, local: u32, peer: u32) -> bool {
        (self.identity.local_tag, self.identity.peer_tag) == (local, peer)
    }

    /// Returns `true` while this side is setting the association up.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::CookieWait { .. } | State::CookieEchoed { .. })
    }

    /// Returns `true` if the next step is an INIT-ACK.
    pub(crate) fn awaits_init_ack(&self) -> bool {
        matches!(self.state, State::CookieWait { .. })
    }

    /// Returns `true` if the next step is a COOKIE-ACK.
    pub(crate) fn awaits_cookie_ack(&self) -> bool {
        matches!(self.state, State::CookieEchoed { .. })
    }

    /// Returns `true` if a SHUTDOWN-ACK is expected, or may cross with the SHUTDOWN-ACK of this side.
    pub(crate) fn awaits_shutdown_ack(&self) -> bool {
        matches!(self.state, State::ShutdownSent { .. } | State::ShutdownAckSent { .. })
    }

    /// Returns `true` if only the last step of a shutdown is missing (RFC 9260 section 5.2.4: no restart in that state).
    pub(crate) fn awaits_shutdown_complete(&self) -> bool {
        matches!(self.state, State::ShutdownAckSent { .. })
    }
}
