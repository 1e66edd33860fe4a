//! `forward` and `gateway` with a relay process for each link between them.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::protection::{Listening, Users};
use crate::support::command;

/// Largest mean lateness of a relay at which a measurement counts, in µs. A later one shows a machine that is too busy.
const LATEST_US: f64 = 500.0;
/// Maximum number of measurements until one reaches its goal.
const ATTEMPTS: usize = 5;
/// Number of measurements in time below the goal, after which the goal is missed.
const MISSING: usize = 3;

/// Lock for one measurement at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Link of the simulator between a path of the forwarder and the gateway.
struct Relay {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl Relay {
    fn start(number: usize, to: &str, link: &str) -> Self {
        let listen = format!("127.0.0.{}:0", 81 + number);
        let relay = ["relay", "--json", "--listen", &listen, "--to", to, "--link", link];
        let mut child = command(&relay).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut relay = Relay {
            out: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            address: String::new(),
        };
        relay.address = relay.event("listening")["listen"].as_str().expect("an address").to_owned();
        relay
    }

    fn event(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).expect("a line") > 0, "no event {event}");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["event"] == event {
                return line;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Ends the relay, and returns its mean lateness in µs.
    fn late_us(&mut self) -> f64 {
        self.signal("INT");
        let totals = self.event("totals");
        let late = ["forward", "reverse"].map(|way| totals[way]["late_mean_us"].as_f64().expect("a time"));
        late[0].max(late[1])
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A forwarder, its gateway, and the links between them.
pub(crate) struct Linked {
    forwarding: Listening,
    relays: Vec<Relay>,
    _gateway: Listening,
    _users: Users,
    _turn: MutexGuard<'static, ()>,
}

impl Linked {
    /// Starts all of them. Links have the form of `anabranch relay --link`, of which those with these numbers lead nowhere;
    /// `forwarded` is the option of the forwarder.
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
        let relays: Vec<Relay> = links
            .iter()
            .enumerate()
            .map(|(number, link)| Relay::start(number, &gateway.address, link))
            .collect();
        dead.iter().for_each(|number| relays[*number].signal("STOP"));
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

    /// Drops all packets of a link from now on, without a report to either end.
    pub(crate) fn cut(&mut self, number: usize) {
        let relay = self.relays.remove(number);
        // Its socket remains open, so that nothing reports the failure.
        relay.signal("STOP");
        self.relays.push(relay);
    }

    /// Ends all of them. Returns `true` if the links with these numbers were in time.
    pub(crate) fn was_in_time(mut self, links: std::ops::Range<usize>) -> bool {
        self.relays[links].iter_mut().all(|relay| relay.late_us() < LATEST_US)
    }
}

/// Measurement beside its goal.
pub(crate) enum Judged {
    Reached,
    Missed(String),
    /// The machine has delayed packets.
    Disturbed,
}

impl Judged {
    pub(crate) fn new(in_time: bool, reached: bool, figures: String) -> Self {
        match (reached, in_time) {
            (true, _) => Judged::Reached,
            (false, true) => Judged::Missed(figures),
            (false, false) => Judged::Disturbed,
        }
    }
}

/// Measures until a measurement reaches its goal. A machine that disturbs all of them proves nothing.
#[track_caller]
pub(crate) fn assert_reached(mut measure: impl FnMut() -> Judged) {
    let mut missed = Vec::new();
    for _ in 0..ATTEMPTS {
        match measure() {
            Judged::Reached => return,
            Judged::Missed(figures) => missed.push(figures),
            Judged::Disturbed => {}
        }
        assert!(missed.len() < MISSING, "{missed:?}");
    }
    println!("left out, since the machine delayed packets of the links; {missed:?}");
}
