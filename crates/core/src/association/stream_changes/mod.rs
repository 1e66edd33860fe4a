//! Changes of streams while the association is up (RFC 6525): resets of stream sequence numbers, and additional streams.
//!
//! [`requests`] are those of this side, one at a time, and [`answers`] those of the peer. A reset of outgoing streams is requested
//! once all earlier messages on them are acknowledged or abandoned. Later messages wait for the answer
//! (`HeldMessages` of the sender).
//!
//! SSN/TSN resets are denied, which RFC 6525 section 5.2.4 permits, and never requested.

mod answers;
mod requests;

use anabranch_wire::{NoSpace, OutgoingReset, PacketWriter, Param, ReConfigView, ReconfigResult};

use crate::association::control::Control;
use crate::association::re_config_answer::{AnswerList, MOST_REQUESTS};
use crate::association::state::State;
use crate::association::{Association, AssociationEvent};
use crate::error::StreamsError;
use crate::path_id::PathId;
use crate::policy::OpportunityCause;
use crate::stats::Discard;
use crate::stream_set::StreamSet;
use crate::time::Time;

use answers::{Answers, Deferred, Judged};
use requests::{MOST_LISTED, Progress, Request, Requests};

/// Direction of streams, as seen from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamDirection {
    /// Streams on which this side sends.
    Outgoing,
    /// Streams on which the peer sends.
    Incoming,
}

/// Request of this side for a change of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// Reset of these streams of a direction; no stream means all.
    Reset {
        /// Direction of the streams.
        direction: StreamDirection,
        /// Streams in ascending order.
        streams: Vec<u16>,
    },
    /// Addition of streams.
    Add {
        /// Direction of the streams.
        direction: StreamDirection,
        /// Number of new streams.
        streams: u16,
    },
}

/// Reason for which the peer has not performed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRefusal {
    /// The peer does not permit it.
    Denied,
    /// A stream does not exist, or the peer waits for an earlier message on it.
    WrongStream,
    /// The peer performs another request.
    Busy,
    /// The peer expects another sequence number.
    WrongNumber,
    /// Result that RFC 6525 does not define.
    Unknown(u32),
}

impl StreamRefusal {
    /// Returns the refusal that a result reports; `None` for success.
    fn of(result: ReconfigResult) -> Option<Self> {
        match result {
            ReconfigResult::NOTHING_TO_DO | ReconfigResult::PERFORMED => None,
            ReconfigResult::DENIED => Some(StreamRefusal::Denied),
            ReconfigResult::WRONG_SSN => Some(StreamRefusal::WrongStream),
            ReconfigResult::ALREADY_IN_PROGRESS => Some(StreamRefusal::Busy),
            ReconfigResult::BAD_SEQUENCE_NUMBER => Some(StreamRefusal::WrongNumber),
            ReconfigResult(other) => Some(StreamRefusal::Unknown(other)),
        }
    }
}

/// State of changes of streams. It exists if both sides support them.
#[derive(Clone, Debug)]
pub(crate) struct StreamChangeState {
    requests: Requests,
    answers: Answers,
}

impl StreamChangeState {
    pub(crate) fn new(own_initial_tsn: u32, peer_initial_tsn: u32) -> Self {
        StreamChangeState {
            requests: Requests::new(own_initial_tsn),
            answers: Answers::new(peer_initial_tsn),
        }
    }

    /// Returns the time at which the outstanding request is sent again.
    pub(crate) fn timer(&self) -> Option<Time> {
        self.requests.timer()
    }

    /// Writes the outstanding request.
    pub(crate) fn write_request(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        self.requests.write(writer)
    }
}

/// Requests of this side.
impl Association {
    /// Returns `true` if both sides support changes of streams (RFC 6525).
    pub fn changes_streams(&self) -> bool {
        self.stream_changes.is_some()
    }

    /// Requests a reset of streams on which this side sends; no stream means all. The stream sequence numbers of later messages
    /// start at zero.
    ///
    /// Nothing is discarded: the request waits until all earlier messages on the streams are acknowledged or abandoned. Later ones
    /// wait in the send buffer for the answer of the peer. [`AssociationEvent::StreamsReset`] or
    /// [`AssociationEvent::StreamRequestFailed`] reports it; the streams continue in both cases. Long lists are requested and
    /// reported in parts.
    ///
    /// # Errors
    /// Returns [`StreamsError`]; no stream is reset then.
    pub fn reset_streams(&mut self, now: Time, streams: &[u16]) -> Result<(), StreamsError> {
        self.clock(now);
        let set = StreamSet::of(streams.iter().copied());
        self.admit_stream_request(&set, self.outbound_streams())?;
        if let Some(stream) = self.sender.held().first_of(&set) {
            return Err(StreamsError::InProgress { stream });
        }
        self.ask_stream_changes(set.split(MOST_LISTED), |streams| Request::ResetOutgoing {
            streams,
            answers: None,
        })
    }

    /// Requests that the peer resets streams on which it sends; no stream means all. If the peer agrees, it resets them once its
    /// earlier messages have arrived, and [`AssociationEvent::StreamsReset`] reports the reset.
    ///
    /// # Errors
    /// Returns [`StreamsError`]; nothing is requested then.
    pub fn request_incoming_reset(&mut self, now: Time, streams: &[u16]) -> Result<(), StreamsError> {
        self.clock(now);
        let set = StreamSet::of(streams.iter().copied());
        self.admit_stream_request(&set, self.inbound_streams())?;
        self.ask_stream_changes(set.split(MOST_LISTED), |streams| Request::ResetIncoming { streams })
    }

    /// Requests more streams of a direction. [`AssociationEvent::StreamsAdded`] or [`AssociationEvent::StreamRequestFailed`] reports
    /// the answer. Streams on which this side sends can be used after the event.
    ///
    /// # Errors
    /// Returns [`StreamsError`]; nothing is requested then.
    pub fn add_streams(
        &mut self,
        now: Time,
        direction: StreamDirection,
        streams: u16,
    ) -> Result<(), StreamsError> {
        self.clock(now);
        let limit = self.admit_any_stream_request()?;
        let (outgoing, incoming) =
            self.stream_changes.as_ref().map_or((0, 0), |changes| changes.requests.streams_to_add());
        let (present, asked) = match direction {
            StreamDirection::Outgoing => (self.outbound_streams(), outgoing),
            StreamDirection::Incoming => (self.inbound_streams(), incoming),
        };
        if u32::from(present) + asked + u32::from(streams) > u32::from(limit) {
            return Err(StreamsError::TooManyStreams { limit });
        }
        self.ask_stream_changes(vec![streams], |streams| match direction {
            StreamDirection::Outgoing => Request::AddOutgoing { streams },
            StreamDirection::Incoming => Request::AddIncoming { streams },
        })
    }

    /// Checks that requests can be sent. Returns the maximum number of streams of a direction.
    fn admit_any_stream_request(&self) -> Result<u16, StreamsError> {
        match self.state {
            State::CookieWait { .. } | State::CookieEchoed { .. } => {
                return Err(StreamsError::NotEstablished);
            }
            State::Established => {}
            _ => return Err(StreamsError::Closing),
        }
        let limit = self.config.stream_changes.as_ref().map(|changes| changes.max_streams);
        limit.filter(|_| self.changes_streams()).ok_or(StreamsError::Unsupported)
    }

    fn admit_stream_request(&self, set: &StreamSet, streams: u16) -> Result<(), StreamsError> {
        self.admit_any_stream_request()?;
        if let Some(stream) = set.first_beyond(streams) {
            return Err(StreamsError::NoSuchStream { stream, streams });
        }
        if self.is_for_key_management(set) { Err(StreamsError::KeyManagement) } else { Ok(()) }
    }

    /// Returns `true` if the key management uses a stream of the set. Its messages cannot wait for an answer of the peer, and their
    /// order must not depend on a reset.
    fn is_for_key_management(&self, set: &StreamSet) -> bool {
        self.protection.agreed().is_some() && set.contains(0)
    }

    fn ask_stream_changes<T>(
        &mut self,
        parts: Vec<T>,
        request: impl Fn(T) -> Request,
    ) -> Result<(), StreamsError> {
        let place = self.sender.queue().next_place();
        let Some(changes) = &mut self.stream_changes else { return Err(StreamsError::Unsupported) };
        if !changes.requests.has_room(parts.len()) {
            return Err(StreamsError::TooManyRequests);
        }
        for request in parts.into_iter().map(request) {
            if let Request::ResetOutgoing { streams, .. } = &request {
                self.sender.hold(streams.clone());
            }
            changes.requests.push(request, place);
        }
        self.advance_stream_changes();
        Ok(())
    }

    /// Sends the next request unless one is outstanding or data precedes it. Called whenever one of these may have changed.
    pub(crate) fn advance_stream_changes(&mut self) {
        if self.stream_changes.is_none() || !self.state.takes_sacks() {
            return;
        }
        // Keys come first, as for ASCONF.
        if !self.protection.admits_user_messages() {
            return;
        }
        let path = self.control_path(None);
        let progress = Progress {
            first_place: self.sender.queue().first_place(),
            last_assigned: self.sender.outstanding().next_tsn() - 1,
            cumulative: self.sender.outstanding().cumulative(),
        };
        let Some(changes) = &mut self.stream_changes else { return };
        if changes.requests.begin_next(progress, changes.answers.latest_serial(), path) {
            self.send_re_config(path);
        }
    }

    fn send_re_config(&mut self, path: PathId) {
        let timer = self.now + self.paths.facts(path).rto;
        if let Some(changes) = &mut self.stream_changes {
            changes.requests.transmit(path, timer);
        }
        self.outputs.statistics.re_configs_sent += 1;
        self.control.retain(|control| !matches!(control, Control::ReConfig { .. }));
        self.control.push(Control::ReConfig { path });
    }

    /// Sends the outstanding request again if its timer has expired, on another path if possible. An expiry without an answer is an
    /// error of the path and of the association (RFC 6525 section 5.1.1).
    pub(crate) fn handle_stream_change_timer(&mut self) {
        if !self.state.takes_sacks() {
            return;
        }
        let now = self.now;
        let Some(changes) = &mut self.stream_changes else { return };
        let Some(expired) = changes.requests.take_expired(now) else { return };
        if expired.unanswered && !self.paths[expired.path].removed {
            self.paths.back_off(expired.path);
            let unanswered = self.reachability.errors() + 1;
            self.count_error(expired.path, true);
            // The error counts even on an address that never answered, as for ASCONF.
            self.reachability.count_errors_to(unanswered);
        }
        if !self.is_closed() {
            let first = self.control_path(None);
            let attempt = if expired.unanswered { expired.tries } else { 0 };
            self.send_re_config(self.path_for_attempt(first, attempt));
        }
    }

    fn settle_stream_request(&mut self, serial: u32, result: ReconfigResult) -> Result<(), Discard> {
        let changes = self.stream_changes.as_mut().ok_or(Discard::Unexpected)?;
        let settled = changes.requests.settle(serial, result);
        // Any answer of the peer proves that it is reachable.
        self.reachability.note_answer();
        let Some(request) = settled else { return Ok(()) };
        self.control.retain(|control| !matches!(control, Control::ReConfig { .. }));
        let refusal = StreamRefusal::of(result);
        match request {
            Request::ResetOutgoing { ref streams, .. } => {
                if refusal.is_none() {
                    self.sender.reset_ssns(streams);
                    self.report_reset(StreamDirection::Outgoing, streams);
                }
                self.release_held(streams);
            }
            Request::AddOutgoing { streams } if refusal.is_none() => {
                self.sender.add_streams(streams);
                let streams = self.outbound_streams();
                self.outputs
                    .report(AssociationEvent::StreamsAdded { direction: StreamDirection::Outgoing, streams });
            }
            _ => {}
        }
        if let Some(refusal) = refusal {
            self.outputs
                .report(AssociationEvent::StreamRequestFailed { request: described(request), refusal });
        }
        self.advance_stream_changes();
        Ok(())
    }

    /// Queues the messages that were sent on these streams since their reset was requested.
    fn release_held(&mut self, streams: &StreamSet) {
        self.sender.release(streams);
        self.open_opportunity(OpportunityCause::Application, true);
        self.advance_shutdown();
    }

    fn report_reset(&mut self, direction: StreamDirection, streams: &StreamSet) {
        let streams = streams.listed().to_vec();
        self.outputs.report(AssociationEvent::StreamsReset { direction, streams });
    }
}

fn described(request: Request) -> StreamRequest {
    let (outgoing, incoming) = (StreamDirection::Outgoing, StreamDirection::Incoming);
    let reset =
        |direction, set: StreamSet| StreamRequest::Reset { direction, streams: set.listed().to_vec() };
    match request {
        Request::ResetOutgoing { streams, .. } => reset(outgoing, streams),
        Request::ResetIncoming { streams } => reset(incoming, streams),
        Request::AddOutgoing { streams } => StreamRequest::Add { direction: outgoing, streams },
        Request::AddIncoming { streams } => StreamRequest::Add { direction: incoming, streams },
    }
}

/// Requests of the peer.
impl Association {
    /// Returns `true` if a RE-CONFIG is processed in this state: until both sides have sent all data.
    pub(crate) fn takes_re_configs(&self) -> bool {
        self.state.takes_sacks() || matches!(self.state, State::ShutdownSent(_))
    }

    /// Handles a RE-CONFIG (RFC 6525 section 5.2.1). Parameters beyond the second are ignored.
    pub(crate) fn handle_re_config(
        &mut self,
        source: PathId,
        view: &ReConfigView<'_>,
    ) -> Result<(), Discard> {
        let mut answers = AnswerList::new();
        for param in view.params().take(MOST_REQUESTS) {
            let answer = match param.map_err(|_| Discard::Malformed)? {
                Param::ReconfigResponse { response, result, .. } => {
                    self.settle_stream_request(response, result)?;
                    continue;
                }
                Param::OutgoingReset(reset) => {
                    self.settle_by_reset(reset.response);
                    self.answer_once(reset.request, |this| this.reset_incoming(&reset))
                }
                Param::IncomingReset { request, streams } => self
                    .answer_once(request, |this| this.accept_reset_of_own(request, StreamSet::read(streams))),
                Param::SsnTsnReset { request } => self.answer_once(request, |_| ReconfigResult::DENIED),
                Param::AddOutgoingStreams { request, streams } => {
                    self.answer_once(request, |this| this.add_incoming(streams))
                }
                Param::AddIncomingStreams { request, streams } => {
                    self.answer_once(request, |this| this.accept_more_of_own(streams))
                }
                _ => return Err(Discard::Unexpected),
            };
            answers.push(answer);
        }
        if !answers.is_empty() {
            self.offer_answers(Some(source), answers);
        }
        self.advance_stream_changes();
        Ok(())
    }

    fn offer_answers(&mut self, source: Option<PathId>, answers: AnswerList) {
        let path = self.control_path(source);
        self.control.offer(Control::ReConfigAnswer { path, answers });
    }

    fn settle_by_reset(&mut self, answered: u32) {
        if self.stream_changes.as_mut().is_some_and(|changes| changes.requests.settle_by_reset(answered)) {
            self.control.retain(|control| !matches!(control, Control::ReConfig { .. }));
            self.reachability.note_answer();
        }
    }

    /// Performs a request, unless it has arrived before or its number is not the next. Returns the answer.
    fn answer_once(
        &mut self,
        serial: u32,
        perform: impl FnOnce(&mut Self) -> ReconfigResult,
    ) -> (u32, ReconfigResult) {
        let judged = self.stream_changes.as_ref().map_or(Judged::Wrong, |c| c.answers.judge(serial));
        let result = match judged {
            Judged::Repeated(result) => result,
            Judged::Wrong => ReconfigResult::BAD_SEQUENCE_NUMBER,
            Judged::New => {
                let result = perform(self);
                if let Some(changes) = &mut self.stream_changes {
                    changes.answers.record(result);
                }
                self.outputs.statistics.stream_requests_received += 1;
                result
            }
        };
        (serial, result)
    }

    /// Resets streams on which the peer sends, or defers that until all data before it has arrived (RFC 6525 section 5.2.2).
    fn reset_incoming(&mut self, reset: &OutgoingReset<'_>) -> ReconfigResult {
        let streams = StreamSet::read(reset.streams);
        let Some(receiver) = &self.receiver else { return ReconfigResult::DENIED };
        if streams.first_beyond(receiver.streams()).is_some() {
            return ReconfigResult::WRONG_SSN;
        }
        let cumulative = receiver.tracker().cumulative();
        let last_tsn = reset.last_tsn.unwrap_near(cumulative);
        if last_tsn > cumulative {
            if let Some(changes) = &mut self.stream_changes {
                changes.answers.defer(Deferred { serial: reset.request, last_tsn, streams });
            }
            return ReconfigResult::IN_PROGRESS;
        }
        self.reset_received(&streams)
    }

    fn reset_received(&mut self, streams: &StreamSet) -> ReconfigResult {
        // A peer that resets a stream between the parts or before the arrival of a message has violated the protocol.
        if !self.receiver.as_mut().is_some_and(|receiver| receiver.reset_streams(streams)) {
            return ReconfigResult::WRONG_SSN;
        }
        self.report_reset(StreamDirection::Incoming, streams);
        ReconfigResult::PERFORMED
    }

    /// Performs a deferred reset once all data before it has arrived, and sends the answer without waiting for a repeated request.
    pub(crate) fn perform_deferred_reset(&mut self) {
        let (Some(changes), Some(receiver)) = (&mut self.stream_changes, &self.receiver) else { return };
        let Some(due) = changes.answers.take_due(receiver.tracker().cumulative()) else { return };
        let result = self.reset_received(&due.streams);
        if let Some(changes) = &mut self.stream_changes {
            changes.answers.conclude(due.serial, result);
        }
        self.offer_answers(None, AnswerList::from_iter([(due.serial, result)]));
    }

    /// Queues a reset of own streams that the peer requests (RFC 6525 section 5.2.3).
    fn accept_reset_of_own(&mut self, request: u32, streams: StreamSet) -> ReconfigResult {
        if !matches!(self.state, State::Established) || self.is_for_key_management(&streams) {
            return ReconfigResult::DENIED;
        }
        if streams.first_beyond(self.outbound_streams()).is_some() {
            return ReconfigResult::WRONG_SSN;
        }
        if self.sender.held().first_of(&streams).is_some() {
            return ReconfigResult::ALREADY_IN_PROGRESS;
        }
        let reset = |streams| Request::ResetOutgoing { streams, answers: Some(request) };
        let asked = self.ask_stream_changes(streams.split(MOST_LISTED), reset);
        asked.map_or(ReconfigResult::ALREADY_IN_PROGRESS, |()| ReconfigResult::PERFORMED)
    }

    /// Admits more streams on which the peer sends (RFC 6525 section 5.2.5).
    fn add_incoming(&mut self, streams: u16) -> ReconfigResult {
        if streams == 0 {
            return ReconfigResult::NOTHING_TO_DO;
        }
        let limit = self.config.stream_changes.as_ref().map_or(0, |changes| changes.max_streams);
        let Some(receiver) = &mut self.receiver else { return ReconfigResult::DENIED };
        let Some(all) = receiver.streams().checked_add(streams).filter(|all| *all <= limit) else {
            return ReconfigResult::DENIED;
        };
        receiver.set_streams(all);
        self.outputs
            .report(AssociationEvent::StreamsAdded { direction: StreamDirection::Incoming, streams: all });
        ReconfigResult::PERFORMED
    }

    /// Queues a request for more own streams, which the peer requests (RFC 6525 section 5.2.6).
    fn accept_more_of_own(&mut self, streams: u16) -> ReconfigResult {
        match self.add_streams(self.now, StreamDirection::Outgoing, streams) {
            Ok(()) => ReconfigResult::PERFORMED,
            Err(StreamsError::TooManyRequests) => ReconfigResult::ALREADY_IN_PROGRESS,
            Err(_) => ReconfigResult::DENIED,
        }
    }
}
