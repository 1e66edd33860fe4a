//! Client: the side of the machine whose packets are carried.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anabranch_forward::{Liveness, Observation, Verdict};
use anabranch_net::{Association, SendOptions, Snapshot};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ip::Header;
use crate::link::{self, Outgoing, Output, Violation};
use crate::message::{Addresses, Lane, Message, Refusal, VERSION};
use crate::tally::{Count, Tally};

/// Time for the gateway to assign an address.
const WELCOMED_WITHIN: Duration = Duration::from_secs(5);
/// Time between two observations of the association.
const OBSERVED_EVERY: Duration = Duration::from_millis(250);
/// Bytes in front of an IP packet within a packet of a path: headers of IPv6, UDP, SCTP, protection, I-DATA, and of the tunnel.
const OVERHEAD_BYTES: usize = 140;
/// Smallest MTU of a device. IPv6 needs it (RFC 8200 section 5).
const MIN_MTU: usize = 1280;
/// Largest MTU of a device: that of Ethernet, which the networks behind the gateway have.
const MAX_MTU: usize = 1500;

/// Answer of a gateway that carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Addresses of this machine in the tunnel.
    pub addresses: Addresses,
    /// Permission for TCP connections as streams.
    pub lane: Lane,
}

/// Error: the gateway carries no packets.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GreetError {
    /// The gateway refuses this user.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The gateway does not answer.
    #[error(
        "the other side does not carry IP packets for this key; run `anabranch gateway --tun` there and read its messages"
    )]
    NoTunnel,
    /// The gateway assigned an address that no tunnel can have.
    #[error("the gateway assigned {0}, which is not a private address")]
    Address(IpAddr),
}

/// Requests an address from the gateway.
///
/// # Errors
/// Returns the reason, and aborts the association.
pub async fn greet(association: &Association) -> Result<Greeting, GreetError> {
    let asked = async {
        let hello = Message::Hello { version: VERSION }.encode();
        association.send(hello, SendOptions::default().unordered()).await.ok()?;
        let message = association.recv().await.ok().flatten()?;
        Message::decode(&message.payload).ok()
    };
    let answer = match timeout(WELCOMED_WITHIN, asked).await {
        Ok(Some(Message::Welcome { addresses, lane })) => {
            match addresses.iter().find(|address| !is_usable(*address)) {
                None => return Ok(Greeting { addresses, lane }),
                Some(address) => GreetError::Address(address),
            }
        }
        Ok(Some(Message::Refused(reason))) => reason.into(),
        Ok(_) | Err(_) => GreetError::NoTunnel,
    };
    association.abort();
    Err(answer)
}

/// Returns `true` for private addresses (RFC 1918), those of carriers (RFC 6598), and unique local ones (RFC 4193). A hostile gateway
/// could otherwise move the traffic for an address of the Internet to itself, or break loopback.
fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            address.is_private() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Exchanges packets until the association ends, and returns the reason. `observe` receives the state of the association from time to
/// time.
pub async fn carry(
    association: &Association,
    addresses: Addresses,
    packets: &mut mpsc::Receiver<Outgoing>,
    (output, tally): (&Output, &Tally),
    observe: impl FnMut(&Snapshot),
) -> String {
    // The system would accept routes from router advertisements, whose sources are addresses of the link.
    let check = |header: &Header| match addresses.contains(header.destination) && !header.stays_on_link() {
        true => Ok(()),
        false => Err(Count::Spoofed),
    };
    let why = tokio::select! {
        () = link::send(association, packets, tally) => None,
        ended = link::receive(association, check, (output, tally)) => ended.err().map(|error: Violation| error.to_string()),
        () = watch(association, observe) => Some("the gateway does not answer".to_owned()),
    };
    match why {
        Some(why) => {
            association.abort();
            why
        }
        None => association
            .closed()
            .await
            .map_or_else(|why| why.to_string(), |()| "the gateway ended it".to_owned()),
    }
}

/// Observes the association until the gateway is silent.
async fn watch(association: &Association, mut observe: impl FnMut(&Snapshot)) {
    let mut liveness = Liveness::new(Instant::now());
    let mut ticks = interval(OBSERVED_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let snapshot = association.snapshot().await;
        observe(&snapshot);
        let delivered: u64 = snapshot.paths.iter().map(|path| path.delivered_bytes).sum();
        let observation = Observation {
            heard: delivered + snapshot.statistics.sacks_received + snapshot.statistics.chunks_received,
            is_unacknowledged: snapshot.send_buffered_bytes > 0,
            is_used: true,
        };
        match liveness.observe(Instant::now(), observation) {
            Verdict::Alive => {}
            Verdict::Probe => {
                let probe = association.send(Message::Probe.encode(), SendOptions::default().unordered());
                // Data waits if there is no room for the probe.
                let _ = timeout(Duration::ZERO, probe).await;
            }
            Verdict::Silent(silence) if silence >= SILENT_AFTER => return,
            Verdict::Silent(_) => {}
        }
    }
}

/// Silence after which another association is opened. The connections of the tunnel survive that, because the address stays.
const SILENT_AFTER: Duration = Duration::from_secs(3);

/// Returns the MTU for the device: packets of this size fit one packet of each path.
pub fn mtu_for(snapshot: &Snapshot) -> usize {
    let smallest = snapshot.paths.iter().map(|path| path.mtu_bytes).min().unwrap_or(0);
    smallest.saturating_sub(OVERHEAD_BYTES).clamp(MIN_MTU, MAX_MTU)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn only_private_addresses_are_usable() {
        for (address, expected) in [
            ([10, 177, 0, 2], true),
            ([192, 168, 7, 9], true),
            ([100, 64, 0, 1], true),
            ([100, 128, 0, 1], false),
            ([127, 0, 0, 1], false),
            ([0, 0, 0, 0], false),
            ([224, 0, 0, 1], false),
            ([8, 8, 8, 8], false),
            ([169, 254, 1, 1], false),
        ] {
            assert_eq!(is_usable(Ipv4Addr::from(address).into()), expected, "{address:?}");
        }
        for (text, expected) in [
            ("fd00::2", true),
            ("fc00::2", true),
            ("fe80::2", false),
            ("::1", false),
            ("::", false),
            ("2606:4700::1111", false),
            ("::ffff:10.0.0.1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_usable(text.parse().expect(text)), expected, "{text}");
        }
    }

    #[test]
    fn mtu_is_bounded_without_paths() {
        assert_eq!(mtu_for(&Snapshot::default()), MIN_MTU);
    }
}
