//! Meeting a peer at a rendezvous server, from the sockets that carry the association.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_core::LocalEnd;
use anabranch_core::time::{Span, Time};
use anabranch_identity::{FollowedKeys, HostName, KeyPair, KnownHosts, PublicKey, Room};
use anabranch_net::route_selection::{RemoteChoice, Target, with_port};
use anabranch_net::{Endpoint, PathAddress, SideChannel, SideDatagram};
use anabranch_rendezvous::{
    Caller, CallerEvent, DEFAULT_PORT, Failure, Listener, ListenerEvent, MeetingPath, Outgoing, Refusal,
};
use tokio::time::{Instant, sleep_until};

use super::protection::{Expected, ProtectionOptions};
use crate::exit::CommandError;
use crate::keys::read_host;
use crate::live_output;

/// Time between two checks of the listening side's addresses.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Pause before the server's name is resolved again.
const RESOLVE_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Minimum time between two notices about callers without an authorised key.
const REPORT_IGNORED_EVERY: Duration = Duration::from_secs(10);

/// Rendezvous server as the user names it.
/// Its text is the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RendezvousServer {
    target: Target,
    /// Text of the user.
    name: String,
}

/// Reads the name or address of a rendezvous server.
pub(crate) fn read_server(text: &str) -> Result<RendezvousServer, String> {
    let with_port = with_port(text, DEFAULT_PORT);
    let target = Target::read(with_port.as_deref().unwrap_or(text)).map_err(|error| error.to_string())?;
    Ok(RendezvousServer { target, name: text.to_owned() })
}

impl fmt::Display for RendezvousServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Clock of the state machines.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Clock(Instant::now())
    }

    fn now(self) -> Time {
        Time::ZERO + Span::from(self.0.elapsed())
    }

    fn instant(self, time: Option<Time>) -> Instant {
        let far = Duration::from_secs(3600);
        let after =
            time.map_or(far, |time| Duration::from(time.since(Time::ZERO)).min(self.0.elapsed() + far));
        self.0 + after
    }
}

fn seed() -> Result<[u8; 32], CommandError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| CommandError::failure(format!("no random bytes: {error}")))?;
    Ok(seed)
}

fn datagram(out: Outgoing<LocalEnd>) -> SideDatagram {
    SideDatagram { local: out.socket, remote: out.to, payload: out.bytes }
}

impl ProtectionOptions {
    /// Returns this user's key pair, with which it registers and calls.
    pub(super) fn meeting_key(&self) -> Result<KeyPair, CommandError> {
        if self.insecure || self.has_authorities() {
            return Err(CommandError::usage(
                "--rendezvous: both sides are found by their keys; omit --insecure and --ca",
            ));
        }
        Ok(KeyPair::load_or_create(&self.home()?.key())?)
    }

    /// Returns the key by which the side to call is registered.
    fn key_of(&self, target: &str, expected: Expected) -> Result<PublicKey, CommandError> {
        if let Ok(room) = target.parse::<Room>() {
            return Ok(room.key_pair().public());
        }
        if let Expected::Key(key) = expected {
            return Ok(key);
        }
        let host = read_host(target).map_err(CommandError::usage)?;
        let known = KnownHosts::load(self.home()?.known_hosts())?;
        let key = known.entries().find(|entry| entry.host == host).map(|entry| entry.key);
        key.ok_or_else(|| unknown(target, &host))
    }
}

fn unknown(target: &str, host: &HostName) -> CommandError {
    CommandError::usage(format!(
        "{target}: no key of {host} is known, and a rendezvous server finds hosts by their keys; name the key itself, \
         ed25519:..., which `anabranch keys show` prints there, or store it with `anabranch keys add --host {target} KEY`"
    ))
}

/// Meeting of a caller with the holder of a key.
pub(super) struct Meeting<'a> {
    server: &'a RendezvousServer,
    target: &'a str,
    addresses: Vec<SocketAddr>,
    key: KeyPair,
    listener: PublicKey,
}

impl<'a> Meeting<'a> {
    /// Prepares a meeting. `target` is the key of the listener, the name under which `known_hosts` lists it, or a room.
    pub(super) async fn prepare(
        server: &'a RendezvousServer,
        target: &'a str,
        expected: Expected,
        protection: &ProtectionOptions,
    ) -> Result<Self, CommandError> {
        let key = protection.meeting_key()?;
        let listener = protection.key_of(target, expected)?;
        let addresses = server.target.resolve().await.map_err(CommandError::failure)?;
        Ok(Meeting { server, target, addresses, key, listener })
    }

    /// Returns the addresses of the server as the ends of paths.
    pub(super) fn remotes(&self) -> RemoteChoice {
        RemoteChoice::Resolved { host: self.server.name.clone(), addresses: self.addresses.clone() }
    }

    /// Returns the paths to the listener from the sockets of an endpoint, the primary one first.
    pub(super) async fn meet(
        self,
        endpoint: &Endpoint,
        protection: &ProtectionOptions,
    ) -> Result<Vec<PathAddress>, CommandError> {
        let gone = || CommandError::failure("the endpoint has ended");
        let mut channel = endpoint.side_channel().await.ok_or_else(gone)?;
        let ends = channel.local_ends().await;
        let sockets = ends.iter().map(|end| (*end, end.address));
        let clock = Clock::start();
        let mut caller =
            Caller::new(clock.now(), seed()?, self.key.clone(), self.listener, sockets, &self.addresses);
        loop {
            match caller.poll_event() {
                Some(CallerEvent::Met(paths)) => {
                    tokio::spawn(keep(channel, caller, clock, self.server.name.clone()));
                    return Ok(paths.into_iter().map(path_address).collect());
                }
                Some(CallerEvent::Failed(failure)) => return Err(self.failed(failure, protection)),
                Some(CallerEvent::RelayEnded(..)) => {}
                None if advance(&mut channel, &mut caller, clock).await => {}
                None => return Err(gone()),
            }
        }
    }

    fn failed(&self, failure: Failure, protection: &ProtectionOptions) -> CommandError {
        let (server, target) = (&self.server.name, self.target);
        let own = protection.own_key().map_or_else(|| "KEY".to_owned(), |key| key.to_string());
        let text = match failure {
            Failure::NoRoute => {
                format!("{server}: no local address reaches the rendezvous server; see `anabranch paths`")
            }
            Failure::NoServer => format!(
                "{server}: the rendezvous server does not answer; check that `anabranch rendezvous` runs there, its UDP port {}, and firewalls",
                self.server.target.port()
            ),
            Failure::NoListener if target.parse::<Room>().is_ok() => format!(
                "{target}: no sender waits in this room at {server}; compare the room with the one that `anabranch send --code` \
                 printed, and check that it still waits"
            ),
            Failure::NoListener => format!(
                "{target}: no side with its key is registered at {server}, or it does not accept this user's key; \
                 start it with --rendezvous {server}, and have it run `anabranch keys add {own}`"
            ),
            Failure::NoRelay(refusal) => format!(
                "{target}: the NATs of both sides admit no direct path, and {server} relays nothing: {}",
                explained(refusal)
            ),
            Failure::RelaySilent => format!(
                "{target}: the NATs of both sides admit no direct path, and no relay of {server} answers; \
                 check that its firewall permits the UDP ports of relays (--relay-ports)"
            ),
        };
        CommandError::failure(text)
    }
}

fn explained(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Full => {
            "all its relays or ports are in use; try again later, or have its operator raise --relays"
        }
        Refusal::Disabled => {
            "it was started with --relays 0; use another one, or open a UDP port on one side"
        }
        Refusal::Bytes => "the limit of bytes of this pair was reached (--relay-limit); connect again",
        Refusal::NoCommonVersion => {
            "one side reaches it over IPv4 only and the other one over IPv6 only; use another one, or a network with both"
        }
    }
}

fn path_address(path: MeetingPath<LocalEnd>) -> PathAddress {
    PathAddress::over_udp(path.socket.address, path.remote).from_end(path.socket)
}

/// Sends what is due, and waits for the next datagram or deadline. Returns `false` once the endpoint has ended.
async fn advance(channel: &mut SideChannel, caller: &mut Caller<LocalEnd>, clock: Clock) -> bool {
    while let Some(out) = caller.poll_transmit() {
        channel.send(datagram(out));
    }
    let deadline = clock.instant(caller.poll_timeout());
    tokio::select! {
        arrived = channel.recv() => {
            let Some(SideDatagram { local, remote, payload }) = arrived else { return false };
            caller.handle(clock.now(), local, remote, &payload);
        }
        () = sleep_until(deadline) => caller.handle_timeout(clock.now()),
    }
    true
}

/// Keeps relays joined while the endpoint exists.
async fn keep(mut channel: SideChannel, mut caller: Caller<LocalEnd>, clock: Clock, server: String) {
    while advance(&mut channel, &mut caller, clock).await {
        while let Some(event) = caller.poll_event() {
            if let CallerEvent::RelayEnded(end, refusal) = event {
                let why = explained(refusal);
                live_output::notice(format!("{server} ended the relay of {}: {why}", end.address));
            }
        }
    }
}

/// Registration of a side that listens.
pub(super) struct Presence {
    pub(super) server: RendezvousServer,
    /// Key under which it is registered.
    pub(super) key: KeyPair,
    /// Keys that may call; all if there is no list.
    pub(super) authorized: Option<FollowedKeys>,
    pub(super) is_quiet: bool,
    /// Time of the latest notice about a caller without an authorised key. Strangers can cause any number of them.
    pub(super) ignored: Option<Instant>,
}

impl Presence {
    /// Registers the sockets of an endpoint while it exists.
    pub(super) fn begin(self, endpoint: &Endpoint) -> Result<(), CommandError> {
        let seed = seed()?;
        // A clone of the endpoint's handle would keep it running.
        let channel = endpoint.clone();
        let opening = async move { channel.side_channel().await };
        tokio::spawn(async move {
            if let Some(channel) = opening.await {
                self.run(channel, seed).await;
            }
        });
        Ok(())
    }

    async fn run(mut self, mut channel: SideChannel, seed: [u8; 32]) {
        let clock = Clock::start();
        let mut listener = Listener::new(clock.now(), seed, self.key.clone(), Vec::new());
        let (mut look, mut resolve) = (Instant::now(), Instant::now());
        loop {
            if Instant::now() >= resolve && !listener.is_registered() {
                resolve = Instant::now() + RESOLVE_AGAIN_AFTER;
                match self.server.target.resolve().await {
                    Ok(servers) => listener.set_servers(clock.now(), servers),
                    Err(error) => self.notice(&format!("{error}; trying again")),
                }
            }
            if Instant::now() >= look {
                look = Instant::now() + LOOK_EVERY;
                let ends = channel.local_ends().await;
                listener.set_sockets(clock.now(), ends.iter().map(|end| (*end, end.address)));
            }
            while let Some(out) = listener.poll_transmit() {
                channel.send(datagram(out));
            }
            while let Some(event) = listener.poll_event() {
                self.report(event);
            }
            let deadline = clock.instant(listener.poll_timeout()).min(look);
            tokio::select! {
                arrived = channel.recv() => {
                    let Some(SideDatagram { local, remote, payload }) = arrived else { return };
                    let authorized = self.authorized.as_ref().map(FollowedKeys::keys);
                    let admits = |key| authorized.as_ref().is_none_or(|keys| keys.contains(key));
                    listener.handle(clock.now(), local, remote, &payload, &admits);
                }
                () = sleep_until(deadline) => listener.handle_timeout(clock.now()),
            }
        }
    }

    fn report(&mut self, event: ListenerEvent<LocalEnd>) {
        let server = self.server.name.clone();
        match event {
            ListenerEvent::Registered { socket, mapped } if !self.is_quiet => {
                self.notice(&format!("{} is registered at {server}, which sees it as {mapped}", socket.address));
            }
            ListenerEvent::Unreachable => self.notice(&format!(
                "{server}: the rendezvous server does not answer; trying again. Check that `anabranch rendezvous` runs \
                 there, its UDP port {}, and firewalls",
                self.server.target.port()
            )),
            ListenerEvent::Superseded => self.notice(&format!(
                "{server}: another command with the same key is registered there too, and peers reach the one that registered last; \
                 give each a key of its own with --keys",
            )),
            ListenerEvent::RelayEnded(refusal) => {
                self.notice(&format!("{server} ended a relay: {}", explained(refusal)));
            }
            ListenerEvent::Ignored(key) if !self.is_quiet && self.may_report_ignored() => self.notice(&format!(
                "{}: a caller with the key {} was ignored; `anabranch keys add` authorises a key",
                self.server.name,
                key.fingerprint()
            )),
            ListenerEvent::Registered { .. } | ListenerEvent::Ignored(_) | ListenerEvent::Called(_) => {}
        }
    }

    fn may_report_ignored(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.ignored.is_none_or(|at| now.duration_since(at) >= REPORT_IGNORED_EVERY);
        if is_due {
            self.ignored = Some(now);
        }
        is_due
    }

    fn notice(&self, text: &str) {
        live_output::notice(anabranch_transfer::escape(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_has_the_default_port_unless_it_names_one() {
        for (text, port) in [
            ("meet.example.org", 9898),
            ("meet.example.org:7", 7),
            ("192.0.2.1", 9898),
            ("[2001:db8::1]:7", 7),
        ] {
            assert_eq!(read_server(text).map(|server| server.target.port()), Ok(port), "{text}");
        }
        assert!(read_server("a b").is_err());
    }
}
