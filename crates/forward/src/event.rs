//! Events for the user.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::failure::Failure;
use crate::target::Target;

/// Event for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection to a target was opened.
    Opened {
        /// Target of the connection.
        target: Target,
    },
    /// A connection to a target was not opened.
    NotOpened {
        /// Target, unless the request for it could not be read.
        target: Option<Target>,
        /// Reason of the failure.
        failure: Failure,
    },
    /// The gateway listens for connections to a target.
    RemoteListening {
        /// Port at the gateway.
        port: u16,
        /// Target of the connection.
        target: Target,
    },
    /// The gateway does not listen for connections to a target.
    RemoteNotListening {
        /// Requested port at the gateway.
        port: u16,
        /// Reason of the failure.
        failure: Failure,
    },
    /// A listener was opened for a user.
    Listening {
        /// Bound addresses.
        addresses: Vec<SocketAddr>,
    },
    /// The association with the gateway was lost. Its connections are reset.
    Lost {
        /// Reason of the failure.
        why: String,
    },
    /// There is an association with the gateway again.
    Restored,
}

/// Function that reports events to the user.
pub type Reporter = Arc<dyn Fn(Event) + Send + Sync>;
