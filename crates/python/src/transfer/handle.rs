//! Resources of the network that an association in Python holds.

use anabranch_net::{Association, Endpoint};
use tokio::runtime::Handle as Runtime;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// An association with the owner of its sockets.
pub(super) struct Handle {
    pub(super) association: Association,
    pub(super) keeper: SocketOwner,
}

/// Owner of the sockets of an association.
pub(super) enum SocketOwner {
    /// The association's own endpoint, which has no other one, and its runtime.
    Own(Endpoint, Runtime),
    /// A listener, which counts the users of its endpoint.
    Listener { _seat: TaskTrackerToken },
}
