//! INIT and COOKIE-ECHO (RFC 9260 sections 5.1 and 5.2): no state is kept for an unknown peer until its cookie comes back.

use anabranch_wire::{
    Cause, Chunk, Header, InitRepr, InitView, PacketView, PacketWriter, Param, ParamList, RawParam, Tsn,
};
use arrayvec::ArrayVec;

use crate::address::Origin;
use crate::association::{Association, CookieSource, Peer};
use crate::authentication::{AuthOffer, BadRandom, RANDOM_LEN};
use crate::config::{AssociationConfig, LEAST_FIRST_WINDOW};
use crate::cookie::{CookieBody, GenuineCookie, Offers};
use crate::endpoint::restart::{Echo, RestartKeys};
use crate::endpoint::spent::Verdict;
use crate::endpoint::{AssociationId, Endpoint, Handled};
use crate::init::{
    Announced, AsconfProof, address_params, announced, chunk_types, digest_of, extensions, listed_addresses,
    listed_locals, protection_parameter, reportable_params, transcript,
};
use crate::path_id::{MAX_PATHS, PathId};
use crate::protection::{Mismatch, ParameterPair, ProtectionMode, Transcript, agree};
use crate::source::Source;
use crate::stats::Discard;
use crate::time::Span;

/// Maximum length of the replies in this module.
const REPLY_BYTES: usize = 1400;

/// Own values of a new or existing association for an INIT-ACK.
struct LocalSetup {
    local_tag: u32,
    initial_tsn: u32,
    tie_tags: (u32, u32),
}

impl Endpoint {
    pub(super) fn handle_init(&mut self, origin: Origin, header: Header, init: &InitView<'_>) -> Handled {
        if let Some(gates) = &mut self.gates
            && !gates.inits.admits(self.now, origin.address.remote)
        {
            return Handled::Discarded(Discard::Flood);
        }
        //= docs/rfc9260.txt#section-3.3.2
        //# A receiver of an INIT chunk with the OS value set to 0 MUST discard the packet, SHOULD send a packet in
        //# response containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT change the
        //# state of any existing association.
        //= docs/rfc9260.txt#section-3.3.2
        //# A receiver of an INIT chunk with the MIS value set to 0 MUST discard the packet, SHOULD send a packet in
        //# response containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT change the
        //# state of any existing association.
        let silent = init.inbound_streams() == 0 || init.outbound_streams() == 0;
        //= docs/rfc9260.txt#section-3.3.2
        //# A receiver of an INIT chunk with the a_rwnd value set to a value smaller than 1500 MUST discard the packet,
        //# SHOULD send a packet in response containing an ABORT chunk and using the Initiate Tag as the Verification Tag,
        //# and MUST NOT change the state of any existing association.
        if init.initiate_tag() == 0 || silent || init.a_rwnd() < LEAST_FIRST_WINDOW {
            return self.refuse_init(origin, header, init, Cause::InvalidParameter);
        }
        if init.params().any(|p| matches!(p, Ok(Param::HostNameAddress(_)))) {
            //= docs/rfc9260.txt#section-3.3.2
            //# The receiver of an INIT chunk containing a Host Name Address parameter MUST send an ABORT chunk and MAY
            //# include an "Unresolvable Address" error cause.
            //= docs/rfc9260.txt#section-3.3.2.1.4
            //# The receiver of an INIT chunk or an INIT ACK containing a Host Name Address parameter MUST send an ABORT
            //# chunk and MAY include an "Unresolvable Address" error cause.
            //= docs/rfc9260.txt#section-5.1.2
            //# B)  If there is a Host Name Address parameter present in the received INIT or INIT ACK chunk, the endpoint
            //# MUST immediately send an ABORT chunk and MAY include an "Unresolvable Address" error cause to its peer.
            //= docs/rfc9260.txt#section-5.1.2
            //# The ABORT chunk SHOULD be sent to the source IP address from which the last peer packet was received.
            //= docs/rfc9260.txt#section-12.2.4.1
            //# Endpoints receiving INIT or INIT ACK chunks containing the Host Name Address parameter MUST send an ABORT
            //# chunk in response and MAY include an "Unresolvable Address" error cause.
            return self.refuse_init(origin, header, init, Cause::UnresolvableAddress(&[]));
        }
        //= docs/rfc9260.txt#section-5.2.1
        //# When responding, the following rules MUST be applied:
        //= docs/rfc9260.txt#section-5.2.1
        //# 1)  The packet containing the INIT ACK chunk MUST only be sent to an address passed by the upper layer in the
        //# request to initialize the association.
        let existing = self.by_address(origin, header.source_port);
        if let Some(id) = existing
            && self.repeat_shutdown_ack(id)
        {
            //= docs/rfc9260.txt#section-9.2
            //# If an endpoint is in the SHUTDOWN-ACK-SENT state and receives an INIT chunk (e.g., if the SHUTDOWN
            //# COMPLETE chunk was lost) with source and destination transport addresses (either in the IP addresses or in
            //# the INIT chunk) that belong to this association, it SHOULD discard the INIT chunk and retransmit the
            //# SHUTDOWN ACK chunk.
            // RFC 9260 section 9.2: the INIT is dropped; the peer first has to end the old association.
            return Handled::Delivered(id);
        }
        if self.config.accept.is_none() && existing.is_none() {
            return self.refuse_init(origin, header, init, Cause::OutOfResource);
        }
        if existing.is_none() && !self.has_place_for(origin.address.remote.into()) {
            return Handled::Discarded(Discard::Full);
        }
        //= docs/rfc9260.txt#section-3.3.2
        //# If an INIT chunk is received with all mandatory parameters that are specified for the INIT chunk, then the
        //# receiver SHOULD process the INIT chunk and send back an INIT ACK.
        //= docs/rfc9260.txt#section-5.2.2
        //# Unless otherwise stated, upon receipt of an unexpected INIT chunk for this association, the endpoint MUST
        //# generate an INIT ACK chunk with a State Cookie.
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
        self.table.get_mut(id).is_some_and(|association| {
            association.clock(now);
            association.repeat_shutdown_ack()
        })
    }

    /// Returns the values for the answer to an INIT (RFC 9260 sections 5.1, 5.2.1 and 5.2.2); `None` for an INIT that would add
    /// addresses to an association whose peer has named its own.
    //= docs/rfc9260.txt#section-5.2.1
    //# After that, the endpoint MUST NOT change its state, the T1-init timer MUST be left running, and the corresponding
    //# TCB MUST NOT be destroyed.
    fn our_side(&mut self, existing: Option<AssociationId>, init: &InitView<'_>) -> Option<LocalSetup> {
        let Some(association) = existing.and_then(|id| self.table.get(id)).filter(|a| !a.is_closed()) else {
            let initial_tsn = self.config.accept.as_ref().and_then(|c| c.initial_tsn);
            let local_tag = self.fresh_tag();
            //= docs/rfc9260.txt#section-3.3.3
            //# The valid range is from 0 to 4294967295 and the Initial TSN SHOULD be set to a random value in that range.
            let initial_tsn = initial_tsn.unwrap_or_else(|| self.entropy.next_u32());
            //= docs/rfc9260.txt#section-5.2.2
            //# For a normal association INIT chunk (i.e., the endpoint is in the CLOSED state), the Tie-Tags MUST be set
            //# to 0 (indicating that no previous TCB existed).
            return Some(LocalSetup { local_tag, initial_tsn, tie_tags: (0, 0) });
        };
        let echoed = association.awaits_cookie_ack();
        //= docs/rfc9260.txt#section-5.2.1
        //# If the INIT chunk indicates that a new address has been added to the association, then the entire INIT chunk
        //# MUST be discarded, and the state of the existing association SHOULD NOT be changed.
        if echoed && association.lacks_any(&listed_addresses(init)) {
            return None;
        }
        if association.is_opening() {
            //= docs/rfc9260.txt#section-5.2.1
            //# Upon receipt of an INIT chunk in the COOKIE-WAIT state, an endpoint MUST respond with an INIT ACK chunk
            //# using the same parameters it sent in its original INIT chunk (including its Initiate Tag, unchanged).
            //= docs/rfc9260.txt#section-5.2.1
            //# Upon receipt of an INIT chunk in the COOKIE-ECHOED state, an endpoint MUST respond with an INIT ACK chunk
            //# using the same parameters it sent in its original INIT chunk (including its Initiate Tag, unchanged),
            //# provided that no new address has been added to the forming association.
            // A collision: the answer repeats the values of the own INIT.
            let repr = association.init_repr();
            let tie_tags = (association.identity().local_tag, association.identity().peer_tag);
            return Some(LocalSetup {
                local_tag: repr.initiate_tag,
                initial_tsn: repr.initial_tsn.get(),
                tie_tags,
            });
        }
        //= docs/rfc9260.txt#section-5.2.2
        //# Before responding, the endpoint MUST check to see if the unexpected INIT chunk adds new addresses to the
        //# association.
        //= docs/rfc9260.txt#section-5.2.2
        //# If new addresses are added to the association, the endpoint MUST respond with an ABORT chunk, copying the
        //# 'Initiate Tag' of the unexpected INIT chunk into the 'Verification Tag' of the outbound packet carrying the
        //# ABORT chunk.
        if association.lacks_any(&listed_addresses(init)) {
            return None;
        }
        let tie_tags = (association.identity().local_tag, association.identity().peer_tag);
        let local_tag = self.fresh_tag();
        //= docs/rfc9260.txt#section-5.2.2
        //# And the INIT ACK chunk MUST contain a new Initiate Tag (randomly generated; see Section 5.3.1).
        Some(LocalSetup { local_tag, initial_tsn: self.entropy.next_u32(), tie_tags })
    }

    //= docs/rfc9260.txt#section-5.1
    //# After sending an INIT ACK chunk with the State Cookie parameter, "Z" MUST NOT allocate any resources or keep any
    //# states for the new association.
    fn answer_init(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        ours: &LocalSetup,
    ) -> Handled {
        let Some((streams, window)) = self.offered(origin, header.source_port) else {
            return Handled::Discarded(Discard::BadInit);
        };
        let Ok(authentication) = self.offers(origin, header.source_port, init) else {
            // RFC 4895 section 6.1.
            let cause = Cause::ProtocolViolation(b"RANDOM is not of 32 bytes");
            return self.refuse_init(origin, header, init, cause);
        };
        let protection = match self.parameters(origin, header.source_port, init) {
            Ok(protection) => protection,
            Err(mismatch) => return self.refuse_init(origin, header, init, mismatch.cause()),
        };
        let agreed = protection.as_ref().and_then(|pair| agree(pair).ok());
        let confirms = agreed.is_some_and(|agreed| agreed.confirms());
        let mut body = CookieBody {
            local_tag: ours.local_tag,
            //= docs/rfc9260.txt#section-3.3.2
            //# This value MUST be placed into the Verification Tag field of every SCTP packet that the receiver of the
            //# INIT chunk transmits within this association.
            peer_tag: init.initiate_tag(),
            local_initial_tsn: ours.initial_tsn,
            peer_initial_tsn: init.initial_tsn().get(),
            peer_a_rwnd: init.a_rwnd(),
            local_port: header.destination_port,
            peer_port: header.source_port,
            outbound_streams: init.inbound_streams().min(streams),
            inbound_streams: init.outbound_streams().min(streams),
            //= docs/rfc9260.txt#section-5.2.1
            //# For an endpoint that is in the COOKIE-ECHOED state, it MUST populate its Tie-Tags within both the
            //# association TCB and inside the State Cookie (see Section 5.2.2 for a description of the Tie-Tags).
            //= docs/rfc9260.txt#section-5.2.2
            //# If no new addresses are added, when responding to the INIT chunk in the outbound INIT ACK chunk, the
            //# endpoint MUST copy its current Tie-Tags to a reserved place within the State Cookie and the association's
            //# TCB.
            tie_tags: ours.tie_tags,
            peer_address: origin.address.remote,
            peer_udp_port: origin.address.udp_port,
            peer_addresses: listed_addresses(init).into_iter().collect(),
            peer_features: announced(init).bits(),
            authentication,
            protection,
            // A placeholder of the final length, until the INIT ACK is written.
            transcript: confirms.then_some(Transcript::default()),
        };
        let repr = InitRepr {
            initiate_tag: ours.local_tag,
            a_rwnd: window,
            // At most the peer's limit (RFC 9260 section 3.3.3).
            //= docs/rfc9260.txt#section-3.3.3
            //# The value of 0 MUST NOT be used, and the value MUST NOT be greater than the MIS value sent in the INIT
            //# chunk.
            outbound_streams: body.outbound_streams,
            inbound_streams: streams,
            initial_tsn: Tsn::new(ours.initial_tsn),
        };
        //= docs/rfc9260.txt#section-5.1
        //# The destination IP address of the INIT ACK chunk MUST be set to the source IP address of the INIT chunk to
        //# which this INIT ACK chunk is responding.
        //= docs/rfc9260.txt#section-5.1
        //# An endpoint MUST send the INIT ACK chunk to the IP address from which it received the INIT chunk.
        //= docs/rfc9260.txt#section-5.1.2
        //# The packet containing the INIT ACK chunk MUST be sent to the source address of the packet containing the INIT
        //# chunk.
        //= docs/rfc9260.txt#section-5.2.1
        //# 2)  The packet containing the INIT ACK chunk MUST only be sent to an address reported in the incoming INIT
        //# chunk.
        //= docs/rfc9260.txt#section-5.2.1
        //# 3)  The packet containing the INIT ACK chunk SHOULD be sent to the source address of the received packet
        //# containing the INIT chunk.
        let Some(mut answer) = self.write_init_ack(origin, header, init, &repr, &body) else {
            return Handled::Discarded(Discard::ShortQuestion);
        };
        if confirms {
            body.transcript = handshake_of(init, &answer);
            self.note_answered(origin, header.source_port, body.transcript);
            // The packet has the same length as before, and so have its parts.
            answer = self.write_init_ack(origin, header, init, &repr, &body).unwrap_or(answer);
        }
        self.reply(origin, answer)
    }

    /// Records a handshake that may confirm an association that this side is opening.
    fn note_answered(&mut self, origin: Origin, peer_port: u16, handshake: Option<Transcript>) {
        let existing = self.by_address(origin, peer_port);
        if let (Some(id), Some(handshake)) = (existing, handshake)
            && let Some(association) = self.table.get_mut(id).filter(|association| association.is_opening())
        {
            association.note_answered(handshake);
        }
    }

    /// Returns the streams and the window of the association that the INIT would open.
    fn offered(&self, origin: Origin, peer_port: u16) -> Option<(u16, u32)> {
        if let Some(association) = self.by_address(origin, peer_port).and_then(|id| self.table.get(id)) {
            let repr = association.init_repr();
            //= docs/rfc9260.txt#section-5.2.2
            //# Other parameters for the endpoint SHOULD be copied from the existing parameters of the association (e.g.,
            //# number of outbound streams) into the INIT ACK chunk and cookie.
            return Some((repr.outbound_streams, repr.a_rwnd));
        }
        let accept = self.config.accept.as_ref()?;
        //= docs/rfc9260.txt#section-3.3.3
        //# The Advertised Receiver Window Credit MUST NOT be smaller than 1500.
        //= docs/rfc9260.txt#section-3.3.3
        //# The value 0 MUST NOT be used.
        Some((accept.offered_streams(), accept.first_window()))
    }

    /// Returns the offers of both sides for authentication, if both are usable. A collision repeats the random number of the own
    /// INIT, as it repeats the tag (RFC 4895 section 6.1).
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
                (random.is_some(), random.filter(|_| association.is_opening()))
            }
            None => {
                let wants =
                    |accept: &AssociationConfig| accept.address_changes.asconf && accept.protection.is_none();
                (self.config.accept.as_ref().is_some_and(wants), None)
            }
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

    /// Returns the offers of both sides for protection, if they agree; `None` without protection. A collision repeats the offer of
    /// the own INIT.
    fn parameters(
        &mut self,
        origin: Origin,
        peer_port: u16,
        init: &InitView<'_>,
    ) -> Result<Option<ParameterPair>, Mismatch> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let (wanted, repeated) = match existing {
            Some(association) => (association.wanted_protection(), association.repeated_offer()),
            None => (self.config.accept.as_ref().and_then(|accept| accept.protection.as_ref()), None),
        };
        let Some(wanted) = wanted.cloned() else { return Ok(None) };
        let local = repeated.unwrap_or_else(|| wanted.parameter(self.entropy.next_u32()));
        let peer = protection_parameter(init).ok_or(Mismatch::Missing);
        let pair = peer.map(|peer| ParameterPair { local, peer });
        match pair.and_then(|pair| agree(&pair).map(|_| pair)) {
            Ok(pair) => Ok(Some(pair)),
            Err(_) if wanted.mode == ProtectionMode::Loose => Ok(None),
            Err(mismatch) => Err(mismatch),
        }
    }

    /// Returns a packet with an INIT ACK and the cookie for it; `None` if the INIT is too short for any answer.
    fn write_init_ack(
        &self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        repr: &InitRepr,
        body: &CookieBody,
    ) -> Option<Vec<u8>> {
        let mut cookie = Vec::new();
        //= docs/rfc9260.txt#section-5.1
        //# Moreover, "Z" MUST generate and send along with the INIT ACK chunk a State Cookie.
        //= docs/rfc9260.txt#section-5.2.1
        //# The endpoint MUST also generate a State Cookie with the INIT ACK chunk.
        self.jar.seal(self.now, body, &mut cookie);
        let addresses = address_params(&listed_locals(&self.locals));
        let random = body.authentication.as_ref().map(|offers| &offers.local_random);
        let auth = random.map(AuthOffer::our_params).into_iter().flatten();
        let offer = body.protection.as_ref().and_then(|pair| param_of(&pair.local));
        //= docs/rfc9260.txt#section-3.3.3
        //# Note 3: An INIT ACK chunk MUST NOT contain the Host Name Address parameter.
        //= docs/rfc9260.txt#section-3.3.3.1
        //# The Host Name Address parameter is described in Section 3.3.2.1.4 and MUST NOT be included in an INIT ACK
        //# chunk.
        let zero_checksum = self.announced_zero_checksum(origin, header.source_port, init);
        let needed: Vec<Param<'_>> =
            [Param::StateCookie(&cookie)].into_iter().chain(auth).chain(offer).chain(zero_checksum).collect();
        let nr_sack = self.announces_nr_sack(origin, header.source_port);
        let (asconf, proof) = match offer {
            Some(_) => (self.accepts_asconf(origin, header.source_port), AsconfProof::Record),
            None => (random.is_some(), AsconfProof::Auth),
        };
        let re_config = self.announces_re_config(origin, header.source_port);
        let i_data = self.announces_i_data(origin, header.source_port);
        let announced =
            Announced { nr_sack, asconf, re_config, i_data, i_forward_tsn: i_data, ..Announced::default() };
        let chunks = chunk_types(announced, proof);
        let extensions = extensions(&chunks);
        let optional = [Param::ForwardTsnSupported].into_iter().chain(extensions);
        let optional = optional.chain(self.announced_sack_flags(origin, header.source_port));
        let optional = optional.chain(self.announced_stream_control(origin, header.source_port));
        //= docs/rfc9260.txt#section-3.2.2
        //# If the receiver of an INIT chunk detects unrecognized parameters and has to report them according to Section
        //# 3.2.1, it MUST put the "Unrecognized Parameter" parameter(s) in the INIT ACK chunk sent in response to the
        //# INIT chunk.
        let optional: Vec<Param<'_>> = optional.chain(unrecognized(init)).collect();
        let mut bytes = vec![0; REPLY_BYTES.min(self.longest_reply(origin))];
        //= docs/rfc9260.txt#section-5.1
        //# In the response, besides filling in other parameters, "Z" MUST set the Verification Tag field to Tag_A and
        //# also provide its own Verification Tag (Tag_Z) in the Initiate Tag field.
        //= docs/rfc9260.txt#section-5.2.2
        //# The outbound SCTP packet containing this INIT ACK chunk MUST carry a Verification Tag value equal to the
        //# Initiate Tag found in the unexpected INIT chunk.
        let mut writer = PacketWriter::new(&mut bytes, answer(header, init.initiate_tag())).ok()?;
        //= docs/rfc9260.txt#section-12.4
        //# An SCTP implementation SHOULD attempt to make the INIT ACK chunk as small as possible to reduce the
        //# possibility of byte amplification attacks.
        // Parameters that do not fit are omitted: first the addresses, because packets from unlisted addresses are accepted.
        let none: &[Param<'_>] = &[];
        let written =
            [(&addresses[..], &optional[..]), (none, &optional[..]), (&addresses[..], none), (none, none)]
                .into_iter()
                .any(|(addresses, optional)| {
                    let params = addresses.iter().chain(&needed).chain(optional).copied();
                    writer.init_ack(repr, params).is_ok()
                });
        if !written {
            return None;
        }
        let length = match zero_checksum {
            Some(_) => writer.finish_without_checksum(),
            None => writer.finish(),
        };
        bytes.truncate(length);
        Some(bytes)
    }

    //= docs/rfc9260.txt#section-5.1
    //# If an endpoint receives an INIT, INIT ACK, or COOKIE ECHO chunk but decides not to establish the new association
    //# due to missing mandatory parameters in the received INIT or INIT ACK chunk, invalid parameter values, or lack of
    //# local resources, it SHOULD respond with an ABORT chunk.
    //= docs/rfc9260.txt#section-5.1
    //# It SHOULD also specify the cause of abort, such as the type of the missing mandatory parameters, etc., by
    //# including an error cause in the ABORT chunk.
    //= docs/rfc9260.txt#section-5.1
    //# The Verification Tag field in the common header of the outbound SCTP packet containing the ABORT chunk MUST be set
    //# to the Initiate Tag value of the received INIT or INIT ACK chunk this ABORT chunk is responding to.
    //= docs/rfc9260.txt#section-8.4
    //# If, for whatever reason, the INIT chunk cannot be processed normally and an ABORT chunk has to be sent in
    //# response, the Verification Tag of the packet containing the ABORT chunk MUST be the Initiate Tag of the received
    //# INIT chunk, and the T bit of the ABORT chunk has to be set to 0, indicating that the Verification Tag is not
    //# reflected.
    fn refuse_init(
        &mut self,
        origin: Origin,
        header: Header,
        init: &InitView<'_>,
        cause: Cause<'_>,
    ) -> Handled {
        //= docs/rfc9260.txt#section-3.3.2
        //# If the value of the Initiate Tag in a received INIT chunk is found to be 0, the receiver MUST silently discard
        //# the packet.
        if init.initiate_tag() == 0 {
            return Handled::Discarded(Discard::BadInit);
        }
        self.send_abort(origin, answer(header, init.initiate_tag()), false, [cause])
    }

    //= docs/rfc9260.txt#section-5.2.1
    //# An ABORT chunk SHOULD be sent in a response that MAY include the "Restart of an Association with New Addresses"
    //# error cause.
    //= docs/rfc9260.txt#section-5.2.2
    //# After sending the INIT ACK or ABORT chunk, the endpoint MUST take no further actions, i.e., the existing
    //# association, including its current state, and the corresponding TCB MUST NOT be changed.
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
        //= docs/rfc9260.txt#section-5.2.1
        //# The error SHOULD list the addresses that were added to the restarting association.
        //= docs/rfc9260.txt#section-5.2.2
        //# The error SHOULD list the addresses that were added to the restarting association.
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
        //= docs/rfc9260.txt#section-3.3.7
        //# If the Verification Tag is reflected, the T bit MUST be set to 1.
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
        echo: Echo<'_>,
    ) -> Handled {
        let Ok(screened) = self.jar.screen(cookie, header) else {
            return Handled::Discarded(Discard::CookieForged);
        };
        if let Some(gates) = &mut self.gates
            && !gates.cookies.admits(self.now, screened.name())
        {
            return Handled::Discarded(Discard::Flood);
        }
        //= docs/rfc9260.txt#section-4
        //# 1)  If the State Cookie in the received COOKIE ECHO chunk is invalid (i.e., failed to pass the integrity
        //# check), the receiver MUST silently discard the packet.
        let Ok(genuine) = screened.open_at_any_age() else {
            return Handled::Discarded(Discard::CookieForged);
        };
        let life = self.cookie_life();
        let stale = genuine.stale_by(self.now, life);
        let body = genuine.body.clone();
        match (self.existing_for(&body, origin), stale) {
            // Section 5.2.4, step 3: age does not matter if both tags are those of the association.
            //= docs/rfc9260.txt#section-5.2.4
            //# If the State Cookie is older than the lifespan carried in the State Cookie and the Verification Tags
            //# contained in the State Cookie do not match the current association's Verification Tags, the packet,
            //# including the COOKIE ECHO chunk and any DATA chunks, SHOULD be discarded.
            //= docs/rfc9260.txt#section-5.2.4
            //# The endpoint also MUST transmit an ERROR chunk with a "Stale Cookie" error cause to the peer endpoint
            //# (this is case C or D in Section 5.2).
            (Some(id), Some(by)) if !self.has_tags(id, (body.local_tag, body.peer_tag)) => match echo {
                Echo::Plain(_) => self.report_stale(origin, header, &body, by),
                // No answer would be authentic to the peer.
                Echo::Record { .. } => Handled::Discarded(Discard::CookieStale),
            },
            //= docs/rfc9260.txt#section-5.1.5
            //# If a COOKIE ECHO chunk is received from an endpoint with which the receiver of the COOKIE ECHO chunk has
            //# an existing association, the procedures in Section 5.2 SHOULD be followed.
            (Some(id), _) => self.cookie_for_existing(id, origin, header, &body, echo),
            //= docs/rfc9260.txt#section-5.1.5
            //# If the elapsed time is longer than the lifespan carried in the State Cookie, then the packet, including
            //# the COOKIE ECHO chunk and any attached DATA chunks, SHOULD be discarded, and the endpoint MUST transmit an
            //# ERROR chunk with a "Stale Cookie" error cause to the peer endpoint.
            (None, Some(by)) => self.report_stale(origin, header, &body, by),
            (None, None) => match echo {
                Echo::Plain(packet) => self.open_from_cookie(origin, header, &genuine, packet),
                Echo::Record { .. } => Handled::Discarded(Discard::CookieUnexpected),
            },
        }
    }

    /// Returns the source of a valid cookie. By RFC 9260 section 5.4, the address to which the cookie was sent is confirmed. An
    /// endpoint with a guard requires an answer to a HEARTBEAT first, because the packet may be a copy of the peer's or have a
    /// forged source.
    fn source(&self, path: PathId, origin: Origin) -> CookieSource {
        CookieSource { path, proved: self.config.guard.is_none(), bytes: origin.bytes }
    }

    fn cookie_life(&self) -> Span {
        self.config.accept.as_ref().map_or(Span::from_secs(60), |c| c.profile.cookie_life)
    }

    /// Returns the association of a cookie: the one with the local tag, the one with its tie tags, or else the one with the peer
    /// that sends it. A peer whose UDP port has changed since its INIT is found too.
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
        genuine: &GenuineCookie,
        packet: &PacketView<'_>,
    ) -> Handled {
        let body = &genuine.body;
        // The cookie was sent to that address. The source of this packet may be forged.
        let source = Source::from(body.peer_address);
        let name = (genuine.created(), body.local_tag, source);
        let known = self.table.by_tag(body.local_tag).map(|_| Verdict::Spent);
        match known.unwrap_or_else(|| self.spent.verdict(name)) {
            // A late copy of the cookie of an association that has ended must not open another one with the same tag.
            Verdict::Spent => {
                return self.send_abort(origin, answer(header, header.verification_tag), true, []);
            }
            Verdict::Unknown { by } => return self.report_stale(origin, header, body, by),
            Verdict::Unspent => {}
        }
        let Some(config) = self.config.accept.clone() else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        if !self.has_place_for(source) {
            return Handled::Discarded(Discard::Full);
        }
        if body.tie_tags != (0, 0) {
            // It was made for an association that was removed: RFC 9260 section 5.2.4 C, a late echo.
            return Handled::Discarded(Discard::CookieUnexpected);
        }
        let seed = self.seed(body.local_tag, body.local_initial_tsn, body.peer_port, false);
        let mut association = Association::new(self.now, config, seed);
        //= docs/rfc9260.txt#section-3.3.2.1.2
        //# If the INIT chunk does not contain any IP Address parameters, the endpoint receiving the INIT chunk MUST use
        //# the source address associated with the received IP datagram as its sole destination address for the
        //# association.
        //= docs/rfc9260.txt#section-5.1.2
        //# A)  If there are no address parameters present in the received INIT or INIT ACK chunk, the endpoint MUST take
        //# the source IP address from which the chunk arrives and record it, in combination with the SCTP Source Port
        //# Number, as the only destination transport address for this peer.
        let Ok(path) = association.new_path(origin.address) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        association.accept(self.source(path, origin), &Peer::from(body));
        let id = self.table.insert_accepted(association, source);
        self.spent.spend(self.now, self.cookie_life(), name);
        // Its length counts once.
        //= docs/rfc9260.txt#section-5.1.5
        //# 7)  Immediately acknowledge any DATA chunk bundled with the COOKIE ECHO chunk with a SACK chunk (subsequent
        //# DATA chunk acknowledgement SHOULD follow the rules defined in Section 6.2).
        self.deliver_to(id, Origin { bytes: 0, ..origin }, packet, 1);
        Handled::New(id)
    }

    /// Applies RFC 9260 section 5.2.4, actions A to D by the matching tags.
    fn cookie_for_existing(
        &mut self,
        id: AssociationId,
        origin: Origin,
        header: Header,
        body: &CookieBody,
        echo: Echo<'_>,
    ) -> Handled {
        let guarded = self.config.guard.is_some();
        let Some(association) = self.table.get_mut(id) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        association.clock(self.now);
        match echo {
            // A restart needs kept keys, and so does an answer.
            Echo::Plain(_) if association.refuses_plain_cookies() => {
                return Handled::Discarded(Discard::Unprotected);
            }
            Echo::Record { id: of, .. } if of != id => {
                return Handled::Discarded(Discard::CookieUnexpected);
            }
            Echo::Plain(_) | Echo::Record { .. } => {}
        }
        // A retry may use another pair of addresses than the first attempt.
        let Some(path) = association.path_of_origin(origin) else {
            return Handled::Discarded(Discard::CookieUnexpected);
        };
        let ours = association.identity().local_tag == body.local_tag;
        let theirs = association.identity().peer_tag == body.peer_tag;
        let tied = body.tie_tags == (association.identity().local_tag, association.identity().peer_tag);
        match (ours, theirs) {
            _ if !echo.admits(ours, theirs) => return Handled::Discarded(Discard::CookieUnexpected),
            (true, true) => {
                //= docs/rfc9260.txt#section-5.2.4
                //# D)  When both local and remote tags match, the endpoint SHOULD enter the ESTABLISHED state if it is in
                //# the COOKIE-ECHOED state.
                //= docs/rfc9260.txt#section-5.2.4
                //# It SHOULD stop any T1-cookie timer that is running and send a COOKIE ACK chunk.
                association.handle_cookie_ack(path);
                association.send_cookie_ack(path);
            }
            //= docs/rfc9260.txt#section-5.2.4
            //# The endpoint SHOULD stay in or enter the ESTABLISHED state, but it MUST update its peer's Verification Tag
            //# from the State Cookie, stop any T1-init or T1-cookie timers that might be running, and send a COOKIE ACK
            //# chunk.
            (true, false) => association.collide(path, &Peer::from(body)),
            //= docs/rfc9260.txt#section-5.2.4
            //# If the endpoint is in the SHUTDOWN-ACK-SENT state and recognizes that the peer has restarted (Action A),
            //# it MUST NOT set up a new association but instead resend the SHUTDOWN ACK chunk and send an ERROR chunk
            //# with a "Cookie Received While Shutting Down" error cause to its peer.
            (false, false) if tied && association.awaits_shutdown_complete() => {
                self.repeat_shutdown_ack(id);
                if echo.is_plain() {
                    let causes = [Cause::CookieWhileShuttingDown];
                    self.send_error(origin, answer(header, body.peer_tag), causes);
                }
                return Handled::Delivered(id);
            }
            (false, false) if tied => {
                let old = association.identity().local_tag;
                let source = CookieSource { path, proved: !guarded, bytes: origin.bytes };
                match echo {
                    Echo::Record { keys: RestartKeys::Kept(epoch), .. } => {
                        if !association.restart_protected(source, body, epoch) {
                            return Handled::Discarded(Discard::CookieUnexpected);
                        }
                    }
                    Echo::Record { .. } | Echo::Plain(_) => association.restart(source, body),
                }
                self.table.retag(id, old, body.local_tag);
            }
            //= docs/rfc9260.txt#section-5.2.4
            //# For any case not shown in Table 12, the cookie SHOULD be silently discarded.
            //= docs/rfc9260.txt#section-5.2.4
            //# The cookie SHOULD be silently discarded.
            //= docs/rfc9260.txt#section-5.2.4
            //# The endpoint SHOULD NOT change states and SHOULD leave any timers running.
            _ => return Handled::Discarded(Discard::CookieUnexpected),
        }
        // Its length has been counted.
        let origin = Origin { bytes: 0, ..origin };
        match echo {
            Echo::Plain(packet) => self.deliver_to(id, origin, packet, 1),
            Echo::Record { behind, .. } => self.deliver_behind_cookie(id, origin, behind),
        }
    }

    //= docs/rfc9260.txt#section-4
    //# Or, if the received State Cookie is expired (see Section 5.1.5), the receiver MUST send back an ERROR chunk.
    fn report_stale(&mut self, origin: Origin, header: Header, body: &CookieBody, by: Span) -> Handled {
        //= docs/rfc9260.txt#section-3.3.10.3
        //# If the sender does not wish to provide the Measure of Staleness, it SHOULD set this field to the value of
        //# zero.
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

/// Returns the digest of an INIT and of the packet that answers it.
fn handshake_of(init: &InitView<'_>, answer: &[u8]) -> Option<Transcript> {
    let packet = PacketView::parse(answer).ok()?;
    match packet.chunks().next()?.ok()?.decode() {
        Ok(Chunk::InitAck(ack)) => Some(transcript(&digest_of(init), &digest_of(&ack))),
        _ => None,
    }
}

/// Returns a parameter that was stored as bytes.
fn param_of(bytes: &[u8]) -> Option<Param<'_>> {
    RawParam::parse(bytes).ok()?.decode().ok()
}

/// Returns the header of an answer to `header`.
pub(super) fn answer(header: Header, tag: u32) -> Header {
    Header {
        source_port: header.destination_port,
        destination_port: header.source_port,
        verification_tag: tag,
    }
}

/// Returns the unknown parameters that ask for a report by the high bits of their type (RFC 9260 section 3.2.1).
//= docs/rfc9260.txt#section-3.3.3.1.2
//# This parameter is returned to the originator of the INIT chunk when the INIT chunk contains an unrecognized parameter
//# that has a type that indicates it SHOULD be reported to the sender.
fn unrecognized<'a>(init: &InitView<'a>) -> impl Iterator<Item = Param<'a>> + Clone + use<'a> {
    reportable_params(init).map(|raw| Param::UnrecognizedParameter(raw.bytes()))
}
