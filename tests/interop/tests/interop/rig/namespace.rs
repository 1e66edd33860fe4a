//! Two network namespaces, connected only by a pair of virtual interfaces for each path.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_tests::namespace::Namespace;

/// Owner of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// Kinds of interruptions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The interface of this project's side is down: the system refuses to send.
    OurLinkDown,
    /// The interface of the other stack is down.
    TheirLinkDown,
    /// No report: both sides send to an unused link-layer address.
    Silent,
    /// The address of this project's side is removed.
    OurAddressGone,
    /// The address of the other stack is removed.
    TheirAddressGone,
}

/// Path `n`, from 1 on, leads from 10.77.`n`.1 on this project's side to 10.77.`n`.2 on the side of the other stack.
#[derive(Debug)]
pub(crate) struct Network {
    // The fields are dropped in this order, because the namespace of the other stack was created from within that of this project.
    theirs: Namespace,
    ours: Namespace,
    capture: Option<Capture>,
    pub(crate) paths: u8,
}

/// A capturing program, which ends with the interfaces.
#[derive(Debug)]
struct Capture(Child);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}

impl Network {
    pub(crate) fn new(paths: u8) -> Self {
        let ours = Namespace::create()
            .expect("network namespaces: util-linux, and root or unprivileged user namespaces");
        let theirs = ours.nested().expect("a second namespace");
        for namespace in [&ours, &theirs] {
            // usrsctp lists every address of the host. An unrequested link-local one would be a path.
            namespace.run("if [ -d /proc/sys/net/ipv6 ]; then for scope in all default; do echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done; fi");
        }
        let mut network = Network { theirs, ours, capture: None, paths };
        (1..=paths).for_each(|path| network.add_link(path));
        network.capture = network.start_capture();
        network
    }

    /// Starts a capture for the analysis of failures: `ANABRANCH_INTEROP_CAPTURE` names a folder for the packets of our interfaces.
    fn start_capture(&self) -> Option<Capture> {
        let folder = std::env::var_os("ANABRANCH_INTEROP_CAPTURE")?;
        let name = std::thread::current().name().unwrap_or("capture").replace("::", "-");
        let file = PathBuf::from(folder).join(format!("{name}-{}.pcapng", self.ours.id()));
        let mut command = self.command(Side::Ours, "dumpcap");
        command.arg("-q").arg("-w").arg(file);
        (1..=self.paths).for_each(|path| {
            command.args(["-i", &format!("v{path}")]);
        });
        let dumpcap = command.stderr(Stdio::null()).spawn().expect("dumpcap, which comes with tshark");
        std::thread::sleep(Duration::from_secs(1));
        Some(Capture(dumpcap))
    }

    fn add_link(&self, path: u8) {
        let theirs = self.theirs.id();
        self.ours.run(&format!("ip link add v{path} type veth peer name v{path} netns {theirs}"));
        for (side, namespace) in [(1, &self.ours), (2, &self.theirs)] {
            namespace.run(&format!("ip addr add 10.77.{path}.{side}/24 dev v{path}; ip link set v{path} up"));
        }
    }

    fn namespace(&self, side: Side) -> &Namespace {
        match side {
            Side::Ours => &self.ours,
            Side::Theirs => &self.theirs,
        }
    }

    /// Returns a command that runs on that side.
    pub(crate) fn command(&self, side: Side, program: &str) -> Command {
        self.namespace(side).enter(&[program])
    }

    pub(crate) fn address(side: Side, path: u8) -> String {
        let host = match side {
            Side::Ours => 1,
            Side::Theirs => 2,
        };
        format!("10.77.{path}.{host}")
    }

    /// Limits the rate in each direction, with a queue of this number of kilobytes.
    pub(crate) fn limit(&self, path: u8, mbit: u32, queue_kb: u32) {
        for namespace in [&self.ours, &self.theirs] {
            namespace.run(&format!(
                "tc qdisc add dev v{path} root tbf rate {mbit}mbit burst 16kb limit {queue_kb}kb"
            ));
        }
    }

    pub(crate) fn cut(&self, path: u8, how: Cut) {
        match how {
            Cut::OurLinkDown => self.ours.run(&format!("ip link set v{path} down")),
            Cut::TheirLinkDown => self.theirs.run(&format!("ip link set v{path} down")),
            Cut::Silent => {
                let wrong = format!("lladdr 02:00:00:00:77:77 dev v{path} nud permanent");
                self.ours.run(&format!("ip neigh replace 10.77.{path}.2 {wrong}"));
                self.theirs.run(&format!("ip neigh replace 10.77.{path}.1 {wrong}"));
            }
            Cut::OurAddressGone => self.ours.run(&format!("ip addr flush dev v{path}")),
            Cut::TheirAddressGone => self.theirs.run(&format!("ip addr flush dev v{path}")),
        }
    }
}
