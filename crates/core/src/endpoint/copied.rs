//! Copies of an endpoint, for runs of a simulation with the same beginning.

use crate::endpoint::Endpoint;

impl Endpoint {
    /// Returns an independent copy in the same state, which continues as this endpoint does if its driver makes the same calls.
    ///
    /// Returns `None` if the [policies](crate::policy::Policies::copied) of an association cannot be copied, or if an association is
    /// protected.
    pub fn copied(&self) -> Option<Endpoint> {
        Some(Endpoint {
            config: self.config.clone(),
            locals: self.locals.clone(),
            entropy: self.entropy.clone(),
            jar: self.jar.clone(),
            gates: self.gates.clone(),
            spent: self.spent.clone(),
            table: self.table.copied()?,
            now: self.now,
            replies: self.replies.clone(),
            due: self.due.clone(),
            events: self.events.clone(),
            discards: self.discards,
            record: self.record.clone(),
            accept_announces_nr_sack: self.accept_announces_nr_sack,
            integrity: self.integrity,
            contents: self.contents,
            form: self.form,
            interface_mtus: self.interface_mtus.clone(),
        })
    }
}
