//! Observation of packets.

use std::any::Any;

use anabranch_core::DataPacket;
use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;

use crate::datagram::Datagram;
use crate::route::{HostId, LinkId, SourceId};

/// Place of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// At a host.
    Host(HostId),
    /// On a link.
    Link {
        /// Identifier of the link.
        id: LinkId,
        /// Name of the link.
        name: &'a str,
    },
}

/// Event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A host sends the packet, or the packet is offered to a link.
    Sent,
    /// A host receives the packet, or the packet reaches the far end of a link.
    Delivered,
    /// A link loses the packet at random.
    DroppedLoss,
    /// A link's policer drops the packet.
    DroppedPolicer,
    /// A link's queue is full, or its discipline drops the packet.
    DroppedQueue,
    /// The link is down.
    DroppedOutage,
    /// No route connects its source and its destination.
    Unroutable,
}

/// A packet as a tap observes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView<'a> {
    /// Source of the packet; `None` without a route.
    pub source: Option<SourceId>,
    /// Size on the wire.
    pub wire: WireBytes,
    /// Addresses and payload; `None` for background traffic.
    pub datagram: Option<Datagram<'a>>,
    /// Description of a packet without bytes, whose payload is empty. It is `None` for taps that [read
    /// bytes](Tap::reads_bytes).
    pub data: Option<&'a DataPacket>,
}

/// An observer of a world. It never changes the run, and a world without one spends no time on it.
pub trait Tap: Any {
    /// Handles an event of a packet.
    fn packet(&mut self, now: Time, place: Place<'_>, event: PacketEvent, packet: PacketView<'_>);

    /// Returns `true` to observe packets that are offered to links and that reach their far ends. The world calls it once, when the
    /// tap is set. Other taps observe only hosts and drops on links, and so skip most events of background traffic.
    fn follows_links(&self) -> bool {
        true
    }

    /// Returns an independent copy of the tap in its present state. `None`, the default, prevents [copies](crate::World::copied) of
    /// the world.
    fn copied(&self) -> Option<Box<dyn Tap>> {
        None
    }

    /// Returns `true` to get the bytes of packets that hosts only describe. The world calls it once, when the tap is set.
    fn reads_bytes(&self) -> bool {
        true
    }
}
