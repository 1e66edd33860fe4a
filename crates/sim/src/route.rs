//! Identifiers of hosts, links and sources, and routes through a world.

/// Identifier of a host of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) u32);

/// Identifier of a link of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// Identifier of a source: a flow or a traffic source with a name. Links count packets and draw losses by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(crate) u32);

impl HostId {
    /// Returns the number of the host, from 0 in the order of addition.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Returns the number of the link, from 0 in the order of addition.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// Returns the number of the source, from 0 in the order of first use.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteId(pub(crate) u32);

/// Destination of packets after the last link of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Host(HostId),
    /// Discards packets, as those of cross traffic.
    Nowhere,
    /// Discards packets to an address that their host no longer has.
    Gone,
}

/// A route through the network in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) source: SourceId,
    pub(crate) links: Vec<LinkId>,
    pub(crate) sink: Sink,
}
