//! Networks from which peers may open associations with a command that listens.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anabranch_net::interface::LocalAddress;
use anabranch_net::{AcceptFrom, Network, NetworkError, Networks, NetworksError};
use clap::Args;

use crate::exit::CommandError;
use crate::output;

/// Maximum number of local networks that a message suggests.
const MOST_SUGGESTED: usize = 4;

/// Suggestion if the local networks are unknown.
const EXAMPLE: &str = "192.0.2.0/24";

const LEAVE_OUT: &str = "leave --from out to accept callers from everywhere";

/// Networks from which a command accepts peers.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessOptions {
    /// Accept peers from this address or network only; can be repeated. Other peers get no answer. An accepted peer may use further
    /// addresses
    #[arg(long, value_name = "ADDR[/PREFIX]", value_parser = read_network)]
    from: Vec<Network>,
}

impl AccessOptions {
    /// Returns the first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        (!self.from.is_empty()).then_some("--from")
    }

    /// Returns the accepted networks: all, unless options restrict them.
    pub(crate) fn accept_from(&self) -> Result<AcceptFrom, CommandError> {
        match Networks::new(self.from.iter().copied()) {
            Ok(networks) => Ok(AcceptFrom::Networks(networks)),
            Err(NetworksError::Empty) => Ok(AcceptFrom::Everyone),
            Err(NetworksError::Everyone) => {
                Err(CommandError::usage(format!("--from: {}; {LEAVE_OUT}", NetworksError::Everyone)))
            }
            Err(error) => Err(CommandError::usage(format!("--from: {error}"))),
        }
    }
}

fn read_network(text: &str) -> Result<Network, String> {
    text.parse().map_err(|error: NetworkError| match error {
        NetworkError::Everyone => format!("{error}; {LEAVE_OUT}"),
        error => error.to_string(),
    })
}

/// Returns an explanation of the choice. `command` is the typed command, up to the options of listening. The file lists the keys
/// that may connect.
pub(super) fn question(command: &str, authorized_keys: &Path, suggested: &[Network]) -> String {
    let mut networks: Vec<String> = suggested.iter().map(Network::to_string).collect();
    if networks.is_empty() {
        networks.push(EXAMPLE.to_owned());
    }
    let from: String = networks.iter().map(|network| format!(" --from {network}")).collect();
    format!(
        "nothing is listening yet: {} has no key, so no peer may connect\n  \
         authorise a peer:  anabranch keys add KEY NAME    (the peer's `anabranch keys show` prints KEY)\n  \
         or, without encryption and authentication, accept these networks or all hosts:\n    \
         {command} --insecure{from}\n    \
         {command} --insecure",
        authorized_keys.display()
    )
}

/// Returns the networks of these local addresses, each once. A network with one address is useful only on loopback.
pub(super) fn networks_of(listen: &[SocketAddr], locals: &[LocalAddress]) -> Vec<Network> {
    let mut found: Vec<Network> = Vec::new();
    for address in listen.iter().map(SocketAddr::ip) {
        let network = locals.iter().find_map(|local| network_around(address, local));
        found.extend(network.filter(|network| !found.contains(network)));
    }
    found.truncate(MOST_SUGGESTED);
    found
}

fn network_around(address: IpAddr, local: &LocalAddress) -> Option<Network> {
    let network = Network::new(local.address, local.prefix_bits).ok()?;
    let of_use = !network.is_single() || address.is_loopback();
    (of_use && network.contains(address)).then_some(network)
}

/// Returns a path as it can be typed into a shell, or else its placeholder in the help.
pub(crate) fn typed(path: &Path, word: &str) -> String {
    let plain = |text: &&str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,".contains(c))
    };
    path.to_str().filter(plain).unwrap_or(word).to_owned()
}

/// Returns the networks from which peers are accepted, in the form of `--from`.
pub(crate) fn networks(from: &AcceptFrom) -> Vec<String> {
    match from {
        AcceptFrom::Everyone => vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        AcceptFrom::Networks(networks) => networks.iter().map(|network| network.to_string()).collect(),
    }
}

/// Prints the networks from which peers are accepted on standard error.
pub(crate) fn access_notice(from: &AcceptFrom, quiet: bool) {
    match from {
        AcceptFrom::Networks(_) if !quiet => {
            output::notice(format_args!("accepting peers from {}", networks(from).join(", ")));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use anabranch_net::interface::{LinkKind, Obstacle};

    use super::*;

    fn local(address: &str, prefix_bits: u8) -> LocalAddress {
        let address: IpAddr = address.parse().expect("an address");
        LocalAddress {
            address,
            prefix_bits,
            interface: "any".to_owned(),
            index: 1,
            kind: LinkKind::Loopback,
            mtu_bytes: None,
            up: true,
            obstacle: address.is_loopback().then_some(Obstacle::Loopback),
        }
    }

    fn suggested(listen: &[&str], locals: &[LocalAddress]) -> Vec<String> {
        let listen: Vec<_> =
            listen.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 9)).collect();
        networks_of(&listen, locals).iter().map(Network::to_string).collect()
    }

    #[test]
    fn the_networks_of_this_machine_are_suggested() {
        let locals = [
            local("127.0.0.1", 8),
            local("::1", 128),
            local("192.0.2.7", 24),
            local("192.0.2.8", 24),
            local("198.51.100.3", 32),
            local("fd00::5", 64),
        ];
        assert_eq!(suggested(&["192.0.2.7", "192.0.2.8", "fd00::5"], &locals), ["192.0.2.0/24", "fd00::/64"]);
        assert_eq!(suggested(&["127.0.1.1", "::1"], &locals), ["127.0.0.0/8", "::1"]);
        // No other host is in a network with one address.
        assert_eq!(suggested(&["198.51.100.3", "203.0.113.1"], &locals), [""; 0]);
    }

    #[test]
    fn question_shows_commands_to_type() {
        let networks = ["192.0.2.0/24", "fd00::/64"].map(|text| text.parse().expect("a network"));
        let file = Path::new("/home/a/authorized_keys");
        let text = question("anabranch serve --dir inbox", file, &networks);
        for command in [
            "    anabranch serve --dir inbox --insecure --from 192.0.2.0/24 --from fd00::/64",
            "    anabranch serve --dir inbox --insecure",
        ] {
            assert!(text.lines().any(|line| line == command), "{command}: {text}");
        }
        assert!(
            text.contains("/home/a/authorized_keys has no key") && text.contains("anabranch keys add KEY")
        );
        assert!(
            question("anabranch bench -s", file, &[]).contains("bench -s --insecure --from 192.0.2.0/24\n")
        );
    }

    #[test]
    fn path_is_printed_only_if_a_shell_needs_no_quotes() {
        assert_eq!(typed(Path::new("/var/lib/in-box.d"), "DIR"), "/var/lib/in-box.d");
        for other in ["", "my files", "$(reboot)", "a\u{1b}[2J", "~/x", "'"] {
            assert_eq!(typed(Path::new(other), "DIR"), "DIR", "{other}");
        }
    }

    #[test]
    fn invalid_network_is_refused_with_an_example() {
        for (text, expected) in [
            ("10.0.0.0/33", "from 1 to 32"),
            ("host", "names of hosts are not resolved"),
            ("0.0.0.0/0", "leave --from out"),
            ("::ffff:0:0/96", "leave --from out"),
        ] {
            let error = read_network(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
