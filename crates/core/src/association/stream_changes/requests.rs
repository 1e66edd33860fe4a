//! Own requests for changes of streams, one at a time (RFC 6525 section 5.1).

use std::collections::VecDeque;

use anabranch_wire::{List, NoSpace, OutgoingReset, PacketWriter, Param, ReconfigResult, StreamId, Tsn};

use crate::path_id::PathId;
use crate::stream_set::StreamSet;
use crate::time::Time;

/// Maximum number of waiting requests.
pub(super) const LONGEST_QUEUE: usize = 32;

/// Maximum number of streams that one request lists. Packets of every path have room for them.
pub(super) const MOST_LISTED: usize = 128;

/// Progress of the sending side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Place of the first waiting message, as in [`SendQueue`](crate::send::SendQueue); `None` while messages without a place wait.
    pub(super) first_place: Option<u64>,
    /// Last TSN that was assigned.
    pub(super) last_assigned: u64,
    /// Cumulative TSN of the peer.
    pub(super) cumulative: u64,
}

/// Data that precedes the reset of a stream, and must have been acknowledged or abandoned before the request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preceding {
    /// Messages before this place of the send queue.
    Queued { place: u64 },
    /// TSNs up to this one.
    Sent { last: u64 },
}

/// Request to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    ResetOutgoing {
        streams: StreamSet,
        /// Number of the request of the peer that this reset answers.
        answers: Option<u32>,
    },
    ResetIncoming {
        streams: StreamSet,
    },
    AddOutgoing {
        streams: u16,
    },
    AddIncoming {
        streams: u16,
    },
}

#[derive(Clone, Debug)]
struct Waiting {
    request: Request,
    preceding: Preceding,
}

/// Request that waits for its answer.
#[derive(Clone, Debug)]
struct Sent {
    serial: u32,
    request: Request,
    /// Last TSN that was assigned when the request was made.
    last_tsn: Tsn,
    /// Number that a reset of outgoing streams repeats from the latest request of the peer.
    response: u32,
    path: PathId,
    tries: u32,
    /// Time at which the request is sent again.
    timer: Option<Time>,
    /// Set if the latest answer was "In progress".
    deferred: bool,
}

/// Expiry of the timer of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) path: PathId,
    /// Number of transmissions so far.
    pub(super) tries: u32,
    /// `true` if the peer has not answered at all; "In progress" is an answer.
    pub(super) unanswered: bool,
}

/// Own requests.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    next_serial: u32,
    queue: VecDeque<Waiting>,
    sent: Option<Sent>,
}

impl Requests {
    /// Returns the initial state: numbers start with the initial TSN (RFC 6525 section 4.1).
    pub(super) fn new(initial_tsn: u32) -> Self {
        Requests { next_serial: initial_tsn, queue: VecDeque::new(), sent: None }
    }

    /// Returns `true` if the queue has room for this many requests.
    pub(super) fn has_room(&self, requests: usize) -> bool {
        self.queue.len() + requests <= LONGEST_QUEUE
    }

    /// Queues a request. A reset of outgoing streams follows the messages before `next_place`.
    pub(super) fn push(&mut self, request: Request, next_place: u64) {
        self.queue.push_back(Waiting { request, preceding: Preceding::Queued { place: next_place } });
    }

    /// Returns the sums of outgoing and of incoming streams that unanswered requests add.
    pub(super) fn streams_to_add(&self) -> (u32, u32) {
        let waiting = self.queue.iter().map(|waiting| &waiting.request);
        waiting.chain(self.sent.iter().map(|sent| &sent.request)).fold((0, 0), |(out, inc), request| {
            match request {
                Request::AddOutgoing { streams } => (out + u32::from(*streams), inc),
                Request::AddIncoming { streams } => (out, inc + u32::from(*streams)),
                Request::ResetOutgoing { .. } | Request::ResetIncoming { .. } => (out, inc),
            }
        })
    }

    /// Makes the next request the outstanding one, unless one is outstanding or data precedes it. `response` is the number of the
    /// latest request of the peer. Returns `true` if there is a request to send.
    pub(super) fn begin_next(&mut self, progress: Progress, response: u32, path: PathId) -> bool {
        let idle = self.sent.is_none();
        let Some(waiting) = self.queue.pop_front_if(|next| idle && next.is_ready(progress)) else {
            return false;
        };
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        let response = match waiting.request {
            Request::ResetOutgoing { answers: Some(answered), .. } => answered,
            _ => response,
        };
        self.sent = Some(Sent {
            serial,
            request: waiting.request,
            last_tsn: Tsn::from_unwrapped(progress.last_assigned),
            response,
            path,
            tries: 0,
            timer: None,
            deferred: false,
        });
        true
    }

    /// Records the transmission of the outstanding request on a path.
    pub(super) fn transmit(&mut self, path: PathId, timer: Time) {
        if let Some(sent) = &mut self.sent {
            sent.path = path;
            sent.tries += 1;
            sent.timer = Some(timer);
        }
    }

    pub(super) fn timer(&self) -> Option<Time> {
        self.sent.as_ref().and_then(|sent| sent.timer)
    }

    pub(super) fn take_expired(&mut self, now: Time) -> Option<Expired> {
        let sent = self.sent.as_mut()?;
        sent.timer.take_if(|at| *at <= now)?;
        let unanswered = !std::mem::take(&mut sent.deferred);
        Some(Expired { path: sent.path, tries: sent.tries, unanswered })
    }

    /// Handles an answer. Returns the request if the answer is final; `None` for "In progress", and if no such request is outstanding.
    pub(super) fn settle(&mut self, serial: u32, result: ReconfigResult) -> Option<Request> {
        if result == ReconfigResult::IN_PROGRESS {
            // The timer runs on, and the same request is sent again (RFC 6525 section 5.2.7).
            if let Some(sent) = self.sent.as_mut().filter(|sent| sent.serial == serial) {
                sent.deferred = true;
            }
            return None;
        }
        self.sent.take_if(|sent| sent.serial == serial).map(|sent| sent.request)
    }

    /// Handles a reset of the peer that answers a request with this number. Returns `true` if the request was outstanding.
    pub(super) fn settle_by_reset(&mut self, serial: u32) -> bool {
        let answered =
            |sent: &mut Sent| sent.serial == serial && matches!(sent.request, Request::ResetIncoming { .. });
        self.sent.take_if(answered).is_some()
    }

    /// Writes the outstanding request.
    pub(super) fn write(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let Some(sent) = &self.sent else { return Ok(()) };
        let request = sent.serial;
        let streams: Vec<StreamId> = sent.request.listed().iter().copied().map(StreamId::new).collect();
        let streams = List::new(&streams);
        writer.re_config([match sent.request {
            Request::ResetOutgoing { .. } => Param::OutgoingReset(OutgoingReset {
                request,
                response: sent.response,
                last_tsn: sent.last_tsn,
                streams,
            }),
            Request::ResetIncoming { .. } => Param::IncomingReset { request, streams },
            Request::AddOutgoing { streams } => Param::AddOutgoingStreams { request, streams },
            Request::AddIncoming { streams } => Param::AddIncomingStreams { request, streams },
        }])
    }
}

impl Request {
    fn listed(&self) -> &[u16] {
        match self {
            Request::ResetOutgoing { streams, .. } | Request::ResetIncoming { streams } => streams.listed(),
            Request::AddOutgoing { .. } | Request::AddIncoming { .. } => &[],
        }
    }
}

impl Waiting {
    /// Returns `true` if no data precedes the request.
    fn is_ready(&mut self, progress: Progress) -> bool {
        if !matches!(self.request, Request::ResetOutgoing { .. }) {
            return true;
        }
        if let Preceding::Queued { place } = self.preceding
            && progress.first_place.is_some_and(|first| first >= place)
        {
            self.preceding = Preceding::Sent { last: progress.last_assigned };
        }
        matches!(self.preceding, Preceding::Sent { last } if last <= progress.cumulative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::testing::at;

    fn path() -> PathId {
        PathId::new(0)
    }

    fn progress(first_place: u64, last_assigned: u64, cumulative: u64) -> Progress {
        Progress { first_place: Some(first_place), last_assigned, cumulative }
    }

    fn reset(streams: &[u16]) -> Request {
        Request::ResetOutgoing { streams: StreamSet::of(streams.iter().copied()), answers: None }
    }

    #[test]
    fn outgoing_reset_waits_for_queued_and_outstanding_data_before_it() {
        let mut requests = Requests::new(7);
        requests.push(reset(&[1]), 3);
        assert!(!requests.begin_next(progress(2, 10, 10), 0, path()), "a message is queued");
        assert!(!requests.begin_next(progress(3, 12, 11), 0, path()), "its TSN is outstanding");
        assert!(requests.begin_next(progress(9, 20, 12), 0, path()), "later data does not count");
    }

    #[test]
    fn outgoing_reset_waits_for_urgent_messages() {
        let mut requests = Requests::new(7);
        requests.push(reset(&[1]), 0);
        let urgent = Progress { first_place: None, ..progress(0, 5, 5) };
        assert!(!requests.begin_next(urgent, 0, path()));
        assert!(requests.begin_next(progress(0, 5, 5), 0, path()));
    }

    #[test]
    fn other_requests_wait_for_no_data() {
        let mut requests = Requests::new(7);
        requests.push(Request::AddOutgoing { streams: 2 }, 3);
        assert!(requests.begin_next(progress(2, 10, 5), 0, path()));
    }

    #[test]
    fn one_request_is_outstanding_at_a_time_and_numbers_ascend() {
        let mut requests = Requests::new(u32::MAX);
        requests.push(Request::AddOutgoing { streams: 2 }, 0);
        requests.push(Request::AddIncoming { streams: 3 }, 0);
        assert_eq!(requests.streams_to_add(), (2, 3));
        let idle = progress(0, 0, 0);
        assert!(requests.begin_next(idle, 0, path()));
        assert!(!requests.begin_next(idle, 0, path()));
        assert_eq!(requests.settle(0, ReconfigResult::PERFORMED), None, "a number that was not used yet");
        let settled = requests.settle(u32::MAX, ReconfigResult::DENIED);
        assert_eq!(settled, Some(Request::AddOutgoing { streams: 2 }));
        assert_eq!(requests.settle(u32::MAX, ReconfigResult::DENIED), None, "a repeated answer");
        assert!(requests.begin_next(idle, 0, path()));
        assert!(requests.settle(0, ReconfigResult::PERFORMED).is_some());
        assert_eq!(requests.streams_to_add(), (0, 0));
    }

    #[test]
    fn answer_in_progress_keeps_the_request_and_is_no_error() {
        let mut requests = Requests::new(7);
        requests.push(reset(&[]), 0);
        assert!(requests.begin_next(progress(0, 0, 0), 0, path()));
        requests.transmit(path(), at(100));
        assert_eq!(requests.take_expired(at(99)), None);
        assert_eq!(requests.settle(7, ReconfigResult::IN_PROGRESS), None);
        let expired = |requests: &mut Requests, ms| {
            requests.take_expired(at(ms)).map(|expired| (expired.tries, expired.unanswered))
        };
        assert_eq!(expired(&mut requests, 100), Some((1, false)));
        assert_eq!(requests.timer(), None);
        requests.transmit(path(), at(200));
        assert_eq!(expired(&mut requests, 200), Some((2, true)), "the peer has not answered again");
        assert_eq!(requests.settle(7, ReconfigResult::PERFORMED), Some(reset(&[])));
    }

    #[test]
    fn reset_of_the_peer_answers_a_request_for_it_only() {
        let mut requests = Requests::new(7);
        requests.push(Request::ResetIncoming { streams: StreamSet::All }, 0);
        requests.push(reset(&[1]), 0);
        let idle = progress(0, 0, 0);
        assert!(requests.begin_next(idle, 0, path()));
        assert!(!requests.settle_by_reset(8));
        assert!(requests.settle_by_reset(7));
        assert!(requests.begin_next(idle, 0, path()));
        assert!(!requests.settle_by_reset(8), "a reset of own streams has a response");
    }

    #[test]
    fn queue_is_bounded() {
        let mut requests = Requests::new(7);
        assert!(requests.has_room(LONGEST_QUEUE) && !requests.has_room(LONGEST_QUEUE + 1));
        requests.push(reset(&[1]), 0);
        assert!(!requests.has_room(LONGEST_QUEUE));
    }
}
