//! Preference among pairs of a local and a remote address.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anabranch_core::LocalEnd;

use crate::interface::{LocalAddress, check_route, is_in_network};

/// Route from a local to a remote address, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Both addresses are in one network.
    SameNetwork,
    /// The system has a route.
    Routed,
    /// The system has no route.
    Unknown,
}

impl Reach {
    /// Queries the system. Both addresses must have the same IP version.
    pub(crate) fn between(local: &LocalAddress, remote: SocketAddr) -> Self {
        match leads_to(local, remote) {
            true if is_in_network(remote.ip(), local) => Reach::SameNetwork,
            true => Reach::Routed,
            false => Reach::Unknown,
        }
    }
}

pub(crate) fn leads_to(local: &LocalAddress, end: SocketAddr) -> bool {
    let same_family = local.address.is_ipv4() == end.is_ipv4();
    // Uses the same interface as the path's socket. Packets to this machine pass no interface.
    let bound = check_route(local.address, Some(&local.interface), end);
    same_family && (bound.is_ok() || is_own(end.ip()) && check_route(local.address, None, end).is_ok())
}

/// Returns `true` if this machine has an address.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// Returns the index of the best pair in `reaches`: by reach, then by the number of paths that use it already, then by order. Pairs
/// that are `None` are skipped.
pub(crate) fn best(reaches: impl IntoIterator<Item = (Option<Reach>, usize)>) -> Option<usize> {
    let ranked = reaches.into_iter().enumerate();
    let ranked = ranked.filter_map(|(at, (reach, uses))| Some((reach?, uses, at)));
    ranked.min().map(|(_, _, at)| at)
}

/// Pairs each remote address with the best local one, and then each remaining local address with the best remote one. Pairs in one
/// network come first.
pub(crate) fn spread(
    locals: &[LocalEnd],
    remotes: &[SocketAddr],
    reach: &dyn Fn(LocalEnd, SocketAddr) -> Option<Reach>,
) -> Vec<(LocalEnd, SocketAddr)> {
    let mut pairs: Vec<(Reach, LocalEnd, SocketAddr)> = Vec::new();
    let fits = |local: LocalEnd, remote: SocketAddr| {
        (local.address.is_ipv4() == remote.is_ipv4()).then(|| reach(local, remote)).flatten()
    };
    for &remote in remotes {
        let uses = |local: LocalEnd| pairs.iter().filter(|(_, used, _)| *used == local).count();
        if let Some(at) = best(locals.iter().map(|local| (fits(*local, remote), uses(*local)))) {
            pairs.extend(fits(locals[at], remote).map(|reach| (reach, locals[at], remote)));
        }
    }
    for &local in locals {
        if pairs.iter().any(|(_, used, _)| *used == local) {
            continue;
        }
        let uses = |remote: SocketAddr| pairs.iter().filter(|(_, _, used)| *used == remote).count();
        if let Some(at) = best(remotes.iter().map(|remote| (fits(local, *remote), uses(*remote)))) {
            pairs.extend(fits(local, remotes[at]).map(|reach| (reach, local, remotes[at])));
        }
    }
    pairs.sort_by_key(|(reach, _, _)| *reach);
    pairs.into_iter().map(|(_, local, remote)| (local, remote)).collect()
}

/// Alternates IP versions, beginning with that of the first address (RFC 8305 section 4). If one version does not work, the next
/// attempt uses the other.
pub(crate) fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let (same, other): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address: &SocketAddr| address.is_ipv4() == first.is_ipv4());
    let mut all = Vec::with_capacity(addresses.len());
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    loop {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn end(text: &str) -> LocalEnd {
        ip(text).into()
    }

    fn at(text: &str) -> SocketAddr {
        SocketAddr::new(ip(text), 7)
    }

    #[test]
    fn versions_of_ip_alternate_and_each_keeps_its_order() {
        let all = ["fd00::1", "fd00::2", "fd00::3", "10.0.0.1"].map(at);
        assert_eq!(interleave(&all), ["fd00::1", "10.0.0.1", "fd00::2", "fd00::3"].map(at));
        assert_eq!(interleave(&[]), []);
    }

    #[test]
    fn pair_in_one_network_comes_before_the_order_of_the_list() {
        let near = |local: LocalEnd, remote: SocketAddr| {
            let same =
                local.address.to_string().split('.').nth(2) == remote.ip().to_string().split('.').nth(2);
            Some(if same { Reach::SameNetwork } else { Reach::Routed })
        };
        let locals = [end("10.0.1.1"), end("10.0.2.1")];
        let crossed = spread(&locals, &[at("10.0.2.9"), at("10.0.1.9")], &near);
        assert_eq!(crossed, [(locals[1], at("10.0.2.9")), (locals[0], at("10.0.1.9"))]);
        let routed_first = spread(&locals[..1], &[at("10.0.2.9"), at("10.0.1.9")], &near);
        assert_eq!(routed_first, [(locals[0], at("10.0.1.9")), (locals[0], at("10.0.2.9"))]);
    }

    #[test]
    fn address_without_a_route_has_no_pair() {
        let only_first = |local: LocalEnd, _: SocketAddr| (local == end("10.0.0.1")).then_some(Reach::Routed);
        let pairs =
            spread(&[end("10.0.0.1"), end("10.0.0.2")], &[at("10.9.0.1"), at("10.9.0.2")], &only_first);
        assert!(pairs.iter().all(|(local, _)| *local == end("10.0.0.1")) && pairs.len() == 2, "{pairs:?}");
    }
}
