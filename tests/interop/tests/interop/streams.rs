//! Changes of streams (RFC 6525) with usrsctp. The sockets of this project have no call for them.

use std::process::Command;
use std::time::Instant;

use anabranch_core::time::Time;
use anabranch_core::{
    Association, AssociationEvent, SendOptions, StreamDirection, StreamRefusal, StreamRequest,
};
use bytes::Bytes;

use crate::rig::{Input, Local, Peer, TIMEOUT, usrsctp};

/// This endpoint, beside usrsctp that returns each message.
struct Beside {
    local: Local,
    told: Vec<AssociationEvent>,
    /// Stream and SSN of each returned message.
    returned: Vec<(u16, u16)>,
    theirs: Peer,
}

impl Beside {
    /// Starts both; both offer I-DATA or both do not.
    fn new(interleaving: bool) -> Self {
        let config = anabranch_net::Config::new("sctp").expect("a scheme").streams(4);
        let config = if interleaving { config.interleaving() } else { config };
        let mut local = Local::new(9899, config.core().clone());
        let [local_port, remote_port] = local.ports().map(|port| port.to_string());
        let mut command = Command::new(usrsctp());
        command.args(["--local", "127.0.0.1", "--udp", &remote_port, "--sctp", "5001"]);
        command.args(["--remote-udp", &local_port, "--remote-sctp", "9899", "--streams", "4"]);
        command.args(interleaving.then_some("--interleave")).arg("echo");
        let theirs = Peer::start("theirs", command, Input::None);
        theirs.wait_for("listening");
        local.connect(5001);
        let mut beside = Beside { local, told: Vec::new(), returned: Vec::new(), theirs };
        beside.run_until(|beside| beside.told.contains(&AssociationEvent::Connected));
        assert!(beside.association().changes_streams(), "usrsctp announces RE-CONFIG");
        assert_eq!(beside.association().interleaves_messages(), interleaving);
        beside
    }

    fn now(&self) -> Time {
        self.local.now()
    }

    fn association(&mut self) -> &mut Association {
        self.local.association()
    }

    fn step(&mut self) {
        for event in self.local.step() {
            self.told.push(event);
            let mut message = Vec::new();
            while let Some(piece) = self.local.association().recv(&mut message) {
                self.returned.push((piece.stream, piece.ssn));
            }
        }
    }

    #[track_caller]
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < deadline, "{:?}, {:?}", self.told, self.returned);
            self.step();
        }
    }

    /// Sends a message and awaits its return.
    #[track_caller]
    fn echo(&mut self, stream: u16, text: &'static str) {
        let options = SendOptions { stream, ..SendOptions::default() };
        self.association().send(Bytes::from_static(text.as_bytes()), options).expect("it has room");
        let before = self.returned.len();
        self.run_until(|beside| beside.returned.len() > before);
    }

    #[track_caller]
    fn await_reset(&mut self, direction: StreamDirection, streams: &[u16], count: usize) {
        let reset = AssociationEvent::StreamsReset { direction, streams: streams.to_vec() };
        self.run_until(|beside| beside.told.iter().filter(|event| **event == reset).count() == count);
    }

    #[track_caller]
    fn await_added(&mut self, direction: StreamDirection, streams: u16) {
        let added = AssociationEvent::StreamsAdded { direction, streams };
        self.run_until(|beside| beside.told.contains(&added));
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_performs_our_resets_and_resets_on_request() {
    for interleaving in [false, true] {
        let mut beside = Beside::new(interleaving);
        for _ in 0..2 {
            beside.echo(1, "a message");
        }
        let now = beside.now();
        beside.association().reset_streams(now, &[1]).expect("the stream exists");
        beside.await_reset(StreamDirection::Outgoing, &[1], 1);
        assert_eq!(beside.theirs.wait_for("reset-incoming")["failed"], false);
        beside.echo(1, "a message");
        assert_eq!(beside.returned, [(1, 0), (1, 1), (1, 2)], "its own stream continues");
        let now = beside.now();
        beside.association().request_incoming_reset(now, &[1]).expect("the stream exists");
        beside.await_reset(StreamDirection::Incoming, &[1], 1);
        beside.echo(1, "a message");
        assert_eq!(beside.returned.last(), Some(&(1, 0)));
        assert_eq!(beside.theirs.wait_for("reset-outgoing")["failed"], false);
        beside.theirs.kill();
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn resets_that_usrsctp_requests_are_performed_in_both_directions() {
    for interleaving in [false, true] {
        let mut beside = Beside::new(interleaving);
        beside.echo(2, "a message");
        beside.echo(2, "reset");
        beside.await_reset(StreamDirection::Incoming, &[2], 1);
        beside.await_reset(StreamDirection::Outgoing, &[2], 1);
        beside.echo(2, "a message");
        assert_eq!(beside.returned, [(2, 0), (2, 1), (2, 0)]);
        for event in ["reset-incoming", "reset-outgoing"] {
            assert_eq!(beside.theirs.wait_for(event)["failed"], false, "{event}");
        }
        beside.theirs.kill();
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_adds_its_streams_and_denies_more_than_it_accepts() {
    for interleaving in [false, true] {
        let mut beside = Beside::new(interleaving);
        let now = beside.now();
        for direction in [StreamDirection::Incoming, StreamDirection::Outgoing] {
            beside.association().add_streams(now, direction, 3).expect("it is within our limit");
        }
        beside.await_added(StreamDirection::Incoming, 7);
        let request = StreamRequest::Add { direction: StreamDirection::Outgoing, streams: 3 };
        let denied = AssociationEvent::StreamRequestFailed { request, refusal: StreamRefusal::Denied };
        beside.run_until(|beside| beside.told.contains(&denied));
        beside.echo(3, "add");
        beside.await_added(StreamDirection::Incoming, 9);
        beside.echo(3, "a message");
        beside.theirs.kill();
    }
}
