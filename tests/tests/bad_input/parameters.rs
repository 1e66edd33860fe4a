//! Parameters of an INIT that request unsupported features.

use std::net::IpAddr;

use anabranch_core::time::Time;
use anabranch_core::{Endpoint, Handled, PacketBuffer, PathAddress};
use anabranch_wire::{Cause, Chunk, InitRepr, List, PacketView, Param, ParamType, Tsn};

use crate::rig::craft::packet;
use crate::rig::{address, association, endpoint};

/// Returns the answer of an endpoint without a guard to an INIT with these parameters. Guards limit the length of the answer.
fn answer(params: &[Param<'_>]) -> Vec<u8> {
    let config = endpoint(vec![address(0, 2)], association("sctp"));
    let config = anabranch_core::EndpointConfig { guard: None, ..config };
    let mut endpoint = Endpoint::new(Time::ZERO, config, [3; 32]);
    let repr = InitRepr {
        initiate_tag: 7,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn::new(1),
    };
    let bytes = packet(0, |w| w.init(&repr, params.iter().copied()));
    let path = PathAddress::from((address(0, 2), IpAddr::from([10, 0, 0, 1])));
    assert_eq!(endpoint.handle_datagram(Time::ZERO, path, &bytes), Handled::Replied);
    let mut buf = PacketBuffer::new();
    endpoint.poll_transmit(Time::ZERO, &mut buf).expect("an answer");
    assert_eq!(endpoint.associations().count(), 0);
    buf.to_vec()
}

fn kinds(answer: &[u8]) -> Vec<ParamType> {
    let packet = PacketView::parse(answer).expect("a packet");
    let chunk = packet.chunks().next().expect("a chunk").expect("whole").decode().expect("readable");
    let Chunk::InitAck(init) = chunk else { panic!("{chunk:?}") };
    init.params().map(|param| param.expect("readable").kind()).collect()
}

#[test]
fn unsupported_parameters_change_no_answer() {
    let without = kinds(&answer(&[]));
    for param in [
        Param::CookiePreservative { increment_ms: u32::MAX },
        Param::SupportedAddressTypes(List::new(&[ParamType::IPV6_ADDRESS, ParamType(0xFFFF)])),
        Param::EcnCapable,
        Param::AdaptationIndication(u32::MAX),
        Param::ForwardTsnSupported,
        Param::Success { correlation: 1 },
        Param::StateCookie(b"of nobody"),
        Param::UnrecognizedParameter(b"\0\0\0\x04"),
    ] {
        assert_eq!(kinds(&answer(&[param])), without, "{param:?}");
    }
}

#[test]
fn an_init_with_a_host_name_is_refused() {
    let refusal = answer(&[Param::HostNameAddress(b"example.org\0")]);
    let packet = PacketView::parse(&refusal).expect("a packet");
    let chunk = packet.chunks().next().expect("a chunk").expect("whole").decode().expect("readable");
    let Chunk::Abort(abort) = chunk else { panic!("{chunk:?}") };
    let causes: Vec<_> = abort.causes().flatten().collect();
    assert!(matches!(causes[..], [Cause::UnresolvableAddress(_)]), "{causes:?}");
}
