//! Configuration of an endpoint and its associations.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::access::AcceptFrom;
use crate::address::{LocalEnd, PathAddress};
use crate::policy::Scheme;
use crate::profile::Profile;
use crate::protection::Protection;
use crate::send::StreamScheduler;
use crate::time::Span;

/// Encapsulation of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Directly on IP, as protocol 132.
    None,
    /// In UDP datagrams (RFC 6951).
    Udp {
        /// Local UDP port.
        local_port: u16,
        /// UDP port of the peer, until it is learned.
        remote_port: u16,
    },
}

impl Encapsulation {
    /// Returns the bytes that encapsulation adds to every packet.
    pub const fn header_bytes(self) -> usize {
        match self {
            Encapsulation::None => 0,
            Encapsulation::Udp { .. } => 8,
        }
    }

    /// Returns the addresses of a path to open, with the configured UDP port if they have none.
    pub(crate) fn complete(self, address: PathAddress) -> PathAddress {
        let udp_port = match self {
            Encapsulation::None => None,
            Encapsulation::Udp { remote_port, .. } => Some(address.udp_port.unwrap_or(remote_port)),
        };
        PathAddress { udp_port, ..address }
    }
}

/// MTU of the interface of a local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceMtu {
    /// Local end.
    pub local: LocalEnd,
    /// Length of the largest IP packet in bytes.
    pub mtu_bytes: usize,
}

/// Key configured on both endpoints to authenticate chunks (RFC 4895 section 1.2).
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Identifier of the key, the same on both sides. It is sent in the clear.
    pub id: u16,
    /// Secret bytes.
    pub secret: Vec<u8>,
}

/// Omits the secret.
impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Treatment of the addresses that a peer lists in its INIT or INIT ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedAddresses {
    /// Each listed address becomes a path of the accepting side, once it has answered a HEARTBEAT. Packets from other sources than
    /// the known and listed addresses are not accepted as the peer's (RFC 9260 section 5.1.2).
    #[default]
    Use,
    /// No listed address becomes a path. Paths are the configured ones, and the sources of packets with the right verification tag,
    /// once they have answered a HEARTBEAT. A host behind a NAT or relay is never contacted past it.
    Ignore,
    /// Addresses in INIT and INIT ACK are ignored, because an attacker on the network path can change them. Addresses that the peer
    /// adds by ASCONF in protected packets are reported to the driver of the side that opened the association
    /// ([`Association::reported_addresses`](crate::Association::reported_addresses)), which may offer paths to them.
    Protected,
}

/// Treatment of changes of addresses while an association is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressChanges {
    /// `true` to use ASCONF (RFC 5061) with a peer that supports it: each side reports added and removed addresses to the other, in
    /// authenticated chunks (RFC 4895).
    pub asconf: bool,
    /// Key configured on both endpoints. If it is `None`, an attacker who has seen the handshake can compute the key of ASCONF.
    pub shared_key: Option<SharedKey>,
    /// Set if the driver uses new local addresses for this association automatically.
    pub follow: bool,
}

/// Changes of streams while an association is up (RFC 6525).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamChanges {
    /// Maximum number of streams in each direction, up to which either side may add streams.
    pub max_streams: u16,
}

/// Limits of buffers that grow with the bytes that the paths carry in a round trip of the slowest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferGrowth {
    /// Maximum receive buffer in bytes, in the unit of the profile's window.
    pub largest_recv_bytes: u64,
    /// Maximum send buffer in user bytes.
    pub largest_send_bytes: u64,
}

/// Minimum window that an INIT or INIT ACK may advertise (RFC 9260 sections 3.3.2 and 3.3.3).
pub(crate) const LEAST_FIRST_WINDOW: u32 = 1500;

/// Detection of corrupted packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    /// CRC32c in the common header.
    Checksum,
    /// Guarantee of the driver that packets are not corrupted.
    Driver,
}

/// Form in which packets are given to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketForm {
    Bytes,
    /// Packets with one DATA chunk without content are described by their fields.
    Described,
}

/// Method that detects errors in the packets of an association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorDetection {
    /// CRC32c in the common header.
    #[default]
    Crc32c,
    /// DTLS below SCTP (RFC 8261), with CRC32c only where RFC 9653 section 5.2 requires it or the peer does not announce the method.
    LowerLayerDtls,
}

/// Configuration of an association.
#[derive(Clone)]
pub struct AssociationConfig {
    /// Scheme that creates the policies of the association.
    pub scheme: Arc<dyn Scheme>,
    /// Rules of the profile.
    pub profile: Profile,
    /// Receive buffer in bytes, in the unit of the profile's window.
    pub recv_buffer_bytes: u64,
    /// Send buffer in user bytes; `None` is unlimited.
    pub send_buffer_bytes: Option<u64>,
    /// Limits up to which both buffers grow; `None` keeps their sizes.
    pub buffer_growth: Option<BufferGrowth>,
    /// IP packet size of every path in bytes; the initial size if a larger one is searched for.
    pub mtu_bytes: usize,
    /// Largest IP packet size in bytes that is searched for on each path (RFC 8899); `None` keeps `mtu_bytes`. A smaller
    /// MTU of the interface lowers it ([`Endpoint::set_interface_mtus`](crate::Endpoint::set_interface_mtus)), and so does,
    /// above 1500 bytes, a receive buffer of either side with room for fewer than 16 such packets.
    pub mtu_search_up_to_bytes: Option<usize>,
    /// Number of streams in each direction.
    pub streams: u16,
    /// `true` to announce that the driver controls each stream above SCTP: credit, end and reset. The driver does it if the peer
    /// announces it too ([`Association::controls_streams`](crate::Association::controls_streams)).
    pub stream_control: bool,
    /// Rule that chooses the stream of the next message, or of the next chunk with [`interleaving`](Self::interleaving).
    pub stream_scheduler: StreamScheduler,
    /// `true` to offer I-DATA chunks (RFC 8260), with which messages of different streams interleave. They replace DATA chunks if the
    /// peer offers them too ([`Association::interleaves_messages`](crate::Association::interleaves_messages)).
    pub interleaving: bool,
    /// Method that detects errors. Select [`ErrorDetection::LowerLayerDtls`] only if the driver discards datagrams that an authenticated
    /// lower layer has not accepted ([`Association::sends_zero_checksums`](crate::Association::sends_zero_checksums)).
    pub error_detection: ErrorDetection,
    /// First SSN of every stream in both directions. Only tests set it to a value other than zero, and on both sides.
    pub first_ssn: u16,
    /// Initial TSN; random if `None`. Only tests set it.
    pub initial_tsn: Option<u32>,
    /// `true` to record decisions for [`Association::poll_trace`](crate::Association::poll_trace).
    pub trace: bool,
    /// Set to ignore what policies declare: every event is delivered to every policy, and every figure is read again after it. The
    /// association does the same at a higher cost. Only tests set it, to compare both.
    pub ignores_declarations: bool,
    /// Time after which a path with outstanding data but without acknowledgements has failed; `None` leaves that to the error
    /// counter alone.
    pub path_silence_limit: Option<Span>,
    /// Treatment of addresses that the peer lists.
    pub listed_addresses: ListedAddresses,
    /// Maximum time until an opened association is established; `None` leaves it to the profile's limit of INITs.
    pub connect_timeout: Option<Span>,
    /// Time without packets of the peer, on any path, after which the next error ends the association; `None` counts errors instead
    /// (Association.Max.Retrans).
    pub peer_silence_limit: Option<Span>,
    /// Treatment of changes of addresses while the association is up.
    pub address_changes: AddressChanges,
    /// Changes of streams with a peer that supports them; `None` keeps the streams of the handshake, and announces no support.
    pub stream_changes: Option<StreamChanges>,
    /// Protection of packets by the DTLS chunk; `None` for plain packets. Messages are refused until the driver has installed keys.
    /// If it is set, [`AddressChanges::asconf`] needs no AUTH, and works with protected peers only.
    pub protection: Option<Protection>,
}

impl AssociationConfig {
    /// Returns the configuration of a scheme under its rules for a profile's row, with 64 KiB of receive buffer, an unlimited send
    /// buffer, 1500-byte packets and one stream.
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
            stream_control: false,
            stream_scheduler: StreamScheduler::default(),
            interleaving: false,
            error_detection: ErrorDetection::default(),
            first_ssn: 0,
            initial_tsn: None,
            trace: false,
            ignores_declarations: false,
            path_silence_limit: None,
            listed_addresses: ListedAddresses::Use,
            connect_timeout: None,
            peer_silence_limit: None,
            address_changes: AddressChanges::default(),
            stream_changes: None,
            protection: None,
        }
    }
}

impl AssociationConfig {
    /// Returns the window that INIT and INIT ACK advertise: the receive buffer, but at least the minimum of the standard.
    pub(crate) fn first_window(&self) -> u32 {
        u32::try_from(self.recv_buffer_bytes).unwrap_or(u32::MAX).max(LEAST_FIRST_WINDOW)
    }

    /// Returns the streams that INIT and INIT ACK request and permit. Zero is not a valid number.
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

/// Limit on the rate of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Average number per second.
    pub per_second: u32,
    /// Maximum number at once after a pause.
    pub burst: u32,
}

/// Protection of an endpoint that unknown hosts can reach. It also limits the bytes sent to an unvalidated address to three times
/// those received from it: in replies without an association, and on paths learned from a packet's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// INITs that are the share of one IPv4 address or one IPv6 network of 64 bits. More are answered by chance.
    pub per_source: RateLimit,
    /// Number of INITs of all sources: one half for sources within their shares, one half by chance for the others.
    pub in_all: RateLimit,
}

impl Default for Guard {
    /// Returns limits of ten handshakes per second from a source and 20,000 in total, which take a small part of a processor.
    fn default() -> Self {
        Guard {
            per_source: RateLimit { per_second: 10, burst: 50 },
            in_all: RateLimit { per_second: 20_000, burst: 5_000 },
        }
    }
}

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Local SCTP port.
    //= docs/rfc9260.txt#section-1.3
    //= type=implication
    //# All transport addresses used by an SCTP endpoint MUST use the same port number but can use multiple IP addresses.
    pub port: u16,
    /// Local addresses, in the order in which they are listed to peers.
    pub addresses: Vec<IpAddr>,
    /// Encapsulation of packets.
    pub encapsulation: Encapsulation,
    /// Configuration of associations that peers open; `None` refuses them.
    pub accept: Option<AssociationConfig>,
    /// Sources that may open associations.
    pub accept_from: AcceptFrom,
    /// Maximum number of associations at a time.
    pub max_associations: usize,
    /// Protection from unknown hosts; `None` in a network without any, such as a simulated one.
    pub guard: Option<Guard>,
}
