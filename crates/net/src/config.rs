//! Default configuration of an association on sockets.

use std::time::Duration;

use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::{AssociationConfig, BufferGrowth, ListedAddresses, StreamChanges};
use anabranch_schemes::registry::{self, ExpressionError};

/// UDP port of SCTP over UDP (RFC 6951 section 4).
pub const DEFAULT_UDP_PORT: u16 = 9899;

/// Default SCTP port of an accepting endpoint, and of peers.
pub const DEFAULT_SCTP_PORT: u16 = 9899;

/// Initial send buffer of an association, in user bytes: accepted and not yet acknowledged data.
pub const DEFAULT_SEND_BUFFER: u64 = 2 << 20;

/// Initial receive buffer of an association, in user bytes.
pub const DEFAULT_RECV_BUFFER: u64 = 2 << 20;

/// Maximum size of each buffer on paths that carry more in a round trip, in bytes.
pub const DEFAULT_LARGEST_BUFFER: u64 = 16 << 20;

/// Initial IP packet size of a path in bytes (RFC 8899 section 5.1.2: BASE_PLPMTU).
pub const DEFAULT_MTU: usize = 1200;

/// Maximum IP packet size for the search on a path in bytes, if its interface permits it.
pub const DEFAULT_LARGEST_MTU: usize = 65_535;

/// Number of streams in each direction.
pub const DEFAULT_STREAMS: u16 = 16;

/// Maximum number of streams in each direction, up to which either side may add streams.
const MOST_STREAMS: u16 = 1024;

/// Default scheme of an association.
pub const DEFAULT_SCHEME: &str = "braid";

/// Time after which an attempt to connect to a silent peer fails.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Time without any packet of the peer after which an association ends, while data is outstanding or probes are sent.
pub const DEFAULT_PEER_SILENCE: Duration = Duration::from_secs(60);

/// Returns the configuration of associations for a scheme of the registry, such as [`DEFAULT_SCHEME`] or `cmt(rtx=rtx-asap)`, with
/// this crate's defaults and the rules of [profile `net`](Profile::net). Every field can be changed afterwards.
///
/// # Errors
/// Describes the error in the expression, and the nearest known word.
///
/// ```
/// let mut config = anabranch_net::config("cmt").unwrap();
/// config.streams = 4;
/// assert!(anabranch_net::config("cmtt").unwrap_err().to_string().contains("did you mean `cmt`"));
/// ```
pub fn config(scheme: &str) -> Result<AssociationConfig, ExpressionError> {
    let scheme = registry::parse(scheme)?.into_scheme();
    let profile = if scheme.is_multipath() { Profile::net().multipath() } else { Profile::net() };
    let mut config = AssociationConfig::new(scheme, profile);
    config.recv_buffer_bytes = DEFAULT_RECV_BUFFER;
    config.send_buffer_bytes = Some(DEFAULT_SEND_BUFFER);
    config.buffer_growth = Some(BufferGrowth {
        largest_recv_bytes: DEFAULT_LARGEST_BUFFER,
        largest_send_bytes: DEFAULT_LARGEST_BUFFER,
    });
    config.mtu_bytes = DEFAULT_MTU;
    config.mtu_search_up_to_bytes = Some(DEFAULT_LARGEST_MTU);
    config.streams = DEFAULT_STREAMS;
    config.stream_changes = Some(StreamChanges { max_streams: MOST_STREAMS });
    config.address_changes.asconf = true;
    config.peer_silence_limit = Some(Span::from_nanos(DEFAULT_PEER_SILENCE.as_nanos() as u64));
    config.connect_timeout = Some(Span::from_nanos(DEFAULT_CONNECT_TIMEOUT.as_nanos() as u64));
    config.listed_addresses = ListedAddresses::Ignore;
    config.address_changes.follow = true;
    Ok(config)
}

/// Sets the time within which a peer has to answer. INITs are repeated during all of it: otherwise their counter,
/// Max.Init.Retransmits, would end an attempt of some minutes early.
pub fn set_connect_timeout(config: &mut AssociationConfig, limit: Duration) {
    let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    config.connect_timeout = Some(Span::from_nanos(nanos));
    // The wait for an answer begins with RTO.Initial and only grows.
    let tries = nanos.div_ceil(config.profile.rto_initial.as_nanos().max(1));
    let profile = &mut config.profile;
    profile.max_init_retransmits = profile.max_init_retransmits.max(u32::try_from(tries).unwrap_or(u32::MAX));
}

/// Bounds the send buffer. Otherwise a fast sender would fill the memory.
pub(crate) fn bounded(mut config: AssociationConfig) -> AssociationConfig {
    config.send_buffer_bytes.get_or_insert(DEFAULT_SEND_BUFFER);
    config
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use anabranch_core::time::Time;
    use anabranch_core::{
        AcceptFrom, AssociationEvent, Encapsulation, Endpoint, EndpointConfig, PathAddress,
    };

    use super::*;

    /// Returns the time at which an association with a silent peer ends.
    fn given_up(config: AssociationConfig) -> Time {
        let locals: [IpAddr; 2] = [[192, 0, 2, 1].into(), [198, 51, 100, 1].into()];
        let remotes = [SocketAddr::from(([192, 0, 2, 9], 9899)), SocketAddr::from(([198, 51, 100, 9], 9899))];
        let ours = EndpointConfig {
            port: 5000,
            addresses: locals.to_vec(),
            encapsulation: Encapsulation::Udp { local_port: 9899, remote_port: 9899 },
            accept: None,
            accept_from: AcceptFrom::Everyone,
            max_associations: 1,
            guard: None,
        };
        let mut endpoint = Endpoint::new(Time::ZERO, ours, [1; 32]);
        let paths: Vec<_> = locals
            .into_iter()
            .zip(remotes)
            .map(|(local, remote)| PathAddress::over_udp(local, remote))
            .collect();
        endpoint.connect(Time::ZERO, 5000, &paths, config).expect("paths");
        let mut now = Time::ZERO;
        loop {
            while endpoint.poll_transmit(now, &mut anabranch_core::PacketBuffer::new()).is_some() {}
            if let Some((_, AssociationEvent::Aborted(_))) = endpoint.poll_event() {
                return now;
            }
            now = endpoint.poll_timeout().expect("it waits");
            endpoint.handle_timeout(now);
        }
    }

    #[test]
    fn silent_peer_is_abandoned_after_the_timeout() {
        let usual = config(DEFAULT_SCHEME).expect("a scheme");
        assert_eq!(given_up(usual.clone()), Time::ZERO + Span::from_secs(15));
        for seconds in [1, 30, 600, 86_400] {
            let mut config = usual.clone();
            set_connect_timeout(&mut config, Duration::from_secs(seconds));
            assert_eq!(given_up(config), Time::ZERO + Span::from_secs(seconds), "{seconds} s");
        }
    }
}
