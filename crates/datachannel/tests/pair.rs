//! Two endpoints with an association, and the network between them.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, Association, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint,
    EndpointConfig, PacketBuffer, PathAddress,
};
use anabranch_datachannel::{
    ChannelError, ChannelEvent, ChannelId, DataChannels, Limits, MessageKind, Role, Settings, configure,
};
use anabranch_schemes::registry;

pub(crate) const STREAMS: u16 = 16;
const PORT: u16 = 5000;
/// Time of a packet on its way.
const DELAY: Span = Span::from_millis(20);

/// Index of a side.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) endpoints: [Endpoint; 2],
    pub(crate) channels: [DataChannels; 2],
    /// Events that `run` has read.
    pub(crate) events: [Vec<ChannelEvent>; 2],
    /// Set for sides whose channels are polled.
    pub(crate) reads: [bool; 2],
    ids: [Option<AssociationId>; 2],
    packets: VecDeque<(Time, usize, Vec<u8>)>,
    dice: fastrand::Rng,
    loss: f64,
}

fn address(side: usize) -> IpAddr {
    [10, 0, 0, side as u8 + 1].into()
}

fn config() -> AssociationConfig {
    let scheme = registry::parse("sctp").expect("a scheme").into_scheme();
    let mut config = AssociationConfig::new(scheme, Profile::net());
    config.send_buffer_bytes = Some(1 << 20);
    configure(&mut config, STREAMS);
    config
}

fn endpoint(side: usize, seed: u64) -> Endpoint {
    let settings = EndpointConfig {
        port: PORT,
        addresses: vec![address(side)],
        encapsulation: Encapsulation::None,
        accept: Some(config()),
        accept_from: AcceptFrom::Everyone,
        max_associations: 1,
        guard: None,
    };
    let mut entropy = [side as u8; 32];
    entropy[..8].copy_from_slice(&seed.to_le_bytes());
    Endpoint::new(Time::ZERO, settings, entropy)
}

impl Pair {
    /// Returns a connected pair whose network loses this share of the packets.
    pub(crate) fn new(limits: Limits, loss: f64, seed: u64) -> Self {
        let mut endpoints = [endpoint(CLIENT, seed), endpoint(SERVER, seed)];
        let paths = [(address(CLIENT), address(SERVER))];
        let id = endpoints[CLIENT].connect(Time::ZERO, PORT, &paths, config()).expect("it can connect");
        let channels = [Role::DtlsClient, Role::DtlsServer].map(|role| DataChannels::new(role, limits));
        let mut pair = Pair {
            now: Time::ZERO,
            endpoints,
            channels,
            events: [vec![], vec![]],
            reads: [true; 2],
            ids: [Some(id), None],
            packets: VecDeque::new(),
            dice: fastrand::Rng::with_seed(seed),
            loss,
        };
        assert!(pair.run_until(60, |pair| pair.ids.iter().all(Option::is_some)), "it connects");
        pair
    }

    pub(crate) fn association(&mut self, side: usize) -> &mut Association {
        let id = self.ids[side].expect("it is connected");
        self.endpoints[side].association_mut(id).expect("it is up")
    }

    /// Calls a method of the channels of a side, with its association.
    pub(crate) fn on<T>(
        &mut self,
        side: usize,
        call: impl FnOnce(&mut DataChannels, Time, &mut Association) -> T,
    ) -> T {
        let id = self.ids[side].expect("it is connected");
        let association = self.endpoints[side].association_mut(id).expect("it is up");
        call(&mut self.channels[side], self.now, association)
    }

    pub(crate) fn open(&mut self, side: usize, settings: Settings) -> ChannelId {
        self.on(side, |channels, now, association| channels.open(now, association, settings))
            .expect("it can be opened")
    }

    pub(crate) fn add_negotiated(&mut self, side: usize, id: ChannelId) -> Result<(), ChannelError> {
        let settings = Settings::new("agreed");
        self.on(side, |channels, _, association| channels.add_negotiated(association, id, settings))
    }

    pub(crate) fn send(&mut self, side: usize, id: ChannelId, kind: MessageKind, payload: &[u8]) {
        let payload = payload.to_vec().into();
        self.on(side, |channels, now, association| channels.send(now, association, id, (kind, payload)))
            .expect("it can be sent");
    }

    pub(crate) fn close(&mut self, side: usize, id: ChannelId) {
        self.on(side, |channels, now, association| channels.close(now, association, id))
            .expect("it can be closed");
    }

    fn settle(&mut self, side: usize) {
        let endpoint = &mut self.endpoints[side];
        endpoint.handle_timeout(self.now);
        while let Some((id, event)) = endpoint.poll_event() {
            self.ids[side] = Some(id);
            assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
            if let Some(association) = endpoint.association_mut(id) {
                self.channels[side].handle_event(self.now, association, &event);
            }
        }
        if self.ids[side].is_some() && self.reads[side] {
            while let Some(event) = self.on(side, DataChannels::poll) {
                self.events[side].push(event);
            }
        }
        let mut packet = PacketBuffer::new();
        while self.endpoints[side].poll_transmit(self.now, &mut packet).is_some() {
            if self.dice.f64() >= self.loss {
                self.packets.push_back((self.now + DELAY, 1 - side, packet.to_vec()));
            }
        }
    }

    /// Runs until the condition holds. Returns `false` if it does not within these seconds.
    pub(crate) fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&Pair) -> bool) -> bool {
        let end = self.now + Span::from_secs(seconds);
        loop {
            self.settle(CLIENT);
            self.settle(SERVER);
            if done(self) {
                return true;
            }
            let arrival = self.packets.front().map(|(at, ..)| *at);
            let timers = self.endpoints.iter_mut().map(|endpoint| endpoint.poll_timeout());
            let Some(next) = timers.chain([arrival]).flatten().min().filter(|at| *at <= end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(next);
            while let Some((at, to, packet)) = self.packets.pop_front() {
                if at > self.now {
                    self.packets.push_front((at, to, packet));
                    break;
                }
                let path = PathAddress::from((address(to), address(1 - to)));
                self.endpoints[to].handle_datagram(self.now, path, &packet);
            }
        }
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        self.run_until(seconds, |_| false);
    }

    pub(crate) fn take_events(&mut self, side: usize) -> Vec<ChannelEvent> {
        std::mem::take(&mut self.events[side])
    }
}
