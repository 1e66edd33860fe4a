//! `top` beside `forward` over two paths.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protection::{Listening, Users};
use crate::support::{Ended, anabranch};

const PATHS: [&str; 2] = ["127.0.0.85", "127.0.0.86"];
/// Bytes of one exchange.
const BYTES: usize = 2 << 20;
/// Time after which a test counts as hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts a program that returns the bytes of each connection while it receives them.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = connection.try_clone().expect("a handle");
                let _ = std::io::copy(&mut reader, &mut &connection);
            });
        }
    });
    address
}

/// Exchanges pseudo-random bytes on one connection to `to` until `stop` is set, and compares them. Returns the number of exchanges.
fn exchange_until(stop: &AtomicBool, to: &str) -> usize {
    let mut writer = TcpStream::connect(to).expect("it listens");
    let mut exchanges = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut state = exchanges as u64 + 1;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(BYTES)
        .collect();
        let mut reader = writer.try_clone().expect("a handle");
        let reading = thread::spawn(move || {
            let mut answer = vec![0; BYTES];
            reader.read_exact(&mut answer).expect("all bytes");
            answer
        });
        writer.write_all(&bytes).expect("written");
        assert!(reading.join().expect("no panic") == bytes, "exchange {exchanges}");
        exchanges += 1;
    }
    exchanges
}

/// A gateway and `forward` over two paths, with a connection in use.
struct Rig {
    _users: Users,
    gateway: Listening,
    forwarding: Listening,
}

impl Rig {
    fn start() -> Self {
        let users = Users::new();
        users.authorize("anna", "bert");
        let (keys, target) = (users.text("bert"), echo());
        let mut gateway = Listening::start(&[
            "gateway",
            "--json",
            "--keys",
            &keys,
            "--scheme",
            "cmt",
            "--allow",
            "127.0.0.0/8:*",
            "--listen",
            "127.0.0.83:0",
            "--listen",
            "127.0.0.84:0",
        ]);
        let port = gateway.address.rsplit_once(':').expect("a port").1.to_owned();
        let (first, second) = (format!("127.0.0.83:{port}"), format!("127.0.0.84:{port}"));
        let (keys, local) = (users.text("anna"), format!("127.0.0.1:0:{target}"));
        let forwarding = Listening::start(&[
            "forward",
            "--json",
            &gateway.address,
            "--keys",
            &keys,
            "--scheme",
            "cmt",
            "-L",
            &local,
            "--path",
            PATHS[0],
            "--to",
            &first,
            "--path",
            PATHS[1],
            "--to",
            &second,
        ]);
        gateway.event("connected");
        Rig { _users: users, gateway, forwarding }
    }

    fn top(&self, more: &[&str]) -> Ended {
        let pid = self.forwarding.id().to_string();
        anabranch(&[&["top", &pid][..], more].concat())
    }

    /// Waits for a sample that meets a condition.
    #[track_caller]
    fn until(&self, meets: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + LIMIT;
        loop {
            let sample = self.top(&["--json", "--once"]).with_status(0).json_lines().remove(0);
            if meets(&sample) {
                return sample;
            }
            assert!(Instant::now() < until, "{sample:#}");
        }
    }
}

fn paths(sample: &Value) -> &[Value] {
    sample["associations"][0]["paths"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns `true` if paths from each of these addresses carry data, and there are no paths from others.
fn carry(sample: &Value, locals: &[&str]) -> bool {
    let busy = |path: &Value| path["up_kbps"].as_f64().is_some_and(|rate| rate > 100.0);
    let found = |local: &&str| paths(sample).iter().any(|path| path["local"] == **local && busy(path));
    let is_named = |path: &Value| locals.iter().any(|local| path["local"] == **local);
    paths(sample).iter().all(is_named) && locals.iter().all(found)
}

#[test]
fn path_taken_out_moves_traffic_to_the_other_and_comes_back() {
    let rig = Rig::start();
    let stop = Arc::new(AtomicBool::new(false));
    let traffic = thread::spawn({
        let (stop, to) = (Arc::clone(&stop), rig.forwarding.address.clone());
        move || exchange_until(&stop, &to)
    });
    let sample = rig.until(|sample| carry(sample, &PATHS));
    assert_eq!((&sample["command"], &sample["scheme"]), (&"forward".into(), &"cmt".into()));

    let out = rig.top(&["--take-out", PATHS[0]]).with_status(0);
    assert!(out.err.contains("127.0.0.85 is out of use"), "{}", out.err);
    let sample = rig.until(|sample| carry(sample, &PATHS[1..]));
    assert_eq!(sample["taken_out"][0]["local"], PATHS[0]);
    let refused = rig.top(&["--take-out", PATHS[1]]).with_status(1);
    assert!(refused.err.contains("127.0.0.86 has the only usable path"), "{}", refused.err);

    rig.top(&["--take-back", PATHS[0]]).with_status(0);
    let sample = rig.until(|sample| carry(sample, &PATHS));
    assert_eq!(sample["taken_out"].as_array().map(Vec::len), Some(0));
    stop.store(true, Ordering::Relaxed);
    assert!(traffic.join().expect("no panic") > 0);
}

#[test]
fn metrics_text_and_wrong_names_have_their_outcome() {
    let rig = Rig::start();
    let page = rig.top(&["--openmetrics"]).with_status(0).out;
    assert!(page.contains("anabranch_path_received_bytes_total{") && page.ends_with("# EOF\n"), "{page}");
    let unknown = rig.top(&["--take-out", "wwan9"]).with_status(1);
    assert!(unknown.err.contains("`wwan9` is no link") && unknown.err.contains(PATHS[0]), "{}", unknown.err);
}

/// Returns `true` if paths to each of these hosts carry data, and there are no paths to others.
fn carry_to(sample: &Value, hosts: &[&str]) -> bool {
    let leads_to = |path: &Value, host: &str| {
        path["remote"].as_str().is_some_and(|remote| remote.starts_with(&format!("{host}:")))
    };
    let busy = |path: &&Value| path["up_kbps"].as_f64().is_some_and(|rate| rate > 100.0);
    let mut reached =
        hosts.iter().map(|host| paths(sample).iter().filter(busy).any(|path| leads_to(path, host)));
    let known = |path: &Value| hosts.iter().any(|host| leads_to(path, host));
    reached.all(|reached| reached) && paths(sample).iter().all(known)
}

#[test]
fn address_of_a_gateway_is_taken_out_and_comes_back() {
    const HOSTS: [&str; 2] = ["127.0.0.83", "127.0.0.84"];
    let rig = Rig::start();
    let stop = Arc::new(AtomicBool::new(false));
    let traffic = thread::spawn({
        let (stop, to) = (Arc::clone(&stop), rig.forwarding.address.clone());
        move || exchange_until(&stop, &to)
    });
    rig.until(|sample| carry_to(sample, &HOSTS));
    let gateway = rig.gateway.id().to_string();
    let order =
        |words: [&str; 2], status| anabranch(&[&["top", &gateway][..], &words].concat()).with_status(status);
    order(["--take-out", HOSTS[0]], 0);
    rig.until(|sample| carry_to(sample, &HOSTS[1..]));
    let refused = order(["--take-out", HOSTS[1]], 1);
    assert!(refused.err.contains("127.0.0.84 has the only usable path"), "{}", refused.err);
    order(["--take-back", HOSTS[0]], 0);
    rig.until(|sample| carry_to(sample, &HOSTS));
    stop.store(true, Ordering::Relaxed);
    assert!(traffic.join().expect("no panic") > 0);
}

#[test]
fn command_that_does_not_run_is_an_error_with_a_remedy() {
    let missing = anabranch(&["top", "0"]).with_status(1);
    assert!(missing.err.contains("no command"), "{}", missing.err);
}
