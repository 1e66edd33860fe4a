//! What an association in Python holds of the network.

use anabranch_net::{Association, Host};
use tokio::runtime::Handle as Runtime;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// An association with what keeps its sockets open.
pub(super) struct Handle {
    pub(super) association: Association,
    pub(super) keeper: Keeper,
}

/// Whose sockets an association uses.
pub(super) enum Keeper {
    /// The association's own host, on which no other one is, and where it runs.
    Own(Host, Runtime),
    /// A listener, which knows how many use its host.
    Listener { _seat: TaskTrackerToken },
}
