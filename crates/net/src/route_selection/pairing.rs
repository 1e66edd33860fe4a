//! Pairing of local and remote addresses.

use std::net::SocketAddr;

use anabranch_core::{LocalEnd, PathAddress};

use crate::reach::{Reach, interleave, spread};
use crate::route_error::{MOST_PATHS, RouteError};

/// Local addresses of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LocalChoice {
    /// The user named none; those of the wrong IP version are skipped.
    Found(Vec<LocalEnd>),
    /// The user named these, and each is used.
    Named(Vec<NamedLocal>),
}

/// Local address or interface that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedLocal {
    /// Text as written.
    pub(super) text: String,
    /// One end, or those of an interface.
    pub(super) ends: Vec<LocalEnd>,
}

/// Remote addresses of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteChoice {
    /// Addresses of a host name.
    Resolved {
        /// Name as written.
        host: String,
        /// Addresses of the name.
        addresses: Vec<SocketAddr>,
    },
    /// The user named these, and each is used.
    Named(Vec<SocketAddr>),
}

impl RemoteChoice {
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        match self {
            RemoteChoice::Resolved { addresses, .. } | RemoteChoice::Named(addresses) => addresses,
        }
    }
}

/// Returns the paths, the primary one first. Both ends of a path have the same IP version.
///
/// # Errors
/// Names the option that does not fit, with a remedy.
pub(super) fn pair(
    starts: &LocalChoice,
    ends: &RemoteChoice,
    reach: &dyn Fn(LocalEnd, SocketAddr) -> Reach,
) -> Result<Vec<PathAddress>, RouteError> {
    // A local address that the user named is used even without a route.
    let any = |local: LocalEnd, remote: SocketAddr| Some(reach(local, remote));
    let routed =
        |local: LocalEnd, remote: SocketAddr| any(local, remote).filter(|reach| *reach != Reach::Unknown);
    let remotes = match ends {
        RemoteChoice::Named(addresses) => addresses.clone(),
        RemoteChoice::Resolved { addresses, .. } => interleave(addresses),
    };
    let over_udp = |pairs: Vec<(LocalEnd, SocketAddr)>| -> Vec<PathAddress> {
        pairs.into_iter().map(|(local, remote)| path_between(local, remote)).collect()
    };
    let paths = match (starts, ends) {
        (LocalChoice::Named(starts), RemoteChoice::Named(ends)) if ends.len() > 1 => in_order(starts, ends)?,
        (LocalChoice::Named(starts), _) => {
            let locals: Vec<LocalEnd> = starts.iter().flat_map(|start| start.ends.clone()).collect();
            let paths = over_udp(spread(&locals, &remotes, &any));
            let unused =
                |start: &&NamedLocal| !paths.iter().any(|path| start.ends.contains(&path.local_end()));
            match starts.iter().find(unused) {
                Some(start) => return Err(other_family(start, ends)),
                None => paths,
            }
        }
        (LocalChoice::Found(found), RemoteChoice::Named(ends)) => {
            check_families(found, ends)?;
            over_udp(spread(found, ends, &any))
        }
        (LocalChoice::Found(found), RemoteChoice::Resolved { .. }) => {
            over_udp(spread(found, &remotes, &routed))
        }
    };
    let mut once: Vec<PathAddress> = Vec::new();
    for path in paths {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    bounded(once, starts)
}

/// Limits the paths to the maximum of eight. Each local address that the user named keeps one.
fn bounded(mut paths: Vec<PathAddress>, starts: &LocalChoice) -> Result<Vec<PathAddress>, RouteError> {
    if let LocalChoice::Named(_) = starts {
        let is_second = |at: usize, paths: &[PathAddress]| {
            paths[..at].iter().any(|path| path.local_end() == paths[at].local_end())
        };
        while paths.len() > MOST_PATHS
            && let Some(second) = (0..paths.len()).rev().find(|at| is_second(*at, &paths))
        {
            paths.remove(second);
        }
        if paths.len() > MOST_PATHS {
            return Err(RouteError::TooManyPaths { named: paths.len() });
        }
    }
    paths.truncate(MOST_PATHS);
    Ok(paths)
}

fn in_order(starts: &[NamedLocal], ends: &[SocketAddr]) -> Result<Vec<PathAddress>, RouteError> {
    if starts.len() != ends.len() {
        return Err(RouteError::Counts { locals: starts.len(), remotes: ends.len() });
    }
    let path = |(start, remote): (&NamedLocal, &SocketAddr)| {
        let local = start.ends.iter().find(|local| same_family(**local, *remote));
        local
            .map(|local| path_between(*local, *remote))
            .ok_or_else(|| other_family(start, &RemoteChoice::Named(vec![*remote])))
    };
    starts.iter().zip(ends).map(path).collect()
}

/// Returns an error if no local address has the IP version of an end that the user named.
fn check_families(found: &[LocalEnd], ends: &[SocketAddr]) -> Result<(), RouteError> {
    match ends.iter().find(|remote| !found.iter().any(|local| same_family(*local, **remote))) {
        None => Ok(()),
        Some(remote) => Err(RouteError::NoLocalOfFamily { remote: *remote }),
    }
}

fn path_between(local: LocalEnd, remote: SocketAddr) -> PathAddress {
    PathAddress::over_udp(local.address, remote).from_end(local)
}

fn same_family(local: LocalEnd, remote: SocketAddr) -> bool {
    local.address.is_ipv4() == remote.is_ipv4()
}

fn other_family(start: &NamedLocal, ends: &RemoteChoice) -> RouteError {
    let host = match ends {
        RemoteChoice::Named(_) => None,
        RemoteChoice::Resolved { host, .. } => Some(host.clone()),
    };
    RouteError::Family {
        local: start.text.clone(),
        address: start.ends.first().map(|end| end.address),
        host,
        remote: ends.addresses().first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ends(text: &[&str]) -> Vec<LocalEnd> {
        text.iter().map(|text| ip(text).into()).collect()
    }

    fn found(text: &[&str]) -> LocalChoice {
        LocalChoice::Found(ends(text))
    }

    fn asked(texts: &[&[&str]]) -> LocalChoice {
        let start = |addresses: &&[&str]| NamedLocal { text: addresses.join("/"), ends: ends(addresses) };
        LocalChoice::Named(texts.iter().map(start).collect())
    }

    fn to(text: &[&str]) -> RemoteChoice {
        RemoteChoice::Named(text.iter().map(|text| SocketAddr::new(ip(text), 7)).collect())
    }

    fn host(text: &[&str]) -> RemoteChoice {
        let addresses = text.iter().map(|text| SocketAddr::new(ip(text), 7)).collect();
        RemoteChoice::Resolved { host: "peer".to_owned(), addresses }
    }

    /// Returns the pairs as text.
    #[track_caller]
    fn paired(starts: &LocalChoice, ends: &RemoteChoice) -> Vec<String> {
        let paths = pair(starts, ends, &|_, _| Reach::Routed).expect("paths");
        paths.iter().map(|path| format!("{}>{}", path.local, path.remote)).collect()
    }

    #[test]
    fn equal_numbers_of_to_and_path_pair_in_order() {
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
    fn every_to_is_used_with_few_local_addresses() {
        let relays = to(&["10.9.0.1", "10.9.0.2", "10.9.0.3"]);
        let one = paired(&found(&["10.0.0.1"]), &relays);
        assert_eq!(one, ["10.0.0.1>10.9.0.1", "10.0.0.1>10.9.0.2", "10.0.0.1>10.9.0.3"]);
        let two = paired(&found(&["10.0.0.1", "10.0.0.2"]), &relays);
        assert_eq!(two, ["10.0.0.1>10.9.0.1", "10.0.0.2>10.9.0.2", "10.0.0.1>10.9.0.3"]);
        let four = paired(&found(&["10.0.0.1", "10.0.0.2"]), &to(&["10.9.0.1"]));
        assert_eq!(four.len(), 2);
    }

    #[test]
    fn unpairable_addresses_are_refused_with_the_reason() {
        let of = |starts: &LocalChoice, ends: &RemoteChoice| {
            pair(starts, ends, &|_, _| Reach::Routed).expect_err("no paths").with_options()
        };
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
    fn one_local_address_gets_a_path_to_every_address_of_a_name() {
        let paths = paired(&found(&["10.0.0.1"]), &host(&["10.9.0.1", "10.9.0.2"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.1", "10.0.0.1>10.9.0.2"]);
        let named = paired(&asked(&[&["10.0.0.1"]]), &host(&["10.9.0.1", "10.9.0.2"]));
        assert_eq!(named, paths);
    }

    #[test]
    fn named_local_addresses_keep_a_path_each_where_a_name_has_many_addresses() {
        let many: Vec<String> = (1..=9).map(|last| format!("10.9.0.{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let paths = paired(&asked(&[&["10.0.0.1"], &["10.0.0.2"]]), &host(&many));
        assert_eq!(paths.len(), MOST_PATHS);
        assert!(paths.iter().any(|path| path.starts_with("10.0.0.2>")), "{paths:?}");
    }

    #[test]
    fn an_association_has_eight_paths_at_most() {
        let many: Vec<String> = (1..=9).map(|last| format!("10.0.0.{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(paired(&found(&many), &to(&["10.9.0.1"])).len(), 8);
        let each: Vec<&[&str]> = many.iter().map(std::slice::from_ref).collect();
        let error = pair(&asked(&each), &to(&["10.9.0.1"]), &|_, _| Reach::Routed)
            .expect_err("too many")
            .with_options();
        assert!(error.starts_with("--path: 9 paths"), "{error}");
    }

    #[test]
    fn the_same_path_twice_is_one() {
        let paths = paired(&asked(&[&["10.0.0.1"], &["10.0.0.1"]]), &to(&["10.9.0.1"]));
        assert_eq!(paths, ["10.0.0.1>10.9.0.1"]);
    }
}
