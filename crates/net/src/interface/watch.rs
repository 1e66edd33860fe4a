//! Addresses of this machine as they come and go.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use super::{LocalAddress, local_addresses};

/// How often the addresses are looked at although the system said nothing: it may have said it to nobody, or cannot.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Something that happened to the addresses of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is one more that is wanted.
    Added(LocalAddress),
    /// One is gone, or not wanted as it is now, for example because its interface is down.
    Removed(LocalAddress),
    /// The interface of one takes packets of another size.
    Resized(LocalAddress),
}

/// Tells of addresses that come and go.
pub struct Watcher {
    wants: Box<dyn Fn(&LocalAddress) -> bool + Send + Sync>,
    known: Vec<LocalAddress>,
    pending: VecDeque<Change>,
    look: Interval,
    #[cfg(target_os = "linux")]
    news: Option<super::linux::News>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Watches the addresses that `wants` accepts; those of this moment are known and not told. It has to be called on a tokio
    /// runtime.
    ///
    /// Linux says when something changes; elsewhere the addresses are looked at every three seconds.
    pub fn new(wants: impl Fn(&LocalAddress) -> bool + Send + Sync + 'static) -> Self {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Before the first look, so that nothing falls between the two.
        #[cfg(target_os = "linux")]
        let news = super::linux::News::listen().ok();
        let mut watcher = Watcher {
            wants: Box::new(wants),
            known: Vec::new(),
            pending: VecDeque::new(),
            look,
            #[cfg(target_os = "linux")]
            news,
        };
        watcher.known = watcher.wanted();
        watcher
    }

    /// The wanted addresses after the changes that were told.
    pub fn known(&self) -> &[LocalAddress] {
        &self.known
    }

    /// The next change. What is removed is told before what is added.
    ///
    /// Cancel-safe: a change is taken only by the call that returns it.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return change;
            }
            self.wait().await;
            let now = self.wanted();
            self.pending.extend(changes(&self.known, &now));
            self.known = now;
        }
    }

    async fn wait(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(news) = &mut self.news {
            tokio::select! {
                () = news.wait() => {}
                _ = self.look.tick() => {}
            }
            return;
        }
        self.look.tick().await;
    }

    fn wanted(&self) -> Vec<LocalAddress> {
        local_addresses().into_iter().filter(|local| (self.wants)(local)).collect()
    }
}

/// What leads from one state to the other. An address that moved to another interface is removed and added.
fn changes(before: &[LocalAddress], now: &[LocalAddress]) -> Vec<Change> {
    let has = |all: &[LocalAddress], one: &LocalAddress| {
        all.iter().any(|other| other.address == one.address && other.interface == one.interface)
    };
    let removed = before.iter().filter(|one| !has(now, one)).cloned().map(Change::Removed);
    let added = now.iter().filter(|one| !has(before, one)).cloned().map(Change::Added);
    let resized = |one: &&LocalAddress| {
        let same = |other: &LocalAddress| other.address == one.address && other.interface == one.interface;
        before.iter().any(|other| same(other) && other.mtu_bytes != one.mtu_bytes)
    };
    let resized = now.iter().filter(resized).cloned().map(Change::Resized);
    removed.chain(added).chain(resized).collect()
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
            kind: LinkKind::Outside("hardware".to_owned()),
            mtu_bytes: Some(1500),
            up: true,
            obstacle: None,
        }
    }

    #[test]
    fn what_is_gone_is_told_before_what_is_new() {
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
    fn another_mtu_is_told_and_the_address_stays() {
        let other = LocalAddress { mtu_bytes: Some(9000), ..local("a", 1) };
        assert_eq!(changes(&[local("a", 1)], std::slice::from_ref(&other)), [Change::Resized(other)]);
    }
}
