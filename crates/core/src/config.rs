//! What an endpoint and its associations are configured with.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::access::AcceptFrom;
use crate::address::{LocalEnd, PathAddress};
use crate::policy::Scheme;
use crate::profile::Profile;
use crate::protection::Protection;
use crate::time::Span;

/// How packets are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Directly on IP, as protocol 132.
    None,
    /// In UDP datagrams (RFC 6951).
    Udp {
        /// Our UDP port.
        local_port: u16,
        /// The peer's, until it is learned.
        remote_port: u16,
    },
}

impl Encapsulation {
    /// Bytes that encapsulation adds to every packet.
    pub const fn header_bytes(self) -> usize {
        match self {
            Encapsulation::None => 0,
            Encapsulation::Udp { .. } => 8,
        }
    }

    /// The addresses of a path to open, with the configured UDP port if they name none.
    pub(crate) fn complete(self, address: PathAddress) -> PathAddress {
        let udp_port = match self {
            Encapsulation::None => None,
            Encapsulation::Udp { remote_port, .. } => Some(address.udp_port.unwrap_or(remote_port)),
        };
        PathAddress { udp_port, ..address }
    }
}

/// What the interface of a local address takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceMtu {
    /// The local end.
    pub local: LocalEnd,
    /// The largest IP packet, in bytes.
    pub mtu_bytes: usize,
}

/// A key that two endpoints were given beforehand, to authenticate chunks with (RFC 4895 section 1.2).
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Its number, the same on both sides. It goes over the wire.
    pub id: u16,
    /// The secret.
    pub secret: Vec<u8>,
}

/// Prints no secret.
impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What becomes of the addresses that a peer lists in its INIT or INIT ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedAddresses {
    /// Each becomes a path of the side that accepts, once it has answered a HEARTBEAT, and a packet from any other source than
    /// the known and the listed addresses is not the peer's (RFC 9260 section 5.1.2).
    #[default]
    Use,
    /// None becomes a path. Paths are those given, and the sources that packets with the right verification tag came from, once
    /// they have answered a HEARTBEAT: what an address translator or a relay stands before is never gone around.
    Ignore,
    /// Ignores addresses in INIT and INIT ACK, which anyone on the route can change. Addresses that the peer
    /// adds by ASCONF in protected packets are reported to the driver of the side that opened the association
    /// ([`Association::reported_addresses`](crate::Association::reported_addresses)), which may offer paths to them.
    Protected,
}

/// What an association does about addresses that come and go while it is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressChanges {
    /// Whether to do ASCONF (RFC 5061) with a peer that does it as well: each side tells the other of addresses that come and
    /// go, in chunks that are authenticated (RFC 4895).
    pub asconf: bool,
    /// A key that both endpoints were given beforehand. Without one, ASCONF is authenticated with a key that whoever has seen
    /// the handshake can work out.
    pub shared_key: Option<SharedKey>,
    /// Whether a driver that gets a new local address is to use it for this association without being asked.
    pub follow: bool,
}

/// How large buffers get that grow with what the paths carry in a round trip of the slowest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferGrowth {
    /// The largest receive buffer in bytes, in the unit of the profile's window.
    pub largest_recv_bytes: u64,
    /// The largest send buffer in user bytes.
    pub largest_send_bytes: u64,
}

/// The least window that an INIT or INIT ACK may advertise (RFC 9260 sections 3.3.2 and 3.3.3).
pub(crate) const LEAST_FIRST_WINDOW: u32 = 1500;

/// What tells a packet that was changed on its way from one that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    /// The CRC32c in its common header.
    Checksum,
    /// The driver vouches that none was.
    Driver,
}

/// What an association is configured with.
#[derive(Clone)]
pub struct AssociationConfig {
    /// The scheme that steers it.
    pub scheme: Arc<dyn Scheme>,
    /// The rules around it.
    pub profile: Profile,
    /// Receive buffer in bytes, in the unit of the profile's window.
    pub recv_buffer_bytes: u64,
    /// Send buffer in user bytes; `None` is unlimited.
    pub send_buffer_bytes: Option<u64>,
    /// How far both buffers grow from there; `None` leaves them as they are.
    pub buffer_growth: Option<BufferGrowth>,
    /// IP packet size of every path; where a larger one is searched for, the size that it begins with.
    pub mtu_bytes: usize,
    /// The largest IP packet size that is searched for on each path (RFC 8899); `None` stays with `mtu_bytes`. Less is searched
    /// for where the interface takes less ([`Endpoint::set_interface_mtus`](crate::Endpoint::set_interface_mtus)), and above 1500
    /// bytes where a receive buffer of either side holds fewer than 16 such packets.
    pub mtu_search_up_to_bytes: Option<usize>,
    /// Streams in each direction.
    pub streams: u16,
    /// The first SSN of every stream in both directions. Only tests set it to anything but zero, and on both sides.
    pub first_ssn: u16,
    /// The initial TSN; drawn at random if `None`. Only tests set it.
    pub initial_tsn: Option<u32>,
    /// Whether decisions are recorded for [`Association::poll_trace`](crate::Association::poll_trace).
    pub trace: bool,
    /// A path fails when nothing it carried was acknowledged for this long although something was outstanding; `None` leaves
    /// it to the error counter alone.
    pub path_silence_limit: Option<Span>,
    /// What becomes of addresses that the peer lists.
    pub listed_addresses: ListedAddresses,
    /// How long a peer that was called may take until the association is up; `None` leaves it to the profile's counter of INITs.
    pub connect_timeout: Option<Span>,
    /// The association ends at the first error after nothing was heard from the peer for this long, on any path; `None` counts
    /// errors instead (Association.Max.Retrans).
    pub peer_silence_limit: Option<Span>,
    /// What it does about addresses that come and go while it is up.
    pub address_changes: AddressChanges,
    /// How its packets are protected by the DTLS chunk; `None` does without. Messages are refused until the driver has installed
    /// keys; the drivers of this project do not do that yet. With it [`AddressChanges::asconf`] needs no AUTH, and works with
    /// protected peers only.
    pub protection: Option<Protection>,
}

impl AssociationConfig {
    /// A scheme under the rules that it makes of a profile's row, with 64 KiB of receive buffer, an unlimited send buffer,
    /// 1500-byte packets and one stream.
    pub fn new(scheme: Arc<dyn Scheme>, row: Profile) -> Self {
        AssociationConfig {
            profile: scheme.profile(row),
            scheme,
            recv_buffer_bytes: 65_536,
            send_buffer_bytes: None,
            buffer_growth: None,
            mtu_bytes: 1500,
            mtu_search_up_to_bytes: None,
            streams: 1,
            first_ssn: 0,
            initial_tsn: None,
            trace: false,
            path_silence_limit: None,
            listed_addresses: ListedAddresses::Use,
            connect_timeout: None,
            peer_silence_limit: None,
            address_changes: AddressChanges::default(),
            protection: None,
        }
    }
}

impl AssociationConfig {
    /// The window that INIT and INIT ACK advertise: the receive buffer, or the least that the standard lets them say.
    pub(crate) fn first_window(&self) -> u32 {
        u32::try_from(self.recv_buffer_bytes).unwrap_or(u32::MAX).max(LEAST_FIRST_WINDOW)
    }

    /// The streams that INIT and INIT ACK ask for and allow. Zero is not a number that they may say.
    pub(crate) fn offered_streams(&self) -> u16 {
        //= docs/rfc9260.txt#section-3.3.2
        //# The value of 0 MUST NOT be used.
        //= docs/rfc9260.txt#section-3.3.2
        //# The value 0 MUST NOT be used.
        self.streams.max(1)
    }
}

impl fmt::Debug for AssociationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssociationConfig")
            .field("profile", &self.profile.name)
            .field("recv_buffer_bytes", &self.recv_buffer_bytes)
            .field("mtu_bytes", &self.mtu_bytes)
            .finish_non_exhaustive()
    }
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// On average.
    pub per_second: u32,
    /// At once after a pause.
    pub burst: u32,
}

/// What protects an endpoint that strangers can reach. It also holds what is sent to an address that has not proved itself to
/// three times what came from there: answers to strangers, and everything on paths learned from a packet's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// INITs that one IPv4 address or one IPv6 network of 64 bits has as its own share. More are answered by chance.
    pub per_source: RateLimit,
    /// INITs from everywhere: one half for what is within shares, one half by chance for the rest.
    pub in_all: RateLimit,
}

impl Default for Guard {
    /// Ten handshakes a second from a source and 20,000 in all, which take a small part of a processor.
    fn default() -> Self {
        Guard {
            per_source: RateLimit { per_second: 10, burst: 50 },
            in_all: RateLimit { per_second: 20_000, burst: 5_000 },
        }
    }
}

/// What an endpoint is configured with.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Our SCTP port.
    //= docs/rfc9260.txt#section-1.3
    //= type=implication
    //# All transport addresses used by an SCTP endpoint MUST use the same port number but can use multiple IP addresses.
    pub port: u16,
    /// Our addresses, in the order in which they are listed to peers.
    pub addresses: Vec<IpAddr>,
    /// How packets are carried.
    pub encapsulation: Encapsulation,
    /// The configuration of associations that peers open; `None` refuses them.
    pub accept: Option<AssociationConfig>,
    /// Who may open them.
    pub accept_from: AcceptFrom,
    /// The most associations at a time.
    pub max_associations: usize,
    /// Protection from strangers; `None` in a network without any, such as a simulated one.
    pub guard: Option<Guard>,
}
