//! T3-rtx, the idle timer, and the two limits of silence.

use crate::path_id::PathId;
use crate::paths::Paths;
use crate::paths::path::PathTimers;
use crate::time::{Span, Time, earliest};

/// Number of consecutive idle RTOs that are reported. After that many halvings a window of 2^32 packets is one packet.
const MOST_IDLE_RTOS: u8 = 32;

/// Timer of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathTimer {
    T3,
    Heartbeat,
    HeartbeatTimeout,
    Idle,
    Silence,
    SilenceLimit,
    Mtu,
}

impl Paths {
    /// Stops a timer that has expired. Returns `true` if it had.
    pub(crate) fn take_due(&mut self, id: PathId, timer: PathTimer, now: Time) -> bool {
        let timers = &mut self.paths[id.index()].timers;
        let timer = match timer {
            PathTimer::T3 => &mut timers.t3,
            PathTimer::Heartbeat => &mut timers.heartbeat,
            PathTimer::HeartbeatTimeout => &mut timers.heartbeat_timeout,
            PathTimer::Idle => &mut timers.idle,
            PathTimer::Silence => &mut timers.silence,
            PathTimer::SilenceLimit => &mut timers.silence_limit,
            PathTimer::Mtu => &mut timers.mtu,
        };
        timer.take_if(|at| *at <= now).is_some()
    }

    /// Returns the earliest deadline of all paths.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.paths.iter().fold(None, |soonest, path| earliest([soonest, path.timers.next()]))
    }

    /// Stops all timers, because the association is closed.
    pub(crate) fn stop_timers(&mut self) {
        for path in &mut self.paths {
            path.timers = PathTimers::default();
        }
    }

    //= docs/rfc9260.txt#section-6.1
    //# When starting or restarting the T3-rtx timer, the timer value SHOULD be adjusted according to the timer rules
    //# defined in Sections 6.3.2 and 6.3.3.
    //= docs/rfc9260.txt#section-6.3.3
    //# The RTO to be used for starting T3-rtx SHOULD be the one for the destination address to which the retransmission
    //# is sent, which, when the receiver is multi-homed, might be different from the destination address for which the
    //# timer expired (see Section 6.4 below).
    pub(crate) fn start_t3(&mut self, id: PathId, now: Time) {
        self.paths[id.index()].timers.t3 = Some(now + self.facts[id.index()].rto);
    }

    pub(crate) fn stop_t3(&mut self, id: PathId) {
        self.paths[id.index()].timers.t3 = None;
    }

    /// Starts T3 unless it runs (RFC 9260 section 6.3.2 R1).
    pub(crate) fn ensure_t3(&mut self, id: PathId, now: Time) {
        if self[id].timers.t3.is_none() {
            self.start_t3(id, now);
        }
    }

    /// Stops T3 of each path without bytes in flight, except where it runs for a FORWARD-TSN.
    pub(crate) fn stop_t3_of_empty_paths(&mut self, awaits_answer: impl Fn(PathId) -> bool) {
        for (path, facts) in self.paths.iter_mut().zip(&self.facts) {
            if facts.in_flight.is_zero() && !awaits_answer(facts.id) {
                path.timers.t3 = None;
            }
        }
    }

    /// Ends the round trip of a path whose T3 has expired: its measurement ends, and its idle timer stops.
    pub(crate) fn end_round(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.timers.t3 = None;
        path.timers.idle = None;
        path.measuring = None;
    }

    /// Sets the treatment of T3 by the next tail probe: one that repeats an unanswered probe does not restart it.
    pub(crate) fn set_repeated_tail_probe(&mut self, id: PathId, repeats: bool) {
        self.paths[id.index()].timers.repeats_tail_probe = repeats;
    }

    /// Restarts the idle timer, because the path carried DATA.
    pub(crate) fn restart_idle_clock(&mut self, id: PathId, now: Time) {
        let rto = self.facts[id.index()].rto;
        let timers = &mut self.paths[id.index()].timers;
        timers.idle = Some(now + rto);
        timers.idle_rtos = 0;
    }

    /// Counts an idle RTO, and restarts the idle timer unless the limit is reached: otherwise every association that once carried
    /// DATA would wake up at each RTO.
    pub(crate) fn count_idle_rto(&mut self, id: PathId, now: Time) {
        let rto = self.facts[id.index()].rto;
        let timers = &mut self.paths[id.index()].timers;
        timers.idle_rtos += 1;
        timers.idle = (timers.idle_rtos < MOST_IDLE_RTOS).then(|| now + rto);
    }

    /// Starts the wait for an answer to data, unless it runs.
    pub(crate) fn begin_silence(&mut self, id: PathId, limit: Span, now: Time) {
        self.paths[id.index()].timers.silence.get_or_insert(now + limit);
    }

    /// Restarts the wait for an answer to data if it runs, because the path has received an answer.
    pub(crate) fn extend_silence(&mut self, id: PathId, limit: Span, now: Time) {
        if let Some(until) = &mut self.paths[id.index()].timers.silence {
            *until = now + limit;
        }
    }

    /// Sets the time until which the failover policy permits silence.
    pub(crate) fn set_silence_limit(&mut self, id: PathId, at: Option<Time>) {
        self.paths[id.index()].timers.silence_limit = at;
    }

    /// Ends both waits, because no bytes are in flight.
    pub(crate) fn end_silence(&mut self, id: PathId) {
        let timers = &mut self.paths[id.index()].timers;
        timers.silence = None;
        timers.silence_limit = None;
    }
}
