//! Watching packets.

use std::any::Any;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;

use crate::datagram::Datagram;
use crate::route::{HostId, LinkId, SourceId};

/// Where something happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// At a host.
    Host(HostId),
    /// On a link.
    Link {
        /// Which one.
        id: LinkId,
        /// Its name.
        name: &'a str,
    },
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A host sends it, or it is offered to a link.
    Sent,
    /// A host receives it, or it reaches the far end of a link.
    Delivered,
    /// A link loses it.
    DroppedLoss,
    /// A link's policer drops it.
    DroppedPolicer,
    /// A link's queue is full, or its discipline drops the packet.
    DroppedQueue,
    /// A link is down.
    DroppedOutage,
    /// No route leads from its source to its destination.
    Unroutable,
}

/// A packet as a tap sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView<'a> {
    /// Whose it is; none if it has no route.
    pub source: Option<SourceId>,
    /// Its size on the wire.
    pub wire: WireBytes,
    /// What it carries; none for background traffic.
    pub datagram: Option<Datagram<'a>>,
}

/// An observer of a world. It changes nothing, and costs nothing where there is none.
pub trait Tap: Any {
    /// Something has happened to a packet.
    fn packet(&mut self, now: Time, place: Place<'_>, event: PacketEvent, packet: PacketView<'_>);

    /// Whether it wants to see packets that are offered to links and that reach their far ends. It is asked once, when it is set.
    /// One that does not is told of what happens at hosts and of what links drop: most events of background traffic are others.
    fn follows_links(&self) -> bool {
        true
    }
}
