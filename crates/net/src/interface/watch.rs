//! Changes of the addresses of this machine.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use super::{LocalAddress, Obstacle, local_addresses};

/// Interval of checks without a notification of the system, which may get lost or be unsupported.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Change of the addresses of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A wanted address was added.
    Added(LocalAddress),
    /// An address was removed, or is no longer wanted, for example because its interface is down.
    Removed(LocalAddress),
    /// The MTU of an address's interface has changed.
    Resized(LocalAddress),
    /// The interface of an address is connected again.
    Reconnected(LocalAddress),
    /// The system reports another change, such as a new route.
    Other,
}

type Filter = Box<dyn Fn(&LocalAddress) -> bool + Send + Sync>;

/// Watcher of added and removed addresses.
pub struct Watcher {
    wants: Filter,
    keeps: Option<Filter>,
    known: Vec<LocalAddress>,
    pending: VecDeque<Change>,
    look: Interval,
    #[cfg(all(target_os = "linux", feature = "interfaces"))]
    news: Option<super::linux::LinkNotifications>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Watches the addresses that `wants` accepts. It does not report current addresses. Requires a tokio runtime.
    ///
    /// Linux reports changes; on other systems the addresses are checked every three seconds.
    pub fn new(wants: impl Fn(&LocalAddress) -> bool + Send + Sync + 'static) -> Self {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Subscribes before the first check, so that no change is missed.
        #[cfg(all(target_os = "linux", feature = "interfaces"))]
        let news = super::linux::LinkNotifications::listen().ok();
        let mut watcher = Watcher {
            wants: Box::new(wants),
            keeps: None,
            known: Vec::new(),
            pending: VecDeque::new(),
            look,
            #[cfg(all(target_os = "linux", feature = "interfaces"))]
            news,
        };
        watcher.known = watcher.wanted();
        watcher
    }

    /// Keeps an address that was wanted once while `keeps` accepts it, for example one whose interface has lost its carrier.
    pub fn keeping(self, keeps: impl Fn(&LocalAddress) -> bool + Send + Sync + 'static) -> Self {
        Watcher { keeps: Some(Box::new(keeps)), ..self }
    }

    /// Returns the wanted addresses after the reported changes.
    pub fn known(&self) -> &[LocalAddress] {
        &self.known
    }

    /// Returns the next change. Removals precede additions.
    ///
    /// Cancel-safe: only the call that returns a change removes it.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return change;
            }
            let reported = self.wait().await;
            let now = self.wanted();
            self.pending.extend(changes(&self.known, &now));
            self.known = now;
            if reported && self.pending.is_empty() {
                self.pending.push_back(Change::Other);
            }
        }
    }

    /// Waits until the next check. Returns `true` if the system has reported a change.
    async fn wait(&mut self) -> bool {
        #[cfg(all(target_os = "linux", feature = "interfaces"))]
        if let Some(news) = &mut self.news {
            return tokio::select! {
                () = news.wait() => true,
                _ = self.look.tick() => false,
            };
        }
        self.look.tick().await;
        false
    }

    fn wanted(&self) -> Vec<LocalAddress> {
        let kept = |local: &LocalAddress| {
            self.keeps.as_ref().is_some_and(|keeps| keeps(local))
                && self.known.iter().any(|one| is_same(one, local))
        };
        local_addresses().into_iter().filter(|local| (self.wants)(local) || kept(local)).collect()
    }
}

/// Returns the changes between two states. An address that moved to another interface is removed and added.
fn changes(before: &[LocalAddress], now: &[LocalAddress]) -> Vec<Change> {
    let has = |all: &[LocalAddress], one: &LocalAddress| all.iter().any(|other| is_same(other, one));
    let removed = before.iter().filter(|one| !has(now, one)).cloned().map(Change::Removed);
    let added = now.iter().filter(|one| !has(before, one)).cloned().map(Change::Added);
    let resized = |one: &&LocalAddress| {
        before.iter().any(|other| is_same(other, one) && other.mtu_bytes != one.mtu_bytes)
    };
    let resized = now.iter().filter(resized).cloned().map(Change::Resized);
    let reconnected = |one: &&LocalAddress| {
        !is_disconnected(one) && before.iter().any(|other| is_same(other, one) && is_disconnected(other))
    };
    let reconnected = now.iter().filter(reconnected).cloned().map(Change::Reconnected);
    removed.chain(added).chain(resized).chain(reconnected).collect()
}

fn is_same(one: &LocalAddress, other: &LocalAddress) -> bool {
    (one.address, &one.interface) == (other.address, &other.interface)
}

/// Returns `true` if the interface can neither send nor receive packets now. IPv6 verifies the uniqueness of an address again when
/// the interface is connected.
fn is_disconnected(local: &LocalAddress) -> bool {
    matches!(local.obstacle, Some(Obstacle::Down | Obstacle::NoCarrier | Obstacle::Tentative))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::LinkKind;
    use super::*;

    fn local(interface: &str, last: u8) -> LocalAddress {
        LocalAddress {
            address: IpAddr::from([192, 0, 2, last]),
            prefix_bits: 24,
            interface: interface.to_owned(),
            index: u32::from(interface.as_bytes()[0]),
            kind: LinkKind::Outside("hardware".to_owned()),
            mtu_bytes: Some(1500),
            up: true,
            obstacle: None,
        }
    }

    #[test]
    fn removals_are_reported_before_additions() {
        let (before, now) = ([local("a", 1), local("a", 2)], [local("a", 2), local("b", 3)]);
        let told = changes(&before, &now);
        assert_eq!(told, [Change::Removed(local("a", 1)), Change::Added(local("b", 3))]);
        assert_eq!(changes(&now, &now), []);
    }

    #[test]
    fn an_address_that_moves_is_removed_and_added() {
        let told = changes(&[local("a", 1)], &[local("b", 1)]);
        assert_eq!(told, [Change::Removed(local("a", 1)), Change::Added(local("b", 1))]);
    }

    #[test]
    fn lost_carrier_changes_nothing_and_its_return_is_reported() {
        let gone = LocalAddress { obstacle: Some(Obstacle::NoCarrier), ..local("a", 1) };
        assert_eq!(changes(&[local("a", 1)], std::slice::from_ref(&gone)), []);
        assert_eq!(changes(&[gone], &[local("a", 1)]), [Change::Reconnected(local("a", 1))]);
    }

    #[test]
    fn changed_mtu_is_reported_and_the_address_stays() {
        let other = LocalAddress { mtu_bytes: Some(9000), ..local("a", 1) };
        assert_eq!(changes(&[local("a", 1)], std::slice::from_ref(&other)), [Change::Resized(other)]);
    }
}
