//! Default configuration of an association on sockets.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anabranch_core::policy::Scheme;
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::{AssociationConfig, BufferGrowth, ListedAddresses, StreamChanges, StreamScheduler};
use anabranch_schemes::costs::honour_costs;
use anabranch_schemes::duplicates::duplicate_marked;
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

/// Configuration of an association on sockets: a scheme with the rules of [profile `net`](Profile::net), and this crate's defaults.
///
/// ```
/// use std::time::Duration;
/// use anabranch_net::Config;
///
/// let config = Config::new("cmt")?.streams(64).connect_timeout(Duration::from_secs(5));
/// assert!(Config::new("cmtt").unwrap_err().to_string().contains("did you mean `cmt`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Config {
    core: AssociationConfig,
}

impl Default for Config {
    /// Returns the configuration of [`DEFAULT_SCHEME`].
    fn default() -> Self {
        Self::with_scheme(registry::parse(DEFAULT_SCHEME).expect("the registry has it").into_scheme())
    }
}

impl Config {
    /// Creates the configuration of a scheme of the registry, such as [`DEFAULT_SCHEME`] or `cmt(rtx=rtx-asap)`.
    ///
    /// # Errors
    /// Describes the error in the expression, and the nearest known word.
    pub fn new(scheme: &str) -> Result<Self, ExpressionError> {
        Ok(Self::with_scheme(registry::parse(scheme)?.into_scheme()))
    }

    /// Creates the configuration of a scheme of your own. It uses paths as their costs permit ([`honour_costs`]), and sends copies of
    /// messages with [`SendOptions::duplicate`](crate::SendOptions) ([`duplicate_marked`]).
    pub fn with_scheme(scheme: Arc<dyn Scheme>) -> Self {
        let profile = if scheme.is_multipath() { Profile::net().multipath() } else { Profile::net() };
        let mut core = AssociationConfig::new(honour_costs(duplicate_marked(scheme)), profile);
        core.recv_buffer_bytes = DEFAULT_RECV_BUFFER;
        core.send_buffer_bytes = Some(DEFAULT_SEND_BUFFER);
        core.buffer_growth = Some(BufferGrowth {
            largest_recv_bytes: DEFAULT_LARGEST_BUFFER,
            largest_send_bytes: DEFAULT_LARGEST_BUFFER,
        });
        core.mtu_bytes = DEFAULT_MTU;
        core.mtu_search_up_to_bytes = Some(DEFAULT_LARGEST_MTU);
        core.streams = DEFAULT_STREAMS;
        core.stream_changes = Some(StreamChanges { max_streams: MOST_STREAMS });
        core.address_changes.asconf = true;
        core.address_changes.follow = true;
        core.peer_silence_limit = Some(DEFAULT_PEER_SILENCE.into());
        core.connect_timeout = Some(DEFAULT_CONNECT_TIMEOUT.into());
        core.listed_addresses = ListedAddresses::Ignore;
        Config { core }
    }

    /// Sets the number of streams in each direction, [`DEFAULT_STREAMS`] by default and at least one.
    pub fn streams(self, streams: u16) -> Self {
        self.with_core(|core| core.streams = streams)
    }

    /// Enables [stream handles](crate::Association::open_stream), which the other endpoint should enable too. Ordered messages then
    /// belong to streams, and [`Association::send`](crate::Association::send) accepts unordered ones only.
    pub fn stream_control(self) -> Self {
        self.with_core(|core| core.stream_control = true)
    }

    /// Sets the rule that chooses the stream of the next message (RFC 8260 section 3), [`StreamScheduler::FirstComeFirstServed`] by
    /// default. [`SendStream::set_priority`](crate::SendStream::set_priority) sets the priority or weight of a stream.
    pub fn stream_scheduler(self, scheduler: StreamScheduler) -> Self {
        self.with_core(|core| core.stream_scheduler = scheduler)
    }

    /// Offers I-DATA (RFC 8260), with which messages of different streams interleave: the scheduler then chooses the stream of each
    /// chunk. The peer has to offer it too.
    pub fn interleaving(self) -> Self {
        self.with_core(|core| core.interleaving = true)
    }

    /// Sets the initial and the largest send buffer, in user bytes accepted and not acknowledged. It grows on paths that carry
    /// more in a round trip. The default is [`DEFAULT_SEND_BUFFER`] to [`DEFAULT_LARGEST_BUFFER`].
    pub fn send_buffer_bytes(self, bytes: RangeInclusive<u64>) -> Self {
        self.with_core(|core| {
            core.send_buffer_bytes = Some(*bytes.start());
            growth(core).largest_send_bytes = *bytes.end();
        })
    }

    /// Sets the initial and the largest receive buffer, in user bytes that the application has not received. The default is
    /// [`DEFAULT_RECV_BUFFER`] to [`DEFAULT_LARGEST_BUFFER`].
    pub fn recv_buffer_bytes(self, bytes: RangeInclusive<u64>) -> Self {
        self.with_core(|core| {
            core.recv_buffer_bytes = *bytes.start();
            growth(core).largest_recv_bytes = *bytes.end();
        })
    }

    /// Sets the initial IP packet size of a path and the largest one that is searched for (RFC 8899), which the interface may lower;
    /// [`DEFAULT_MTU`] to [`DEFAULT_LARGEST_MTU`] by default.
    pub fn mtu_bytes(self, bytes: RangeInclusive<usize>) -> Self {
        self.with_core(|core| {
            core.mtu_bytes = *bytes.start();
            core.mtu_search_up_to_bytes = Some(*bytes.end());
        })
    }

    /// Lets both buffers grow no further than this, or than their initial sizes if these are larger.
    pub fn limit_buffers_bytes(self, bytes: u64) -> Self {
        self.with_core(|core| {
            let (recv, send) = (core.recv_buffer_bytes, core.send_buffer_bytes.unwrap_or_default());
            if let Some(growth) = &mut core.buffer_growth {
                growth.largest_recv_bytes = growth.largest_recv_bytes.min(bytes.max(recv));
                growth.largest_send_bytes = growth.largest_send_bytes.min(bytes.max(send));
            }
        })
    }

    /// Sets the time within which a peer has to answer, [`DEFAULT_CONNECT_TIMEOUT`] by default.
    pub fn connect_timeout(self, limit: Duration) -> Self {
        self.with_core(|core| {
            let limit = Span::from(limit);
            core.connect_timeout = Some(limit);
            // INITs are repeated during all of it: otherwise their counter, Max.Init.Retransmits, would end an attempt of some minutes
            // early. The wait for an answer begins with RTO.Initial and only grows.
            let tries = limit.as_nanos().div_ceil(core.profile.rto_initial.as_nanos().max(1));
            let most = &mut core.profile.max_init_retransmits;
            *most = (*most).max(u32::try_from(tries).unwrap_or(u32::MAX));
        })
    }

    /// Sets the time without any packet of the peer after which the association ends, while data is outstanding or probes are sent;
    /// [`DEFAULT_PEER_SILENCE`] by default.
    pub fn peer_silence_limit(self, limit: Duration) -> Self {
        self.with_core(|core| core.peer_silence_limit = Some(limit.into()))
    }

    /// Sets the time after which a path with outstanding data but without acknowledgements has failed. By default only the error
    /// counter decides.
    pub fn path_silence_limit(self, limit: Duration) -> Self {
        self.with_core(|core| core.path_silence_limit = Some(limit.into()))
    }

    /// Sets the treatment of addresses that the peer lists; [`ListedAddresses::Ignore`] by default.
    pub fn listed_addresses(self, treatment: ListedAddresses) -> Self {
        self.with_core(|core| core.listed_addresses = treatment)
    }

    /// Returns the configuration of the protocol core.
    pub fn core(&self) -> &AssociationConfig {
        &self.core
    }

    /// Changes the configuration of the protocol core, such as its profile, where no method here does it.
    pub fn with_core(mut self, change: impl FnOnce(&mut AssociationConfig)) -> Self {
        change(&mut self.core);
        self
    }

    /// Returns the core's configuration. Its send buffer is bounded: otherwise a fast sender would fill the memory.
    pub(crate) fn into_core(mut self) -> AssociationConfig {
        self.core.send_buffer_bytes.get_or_insert(DEFAULT_SEND_BUFFER);
        self.core
    }
}

impl From<AssociationConfig> for Config {
    fn from(core: AssociationConfig) -> Self {
        Config { core }
    }
}

/// Returns the limits of growth. Without growth they are the initial sizes.
fn growth(core: &mut AssociationConfig) -> &mut BufferGrowth {
    core.buffer_growth.get_or_insert(BufferGrowth {
        largest_recv_bytes: core.recv_buffer_bytes,
        largest_send_bytes: core.send_buffer_bytes.unwrap_or(DEFAULT_SEND_BUFFER),
    })
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
        let usual = Config::default();
        assert_eq!(given_up(usual.clone().into_core()), Time::ZERO + Span::from_secs(15));
        for seconds in [1, 30, 600, 86_400] {
            let config = usual.clone().connect_timeout(Duration::from_secs(seconds));
            assert_eq!(given_up(config.into_core()), Time::ZERO + Span::from_secs(seconds), "{seconds} s");
        }
    }
}
