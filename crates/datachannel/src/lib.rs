//! WebRTC data channels (RFC 8831) with their establishment protocol (RFC 8832), on an association of [`anabranch_core`].
//!
//! A channel is a pair of streams with one identifier. [`DataChannels`] opens and closes channels and carries messages of text or
//! bytes, in order or not, with the reliability of the channel. It has no IO and no clock: its caller drives an
//! [`Endpoint`](anabranch_core::Endpoint) over any transport of datagrams, such as the DTLS of a WebRTC stack, and passes on the events of
//! the association.
//!
//! [`configure()`] sets what the channels need of the association. It assumes DTLS below, which replaces the checksum of packets.
//!
//! ```
//! use std::net::IpAddr;
//!
//! use anabranch_core::profile::Profile;
//! use anabranch_core::time::Time;
//! use anabranch_core::AssociationConfig;
//! # use anabranch_core::{AcceptFrom, Encapsulation, Endpoint, EndpointConfig, PacketBuffer, PathAddress};
//! use anabranch_datachannel::{ChannelEvent, DataChannels, Limits, MessageKind, Role, Settings, configure};
//! use anabranch_schemes::registry;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = AssociationConfig::new(registry::parse("sctp")?.into_scheme(), Profile::net());
//! configure(&mut config, 64);
//! # let addresses: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
//! # let mut endpoints = addresses.map(|address| {
//! #     let settings = EndpointConfig {
//! #         port: 5000,
//! #         addresses: vec![address],
//! #         encapsulation: Encapsulation::None,
//! #         accept: Some(config.clone()),
//! #         accept_from: AcceptFrom::Everyone,
//! #         max_associations: 1,
//! #         guard: None,
//! #     };
//! #     Endpoint::new(Time::ZERO, settings, [7; 32])
//! # });
//! # let now = Time::ZERO;
//! # let ours = endpoints[0].connect(now, 5000, &[(addresses[0], addresses[1])], config)?;
//! # let mut carry = |endpoints: &mut [Endpoint; 2]| {
//! #     let mut packet = PacketBuffer::new();
//! #     let mut moved = true;
//! #     while std::mem::take(&mut moved) {
//! #         for from in 0..2 {
//! #             while endpoints[from].poll_transmit(now, &mut packet).is_some() {
//! #                 let path = PathAddress::from((addresses[1 - from], addresses[from]));
//! #                 endpoints[1 - from].handle_datagram(now, path, &packet);
//! #                 moved = true;
//! #             }
//! #         }
//! #     }
//! # };
//! # carry(&mut endpoints);
//! # let theirs = endpoints[1].associations().next().ok_or("no association")?;
//! let mut client = DataChannels::new(Role::DtlsClient, Limits::default());
//! let mut server = DataChannels::new(Role::DtlsServer, Limits::default());
//! # let association = endpoints[0].association_mut(ours).ok_or("it is there")?;
//! let id = client.open(now, association, Settings::new("chat"))?;
//! client.send(now, association, id, (MessageKind::Text, "hello".into()))?;
//! # carry(&mut endpoints);
//! # let association = endpoints[1].association_mut(theirs).ok_or("it is there")?;
//! let incoming = ChannelEvent::Incoming { id, settings: Settings::new("chat") };
//! assert_eq!(server.poll(now, association), Some(incoming));
//! let hello = ChannelEvent::Message { id, kind: MessageKind::Text, payload: b"hello".to_vec() };
//! assert_eq!(server.poll(now, association), Some(hello));
//! # Ok(())
//! # }
//! ```

mod channel;
mod channels;
mod configure;
mod control;
mod error;
mod resets;

pub use channel::{ChannelId, ChannelReliability, Role, Settings};
pub use channels::{ChannelEvent, CloseCause, DataChannels, Limits, MessageKind};
pub use configure::configure;
pub use error::{ChannelError, Malformed};

/// Passes bytes to the decoder of control messages.
#[cfg(feature = "fuzzing")]
pub fn fuzz_control(bytes: &[u8]) {
    control::fuzz(bytes);
}
