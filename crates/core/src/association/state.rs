//! State of an association (RFC 9260 section 4). Each variant contains the values that exist in that state only.

use crate::association::cookie_echo::CookieEcho;
use crate::error::Refusal;
use crate::path_id::{PathId, PathSet};
use crate::time::{Time, earliest};

#[derive(Clone, Debug)]
pub(crate) enum State {
    /// INIT sent, or about to be.
    CookieWait {
        opening: Opening,
        stagger: Stagger,
    },
    /// COOKIE-ECHO sent, or about to be.
    CookieEchoed {
        opening: Opening,
        echo: CookieEcho,
    },
    Established,
    /// Shutdown requested by the application; data is still outstanding.
    ShutdownPending,
    /// SHUTDOWN sent.
    ShutdownSent(Closing),
    /// SHUTDOWN received, the latest one on this path; own data is still outstanding.
    ShutdownReceived {
        from: PathId,
    },
    /// SHUTDOWN-ACK sent; the latest SHUTDOWN was received on this path.
    ShutdownAckSent {
        closing: Closing,
        from: PathId,
    },
    /// End of the association, after a shutdown or otherwise.
    Closed {
        gracefully: bool,
    },
}

/// Handshake started by this side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Number of retransmissions of the current chunk.
    pub(crate) tries: u32,
    /// Expiry of T1-init or T1-cookie.
    pub(crate) t1: Option<Time>,
    /// Time at which the attempt fails.
    pub(crate) give_up: Option<Time>,
    /// Number of own cookies that the peer has rejected as stale.
    pub(crate) stale_cookies: u32,
    /// Paths on which INIT was sent.
    pub(crate) tried: PathSet,
    /// Paths on which the network or the operating system has refused the INIT.
    pub(crate) refused: PathSet,
    /// Most informative reason of these refusals.
    pub(crate) refusal: Option<Refusal>,
    /// `true` if the application has requested a shutdown, which waits for the end of the handshake.
    pub(crate) shutdown_when_up: bool,
}

/// Progress of INIT over the paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stagger {
    /// Path of the latest INIT.
    pub(crate) path: PathId,
    /// Number of paths without an INIT since T1 started.
    pub(crate) left: usize,
    /// Time at which INIT is sent on the next path as well.
    pub(crate) next_at: Option<Time>,
}

/// Shutdown that waits for the peer's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closing {
    /// Number of retransmissions of the current chunk.
    pub(crate) tries: u32,
    /// Expiry of T2-shutdown.
    pub(crate) t2: Option<Time>,
    /// Expiry of T5-shutdown-guard.
    pub(crate) t5: Option<Time>,
}

impl State {
    /// Returns the state of a new association.
    pub(crate) fn new() -> Self {
        State::CookieWait {
            opening: Opening::default(),
            stagger: Stagger { path: PathId::new(0), left: 0, next_at: None },
        }
    }

    /// Returns `true` if data may be sent, and therefore acknowledged.
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

    /// Returns the earliest timer of the state. Established associations have none; this is called after every packet.
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
    /// Clears records of the path that had this id before.
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
