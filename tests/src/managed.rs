//! Two endpoints with a key management each.

use std::sync::Arc;

use anabranch_core::protection::{
    FIRST_EPOCH, KEY_MANAGEMENT_PPID, KeyManagementRoles, Protection, ProtectionMode,
};
use anabranch_core::time::{Span, Time};
use anabranch_core::{Association, AssociationEvent, AssociationId, Handled};
use anabranch_keying::{
    Credentials, KeyExchange, KeyExchanges, KeyManager, KeyPolicy, KeyingError, KeyingEvent, Part,
    PeerIdentity, RestartKeys, TlsExchanges,
};

use crate::credentials::credentials;
use crate::duo::{Duo, Reading, Setup};
use crate::flow::Flow;
use crate::network::{Packet, Side};

/// Exchanges that outlive a key manager.
#[derive(Clone, Debug)]
struct Lent(Arc<dyn KeyExchanges + Sync>);

impl KeyExchanges for Lent {
    fn start(&self, part: Part) -> Result<Box<dyn KeyExchange>, KeyingError> {
        self.0.start(part)
    }

    fn begins(&self, records: &[u8]) -> bool {
        self.0.begins(records)
    }
}

/// Key management of one side.
#[derive(Debug)]
pub struct Keying {
    exchanges: Arc<dyn KeyExchanges + Sync>,
    policy: KeyPolicy,
    /// Set if it neither begins nor answers.
    silent: bool,
    /// Set if messages are not read.
    pub paused: bool,
    /// Set if messages are acknowledged before the key management reads them, so that SACKs travel apart from its messages.
    pub acknowledges_first: bool,
    /// Key manager, once the association has agreed on protection.
    pub manager: Option<KeyManager>,
    /// Association of the key manager.
    id: Option<AssociationId>,
    /// Events of the key manager.
    pub told: Vec<KeyingEvent>,
    /// Identity that the peer had proved before it restarted the association, and the number of restarts.
    known: (Option<PeerIdentity>, u32),
    /// Keys that the application has stored for a restart, the newest last.
    pub stored: Vec<RestartKeys>,
}

impl Keying {
    /// Returns the reason for which it has failed.
    pub fn failure(&self) -> Option<KeyingError> {
        self.told.iter().find_map(|event| match event {
            KeyingEvent::Failed(error) => Some(*error),
            _ => None,
        })
    }
}

/// Two endpoints with a key management each, whose messages are separate from those of the flows of the [`Duo`].
#[derive(Debug)]
pub struct Managed {
    /// Both endpoints.
    pub duo: Duo,
    /// Key managements of both sides.
    pub keying: [Keying; 2],
}

/// Returns a setup in which both sides protect their packets: A as client, B as server.
pub fn protecting(pairs: usize) -> Setup {
    let wanted = |roles| {
        let methods = Protection::tls_methods();
        Some(Protection { mode: ProtectionMode::Strict, roles, methods, restart: false })
    };
    Setup::new(pairs, "cmt", "rfc9260")
        .with_side(Side::A, |config| config.protection = wanted(KeyManagementRoles::Client))
        .with_side(Side::B, |config| config.protection = wanted(KeyManagementRoles::Server))
}

/// Returns the same setup, with stored keys for a restart on both sides.
pub fn restarting(pairs: usize) -> Setup {
    protecting(pairs).with(|config| config.protection.iter_mut().for_each(|wanted| wanted.restart = true))
}

impl Managed {
    /// Returns endpoints that know each other's keys.
    pub fn new(setup: Setup) -> Self {
        Managed::with(setup, [credentials(1, &[2]), credentials(2, &[1])], KeyPolicy::default())
    }

    /// Returns endpoints with these credentials and this policy.
    pub fn with(setup: Setup, credentials: [Credentials; 2], policy: KeyPolicy) -> Self {
        let mut duo = Duo::new(setup);
        duo.reading = [Reading::ByHand; 2];
        let keying = credentials.map(|credentials| Keying {
            exchanges: Arc::new(TlsExchanges::new(credentials)),
            policy: policy.clone(),
            silent: false,
            paused: false,
            acknowledges_first: false,
            manager: None,
            id: None,
            told: Vec::new(),
            known: (None, 0),
            stored: Vec::new(),
        });
        Managed { duo, keying }
    }

    /// Changes the policy of one side.
    #[must_use]
    pub fn with_policy(mut self, side: Side, change: impl FnOnce(&mut KeyPolicy)) -> Self {
        change(&mut self.keying[side.index()].policy);
        self
    }

    /// Replaces the exchanges of one side.
    #[must_use]
    pub fn with_exchanges(mut self, side: Side, exchanges: impl KeyExchanges + Sync + 'static) -> Self {
        self.keying[side.index()].exchanges = Arc::new(exchanges);
        self
    }

    /// Silences a side, which then neither sends nor reads.
    #[must_use]
    pub fn with_silent(mut self, side: Side) -> Self {
        self.keying[side.index()].silent = true;
        self
    }

    /// Connects and waits until both sides are protected.
    ///
    /// # Panics
    /// Panics if the key exchange takes more than a minute.
    #[must_use]
    pub fn established(mut self) -> Self {
        self.duo.connect();
        self.established_from_here()
    }

    /// Waits until both sides are protected, after the start of the connection.
    ///
    /// # Panics
    /// Panics if the key exchange takes more than a minute.
    #[must_use]
    pub fn established_from_here(mut self) -> Self {
        let up = self.run_until(Span::from_secs(60), Managed::is_established);
        assert!(up, "no keys: {:?}", self.keying.each_ref().map(|keying| &keying.told));
        self
    }

    /// Removes the state of a side except for its stored keys, and loses packets on their way.
    pub fn crash(&mut self, side: Side) {
        self.duo.network.lose_all();
        // A restarted side draws other numbers than before.
        self.duo.setup.seed += 1;
        self.duo.lose_state(side);
        let keying = &mut self.keying[side.index()];
        (keying.manager, keying.id, keying.known) = (None, None, (None, 0));
        keying.told.clear();
    }

    /// Restarts the association of a crashed side with keys that it has stored.
    pub fn restart(&mut self, side: Side, keys: &RestartKeys) {
        self.duo.restart_side(side, keys.context());
        self.settle();
    }

    /// Returns `true` if both sides use keys that were agreed on since a restart.
    pub fn is_restarted(&self) -> bool {
        let fresh = |side: Side| {
            let mut told = self.reported(side).iter().rev();
            told.find(|told| **told == KeyingEvent::Restarted || matches!(told, KeyingEvent::Rekeyed { .. }))
                == Some(&KeyingEvent::Rekeyed { epoch: FIRST_EPOCH })
        };
        Side::BOTH.into_iter().all(fresh)
    }

    /// Returns `true` if both sides are protected.
    pub fn is_established(&self) -> bool {
        Side::BOTH.into_iter().all(|side| self.reported(side).contains(&KeyingEvent::Established))
    }

    /// Returns the events of a side's key management.
    pub fn reported(&self, side: Side) -> &[KeyingEvent] {
        &self.keying[side.index()].told
    }

    /// Returns a side's key management.
    ///
    /// # Panics
    /// Panics if the side has no key management yet.
    pub fn manager(&self, side: Side) -> &KeyManager {
        self.keying[side.index()].manager.as_ref().expect("there is an agreement")
    }

    /// Returns a side's association.
    ///
    /// # Panics
    /// Panics if the side has no association yet.
    pub fn association(&mut self, side: Side) -> &mut Association {
        self.duo.nodes[side.index()].try_association_mut().expect("there is an association")
    }

    /// Returns `true` if a side's association can send.
    pub fn association_is_up(&self, side: Side) -> bool {
        self.duo.nodes[side.index()].try_association().is_some_and(Association::is_established)
    }

    /// Returns the end of a side's association.
    pub fn ended(&self, side: Side) -> Option<&AssociationEvent> {
        self.duo.nodes[side.index()].ended.as_ref()
    }

    /// Advances the time.
    pub fn run(&mut self, span: Span) {
        self.run_until(span, |_| false);
    }

    /// Advances the time until a condition is met. Returns `true` if it was met within `span`.
    pub fn run_until(&mut self, span: Span, mut done: impl FnMut(&Managed) -> bool) -> bool {
        let end = self.duo.now + span;
        self.settle();
        while !done(self) {
            let managers = self.keying.iter().filter_map(|keying| keying.manager.as_ref()?.deadline());
            match managers.chain(self.duo.next_event()).min() {
                Some(at) if at <= end => {
                    self.duo.now = self.duo.now.max(at);
                    self.happen();
                }
                _ => {
                    self.duo.now = end;
                    return done(self);
                }
            }
        }
        true
    }

    /// Sends messages in order on stream 1, since those of the key management use numbers of stream 0.
    ///
    /// # Panics
    /// Panics if a message is refused.
    pub fn send_all(&mut self, side: Side, size: usize, count: usize) {
        for _ in 0..count {
            self.duo.send(side, size, 1, false).expect("an association").expect("it takes the message");
        }
        self.settle();
    }

    /// Sends messages in both directions and waits until all have arrived.
    ///
    /// # Panics
    /// Panics if a message does not arrive.
    pub fn data_flows(&mut self) {
        for side in Side::BOTH {
            self.send_all(side, 5_000, 20);
        }
        self.arrives();
    }

    /// Waits until all messages have arrived.
    ///
    /// # Panics
    /// Panics if a message does not arrive.
    pub fn arrives(&mut self) {
        let both = |managed: &Managed| Side::BOTH.into_iter().all(|side| managed.duo.all_arrived(side));
        assert!(self.run_until(Span::from_secs(600), both), "data does not arrive");
    }

    /// Reads at most this number of messages or parts on this side, including the key management's. Returns the actual number.
    pub fn read(&mut self, side: Side, most: usize) -> usize {
        let Managed { duo, keying } = self;
        let Duo { nodes, flows, now, .. } = duo;
        let Some(association) = nodes[side.index()].try_association_mut() else { return 0 };
        let manager = &mut keying[side.index()].manager;
        take(association, manager, &mut flows[side.other().index()], *now, most)
    }

    /// Advances the time without calling the endpoints until its end.
    pub fn oversleep(&mut self, span: Span) {
        self.duo.now += span;
        self.happen();
    }

    /// Delivers a packet of any origin to its side, and lets that side answer.
    pub fn deliver(&mut self, packet: &Packet) -> Handled {
        let handled = self.duo.deliver(packet);
        self.settle();
        handled
    }

    /// Lets both sides read and their key managements act until nothing is left.
    pub fn settle(&mut self) {
        for side in Side::BOTH {
            self.serve(side);
        }
        self.duo.settle();
    }

    /// Lets the key management act before the answer to received data, so that its first message accompanies the cookie.
    fn happen(&mut self) {
        while let Some(side) = self.duo.take_arrival() {
            if self.keying[side.index()].acknowledges_first {
                self.duo.settle_side(side);
            }
            self.serve(side);
            self.duo.settle_side(side);
        }
        self.duo.handle_timeouts();
        self.settle();
    }

    fn serve(&mut self, side: Side) {
        let Managed { duo, keying } = self;
        let Duo { nodes, flows, now, .. } = duo;
        let Keying { exchanges, policy, silent, paused, manager, id, told, known, stored, .. } =
            &mut keying[side.index()];
        if *id != nodes[side.index()].id {
            // A new association replaces one that failed.
            (*manager, *id, *known) = (None, nodes[side.index()].id, (None, 0));
            told.clear();
        }
        let Some(association) = nodes[side.index()].try_association_mut() else { return };
        if association.restarts() != known.1 {
            let old = manager.take();
            *known = (old.and_then(|old| old.peer_identity().cloned()), association.restarts());
        }
        if manager.is_none()
            && !*silent
            && let Some(agreed) = association.protection()
        {
            let exchanges = Box::new(Lent(Arc::clone(exchanges)));
            let (policy, known) = (policy.clone(), known.0.clone());
            let new = match association.uses_restart_keys() {
                true => KeyManager::restarted(*now, agreed, exchanges, policy, known),
                false => KeyManager::new(*now, agreed, exchanges, policy),
            };
            let mut new = new.expect("TLS was agreed on");
            new.start(association);
            *manager = Some(new);
        }
        if !*paused {
            take(association, manager, &mut flows[side.other().index()], *now, usize::MAX);
        }
        let Some(manager) = manager else { return };
        manager.poll(*now, association);
        let before = told.len();
        told.extend(std::iter::from_fn(|| manager.poll_event()));
        stored.extend(manager.take_restart_keys());
        let failed = told[before..].iter().find_map(|event| match event {
            KeyingEvent::Failed(error) => Some(error.text()),
            _ => None,
        });
        if let Some(why) = failed {
            // The peer is informed first.
            self.duo.settle();
            let now = self.duo.now;
            if let Some(association) = self.duo.nodes[side.index()].try_association_mut() {
                association.abort_for_key_management(now, why);
            }
        }
    }
}

/// Passes messages to the key management and to the reader, and returns their number.
fn take(
    association: &mut Association,
    manager: &mut Option<KeyManager>,
    flow: &mut Flow,
    now: Time,
    most: usize,
) -> usize {
    let mut bytes = Vec::new();
    for done in 0..most {
        bytes.clear();
        let Some(piece) = association.recv(&mut bytes) else { return done };
        if piece.ppid != KEY_MANAGEMENT_PPID {
            flow.received(&piece, &bytes);
            continue;
        }
        flow.passed_key_management(&piece);
        if let Some(manager) = manager {
            manager.receive(now, &piece, &bytes, association);
        }
    }
    most
}
