//! Where packets come from: which path that is, sources that become paths, and how much may be sent to one that has not
//! proved itself.

use crate::address::Origin;
use crate::association::{Association, AssociationEvent};
use crate::config::ListedAddresses;
use crate::path::{PathSource, Standing};
use crate::path_id::{PathId, PathState};
use crate::policy::Event;

/// How many bytes may be sent to an unproved address for one that came from it. QUIC has the same factor (RFC 9000 section 8.1).
pub(crate) const REPLY_FACTOR: u64 = 3;

/// A HEARTBEAT with our information takes 36 bytes. An address that was only listed gets nothing longer.
const SMALL_PACKET: usize = 64;

impl Association {
    /// The path a packet came on; its verification tag shows that it is the peer's. A source that is new becomes a path that
    /// still has to be verified.
    pub(crate) fn path_of_origin(&mut self, origin: Origin) -> Option<PathId> {
        if let Some(path) = self.path_of(origin.address) {
            self.came_from(path, origin.bytes);
            return Some(path);
        }
        if self.is_opening() {
            return self.answered_from_another_port(origin);
        }
        if self.addressing.is_deleted(origin.address.remote) || !self.may_learn(origin) {
            return None;
        }
        let barred = self.addressing.is_barred(&origin.address);
        if self.addressing.is_gone(origin.address.local_end()) || barred {
            // RFC 5061 section 5.3 F4: what was on its way to an address that is being deleted counts.
            return Some(self.control_path(None));
        }
        // No room for another path: the packet counts all the same, and what answers it goes another way.
        Some(self.learn(origin).unwrap_or_else(|| self.control_path(None)))
    }

    /// An INIT ACK names the port at which the peer wants to be spoken to (RFC 6951 section 5.4); the handshake itself verifies
    /// it.
    fn answered_from_another_port(&mut self, origin: Origin) -> Option<PathId> {
        let same = |id: &PathId| {
            let path = &self.paths[id.index()];
            path.address.same_hosts(&origin.address)
        };
        let id = self.live_paths().find(same)?;
        self.paths[id.index()].address = origin.address;
        self.addressing.note_change();
        self.dispatch_event(&Event::PathRebound(id));
        Some(id)
    }

    /// Whether a source that is no path yet may become one.
    //= docs/rfc9260.txt#section-5.1.2
    //# The receiver SHOULD use only these transport addresses as destination transport addresses when sending subsequent
    //# packets to its peer.
    fn may_learn(&self, origin: Origin) -> bool {
        match self.config.listed_addresses {
            ListedAddresses::Ignore | ListedAddresses::Protected => true,
            ListedAddresses::Use => {
                self.addressing.peer.contains(&origin.address.remote)
                    || self
                        .live_paths()
                        .any(|id| self.paths[id.index()].address.remote == origin.address.remote)
            }
        }
    }

    pub(crate) fn learn(&mut self, origin: Origin) -> Option<PathId> {
        self.replace_guess(origin);
        let Origin { address, bytes } = origin;
        let id = self.new_path(address).or_else(|_| {
            self.evict_failed();
            self.new_path(address)
        });
        let id = id.ok()?;
        let path = &mut self.paths[id.index()];
        path.source = PathSource::Learned;
        if self.addressing.guarded {
            path.standing = Standing::Seen { allowance_bytes: 0 };
        }
        self.came_from(id, bytes);
        self.events.push_back(AssociationEvent::PathAdded { path: id });
        self.doubt_namesakes(id);
        self.verify_path(id);
        Some(id)
    }

    /// A path to this remote address that was only guessed makes room for the one the peer uses. No other one does: two
    /// that the peer does use would drive each other out with every packet.
    fn replace_guess(&mut self, origin: Origin) {
        let guess = self.live_paths().find(|id| {
            let path = &self.paths[id.index()];
            path.address.remote == origin.address.remote
                && path.standing == Standing::Listed
                && self.policy.path(*id).state == PathState::Unconfirmed
        });
        if let Some(id) = guess {
            let _ = self.retire_path(id);
        }
    }

    /// A source that was learned and answers no more gives its place to a new one.
    pub(super) fn evict_failed(&mut self) {
        let failed = self.live_paths().find(|id| {
            self.paths[id.index()].source == PathSource::Learned
                && self.policy.path(*id).state == PathState::Inactive
        });
        if let Some(id) = failed {
            let _ = self.retire_path(id);
        }
    }

    /// Packets do not make a path of this retired one's addresses again.
    pub(crate) fn bar(&mut self, id: PathId) {
        let address = self.paths[id.index()].address;
        let namesake = self.live_paths().any(|id| self.paths[id.index()].address.same_hosts(&address));
        if !namesake {
            self.addressing.bar(address);
        }
    }

    /// A packet from the same address with another port: either the peer has several paths behind one translator, or the
    /// translator has bound the old path to a new port (RFC 6951 section 5.4). The old path is asked.
    fn doubt_namesakes(&mut self, new: PathId) {
        for index in 0..self.paths.len() {
            let (old, path) = (&self.paths[index], &self.paths[new.index()]);
            let namesake = index != new.index()
                && !old.removed
                && old.address.same_hosts(&path.address)
                && self.policy.facts()[index].state != PathState::Unconfirmed;
            if namesake {
                self.paths[index].successor = Some(new);
                self.heartbeat_due(PathId::new(index));
            }
        }
    }

    /// A path has become another one if that one has proved itself and the old one, asked after it had appeared, is silent.
    pub(crate) fn succeed(&mut self, old: PathId) {
        let Some(new) = self.paths[old.index()].successor else { return };
        let proved = !self.paths[new.index()].removed && self.policy.path(new).state == PathState::Active;
        let silent = self.policy.path(old).error_count > 0;
        if !proved || !silent || self.paths[old.index()].removed {
            return;
        }
        let was_primary = self.policy.path(old).primary;
        if self.retire_path(old).is_ok() {
            if was_primary {
                self.policy.set_primary(new);
            }
            self.dispatch_event(&Event::PathRebound(new));
            self.events.push_back(AssociationEvent::PathRebound { path: new, was: old });
        }
    }

    /// A path has proved itself: those that it may have replaced are looked at.
    pub(crate) fn succeed_namesakes(&mut self, new: PathId) {
        for index in 0..self.paths.len() {
            if self.paths[index].successor == Some(new) {
                self.succeed(PathId::new(index));
            }
        }
    }

    /// Something came from the far end of a path.
    fn came_from(&mut self, id: PathId, bytes: usize) {
        let guarded = self.addressing.guarded;
        let standing = &mut self.paths[id.index()].standing;
        let more = REPLY_FACTOR * bytes as u64;
        *standing = match *standing {
            Standing::Listed if guarded => Standing::Seen { allowance_bytes: more },
            Standing::Trusted | Standing::Listed => Standing::Trusted,
            Standing::Seen { allowance_bytes } => {
                Standing::Seen { allowance_bytes: allowance_bytes.saturating_add(more) }
            }
        };
    }

    /// Whether a packet of this length may go to the far end of a path, and notes that it does.
    pub(crate) fn may_send(&mut self, id: PathId, bytes: usize) -> bool {
        let small = SMALL_PACKET + self.protection.reserved_bytes();
        match &mut self.paths[id.index()].standing {
            Standing::Trusted => true,
            Standing::Listed => bytes <= small || !self.addressing.guarded,
            Standing::Seen { allowance_bytes } => {
                let left = allowance_bytes.checked_sub(bytes as u64);
                *allowance_bytes = left.unwrap_or(*allowance_bytes);
                left.is_some()
            }
        }
    }

    /// Whether any address of the peer has proved itself, or was given by the application.
    pub(crate) fn was_answered(&self) -> bool {
        self.paths.iter().any(|path| !path.removed && path.standing == Standing::Trusted)
    }

    /// A learned source that has never answered is no path any more; whether it was one.
    pub(crate) fn give_up_learned(&mut self, id: PathId) -> bool {
        let path = &self.paths[id.index()];
        let exhausted = match path.standing {
            Standing::Seen { allowance_bytes } => allowance_bytes < SMALL_PACKET as u64,
            Standing::Trusted | Standing::Listed => false,
        };
        let failed = self.policy.path(id).state == PathState::Inactive;
        let unproved = matches!(path.standing, Standing::Seen { .. });
        path.source == PathSource::Learned
            && unproved
            && (failed || exhausted)
            && self.retire_path(id).is_ok()
    }
}
