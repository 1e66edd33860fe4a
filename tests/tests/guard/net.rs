//! Endpoints over UDP, with address translators between them.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, Association, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint,
    EndpointConfig, Guard, Handled, ListedAddresses, PacketBuffer, PathAddress, PathState, SendOptions,
};
use anabranch_schemes::registry;
use bytes::Bytes;

/// SCTP port of all endpoints, and their UDP port by default.
pub(crate) const PORT: u16 = 5000;

/// Maximum duration of any exchange.
const LIMIT: Span = Span::from_secs(120);

/// Returns `10.0.<net>.<host>`.
pub(crate) fn ip(net: u8, host: u8) -> IpAddr {
    [10, 0, net, host].into()
}

pub(crate) fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}

/// Returns the configuration of associations on real sockets, as far as these tests need it.
pub(crate) fn config() -> AssociationConfig {
    let scheme = registry::parse("cmt").expect("the scheme exists").into_scheme();
    AssociationConfig {
        listed_addresses: ListedAddresses::Ignore,
        connect_timeout: Some(Span::from_secs(15)),
        recv_buffer_bytes: 1 << 20,
        ..AssociationConfig::new(scheme, Profile::net().multipath())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) sent: Time,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[12]
    }

    pub(crate) fn tag(&self) -> u32 {
        u32::from_be_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]])
    }
}

pub(crate) struct Site {
    pub(crate) endpoint: Endpoint,
    addresses: Vec<SocketAddr>,
    pub(crate) events: Vec<(AssociationId, AssociationEvent)>,
}

impl Site {
    pub(crate) fn ids(&self) -> Vec<AssociationId> {
        self.endpoint.associations().collect()
    }

    pub(crate) fn one(&mut self) -> &mut Association {
        let ids = self.ids();
        assert_eq!(ids.len(), 1);
        self.endpoint.association_mut(ids[0]).expect("it exists")
    }

    pub(crate) fn reported(&self, wanted: impl Fn(&AssociationEvent) -> bool) -> usize {
        self.events.iter().filter(|(_, event)| wanted(event)).count()
    }

    /// Returns the peer's address and the state of each live path.
    pub(crate) fn paths(&self) -> Vec<(SocketAddr, PathState)> {
        let association = self.endpoint.association(self.ids()[0]).expect("it exists");
        let live = association.paths().iter().filter_map(|facts| {
            let address = association.path_address(facts.id)?;
            Some((at(address.remote, address.udp_port?), facts.state))
        });
        live.collect()
    }
}

/// An internal address with its external one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) inside: SocketAddr,
    pub(crate) outside: SocketAddr,
}

pub(crate) struct Net {
    pub(crate) now: Time,
    pub(crate) sites: Vec<Site>,
    pub(crate) mappings: Vec<Mapping>,
    /// Every datagram with its external addresses, lost ones included.
    pub(crate) log: Vec<Datagram>,
    pub(crate) loses: Box<dyn FnMut(&Datagram) -> bool>,
    flying: VecDeque<(Time, Datagram)>,
}

impl Net {
    pub(crate) fn new() -> Self {
        Net {
            now: Time::ZERO,
            sites: Vec::new(),
            mappings: Vec::new(),
            log: Vec::new(),
            loses: Box::new(|_| false),
            flying: VecDeque::new(),
        }
    }

    pub(crate) fn site(&mut self, addresses: &[SocketAddr], accept: Option<AssociationConfig>) -> usize {
        self.guarded_site(addresses, accept, Guard::default())
    }

    /// Adds a site that accepts associations only from `accept_from`.
    pub(crate) fn choosy_site(&mut self, addresses: &[SocketAddr], accept_from: AcceptFrom) -> usize {
        self.choosy_guarded_site(addresses, accept_from, Guard::default())
    }

    pub(crate) fn choosy_guarded_site(
        &mut self,
        addresses: &[SocketAddr],
        accept_from: AcceptFrom,
        guard: Guard,
    ) -> usize {
        self.site_of(addresses, Some(config()), accept_from, guard)
    }

    pub(crate) fn guarded_site(
        &mut self,
        addresses: &[SocketAddr],
        accept: Option<AssociationConfig>,
        guard: Guard,
    ) -> usize {
        self.site_of(addresses, accept, AcceptFrom::Everyone, guard)
    }

    fn site_of(
        &mut self,
        addresses: &[SocketAddr],
        accept: Option<AssociationConfig>,
        accept_from: AcceptFrom,
        guard: Guard,
    ) -> usize {
        let config = EndpointConfig {
            port: PORT,
            addresses: addresses.iter().map(SocketAddr::ip).collect(),
            encapsulation: Encapsulation::Udp { local_port: addresses[0].port(), remote_port: PORT },
            accept,
            accept_from,
            max_associations: 64,
            guard: Some(guard),
        };
        let endpoint = Endpoint::new(self.now, config, [self.sites.len() as u8 + 1; 32]);
        self.sites.push(Site { endpoint, addresses: addresses.to_vec(), events: Vec::new() });
        self.sites.len() - 1
    }

    /// Opens an association over these pairs.
    pub(crate) fn connect(&mut self, from: usize, pairs: &[(IpAddr, SocketAddr)], config: AssociationConfig) {
        let pairs: Vec<PathAddress> =
            pairs.iter().map(|&(local, to)| PathAddress::over_udp(local, to)).collect();
        self.sites[from].endpoint.connect(self.now, PORT, &pairs, config).expect("it can be opened");
        self.drain();
    }

    /// Passes a site a datagram from this source.
    pub(crate) fn inject(&mut self, to: usize, local: IpAddr, from: SocketAddr, bytes: &[u8]) -> Handled {
        let path = PathAddress::over_udp(local, from);
        let handled = self.sites[to].endpoint.handle_datagram(self.now, path, bytes);
        self.drain();
        handled
    }

    pub(crate) fn drain(&mut self) {
        let mut buf = PacketBuffer::new();
        for site in &mut self.sites {
            while let Some(transmit) = site.endpoint.poll_transmit(self.now, &mut buf) {
                let to = transmit.address;
                let own = site.addresses.iter().find(|own| own.ip() == to.local).expect("an own address");
                let mapped = self.mappings.iter().find(|mapping| mapping.inside == *own);
                let from = mapped.map_or(*own, |mapping| mapping.outside);
                let to = at(to.remote, to.udp_port.expect("a port"));
                let datagram = Datagram { sent: self.now, from, to, bytes: buf.to_vec() };
                if !(self.loses)(&datagram) {
                    self.flying.push_back((self.now + Span::from_millis(10), datagram.clone()));
                }
                self.log.push(datagram);
            }
            while let Some(event) = site.endpoint.poll_event() {
                site.events.push(event);
            }
        }
    }

    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    pub(crate) fn until(&mut self, what: &str, mut so: impl FnMut(&mut Net) -> bool) {
        let end = self.now + LIMIT;
        while !so(self) {
            assert!(self.step(end), "not within {LIMIT:?}: {what}");
        }
    }

    fn step(&mut self, end: Time) -> bool {
        self.drain();
        let arrival = self.flying.front().map(|(at, _)| *at);
        let deadline = self.sites.iter_mut().filter_map(|site| site.endpoint.poll_timeout()).min();
        let Some(next) = [arrival, deadline].into_iter().flatten().min().filter(|&at| at <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, datagram) = self.flying.pop_front().expect("it arrives");
            self.arrive(&datagram);
        } else {
            for site in &mut self.sites {
                site.endpoint.handle_timeout(self.now);
            }
        }
        self.drain();
        true
    }

    fn arrive(&mut self, datagram: &Datagram) {
        let mapped = self.mappings.iter().find(|mapping| mapping.outside == datagram.to);
        let to = mapped.map_or(datagram.to, |mapping| mapping.inside);
        let Some(site) = self.sites.iter_mut().find(|site| site.addresses.contains(&to)) else { return };
        let path = PathAddress::over_udp(to.ip(), datagram.from);
        site.endpoint.handle_datagram(self.now, path, &datagram.bytes);
    }

    pub(crate) fn send(&mut self, from: usize, messages: usize) {
        for _ in 0..messages {
            let message = Bytes::from(vec![7; 10_000]);
            self.sites[from].one().send(message, SendOptions::default()).expect("it is taken");
        }
        self.drain();
    }

    /// Lets time pass until this number of bytes has been read.
    pub(crate) fn read(&mut self, at: usize, bytes: usize) {
        let (mut sum, mut buf) = (0, Vec::new());
        self.until("all arrives", |net| {
            while let Some(piece) = net.sites[at].one().recv(&mut buf) {
                sum += piece.bytes;
            }
            sum >= bytes
        });
    }

    /// Returns the numbers of datagrams and bytes sent to an address.
    pub(crate) fn sent_to(&self, address: IpAddr) -> (usize, usize) {
        let there = self.log.iter().filter(|datagram| datagram.to.ip() == address);
        there.fold((0, 0), |(count, bytes), datagram| (count + 1, bytes + datagram.bytes.len()))
    }

    /// Returns the verification tag of the packets to an address.
    pub(crate) fn tag_to(&self, to: IpAddr) -> u32 {
        let last = self.log.iter().rfind(|datagram| datagram.to.ip() == to && datagram.tag() != 0);
        last.expect("a packet").tag()
    }
}

/// Returns a server at 10.0.0.9 and a client at 10.0.0.1, connected over one path.
pub(crate) fn pair() -> Net {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.site(&[at(ip(0, 1), PORT)], None);
    net.site(&[server], Some(config()));
    net.connect(0, &[(ip(0, 1), server)], config());
    net.run(Span::from_secs(1));
    net
}
