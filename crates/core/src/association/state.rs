//! The state of an association (RFC 9260 section 4). Each variant holds what exists in that state only.

use crate::error::Refusal;
use crate::path_id::{PathId, PathSet};
use crate::time::{Time, earliest};

#[derive(Debug)]
pub(crate) enum State {
    /// INIT sent, or about to be.
    CookieWait {
        opening: Opening,
        stagger: Stagger,
    },
    /// COOKIE-ECHO sent.
    CookieEchoed {
        opening: Opening,
        cookie: Vec<u8>,
        /// The path of the latest COOKIE ECHO.
        echoed_on: PathId,
        /// How many left since T1-cookie began.
        echoes: u32,
        /// Parameters of the INIT-ACK that nobody here knows and that ask to be reported.
        report: Vec<Vec<u8>>,
    },
    Established,
    /// The application wants to shut down; data is still outstanding.
    ShutdownPending,
    /// SHUTDOWN sent.
    ShutdownSent(Closing),
    /// SHUTDOWN received, the latest one on this path; our data is still outstanding.
    ShutdownReceived {
        from: PathId,
    },
    /// SHUTDOWN-ACK sent; the latest SHUTDOWN was received on this path.
    ShutdownAckSent {
        closing: Closing,
        from: PathId,
    },
    /// The association is over: after a shutdown, or otherwise.
    Closed {
        gracefully: bool,
    },
}

/// A handshake that we began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Retransmissions of the present chunk.
    pub(crate) tries: u32,
    /// T1-init or T1-cookie.
    pub(crate) t1: Option<Time>,
    /// When a peer that was called is given up.
    pub(crate) give_up: Option<Time>,
    /// How many of its own cookies the peer has called stale.
    pub(crate) stale_cookies: u32,
    /// Paths that INIT was sent on.
    pub(crate) tried: PathSet,
    /// Paths on which the network or the system has refused our INIT.
    pub(crate) refused: PathSet,
    /// The most telling reason of these refusals.
    pub(crate) refusal: Option<Refusal>,
    /// The application has asked for a shutdown that must wait until the handshake is over.
    pub(crate) shutdown_when_up: bool,
}

/// How far INIT has got around the paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stagger {
    /// The path of the latest one.
    pub(crate) path: PathId,
    /// Paths that have had none since T1 began.
    pub(crate) left: usize,
    /// When INIT is sent on the next path as well.
    pub(crate) next_at: Option<Time>,
}

/// A shutdown that waits for the peer's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closing {
    /// Retransmissions of the present chunk.
    pub(crate) tries: u32,
    /// T2-shutdown.
    pub(crate) t2: Option<Time>,
    /// T5-shutdown-guard.
    pub(crate) t5: Option<Time>,
}

impl State {
    /// The state of a new association.
    pub(crate) fn new() -> Self {
        State::CookieWait {
            opening: Opening::default(),
            stagger: Stagger { path: PathId::new(0), left: 0, next_at: None },
        }
    }

    /// Whether data may be sent, and so acknowledged.
    //= docs/rfc9260.txt#section-6
    //# A SACK chunk MUST be processed in ESTABLISHED, SHUTDOWN-PENDING, and SHUTDOWN-RECEIVED states.
    //= docs/rfc9260.txt#section-6
    //# A SACK chunk received in any other state SHOULD be discarded.
    pub(crate) fn takes_sacks(&self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived { .. })
    }

    pub(crate) fn opening(&self) -> Option<&Opening> {
        match self {
            State::CookieWait { opening, .. } | State::CookieEchoed { opening, .. } => Some(opening),
            _ => None,
        }
    }

    pub(crate) fn opening_mut(&mut self) -> Option<&mut Opening> {
        match self {
            State::CookieWait { opening, .. } | State::CookieEchoed { opening, .. } => Some(opening),
            _ => None,
        }
    }

    pub(crate) fn stagger_mut(&mut self) -> Option<&mut Stagger> {
        match self {
            State::CookieWait { stagger, .. } => Some(stagger),
            _ => None,
        }
    }

    pub(crate) fn closing_mut(&mut self) -> Option<&mut Closing> {
        match self {
            State::ShutdownSent(closing) | State::ShutdownAckSent { closing, .. } => Some(closing),
            _ => None,
        }
    }

    /// The nearest of the timers that the state has. Most of the time it has none, and this is asked after every packet.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match self {
            State::CookieWait { opening, stagger } => opening.next_timer(stagger.next_at),
            State::CookieEchoed { opening, .. } => opening.next_timer(None),
            State::ShutdownSent(closing) | State::ShutdownAckSent { closing, .. } => closing.next_timer(),
            _ => None,
        }
    }
}

impl Opening {
    /// Forgets the path that had this id before.
    pub(crate) fn add_path(&mut self, id: PathId) {
        self.tried.remove(id);
        self.refused.remove(id);
    }

    fn next_timer(&self, stagger: Option<Time>) -> Option<Time> {
        earliest([self.t1, self.give_up, stagger])
    }
}

impl Closing {
    fn next_timer(&self) -> Option<Time> {
        earliest([self.t2, self.t5])
    }
}
