//! Programs whose connections and datagrams a flow forwards, with the mapping of `anabranch forward`.
//!
//! The left host is the forwarder, the right host the gateway. Connections are open from the start: their requests cost one round trip
//! more in `anabranch forward`, before the first byte of each.

use std::time::Duration;

use anabranch_core::time::{Span, Time};
use anabranch_core::{Association, ReceivedMessage, SendOptions};
use anabranch_mapping::{Duplication, FlowRate, MESSAGE_BYTES, PRIORITY_WEIGHT, datagram_options};
use anabranch_scenario::{Datagrams, Exchange, Forwarded};
use bytes::Bytes;

use crate::run::beside::quantile_ms;
use crate::run::metrics::ConnectionResult;

/// Maximum number of requests or datagrams of a run, whose times are all stored.
const MOST_TIMES: usize = 1_000_000;

/// Side of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Forwarder,
    Gateway,
}

/// Returns the number of streams of a flow: one for each connection, and one for datagrams.
pub(crate) fn streams_of(forwarded: &Forwarded) -> u16 {
    stream_of_datagrams(forwarded) + 1
}

fn stream_of_datagrams(forwarded: &Forwarded) -> u16 {
    forwarded.downloads + 2
}

/// Times at which a program acts.
#[derive(Debug)]
struct Schedule {
    interval: Span,
    next: Option<Time>,
    due: Vec<Time>,
}

impl Schedule {
    fn new(interval: Span) -> Self {
        Schedule { interval, next: None, due: Vec::new() }
    }

    fn next(&self) -> Option<Time> {
        self.next.filter(|_| self.due.len() < MOST_TIMES)
    }

    /// Returns the number of the next action if it is due.
    fn take(&mut self, now: Time) -> Option<usize> {
        let at = self.next().filter(|at| *at <= now)?;
        self.due.push(at);
        self.next = Some(at + self.interval);
        Some(self.due.len() - 1)
    }
}

/// Connection with requests and responses, at one of its ends.
#[derive(Debug)]
struct Conversation {
    name: &'static str,
    exchange: Exchange,
    stream: u16,
    requests: Schedule,
    /// Times of complete responses.
    answered: Vec<Time>,
    /// Bytes of the next request or response that have arrived.
    arrived_bytes: u64,
    /// Bytes that wait for room in the send buffer.
    waiting_bytes: u64,
}

/// Datagrams of a program.
#[derive(Debug)]
struct Talk {
    datagrams: Datagrams,
    stream: u16,
    sent: Schedule,
    rate: FlowRate,
    duplication: Duplication,
    arrived: Vec<Option<Time>>,
}

/// Programs at one end of a flow.
#[derive(Debug)]
pub(crate) struct Programs {
    role: Role,
    /// Bytes that downloads keep queued.
    keep_bytes: u64,
    block: Bytes,
    /// Counted bytes of each download.
    downloads: Vec<u64>,
    next_download: u16,
    conversations: Vec<Conversation>,
    talk: Option<Talk>,
    is_open: bool,
}

impl Programs {
    pub(crate) fn new(role: Role, forwarded: &Forwarded, keep_bytes: u64) -> Self {
        let streams = forwarded.downloads..;
        let connections = [("requests", forwarded.requests), ("keystrokes", forwarded.keystrokes)];
        let conversations = connections.into_iter().zip(streams).filter_map(|((name, exchange), stream)| {
            exchange.map(|exchange| Conversation {
                name,
                exchange,
                stream,
                requests: Schedule::new(exchange.interval),
                answered: Vec::new(),
                arrived_bytes: 0,
                waiting_bytes: 0,
            })
        });
        let talk = forwarded.datagrams.map(|datagrams| Talk {
            datagrams,
            stream: stream_of_datagrams(forwarded),
            sent: Schedule::new(datagrams.interval),
            rate: FlowRate::default(),
            duplication: Duplication::default(),
            arrived: Vec::new(),
        });
        Programs {
            role,
            keep_bytes,
            block: Bytes::from(vec![0x5A; MESSAGE_BYTES]),
            downloads: vec![0; usize::from(forwarded.downloads)],
            next_download: 0,
            conversations: conversations.collect(),
            talk,
            is_open: false,
        }
    }

    /// Starts the programs, once the association is usable.
    pub(crate) fn open(&mut self, now: Time) {
        if self.role == Role::Forwarder {
            let talk = self.talk.iter_mut().map(|talk| &mut talk.sent);
            let schedules = self.conversations.iter_mut().map(|each| &mut each.requests).chain(talk);
            schedules.for_each(|schedule| schedule.next = Some(now));
        }
    }

    /// Returns the time of the next request or datagram.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let talk = self.talk.iter().filter_map(|talk| talk.sent.next());
        self.conversations.iter().filter_map(|each| each.requests.next()).chain(talk).min()
    }

    /// Sends the data that is due. `identify` maps the number of a datagram to its payload protocol identifier.
    pub(crate) fn send(&mut self, now: Time, association: &mut Association, identify: impl Fn(u32) -> u32) {
        if !std::mem::replace(&mut self.is_open, true) {
            for each in self.conversations.iter().filter(|each| each.exchange.priority) {
                // Both ends have as many streams as connections.
                let _ = association.set_stream_priority(each.stream, PRIORITY_WEIGHT);
            }
        }
        for each in &mut self.conversations {
            each.send(now, association);
        }
        if let Some(talk) = &mut self.talk {
            talk.send(now, association, identify);
        }
        if self.role == Role::Gateway {
            self.send_downloads(now, association);
        }
    }

    fn send_downloads(&mut self, now: Time, association: &mut Association) {
        let count = self.downloads.len() as u16;
        while count > 0 && association.queued_bytes() < self.keep_bytes {
            let options = SendOptions::on_stream(self.next_download);
            if association.send_at(now, self.block.clone(), options).is_err() {
                return;
            }
            self.next_download = (self.next_download + 1) % count;
        }
    }

    /// Handles received data, which counts after the warm-up. `number` is that of a datagram.
    pub(crate) fn receive(&mut self, now: Time, is_counted: bool, piece: &ReceivedMessage, number: u32) {
        if piece.unordered {
            if let Some(talk) = self.talk.as_mut().filter(|_| piece.ending) {
                talk.receive(now, number as usize);
            }
        } else if let Some(bytes) = self.downloads.get_mut(usize::from(piece.stream)) {
            *bytes += if is_counted { piece.bytes as u64 } else { 0 };
        } else if let Some(each) = self.conversations.iter_mut().find(|each| each.stream == piece.stream) {
            each.receive(now, self.role, piece.bytes as u64);
        }
    }

    /// Returns the results of all connections, of which this is the forwarder's end, over `duration` from `counted_from` on.
    pub(crate) fn results(
        &self,
        gateway: &Programs,
        counted_from: Time,
        end: Time,
        duration: Span,
    ) -> Vec<ConnectionResult> {
        let seconds = duration.as_secs_f64().max(1e-9);
        let kbps = |bytes: u64| bytes as f64 * 8.0 / 1000.0 / seconds;
        let downloads = self.downloads.iter().enumerate().map(|(number, bytes)| ConnectionResult {
            goodput_kbps: kbps(*bytes),
            ..ConnectionResult::named(format!("download-{}", number + 1))
        });
        let conversations = self.conversations.iter().map(|each| {
            let outcome = each.requests.due.iter().enumerate();
            let outcome = outcome.map(|(number, due)| (*due, each.answered.get(number).copied()));
            let result = delays(each.name, outcome.filter(|(due, _)| *due >= counted_from), Some(end));
            let bytes = each.exchange.request_bytes + each.exchange.response_bytes;
            ConnectionResult { goodput_kbps: kbps(result.completed * bytes), ..result }
        });
        let talks = self.talk.iter().zip(&gateway.talk).map(|(sent, received)| {
            let outcome = sent.sent.due.iter().enumerate();
            let outcome =
                outcome.map(|(number, due)| (*due, received.arrived.get(number).copied().flatten()));
            let result = delays("datagrams", outcome.filter(|(due, _)| *due >= counted_from), None);
            ConnectionResult { goodput_kbps: kbps(result.completed * sent.datagrams.size_bytes), ..result }
        });
        downloads.chain(conversations).chain(talks).collect()
    }
}

impl Conversation {
    fn send(&mut self, now: Time, association: &mut Association) {
        while self.requests.take(now).is_some() {
            self.waiting_bytes += self.exchange.request_bytes;
        }
        while self.waiting_bytes > 0 {
            let bytes = self.waiting_bytes.min(MESSAGE_BYTES as u64);
            let message = Bytes::from(vec![0x5A; bytes as usize]);
            if association.send_at(now, message, SendOptions::on_stream(self.stream)).is_err() {
                // A send buffer that empties wakes the application.
                return;
            }
            self.waiting_bytes -= bytes;
        }
    }

    fn receive(&mut self, now: Time, role: Role, bytes: u64) {
        self.arrived_bytes += bytes;
        let expected = match role {
            Role::Forwarder => self.exchange.response_bytes,
            Role::Gateway => self.exchange.request_bytes,
        };
        while self.arrived_bytes >= expected {
            self.arrived_bytes -= expected;
            match role {
                Role::Forwarder => self.answered.push(now),
                Role::Gateway => self.waiting_bytes += self.exchange.response_bytes,
            }
        }
    }
}

impl Talk {
    fn send(&mut self, now: Time, association: &mut Association, identify: impl Fn(u32) -> u32) {
        let is_limited = association.supports_partial_reliability() == Some(true);
        while let Some(number) = self.sent.take(now) {
            let message = Bytes::from(vec![0x5A; self.datagrams.size_bytes as usize]);
            let elapsed = Duration::from_nanos(now.as_nanos());
            let duplicate = self.duplication.wants_copy(&mut self.rate, elapsed, message.len());
            let options = datagram_options(self.stream, is_limited, duplicate);
            // A full send buffer drops datagrams.
            let _ =
                association.send_at(now, message, SendOptions { ppid: identify(number as u32), ..options });
        }
    }

    fn receive(&mut self, now: Time, number: usize) {
        if number < MOST_TIMES {
            if self.arrived.len() <= number {
                self.arrived.resize(number + 1, None);
            }
            self.arrived[number].get_or_insert(now);
        }
    }
}

/// Returns counts and delays. Incomplete ones count with their age at `end`; without `end` they are left out.
fn delays(
    name: &str,
    outcome: impl Iterator<Item = (Time, Option<Time>)>,
    end: Option<Time>,
) -> ConnectionResult {
    let outcome: Vec<(Time, Option<Time>)> = outcome.collect();
    let taken = |(due, done): &(Time, Option<Time>)| done.or(end).map(|done| done.since(*due));
    let mut delays: Vec<Span> = outcome.iter().filter_map(taken).collect();
    delays.sort_unstable();
    ConnectionResult {
        sent: outcome.len() as u64,
        completed: outcome.iter().filter(|(_, done)| done.is_some()).count() as u64,
        median_ms: quantile_ms(&delays, 50),
        p99_ms: quantile_ms(&delays, 99),
        max_ms: quantile_ms(&delays, 100),
        ..ConnectionResult::named(name.to_owned())
    }
}
