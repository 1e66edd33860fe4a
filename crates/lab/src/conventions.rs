//! Conventions of a profile outside the endpoint: the capacity of queues, and the definition of goodput.

use anabranch_core::profile::Profile;
use serde::Serialize;

use anabranch_scenario::nearest;

/// Data that goodput counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goodput {
    /// User bytes handed to the receiving application.
    Delivered,
    /// Unique DATA chunks that arrived at the receiver's interface, headers included, in any order. Packet traces of ns-2 are
    /// counted in this way.
    ChunkArrivals,
}

impl Goodput {
    /// Returns the definition in one line, for output beside the figure.
    pub fn definition(self) -> &'static str {
        match self {
            Goodput::Delivered => {
                "user bytes delivered to the application, over the time after start and warm-up"
            }
            Goodput::ChunkArrivals => {
                "unique DATA chunks that reached the receiver's interface, 16 B headers included (1468 B each when full), \
                 over the time after start and warm-up"
            }
        }
    }
}

/// Conventions of each profile in the simulator: its name, `true` if the packet in service takes one of a queue's places, and the
/// definition of goodput.
const BY_PROFILE: [(&str, bool, Goodput); 3] = [
    ("rfc9260", false, Goodput::Delivered),
    // Rule of ns-2's queues, and goodput as counted in ns-2's packet traces.
    ("ns2", true, Goodput::ChunkArrivals),
    ("net", false, Goodput::Delivered),
];

/// A profile with its two rows and its conventions in the simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct Conventions {
    /// Rules for single-path schemes.
    pub single_path: Profile,
    /// Rules for multipath schemes.
    pub multipath: Profile,
    /// Set if the packet in service takes one of a queue's places (ns-2).
    pub in_service_counts: bool,
    /// Data that goodput counts.
    pub goodput: Goodput,
}

impl Conventions {
    /// Returns the profile called `name`.
    ///
    /// # Errors
    /// Returns a list of the valid names if the name is unknown.
    pub fn named(name: &str) -> Result<Self, String> {
        let rows = Profile::named(name, false).zip(Profile::named(name, true));
        let here = BY_PROFILE.iter().find(|(profile, ..)| *profile == name);
        let Some(((single_path, multipath), &(_, in_service_counts, goodput))) = rows.zip(here) else {
            let near = nearest(name, Profile::NAMES.iter().copied());
            let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("unknown profile `{name}`{near}; there are: {}", Profile::NAMES.join(", ")));
        };
        Ok(Conventions { single_path, multipath, in_service_counts, goodput })
    }

    /// Returns the row for a scheme.
    pub fn profile(&self, multipath: bool) -> &Profile {
        if multipath { &self.multipath } else { &self.single_path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_conventions_and_others_are_refused_with_the_list() {
        for name in Profile::NAMES {
            assert!(Conventions::named(name).is_ok());
        }
        assert_eq!(
            Conventions::named("ns3"),
            Err("unknown profile `ns3`, did you mean `ns2`?; there are: rfc9260, ns2, net".to_owned())
        );
    }
}
