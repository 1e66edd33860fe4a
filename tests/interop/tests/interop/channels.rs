//! Data channels (RFC 8831, RFC 8832) with pion/datachannel on pion/sctp. Loopback stands for the DTLS below.

use std::process::Command;
use std::time::Instant;

use anabranch_core::profile::Profile;
use anabranch_core::{AssociationConfig, AssociationEvent};
use anabranch_datachannel::{
    ChannelEvent, ChannelId, ChannelReliability, CloseCause, DataChannels, Limits, MessageKind, Role,
    Settings, configure,
};
use anabranch_schemes::registry;
use serde_json::{Value, json};

use crate::rig::{Input, Local, Peer, TIMEOUT, pion};

/// SCTP port of both sides: pion has no other.
const SCTP_PORT: u16 = 5000;

/// Number of streams in each direction.
const STREAMS: u16 = 64;

/// Sizes of messages in bytes: none, one, one packet, the default limit of RFC 8841, the limit of this side.
const SIZES: [usize; 6] = [0, 1, 1_000, 65_535, 65_536, 262_144];

/// One setup of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    we_connect: bool,
    interleaving: bool,
    zero_checksum: bool,
}

/// All cases in which an extension is offered by both sides or by this side only.
fn cases() -> impl Iterator<Item = Case> {
    (0..8).map(|bits| Case {
        we_connect: bits & 1 != 0,
        interleaving: bits & 2 != 0,
        zero_checksum: bits & 4 != 0,
    })
}

/// Channels of this side, beside pion.
struct Beside {
    local: Local,
    channels: DataChannels,
    events: Vec<ChannelEvent>,
    connected: bool,
    theirs: Peer,
    /// Channel on which pion gets orders.
    control: ChannelId,
}

impl Beside {
    fn new(case: Case) -> Self {
        let scheme = registry::parse("sctp").expect("a scheme").into_scheme();
        let mut config = AssociationConfig::new(scheme, Profile::net());
        config.recv_buffer_bytes = 1 << 20;
        configure(&mut config, STREAMS);
        let mut local = Local::new(SCTP_PORT, config);
        let [local_port, remote_port] = local.ports();
        let mut command = Command::new(pion());
        command.args(["-local", &format!("127.0.0.1:{remote_port}")]);
        command.args(["-remote", &format!("127.0.0.1:{local_port}")]);
        command.arg(format!("-interleave={}", case.interleaving));
        command.arg(format!("-zero-checksum={}", case.zero_checksum));
        command.arg(format!("-listen={}", case.we_connect));
        command.arg("channels");
        let theirs = Peer::start("pion", command, Input::None);
        if case.we_connect {
            theirs.wait_for("listening");
            local.connect(SCTP_PORT);
        }
        let limits = Limits { sent_bytes: 256 << 10, ..Limits::default() };
        let channels = DataChannels::new(Role::DtlsClient, limits);
        let mut beside = Beside { local, channels, events: Vec::new(), connected: false, theirs, control: 0 };
        beside.run_until("the association", |beside| beside.connected);
        let agreed = beside.theirs.wait_for("up");
        assert_eq!(agreed["interleaves"], case.interleaving);
        let association = beside.local.association();
        assert_eq!(association.interleaves_messages(), case.interleaving);
        assert_eq!(association.sends_zero_checksums(), case.zero_checksum);
        // pion sends zero checksums to a peer that announces DTLS in its INIT, also if it does not itself.
        assert_eq!(agreed["sends_zero_checksums"], case.zero_checksum || case.we_connect);
        beside.control = beside.open(Settings::new("control"));
        beside
    }

    fn step(&mut self) {
        for event in self.local.step() {
            assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
            self.connected |= event == AssociationEvent::Connected;
            let now = self.local.now();
            self.channels.handle_event(now, self.local.association(), &event);
        }
        if self.connected {
            let now = self.local.now();
            while let Some(event) = self.channels.poll(now, self.local.association()) {
                self.events.push(event);
            }
        }
    }

    #[track_caller]
    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < deadline, "no {what}");
            self.step();
        }
    }

    /// Waits for an event, and forgets it and the earlier ones.
    #[track_caller]
    fn await_event(&mut self, what: &str, wanted: impl Fn(&ChannelEvent) -> bool) -> ChannelEvent {
        self.run_until(what, |beside| beside.events.iter().any(&wanted));
        let at = self.events.iter().position(wanted).expect("it has come");
        self.events.drain(..=at).next_back().expect("at least one")
    }

    /// Waits for an event of pion about a channel, the `nth` of its kind.
    #[track_caller]
    fn await_theirs(&mut self, event: &str, nth: usize) -> Value {
        // Both sides may have to send first.
        let deadline = Instant::now() + TIMEOUT;
        while self.theirs.count(event) < nth {
            assert!(Instant::now() < deadline, "pion reports no {event}");
            self.step();
        }
        self.theirs.wait_for_nth(event, nth)
    }

    fn open(&mut self, settings: Settings) -> ChannelId {
        let now = self.local.now();
        let id = self.channels.open(now, self.local.association(), settings).expect("a stream is free");
        self.await_event("answer to an opening", |event| *event == ChannelEvent::Opened(id));
        id
    }

    fn send(&mut self, id: ChannelId, kind: MessageKind, payload: &[u8]) {
        let (now, payload) = (self.local.now(), payload.to_vec().into());
        let sent = self.channels.send(now, self.local.association(), id, (kind, payload));
        sent.expect("it is open");
    }

    fn order(&mut self, order: &Value) {
        self.send(self.control, MessageKind::Text, order.to_string().as_bytes());
    }

    fn close(&mut self, id: ChannelId) {
        let now = self.local.now();
        self.channels.close(now, self.local.association(), id).expect("it is open");
    }

    /// Sends messages of all sizes and kinds, and awaits the return of each.
    #[track_caller]
    fn echo(&mut self, id: ChannelId) {
        for (kind, fill) in [(MessageKind::Binary, 0xB5), (MessageKind::Text, b'x')] {
            for size in SIZES {
                let payload = vec![fill; size];
                self.send(id, kind, &payload);
                let message = ChannelEvent::Message { id, kind, payload };
                self.await_event(&format!("return of {size} B of {kind:?}"), |event| *event == message);
            }
        }
    }

    #[track_caller]
    fn await_closed(&mut self, id: ChannelId, cause: CloseCause) {
        let closed = ChannelEvent::Closed { id, cause };
        self.await_event(&format!("end of channel {id}"), |event| *event == closed);
    }
}

/// Settings of channels of each type, with its number in RFC 8832 section 5.1 and the parameter.
fn types() -> Vec<(Settings, u8, u32)> {
    let reliabilities = [
        (ChannelReliability::Full, 0x00, 0),
        (ChannelReliability::MaxRetransmissions(10), 0x01, 10),
        (ChannelReliability::LifetimeMs(30_000), 0x02, 30_000),
    ];
    let with_order = |ordered: bool| {
        reliabilities.map(|(reliability, number, parameter)| {
            let settings = Settings {
                protocol: "v1".to_owned(),
                ordered,
                reliability,
                priority: 512,
                ..Settings::new(format!("type {number} {ordered} ✓"))
            };
            (settings, if ordered { number } else { number | 0x80 }, parameter)
        })
    };
    [with_order(true), with_order(false)].concat()
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn channels_that_we_open_carry_messages_of_all_sizes_to_pion_and_back() {
    for case in cases() {
        let mut beside = Beside::new(case);
        for (index, (settings, number, parameter)) in types().into_iter().enumerate() {
            let id = beside.open(settings.clone());
            let accepted = beside.await_theirs("accepted", index + 2);
            let expected = json!({
                "event": "accepted", "id": id, "type": number, "parameter": parameter, "priority": 512,
                "label": settings.label, "protocol": "v1",
            });
            assert_eq!(accepted, expected, "{case:?}");
            beside.echo(id);
        }
        beside.theirs.kill();
    }
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn channels_that_pion_opens_carry_messages_of_all_sizes_both_ways() {
    for case in cases() {
        let mut beside = Beside::new(case);
        for (index, (settings, number, parameter)) in types().into_iter().enumerate() {
            let id = 2 * index as u16 + 1;
            beside.order(&json!({
                "do": "open", "id": id, "type": number, "parameter": parameter, "priority": 512,
                "label": settings.label, "protocol": "v1",
            }));
            let incoming = ChannelEvent::Incoming { id, settings };
            beside.await_event("channel of pion", |event| *event == incoming);
            beside.await_theirs("opened", index + 1);
            beside.echo(id);
        }
        beside.theirs.kill();
    }
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn channels_that_either_side_closes_free_their_streams_on_both() {
    for case in cases() {
        let mut beside = Beside::new(case);
        for round in 0..3 {
            let id = beside.open(Settings::new("ours"));
            assert_eq!(id, 2, "round {round}: the stream is free again");
            beside.echo(id);
            match round {
                1 => {
                    beside.order(&json!({ "do": "close", "id": id }));
                    beside.await_closed(id, CloseCause::Peer);
                }
                _ => {
                    beside.close(id);
                    beside.await_closed(id, CloseCause::Local);
                }
            }
            let over = beside.await_theirs("channel-over", 2 * round + 1);
            assert_eq!((over["id"].as_u64(), over["reason"].as_str()), (Some(2), Some("EOF")));
            beside.order(&json!({ "do": "open", "id": 5, "label": "theirs" }));
            beside.await_event("channel of pion", |event| {
                matches!(event, ChannelEvent::Incoming { id: 5, settings } if settings.label == "theirs")
            });
            beside.echo(5);
            match round {
                1 => {
                    beside.order(&json!({ "do": "close", "id": 5 }));
                    beside.await_closed(5, CloseCause::Peer);
                }
                _ => {
                    beside.close(5);
                    beside.await_closed(5, CloseCause::Local);
                }
            }
            beside.await_theirs("channel-over", 2 * round + 2);
        }
        beside.theirs.kill();
    }
}
