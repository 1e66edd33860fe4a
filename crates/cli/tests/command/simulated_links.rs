//! `forward` and `gateway` with a relay process for each link between them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::judged::LATEST_US;
use crate::protection::{Listening, Users};
use crate::support::signal;

/// Lock for one measurement at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Starts a link of the simulator between a path of the forwarder and the gateway.
fn relay(number: usize, to: &str, link: &str) -> Listening {
    let listen = format!("127.0.0.{}:0", 81 + number);
    Listening::start(&["relay", "--json", "--listen", &listen, "--to", to, "--link", link])
}

/// Ends a relay, and returns its mean lateness in µs.
fn late_us(relay: &mut Listening) -> f64 {
    signal(relay.id(), "INT");
    let totals = relay.event("totals");
    let late = ["forward", "reverse"].map(|way| totals[way]["late_mean_us"].as_f64().expect("a time"));
    late[0].max(late[1])
}

/// A forwarder, its gateway, and the links between them.
pub(crate) struct Linked {
    forwarding: Listening,
    relays: Vec<Listening>,
    _gateway: Listening,
    _users: Users,
    _turn: MutexGuard<'static, ()>,
}

impl Linked {
    /// Starts the gateway, a relay for each link, and the forwarder. Links have the notation of `anabranch relay --link`. Relays whose
    /// numbers are in `dead` drop every packet. `forwarded` is `-L` or `-D` with its value.
    pub(crate) fn with_dead(links: &[&str], dead: &[usize], forwarded: [&str; 2]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let users = Users::new();
        users.authorize("anna", "bert");
        let [anna, bert] = ["anna", "bert"].map(|user| users.text(user));
        let gateway = Listening::start(&[
            "gateway",
            "--json",
            "--keys",
            &bert,
            "--listen",
            "127.0.0.80:0",
            "--allow",
            "127.0.0.0/8:*",
        ]);
        let relays: Vec<Listening> =
            links.iter().enumerate().map(|(number, link)| relay(number, &gateway.address, link)).collect();
        dead.iter().for_each(|number| signal(relays[*number].id(), "STOP"));
        let paths = relays.iter().enumerate().flat_map(|(number, relay)| {
            ["--path".into(), format!("127.0.0.{}", 91 + number), "--to".into(), relay.address.clone()]
        });
        let paths: Vec<String> = paths.collect();
        let fixed = ["forward", &gateway.address, "--json", "--keys", &anna, forwarded[0], forwarded[1]];
        let arguments: Vec<&str> = fixed.into_iter().chain(paths.iter().map(String::as_str)).collect();
        let forwarding = Listening::start(&arguments);
        Linked { forwarding, relays, _gateway: gateway, _users: users, _turn: turn }
    }

    pub(crate) fn new(links: &[&str], forwarded: [&str; 2]) -> Self {
        Self::with_dead(links, &[], forwarded)
    }

    /// Returns the address on which the forwarder listens.
    pub(crate) fn address(&self) -> &str {
        &self.forwarding.address
    }

    /// Drops all packets of a link from now on. Its socket remains open, so that nothing reports the failure.
    pub(crate) fn cut(&self, number: usize) {
        signal(self.relays[number].id(), "STOP");
    }

    /// Ends the forwarder, and returns its totals.
    pub(crate) fn end_forwarding(&mut self) -> Value {
        signal(self.forwarding.id(), "INT");
        self.forwarding.event("end")
    }

    /// Ends all of them. Returns `true` if the links with these numbers were in time.
    pub(crate) fn was_in_time(mut self, links: std::ops::Range<usize>) -> bool {
        self.relays[links].iter_mut().all(|relay| late_us(relay) < LATEST_US)
    }
}
