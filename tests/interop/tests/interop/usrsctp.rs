//! usrsctp with larger buffers, through a small program on its library.

use std::process::Command;

use crate::rig::{Ended, Input, Network, Peer, Side, ours, usrsctp};

/// Side that opens the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    Anabranch,
    Usrsctp,
}

/// UDP ports. The ports differ, because usrsctp has to learn the port of this project's side from packets.
const OUR_UDP: u16 = 9899;
const THEIR_UDP: u16 = 9900;
const OUR_SCTP: u16 = 9899;
const THEIR_SCTP: u16 = 5001;

/// Both peers over all paths of a network.
pub(crate) struct Pair<'a> {
    network: &'a Network,
    opener: Opener,
    /// SCTP port at which we expect their side.
    their_sctp: u16,
    /// Number of initial paths of their side, from the first of the network on.
    their_paths: u8,
    ours: Vec<String>,
    theirs: Vec<String>,
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

impl<'a> Pair<'a> {
    pub(crate) fn new(network: &'a Network, opener: Opener) -> Self {
        Pair {
            network,
            opener,
            their_sctp: THEIR_SCTP,
            their_paths: network.paths,
            ours: Vec::new(),
            theirs: Vec::new(),
        }
    }

    /// Sets the SCTP port at which we expect their side.
    pub(crate) fn at_sctp_port(self, port: u16) -> Self {
        Pair { their_sctp: port, ..self }
    }

    /// Starts their side with the addresses of this number of paths.
    pub(crate) fn their_paths(self, paths: u8) -> Self {
        Pair { their_paths: paths, ..self }
    }

    /// Adds options of our peer.
    pub(crate) fn ours(mut self, options: &str) -> Self {
        self.ours.extend(words(options));
        self
    }

    /// Adds options of their peer.
    pub(crate) fn theirs(mut self, options: &str) -> Self {
        self.theirs.extend(words(options));
        self
    }

    pub(crate) fn our_command(&self) -> Command {
        let mut command = self.network.command(Side::Ours, ours().to_str().expect("UTF-8"));
        command.args(["--sctp", &OUR_SCTP.to_string(), "--remote-sctp", &self.their_sctp.to_string()]);
        for path in 1..=self.network.paths {
            let (our, their) = (Network::address(Side::Ours, path), Network::address(Side::Theirs, path));
            match self.opener {
                Opener::Anabranch => {
                    command.arg("--route").arg(format!("{our}:{OUR_UDP}={their}:{THEIR_UDP}"))
                }
                Opener::Usrsctp => command.arg("--listen").arg(format!("{our}:{OUR_UDP}")),
            };
        }
        command.args(&self.ours);
        command
    }

    pub(crate) fn their_command(&self) -> Command {
        let mut command = self.network.command(Side::Theirs, usrsctp().to_str().expect("UTF-8"));
        command.args(["--udp", &THEIR_UDP.to_string(), "--remote-udp", &OUR_UDP.to_string()]);
        command.args(["--sctp", &THEIR_SCTP.to_string(), "--remote-sctp", &OUR_SCTP.to_string()]);
        for path in 1..=self.network.paths {
            if path <= self.their_paths {
                command.args(["--local", &Network::address(Side::Theirs, path)]);
            }
            if self.opener == Opener::Usrsctp {
                command.args(["--remote", &Network::address(Side::Ours, path)]);
            }
        }
        command.args(&self.theirs);
        command
    }

    pub(crate) fn start_ours(&self, input: Input) -> Peer {
        Peer::start("ours", self.our_command(), input)
    }

    pub(crate) fn start_theirs(&self, input: Input) -> Peer {
        Peer::start("theirs", self.their_command(), input)
    }

    /// Starts both sides, the listening one first, and waits until they are associated.
    pub(crate) fn start(&self, our_input: Input, their_input: Input) -> (Peer, Peer) {
        let (ours, theirs) = match self.opener {
            Opener::Anabranch => {
                let theirs = self.start_theirs(their_input);
                theirs.wait_for("listening");
                (self.start_ours(our_input), theirs)
            }
            Opener::Usrsctp => {
                let ours = self.start_ours(our_input);
                ours.wait_for("listening");
                (ours, self.start_theirs(their_input))
            }
        };
        ours.wait_for("up");
        theirs.wait_for("up");
        (ours, theirs)
    }

    /// Starts both and waits until both have ended.
    pub(crate) fn run(&self, our_input: Input, their_input: Input) -> (Ended, Ended) {
        let (ours, theirs) = self.start(our_input, their_input);
        (ours.wait(), theirs.wait())
    }
}

fn messages_of_all_sizes_come_back(opener: Opener) {
    let network = Network::new(1);
    let pair = Pair::new(&network, opener)
        .ours("--end shutdown ping --messages 240 --over-streams 8 --unordered")
        .ours("--sizes 1,2,3,1000,1435,1436,1437,10240,65535,65536,131072,262144")
        .theirs("echo");
    let (ours, theirs) = pair.run(Input::None, Input::None);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(ours.end()["messages"], 240);
    assert_eq!(ours.end()["wrong"], 0);
    assert_eq!(theirs.end()["messages"], 240);
    assert_eq!(theirs.end()["bad_checksums"], 0);
}

fn interleaved_messages_come_back(opener: Opener, their_offer: &str) {
    let network = Network::new(1);
    let pair = Pair::new(&network, opener)
        .ours("--interleave --end shutdown ping --messages 240 --over-streams 8 --unordered")
        .ours("--sizes 1,1000,1431,1432,1436,10240,40000")
        .theirs(&format!("{their_offer} echo"));
    let (ours, theirs) = pair.run(Input::None, Input::None);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(theirs.all("interleaves").count(), usize::from(!their_offer.is_empty()));
    assert_eq!((&ours.end()["messages"], &ours.end()["wrong"]), (&240.into(), &0.into()));
    assert_eq!((&theirs.end()["messages"], &theirs.end()["bad_checksums"]), (&240.into(), &0.into()));
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn interleaved_messages_come_back_when_either_side_connects() {
    for opener in [Opener::Anabranch, Opener::Usrsctp] {
        interleaved_messages_come_back(opener, "--interleave");
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_without_i_data_gets_data_if_we_offer_it() {
    for opener in [Opener::Anabranch, Opener::Usrsctp] {
        interleaved_messages_come_back(opener, "");
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn messages_up_to_256_kib_ordered_and_not_come_back_when_we_connect() {
    messages_of_all_sizes_come_back(Opener::Anabranch);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn messages_up_to_256_kib_ordered_and_not_come_back_when_they_connect() {
    messages_of_all_sizes_come_back(Opener::Usrsctp);
}
