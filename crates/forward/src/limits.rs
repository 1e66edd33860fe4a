//! Limits of a gateway for each user.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Limits for each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections, listeners and flows of datagrams at a time.
    pub connections: usize,
    /// Maximum rate of new connections per second over a longer time, at least 1.
    pub per_second: u32,
    /// Number of new connections that may come at once.
    pub burst: u32,
}

impl Limits {
    /// Time whose connections at the permitted rate may come at once, in seconds.
    pub const BURST_S: u32 = 12;

    /// Returns the limits for these numbers of connections at a time and per second.
    pub const fn new(connections: usize, per_second: u32) -> Self {
        Limits { connections, per_second, burst: per_second.saturating_mul(Self::BURST_S) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::new(2048, 100)
    }
}

/// Connections of all users. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    limits: Limits,
    users: Arc<Mutex<BTreeMap<String, User>>>,
}

#[derive(Debug)]
struct User {
    connections: usize,
    /// Time at which all earlier connections would have come at the permitted rate.
    paid_until: Instant,
}

/// Place of one connection. It is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    users: Users,
    user: String,
}

impl Users {
    pub(crate) fn new(limits: Limits) -> Self {
        Users { limits, users: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, User>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new connection of a user.
    ///
    /// # Errors
    /// Returns [`Failure::Limit`] if the user has too many connections, or opens them too fast.
    pub(crate) fn enter(&self, user: &str, now: Instant) -> Result<Place, Failure> {
        let Limits { connections, per_second, burst } = self.limits;
        let interval = Duration::from_secs(1) / per_second.max(1);
        let mut users = self.lock();
        if !users.contains_key(user) {
            // Users without connections whose burst is available again have no state.
            users.retain(|_, other| other.connections > 0 || other.paid_until > now);
        }
        let entry = users.entry(user.to_owned()).or_insert(User { connections: 0, paid_until: now });
        let paid_until = entry.paid_until.max(now) + interval;
        if entry.connections >= connections || paid_until > now + interval * burst.max(1) {
            return Err(Failure::Limit);
        }
        entry.connections += 1;
        entry.paid_until = paid_until;
        Ok(Place { users: self.clone(), user: user.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(user) = self.users.lock().get_mut(&self.user) {
            user.connections -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { connections: 3, per_second: 10, burst: 5 };

    #[test]
    fn connections_above_the_number_are_refused_until_one_ends() {
        let (users, now) = (Users::new(LIMITS), Instant::now());
        let mut places: Vec<Place> = (0..3).map(|_| users.enter("a", now).expect("a place")).collect();
        assert_eq!(users.enter("a", now).err(), Some(Failure::Limit));
        assert!(users.enter("b", now).is_ok(), "users have limits of their own");
        places.pop();
        assert!(users.enter("a", now).is_ok());
    }

    #[test]
    fn connections_above_the_rate_are_refused_until_time_passes() {
        let (users, now) = (Users::new(LIMITS), Instant::now());
        let enter = |now| users.enter("a", now).map(drop);
        assert_eq!((0..6).map(|_| enter(now).is_ok()).filter(|entered| *entered).count(), 5);
        assert_eq!(enter(now + Duration::from_millis(99)), Err(Failure::Limit));
        assert_eq!(enter(now + Duration::from_millis(100)), Ok(()));
        assert_eq!(enter(now + Duration::from_millis(100)), Err(Failure::Limit));
        let later = now + Duration::from_secs(100);
        assert_eq!((0..6).map(|_| enter(later).is_ok()).filter(|entered| *entered).count(), 5);
    }

    #[test]
    fn users_without_connections_have_no_state() {
        let (users, now) = (Users::new(LIMITS), Instant::now());
        for number in 0..100 {
            drop(users.enter(&number.to_string(), now + Duration::from_secs(number)));
        }
        assert_eq!(users.lock().len(), 1);
    }
}
