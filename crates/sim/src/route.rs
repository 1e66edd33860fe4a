//! Names of the things a world is made of, and the ways through it.

/// A host of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) u32);

/// A link of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// Whose packets they are: a flow or a traffic source, known by its name. Links count and draw losses by
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(crate) u32);

impl HostId {
    /// Hosts are numbered from 0 in the order they were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Links are numbered from 0 in the order they were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl SourceId {
    /// Sources are numbered from 0 in the order they were first named.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteId(pub(crate) u32);

/// Where packets go after the last link of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Host(HostId),
    /// Cross traffic vanishes.
    Nowhere,
}

/// A way through the network in one direction.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) source: SourceId,
    pub(crate) links: Vec<LinkId>,
    pub(crate) sink: Sink,
}
