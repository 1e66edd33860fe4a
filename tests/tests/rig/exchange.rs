//! An application that sends its messages, reads all received ones, and closes gracefully.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anabranch_core::time::Time;
use anabranch_core::{AssociationConfig, AssociationEvent, AssociationId, Endpoint, SendOptions};
use anabranch_sim::Application;

use super::messages::{Inbox, Message};
use super::{PORT, association};

/// Application that sends and reads everything, and closes if it is the connecting side.
pub(crate) struct Exchange {
    /// Pairs of addresses and configuration of the association that it opens.
    connects: Option<Vec<(IpAddr, IpAddr)>>,
    config: AssociationConfig,
    closes: bool,
    pub(crate) id: Option<AssociationId>,
    outbox: VecDeque<Message>,
    pub(crate) inbox: Inbox,
    pub(crate) expected: usize,
    parts: BTreeMap<(u16, bool), Vec<u8>>,
    pub(crate) events: Vec<AssociationEvent>,
}

impl Exchange {
    /// Returns an application that sends these messages and waits for this number of messages.
    pub(crate) fn new(
        connects: Option<Vec<(IpAddr, IpAddr)>>,
        messages: &[Message],
        expected: usize,
    ) -> Self {
        Exchange {
            closes: connects.is_some(),
            connects,
            config: association("sctp"),
            id: None,
            outbox: messages.iter().cloned().collect(),
            inbox: Inbox::default(),
            expected,
            parts: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// Returns the application with another configuration for the association that it opens.
    pub(crate) fn with_config(self, config: AssociationConfig) -> Self {
        Exchange { config, ..self }
    }

    fn read(&mut self, endpoint: &mut Endpoint, id: AssociationId) {
        let Some(association) = endpoint.association_mut(id) else { return };
        let mut bytes = Vec::new();
        while let Some(piece) = association.recv(&mut bytes) {
            let key = (piece.stream, piece.unordered);
            self.parts.entry(key).or_default().append(&mut bytes);
            if piece.ending {
                let whole = self.parts.remove(&key).unwrap_or_default();
                self.inbox.take(piece.stream, piece.ppid, whole);
            }
        }
    }

    fn write(&mut self, endpoint: &mut Endpoint, id: AssociationId) {
        let Some(association) = endpoint.association_mut(id) else { return };
        if !association.is_established() {
            return;
        }
        for message in self.outbox.drain(..) {
            let (ppid, unordered) = (message.ppid(), message.unordered);
            let options = SendOptions { stream: message.stream, ppid, unordered, ..SendOptions::default() };
            association.send(message.payload, options).expect("the send buffer is unlimited");
        }
    }
}

impl Application for Exchange {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(pairs) = self.connects.take() {
            let opened = endpoint.connect(now, PORT, &pairs, self.config.clone());
            self.id = Some(opened.expect("it can be opened"));
        }
        let Some(id) = self.id else { return };
        self.write(endpoint, id);
        self.read(endpoint, id);
        let all = self.outbox.is_empty() && self.inbox.messages.len() >= self.expected;
        if self.closes
            && all
            && let Some(association) = endpoint.association_mut(id)
        {
            association.shutdown(now);
        }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        assert_eq!(*self.id.get_or_insert(id), id, "there is one association only");
        self.events.push(event.clone());
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}
