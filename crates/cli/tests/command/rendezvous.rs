//! `rendezvous`, with `forward`, `gateway`, `send` and `serve` that meet there.

use crate::forward::{echo, exchange, interrupt};
use crate::protection::{Listening, Users};
use crate::support::anabranch;

/// Starts a server on loopback.
fn server(more: &[&str]) -> Listening {
    Listening::start(&[&["rendezvous", "--json", "--bind", "127.0.0.75:0"], more].concat())
}

/// Returns the last line of a command that is stopped.
fn stop(listening: Listening) -> serde_json::Value {
    interrupt(&listening);
    listening.end().with_status(130).json_lines().pop().expect("a line")
}

#[test]
fn gateway_is_found_by_its_key_and_reached_directly() {
    let (users, target, server) = (Users::new(), echo(), server(&[]));
    users.authorize("anna", "bert");
    let (anna, bert, key) = (users.text("anna"), users.text("bert"), users.key_of("bert"));
    let gateway = Listening::start(&[
        "gateway",
        "--json",
        "--listen",
        "127.0.0.76:0",
        "--keys",
        &bert,
        "--allow",
        "127.0.0.0/8:*",
        "--rendezvous",
        &server.address,
    ]);
    let local = format!("127.0.0.1:0:{target}");
    let forwarding = Listening::start(&[
        "forward",
        &key,
        "--json",
        "--path",
        "127.0.0.77",
        "--keys",
        &anna,
        "-L",
        &local,
        "--rendezvous",
        &server.address,
    ]);
    assert_eq!(exchange(&forwarding.address, b"met").expect("an answer"), b"met");
    assert_eq!(stop(forwarding)["complete"], 1);
    drop(gateway);
    let end = stop(server);
    assert_eq!((&end["calls"], &end["relays"]), (&1.into(), &0.into()), "{end}");
}

#[test]
fn server_of_files_is_found_by_the_name_of_its_known_key() {
    let (users, server) = (Users::new(), server(&[]));
    users.authorize("anna", "bert");
    let _serving = users.serve("bert", &["--rendezvous", &server.address]);
    let (anna, key) = (users.text("anna"), users.key_of("bert"));
    let more = ["--rendezvous", &server.address];
    let unknown = users.send("anna", "berts-laptop", &more).with_status(2);
    assert!(unknown.err.contains("keys add --host berts-laptop"), "{}", unknown.err);
    anabranch(&["keys", "add", "--keys", &anna, "--host", "berts-laptop", &key]).with_status(0);
    users.send("anna", "berts-laptop", &more).with_status(0);
    assert!(users.arrived());
}

#[test]
fn sender_with_a_code_is_found_in_its_room() {
    let (users, server) = (Users::new(), server(&[]));
    let (anna, bert, film) = (users.text("anna"), users.text("bert"), users.text("film.mkv"));
    let mut sending = Listening::start(&[
        "send",
        "--code",
        &film,
        "--json",
        "--listen",
        "127.0.0.76:0",
        "--keys",
        &bert,
        "--rendezvous",
        &server.address,
    ]);
    let code = sending.event("code");
    assert_eq!(code["rendezvous"], server.address.as_str());
    let at = [&code["code"], &code["room"]].map(|part| part.as_str().expect("a text")).join("@");
    let inbox = users.text("inbox");
    let fixed = ["recv", "--yes", "--keys", &anna, "--path", "127.0.0.77", "--dir", &inbox];
    let more = ["--rendezvous", &server.address];
    let elsewhere = at.split_once('@').expect("a room").0.to_owned() + "@room-0000000000";
    let refused =
        anabranch(&[&fixed[..], &more, &[elsewhere.as_str(), "--retry", "0"]].concat()).with_status(1);
    assert!(refused.err.contains("no sender waits in this room"), "{}", refused.err);
    anabranch(&[&fixed[..], &more, &[at.as_str()]].concat()).with_status(0);
    assert!(users.arrived());
    sending.end().with_status(0);
}

#[test]
fn caller_without_an_authorised_key_learns_no_address() {
    let (users, server) = (Users::new(), server(&[]));
    users.authorize("carol", "bert");
    let _serving = users.serve("bert", &["--rendezvous", &server.address]);
    let key = users.key_of("bert");
    let refused = users.send("anna", &key, &["--rendezvous", &server.address]).with_status(1);
    let own = users.key_of("anna");
    assert!(refused.err.contains(&format!("anabranch keys add {own}")), "{}", refused.err);
    assert_eq!(stop(server)["calls"], 0);
}

#[test]
fn silent_server_is_reported_with_its_port() {
    let users = Users::new();
    let key = users.key_of("bert");
    let silent = std::net::UdpSocket::bind("127.0.0.75:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let failed = users.send("anna", &key, &["--rendezvous", &address]).with_status(1);
    assert!(failed.err.contains("does not answer") && failed.err.contains(&address), "{}", failed.err);
}

#[test]
fn options_that_contradict_a_rendezvous_are_refused() {
    let users = Users::new();
    let anna = users.text("anna");
    for arguments in [
        &["send", "x", "host", "--rendezvous", "127.0.0.75", "--insecure"][..],
        &["send", "x", "host", "--rendezvous", "127.0.0.75", "--to", "127.0.0.1:1"],
        &["recv", "1-marble-river@room-4k9xw2mqc7", "--yes", "--pin", "--rendezvous", "127.0.0.75"],
        &["paths", "--check", "host", "--rendezvous", "127.0.0.75", "--keys", &anna],
        &["serve", "--dir", "x", "--rendezvous", "127.0.0.75", "--insecure"],
        &["rendezvous", "--bind", "example.org"],
        &["rendezvous", "--relay-ports", "2-1"],
    ] {
        anabranch(arguments).with_status(2);
    }
}

#[cfg(target_os = "linux")]
mod behind_nats {
    use std::io::Read as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use anabranch_tests::namespace::Namespace;

    use super::*;
    use crate::support::command;

    const SERVER: &str = "198.51.100.1";

    /// A host behind a NAT.
    struct Host {
        namespace: Namespace,
        nat: Child,
    }

    impl Drop for Host {
        fn drop(&mut self) {
            let _ = self.nat.kill();
            let _ = self.nat.wait();
        }
    }

    impl Host {
        fn new(internet: &Namespace, kind: &str, public: &str, local: &str) -> Option<Self> {
            let namespace = internet.nested()?;
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/nat.py");
            let process = internet.id().to_string();
            let words = ["python3", script.to_str()?, kind, public, local, &process];
            let mut nat = namespace.enter(&words).stdout(Stdio::piped()).spawn().ok()?;
            let mut started = [0; 8];
            nat.stdout.as_mut()?.read_exact(&mut started).ok()?;
            Some(Host { namespace, nat })
        }

        fn start(&self, arguments: &[&str]) -> Listening {
            Listening::start_command(entered(&self.namespace, arguments))
        }
    }

    fn entered(namespace: &Namespace, arguments: &[&str]) -> Command {
        let plain = command(arguments);
        let program = plain.get_program().to_str().expect("text").to_owned();
        let mut entered = namespace.enter(&[&[program.as_str()], arguments].concat());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => entered.env(name, value),
                None => entered.env_remove(name),
            };
        }
        entered
    }

    /// Forwards a connection of 200 kB between hosts behind these NATs, and returns the number of relays.
    fn relays_between(caller: &str, listener: &str) -> Option<u64> {
        let internet = Namespace::create()?;
        internet.run(&format!(
            "ip link set lo up; for a in {SERVER} 203.0.113.1 203.0.113.2; do ip addr add $a/32 dev lo; done"
        ));
        let server = ["rendezvous", "--json", "--bind", &format!("{SERVER}:9898")];
        let server = Listening::start_command(entered(&internet, &server));
        let here = Host::new(&internet, caller, "203.0.113.1", "10.0.0.2")?;
        let there = Host::new(&internet, listener, "203.0.113.2", "192.168.7.2")?;
        let users = Users::new();
        users.authorize("anna", "bert");
        let (anna, bert, key) = (users.text("anna"), users.text("bert"), users.key_of("bert"));
        let echo = "import socket,threading\ns=socket.create_server(('127.0.0.1',7))\nprint('{\"event\":\"listening\",\"addresses\":[\"\"]}',flush=True)\n\
            while True:\n c=s.accept()[0]\n d=b''\n while (p:=c.recv(65536)): d+=p\n c.sendall(d); c.close()";
        let _echo = Listening::start_command(there.namespace.enter(&["python3", "-c", echo]));
        let _gateway = there.start(&[
            "gateway",
            "--json",
            "--listen",
            "192.168.7.2",
            "--keys",
            &bert,
            "--allow",
            "127.0.0.1:7",
            "--rendezvous",
            SERVER,
        ]);
        let forwarding = here.start(&[
            "forward",
            &key,
            "--json",
            "--path",
            "10.0.0.2",
            "--keys",
            &anna,
            "-L",
            "127.0.0.1:7000:127.0.0.1:7",
            "--rendezvous",
            SERVER,
        ]);
        let ask = "import socket\nc=socket.create_connection(('127.0.0.1',7000),20); c.settimeout(20)\nm=b'x'*200000\nc.sendall(m)\n\
            c.shutdown(1)\nd=b''\nwhile (p:=c.recv(65536)): d+=p\nassert d==m, len(d)";
        let asked = here.namespace.enter(&["python3", "-c", ask]).status().expect("it starts");
        assert!(asked.success(), "{caller} calls {listener}");
        drop(forwarding);
        stop(server)["relays"].as_u64()
    }

    #[test]
    fn real_commands_meet_by_the_routes_of_the_table() {
        if Namespace::create().and_then(|namespace| namespace.nested()).is_none() {
            eprintln!("skipped: network namespaces are not permitted here");
            return;
        }
        for (caller, listener, relays) in [
            ("port-restricted", "port-restricted", 0),
            ("symmetric", "restricted", 0),
            ("full-cone", "symmetric", 0),
            ("symmetric", "symmetric", 1),
        ] {
            assert_eq!(relays_between(caller, listener), Some(relays), "{caller} calls {listener}");
        }
    }
}
