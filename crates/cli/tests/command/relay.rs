//! `anabranch relay`.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use crate::support::{anabranch, command, signal};

const LINK: &str = "rate=100Mbit,delay=1ms";
const TIMEOUT: Duration = Duration::from_secs(20);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    socket
}

fn address(socket: &UdpSocket) -> String {
    socket.local_addr().expect("an address").to_string()
}

struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut command = command(&[&["relay"], arguments].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line
    }

    /// Sends a signal, and returns the output after it with the exit status.
    fn end(mut self, name: &str) -> (String, Option<i32>) {
        signal(self.child.id(), name);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (rest, self.child.wait().expect("it ends").code())
    }
}

#[test]
fn datagrams_are_relayed_and_ctrl_c_prints_their_counts() {
    for signal in ["INT", "TERM"] {
        let (client, target) = (socket(), socket());
        let mut relay =
            Running::start(&["--listen", "127.0.0.1:0", "--to", &address(&target), "--link", LINK]);
        let line = relay.line();
        let listen = line.split([' ', ',']).nth(3).expect("an address").to_owned();
        client.send_to(b"there", &listen).expect("sent");
        let mut buffer = [0; 16];
        let (length, way) = target.recv_from(&mut buffer).expect("a datagram");
        assert_eq!(&buffer[..length], b"there");
        target.send_to(b"and back", way).expect("sent");
        assert_eq!(client.recv(&mut buffer).expect("a datagram"), 8);
        let (rest, status) = relay.end(signal);
        assert_eq!(status, Some(130), "{rest}");
        assert!(rest.starts_with("relay-1 after "), "{rest}");
        assert!(rest.contains("  forward: 1 packet (5 B) came, 1 (5 B) delivered, 0 lost"), "{rest}");
        assert!(rest.contains("  reverse: 1 packet (8 B) came, 1 (8 B) delivered, 0 lost"), "{rest}");
    }
}

#[test]
fn json_has_a_line_per_relay_at_start_each_second_and_at_the_end() {
    let target = socket();
    let to = address(&target);
    let listen = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let more = ["--to", &to, "--link", LINK, "--for", "1500ms", "--json"];
    let ended = anabranch(&[&["relay"], &listen[..], &more[..]].concat()).with_status(0);
    let lines = ended.json_lines();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    for event in ["listening", "totals"] {
        let names: Vec<_> = of(event).iter().map(|line| line["relay"].clone()).collect();
        assert_eq!(names, ["relay-1", "relay-2"]);
    }
    assert_eq!(of("listening")[0]["to"], to);
    assert!(of("counters").len() >= 2);
    let totals = of("totals")[1];
    for key in [
        "offered",
        "delivered",
        "lost",
        "dropped_policer",
        "dropped_queue",
        "dropped_outage",
        "unsent",
        "refused",
        "too_large",
    ] {
        assert_eq!(totals["forward"][key]["packets"], 0, "{key}");
        assert_eq!(totals["reverse"][key]["wire_bytes"], 0, "{key}");
    }
}

#[test]
fn a_cut_from_the_start_lets_nothing_through() {
    let (client, target) = (socket(), socket());
    let to = address(&target);
    let mut relay = Running::start(&[
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--link",
        LINK,
        "--cut",
        "0s..1h",
        "--json",
    ]);
    let line: serde_json::Value = serde_json::from_str(&relay.line()).expect("JSON");
    client.send_to(b"hello", line["listen"].as_str().expect("an address")).expect("sent");
    let dropped = || {
        let line: serde_json::Value = serde_json::from_str(&relay.line()).expect("JSON");
        line["forward"]["dropped_outage"]["bytes"] == 5
    };
    assert!(std::iter::repeat_with(dropped).take(20).any(|dropped| dropped));
    assert_eq!(relay.end("INT").1, Some(130));
}

#[test]
fn relay_has_name_directions_and_events_of_its_link() {
    let (client, target) = (socket(), socket());
    let link =
        "rate=100Mbit,delay=1ms,name=lte,loss=100%,reverse=(loss=0),event=[(at=0s,direction=forward,loss=0)]";
    let mut relay =
        Running::start(&["--listen", "127.0.0.1:0", "--to", &address(&target), "--link", link, "--json"]);
    let line: serde_json::Value = serde_json::from_str(&relay.line()).expect("JSON");
    assert_eq!(line["relay"], "lte");
    client.send_to(b"hello", line["listen"].as_str().expect("an address")).expect("sent");
    let mut buffer = [0; 16];
    let (_, way) = target.recv_from(&mut buffer).expect("the event ended the loss");
    target.send_to(b"and back", way).expect("sent");
    assert_eq!(client.recv(&mut buffer).expect("the reverse direction loses nothing"), 8);
    assert_eq!(relay.end("INT").1, Some(130));
}

#[test]
fn help_and_completions_have_the_keys_that_a_relay_accepts() {
    let help = anabranch(&["relay", "--help"]).with_status(0).out;
    let bash = anabranch(&["completions", "bash"]).with_status(0).out;
    let values = bash.split("--link)").nth(1).and_then(|rest| rest.lines().nth(1)).expect("values");
    for field in anabranch_scenario::Link::fields() {
        let accepted = field.key != "background";
        assert_eq!(help.contains(&format!("\n  {}\n      ", field.key)), accepted, "{}: {help}", field.key);
        assert_eq!(values.contains(&format!("{}=", field.key)), accepted, "{}: {values}", field.key);
    }
    assert!(help.contains("with rate, burst]"), "{help}");
}

#[test]
fn invalid_options_are_refused_with_an_example() {
    let usual = ["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--link", LINK];
    let with = |more: &[&str]| anabranch(&[&["relay"], &usual[..], more].concat());
    for (more, expected) in [
        (&["--link", LINK][..], "2 times --link for 1 times --listen: give one for all"),
        (&["--link-forward", LINK], "a similar argument exists: '--link'"),
        (&["--to", "127.0.0.1:10"], "2 times --to for 1 times --listen: give one for all"),
        (&["--from", "::1"], "use two addresses of one IP version"),
        (&["--from", "localhost"], "--from"),
        (&["--listen", "localhost"], "expected an address and a port"),
        (&["--cut", "5s"], "such as `5s..10s`"),
        (&["--cut", "5s..1s"], "an end after the beginning"),
        (&["--seed", "one"], "--seed"),
        (&["--clients", "0"], "--clients"),
        (&["--mtu", "67"], "--mtu"),
        (&["--idle", "0s"], "more than no time at all"),
        (&["--for", "soon"], "as in 500ms, 5s"),
        (&["--json", "--stats"], "cannot be used with"),
    ] {
        let ended = with(more).with_status(2);
        assert!(ended.err.contains(expected), "{more:?}: {}", ended.err);
        assert!(ended.out.is_empty(), "{more:?}: {}", ended.out);
    }
    let without = anabranch(&["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"]).with_status(2);
    assert!(without.err.contains("--link <LINK>"), "{}", without.err);
    for (link, expected) in [
        ("rate=1Mbit,dealy=1ms", "--link:1:12: unknown key `dealy`"),
        ("rate=1Mbit,dealy=1ms", "did you mean `delay`?"),
        ("rate=1Mbit,delay=1ms,policer=(rate=1Mbit,burst=100 B)", "give at least 1500 B"),
        ("rate=1Mbit,delay=1ms,loss=[0.1]", "--link:1:28"),
        (
            "rate=1Mbit,delay=1ms,background=[(kind=poisson,rate=1Mbit,packet=1500B)]",
            "`background`: only flows can be sent",
        ),
        (
            "rate=1Mbit,delay=1ms,loss=[bernoulli(rate=1%),trace(lost=[1])]",
            "`loss`: packets are lost in 2 ways",
        ),
        ("rate=1Mbit,delay=1ms,half_duplex=160us", "`half_duplex`: both directions send at any time here"),
        ("capacity=no-such.csv,delay=1ms", "no-such.csv: cannot be read"),
        ("rate=1Mbit,delay=1ms,outage_trace=no-such.csv", "`outage_trace` and --cut exclude each other"),
    ] {
        let relay =
            ["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--cut", "1s..2s", "--link", link];
        let err = anabranch(&relay).with_status(2).err;
        assert!(err.contains(expected), "{link}: {err}");
    }
    let twins = ["--listen", "127.0.0.1:0", "--link", "rate=1Mbit,delay=1ms,name=lte"];
    let twins =
        anabranch(&[&["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"], &twins[..]].concat());
    assert!(twins.with_status(2).err.contains("two relays are named `lte`"));
    let nowhere = anabranch(&["relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:0", "--link", LINK]);
    assert!(nowhere.with_status(2).err.contains("name the target's address and port"));
}

#[test]
fn unavailable_address_is_a_failure() {
    let taken = socket();
    let ended = anabranch(&["relay", "--listen", &address(&taken), "--to", "127.0.0.1:9", "--link", LINK]);
    let ended = ended.with_status(1);
    assert!(ended.err.starts_with(&format!("cannot listen on {}: ", address(&taken))), "{}", ended.err);
}
