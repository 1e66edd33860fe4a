//! Packets from strangers use no memory.

use std::net::IpAddr;

use crate::rig::craft::{fix_checksum, packet};
use crate::rig::wires::Wires;
use crate::rig::{PORT, address, association, endpoint};
use crate::{live_bytes, turn};
use anabranch_core::protection::{KeyManagementMethod, KeyManagementRoles, Protection, ProtectionMode};
use anabranch_core::time::{Span, Time};
use anabranch_core::{AssociationConfig, Discard, Endpoint, Guard, Handled, PacketBuffer, PathAddress};
use anabranch_wire::{InitRepr, Param, Tsn};

const PACKETS: u32 = 100_000;
/// Number of first packets, which may enlarge queues permanently.
const WARM_UP: u32 = 2000;
/// Allowance for other tests that the harness starts and ends at the same time. Half a byte per packet would exceed it.
const SLACK: usize = 49_000;

fn listener() -> Endpoint {
    guarded_listener(None)
}

fn guarded_listener(guard: Option<Guard>) -> Endpoint {
    let config = endpoint(vec![address(0, 2)], association("sctp"));
    Endpoint::new(Time::ZERO, anabranch_core::EndpointConfig { guard, ..config }, [3; 32])
}

fn init(n: u32) -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: n + 1,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn::new(n),
    };
    let listed = [Param::Ipv4Address(n.into()), Param::Ipv4Address((n ^ 0xFFFF).into())];
    packet(0, |w| w.init(&repr, listed))
}

/// Returns an address of a stranger, spread over the address space.
fn stranger(n: u32) -> PathAddress {
    let remote = IpAddr::from((0x0B00_0000 + n.wrapping_mul(2_654_435_761) % 0x7000_0000).to_be_bytes());
    (address(0, 2), remote).into()
}

/// Takes all packets and events of the endpoint.
fn drain(endpoint: &mut Endpoint, now: Time, buf: &mut PacketBuffer) -> u32 {
    let mut packets = 0;
    while endpoint.poll_transmit(now, buf).is_some() {
        packets += 1;
    }
    while endpoint.poll_event().is_some() {}
    packets
}

#[test]
fn hundred_thousand_spoofed_inits_leave_no_state() {
    let _turn = turn();
    let mut endpoint = listener();
    let (mut buf, mut before) = (PacketBuffer::with_capacity(2048), 0);
    for n in 0..PACKETS {
        if n == WARM_UP {
            before = live_bytes();
        }
        let now = Time::ZERO + Span::from_millis(u64::from(n));
        assert_eq!(endpoint.handle_datagram(now, stranger(n), &init(n)), Handled::Replied);
        assert_eq!(drain(&mut endpoint, now, &mut buf), 1);
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown <= SLACK, "{grown} bytes more after {PACKETS} INITs");
    assert_eq!((endpoint.associations().count(), endpoint.poll_timeout()), (0, None));
}

fn protecting(roles: KeyManagementRoles) -> AssociationConfig {
    let methods = vec![KeyManagementMethod::TLS];
    let protection = Some(Protection { mode: ProtectionMode::Strict, roles, methods, restart: false });
    AssociationConfig { protection, ..association("sctp") }
}

/// Returns the INIT of an endpoint that requires protection.
fn protected_init() -> Vec<u8> {
    let wanted = protecting(KeyManagementRoles::Client);
    let config = endpoint(vec![address(0, 1)], wanted.clone());
    let mut client = Endpoint::new(Time::ZERO, config, [5; 32]);
    let pair = [(address(0, 1), address(0, 2))];
    client.connect(Time::ZERO, PORT, &pair, wanted).expect("it can connect");
    let mut init = PacketBuffer::new();
    client.poll_transmit(Time::ZERO, &mut init).expect("an INIT");
    init.to_vec()
}

#[test]
fn spoofed_inits_cost_a_protecting_endpoint_no_more() {
    let _turn = turn();
    let config = endpoint(vec![address(0, 2)], protecting(KeyManagementRoles::Server));
    let mut endpoint = Endpoint::new(Time::ZERO, config, [3; 32]);
    let mut init = protected_init();
    let mut buf = PacketBuffer::with_capacity(2048);
    let (mut before, mut answered) = (0, 0);
    for n in 0..PACKETS {
        if n == WARM_UP {
            before = live_bytes();
        }
        let now = Time::ZERO + Span::from_millis(u64::from(n));
        init[16..20].copy_from_slice(&(n + 1).to_be_bytes());
        fix_checksum(&mut init);
        assert_eq!(endpoint.handle_datagram(now, stranger(n), &init), Handled::Replied);
        while endpoint.poll_transmit(now, &mut buf).is_some() {
            assert!(buf.len() <= init.len(), "{} bytes for {}", buf.len(), init.len());
            answered += 1;
        }
        assert_eq!(endpoint.poll_event(), None);
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown <= SLACK, "{grown} bytes more after {PACKETS} INITs");
    assert_eq!(answered, PACKETS);
    assert_eq!((endpoint.associations().count(), endpoint.poll_timeout()), (0, None));
}

#[test]
fn a_guard_counts_sources_in_memory_of_a_fixed_size() {
    let _turn = turn();
    let mut endpoint = guarded_listener(Some(Guard::default()));
    let (mut buf, before) = (PacketBuffer::with_capacity(2048), live_bytes());
    let mut answered = 0;
    for n in 0..PACKETS {
        // A hundred thousand arrive in a second, of which a fifth is answered after the first burst.
        let now = Time::ZERO + Span::from_micros(u64::from(n) * 10);
        endpoint.handle_datagram(now, stranger(n), &init(n));
        answered += drain(&mut endpoint, now, &mut buf);
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown <= SLACK, "{grown} bytes more after {PACKETS} INITs");
    assert!((24_000..26_000).contains(&answered), "{answered} answers");
    assert_eq!(endpoint.discards().of(Discard::Flood), u64::from(PACKETS - answered));
}

#[test]
fn unread_answers_do_not_accumulate() {
    let _turn = turn();
    let mut endpoint = listener();
    let before = live_bytes();
    for n in 0..PACKETS {
        endpoint.handle_datagram(Time::ZERO, stranger(n), &init(n));
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown < 2_000_000, "{grown} bytes in answers");
    let waiting = drain(&mut endpoint, Time::ZERO, &mut PacketBuffer::with_capacity(2048));
    assert!((1..=1024).contains(&waiting), "{waiting} answers");
}

/// Returns arbitrary input: noise, noise under a right checksum, chunks of noise, and cookies of noise.
fn garbage(n: u32, tag: u32) -> Vec<u8> {
    let mut state = u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut noise = |length: usize| -> Vec<u8> {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    };
    let length = (n % 200) as usize;
    match n % 5 {
        0 => noise(length),
        1 => {
            let mut bytes = noise(length);
            fix_checksum(&mut bytes);
            bytes
        }
        2 => crate::rig::craft::raw(n, &noise(length)),
        3 => packet(n, |w| w.cookie_echo(&noise(length))),
        _ => packet(tag ^ (1 << (n % 32)), |w| {
            w.raw_parts(anabranch_wire::ChunkType(n as u8), 0, &noise(length))
        }),
    }
}

#[test]
fn hundred_thousand_garbage_packets_leave_no_state() {
    let _turn = turn();
    let mut wires = Wires::connected(1);
    let tag = wires.log.iter().rfind(|p| p.to == address(0, 2)).expect("packets were sent").tag();
    let now = wires.now;
    let endpoint = &mut wires.nodes[1].endpoint;
    let id = endpoint.associations().next().expect("one");
    let state = format!("{:?}", endpoint.association(id));
    let (mut buf, mut before) = (PacketBuffer::with_capacity(2048), 0);
    for n in 0..PACKETS {
        if n == WARM_UP {
            before = live_bytes();
        }
        let bytes = garbage(n, tag);
        let from = if n % 2 == 0 { address(0, 1) } else { stranger(n).remote };
        let path = PathAddress::from((address(0, 2), from));
        endpoint.handle_datagram(now, path, &bytes);
        assert!(drain(endpoint, now, &mut buf) <= 1, "one packet, at most one answer");
    }
    let grown = live_bytes().saturating_sub(before);
    assert!(grown <= SLACK, "{grown} bytes more after {PACKETS} garbage packets");
    assert_eq!(format!("{:?}", endpoint.association(id)), state);
    let discards = endpoint.discards();
    for reason in [Discard::Malformed, Discard::Checksum, Discard::VerificationTag, Discard::CookieForged] {
        assert!(discards.of(reason) > 1000, "{reason:?}: {discards:?}");
    }
}
