//! Which local address goes with which of the peer's.

use std::net::{IpAddr, SocketAddr};

use anabranch_net::Route;

use super::way::Words;

/// The most paths of an association.
const MOST_PATHS: usize = 8;

/// Where paths begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Starts {
    /// Nobody asked; those of the wrong IP version are passed over.
    Found(Vec<IpAddr>),
    /// One for each that was asked for, and each is to be used.
    Asked(Vec<Start>),
}

/// What one that was asked for stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// As it was written.
    pub(super) text: String,
    /// One, or those of an interface.
    pub(super) addresses: Vec<IpAddr>,
}

/// Where paths lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The addresses of a host's name.
    Resolved {
        /// The name as it was written.
        host: String,
        /// Its addresses.
        addresses: Vec<SocketAddr>,
    },
    /// Each of them is to be used.
    Asked(Vec<SocketAddr>),
}

impl Ends {
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        match self {
            Ends::Resolved { addresses, .. } | Ends::Asked(addresses) => addresses,
        }
    }
}

/// The paths, the first being the primary one. The ends of a path are of one IP version.
///
/// # Errors
/// Which option does not fit, and what to do about it.
pub(super) fn pair(starts: &Starts, ends: &Ends, words: Words) -> Result<Vec<Route>, String> {
    let routes = match (starts, ends) {
        (Starts::Asked(starts), Ends::Asked(ends)) if ends.len() > 1 => in_order(starts, ends, words)?,
        (Starts::Asked(starts), _) => {
            let addresses: Vec<IpAddr> = starts.iter().flat_map(|start| start.addresses.clone()).collect();
            let routes = by_family(&addresses, ends.addresses());
            let unused = |start: &&Start| !routes.iter().any(|route| start.addresses.contains(&route.local));
            match starts.iter().find(unused) {
                Some(start) => return Err(other_family(start, ends, words)),
                None => routes,
            }
        }
        (Starts::Found(found), Ends::Asked(ends)) => every_end(found, ends, words)?,
        (Starts::Found(found), Ends::Resolved { addresses, .. }) => by_family(found, addresses),
    };
    let mut once: Vec<Route> = Vec::new();
    for route in routes {
        if !once.contains(&route) {
            once.push(route);
        }
    }
    match (once.len(), starts) {
        (0..=MOST_PATHS, _) => Ok(once),
        (_, Starts::Found(_)) => Ok(once[..MOST_PATHS].to_vec()),
        (paths, Starts::Asked(_)) => Err(format!(
            "{}: {paths} paths are more than the {MOST_PATHS} of an association; leave some out",
            words.path
        )),
    }
}

fn in_order(starts: &[Start], ends: &[SocketAddr], words: Words) -> Result<Vec<Route>, String> {
    if starts.len() != ends.len() {
        return Err(format!(
            "{} times {} for {} times {}: give one for all, or one for each in their order",
            ends.len(),
            words.to,
            starts.len(),
            words.path
        ));
    }
    let route = |(start, remote): (&Start, &SocketAddr)| {
        let local = start.addresses.iter().find(|local| same_family(**local, *remote));
        local
            .map(|local| Route { local: *local, remote: *remote })
            .ok_or_else(|| other_family(start, &Ends::Asked(vec![*remote]), words))
    };
    starts.iter().zip(ends).map(route).collect()
}

/// Those that were asked for begin at the addresses that there are, in turn; what addresses remain lead to the first.
fn every_end(found: &[IpAddr], ends: &[SocketAddr], words: Words) -> Result<Vec<Route>, String> {
    let mut routes = Vec::new();
    for (index, remote) in ends.iter().enumerate() {
        let fitting: Vec<IpAddr> =
            found.iter().copied().filter(|local| same_family(*local, *remote)).collect();
        let before = ends[..index].iter().filter(|earlier| earlier.is_ipv4() == remote.is_ipv4()).count();
        let Some(local) = fitting.get(before % fitting.len().max(1)) else {
            let family = family(*remote);
            return Err(format!(
                "{} {remote}: no usable {family} address leads there; see `anabranch paths`, or name one with {}",
                words.to, words.path
            ));
        };
        routes.push(Route { local: *local, remote: *remote });
    }
    let mut rest = by_family(found, ends);
    rest.retain(|rest| !routes.iter().any(|route| route.local == rest.local));
    routes.extend(rest);
    Ok(routes)
}

/// Within each IP version the first with the first and so on, then what local addresses remain with the first.
fn by_family(locals: &[IpAddr], remotes: &[SocketAddr]) -> Vec<Route> {
    let mut routes = Vec::new();
    let first_v4 = remotes.first().is_none_or(SocketAddr::is_ipv4);
    for v4 in [first_v4, !first_v4] {
        let remotes: Vec<SocketAddr> =
            remotes.iter().copied().filter(|remote| remote.is_ipv4() == v4).collect();
        let Some(first) = remotes.first() else { continue };
        let locals = locals.iter().filter(|local| local.is_ipv4() == v4).enumerate();
        routes.extend(
            locals.map(|(at, local)| Route { local: *local, remote: *remotes.get(at).unwrap_or(first) }),
        );
    }
    routes
}

fn same_family(local: IpAddr, remote: SocketAddr) -> bool {
    local.is_ipv4() == remote.is_ipv4()
}

fn family(remote: SocketAddr) -> &'static str {
    if remote.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn other_family(start: &Start, ends: &Ends, words: Words) -> String {
    let (whose, remote) = match ends {
        Ends::Asked(addresses) => (words.to.to_owned(), addresses.first()),
        Ends::Resolved { host, addresses } => (host.clone(), addresses.first()),
    };
    let wanted = remote.map_or("other", |remote| family(*remote));
    let given = match start.addresses.first() {
        Some(IpAddr::V4(_)) => "IPv4",
        Some(IpAddr::V6(_)) => "IPv6",
        None => "no address",
    };
    format!(
        "{} {}: it has {given} only and {whose} has {wanted} only; both ends of a path need the same, leave it out or name another",
        words.path, start.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ips(text: &[&str]) -> Vec<IpAddr> {
        text.iter().map(|text| ip(text)).collect()
    }

    fn found(text: &[&str]) -> Starts {
        Starts::Found(ips(text))
    }

    fn asked(texts: &[&[&str]]) -> Starts {
        let start = |addresses: &&[&str]| Start { text: addresses.join("/"), addresses: ips(addresses) };
        Starts::Asked(texts.iter().map(start).collect())
    }

    fn to(text: &[&str]) -> Ends {
        Ends::Asked(text.iter().map(|text| SocketAddr::new(ip(text), 7)).collect())
    }

    fn host(text: &[&str]) -> Ends {
        let addresses = text.iter().map(|text| SocketAddr::new(ip(text), 7)).collect();
        Ends::Resolved { host: "peer".to_owned(), addresses }
    }

    /// The pairs as text.
    #[track_caller]
    fn paired(starts: &Starts, ends: &Ends) -> Vec<String> {
        let routes = pair(starts, ends, Words::OPTIONS).expect("paths");
        routes.iter().map(|route| format!("{}>{}", route.local, route.remote.ip())).collect()
    }

    #[test]
    fn as_many_to_as_path_go_together_in_their_order() {
        let paths = paired(&asked(&[&["10.0.0.1"], &["10.0.0.2"]]), &to(&["10.9.0.2", "10.9.0.1"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.2", "10.0.0.2>10.9.0.1"]);
    }

    #[test]
    fn an_interface_gives_the_address_of_the_ip_version_that_its_to_has() {
        let paths = paired(&asked(&[&["10.0.0.1", "fd00::1"], &["10.0.0.2"]]), &to(&["fd00::9", "10.9.0.1"]));
        assert_eq!(paths, ["fd00::1>fd00::9", "10.0.0.2>10.9.0.1"]);
    }

    #[test]
    fn one_to_is_for_every_local_address_of_its_ip_version() {
        let paths = paired(&found(&["10.0.0.1", "fd00::1", "10.0.0.2"]), &to(&["10.9.0.1"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.1", "10.0.0.2>10.9.0.1"]);
    }

    #[test]
    fn the_addresses_of_a_host_go_one_by_one_and_the_rest_to_the_first() {
        let paths = paired(&found(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]), &host(&["10.9.0.1", "10.9.0.2"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.1", "10.0.0.2>10.9.0.2", "10.0.0.3>10.9.0.1"]);
        let both = paired(&found(&["10.0.0.1", "fd00::1"]), &host(&["fd00::9", "10.9.0.1"]));
        assert_eq!(both, ["fd00::1>fd00::9", "10.0.0.1>10.9.0.1"]);
    }

    #[test]
    fn every_to_is_used_however_few_addresses_there_are() {
        let relays = to(&["10.9.0.1", "10.9.0.2", "10.9.0.3"]);
        let one = paired(&found(&["10.0.0.1"]), &relays);
        assert_eq!(one, ["10.0.0.1>10.9.0.1", "10.0.0.1>10.9.0.2", "10.0.0.1>10.9.0.3"]);
        let two = paired(&found(&["10.0.0.1", "10.0.0.2"]), &relays);
        assert_eq!(two, ["10.0.0.1>10.9.0.1", "10.0.0.2>10.9.0.2", "10.0.0.1>10.9.0.3"]);
        let four = paired(&found(&["10.0.0.1", "10.0.0.2"]), &to(&["10.9.0.1"]));
        assert_eq!(four.len(), 2);
    }

    #[test]
    fn what_cannot_be_paired_is_said() {
        let of = |starts: &Starts, ends: &Ends| pair(starts, ends, Words::OPTIONS).expect_err("no paths");
        let counts = of(&asked(&[&["10.0.0.1"]]), &to(&["10.9.0.1", "10.9.0.2"]));
        assert!(counts.contains("2 times --to for 1 times --path"), "{counts}");
        let family = of(&asked(&[&["10.0.0.1"], &["fd00::1"]]), &host(&["10.9.0.1"]));
        assert!(family.starts_with("--path fd00::1: it has IPv6 only and peer has IPv4 only"), "{family}");
        let crossed = of(&asked(&[&["10.0.0.1"], &["fd00::1"]]), &to(&["10.9.0.1", "10.9.0.2"]));
        assert!(crossed.starts_with("--path fd00::1"), "{crossed}");
        let none = of(&found(&["fd00::1"]), &to(&["10.9.0.1"]));
        assert!(none.starts_with("--to 10.9.0.1:7: no usable IPv4 address"), "{none}");
    }

    #[test]
    fn an_association_has_eight_paths_at_most() {
        let many: Vec<String> = (1..=9).map(|last| format!("10.0.0.{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(paired(&found(&many), &to(&["10.9.0.1"])).len(), 8);
        let each: Vec<&[&str]> = many.iter().map(std::slice::from_ref).collect();
        let error = pair(&asked(&each), &to(&["10.9.0.1"]), Words::OPTIONS).expect_err("too many");
        assert!(error.starts_with("--path: 9 paths"), "{error}");
    }

    #[test]
    fn the_same_path_twice_is_one() {
        let paths = paired(&asked(&[&["10.0.0.1"], &["10.0.0.1"]]), &to(&["10.9.0.1"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.1"]);
    }
}
