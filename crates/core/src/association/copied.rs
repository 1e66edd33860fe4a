//! Copies of an association, for runs of a simulation with the same beginning.

use crate::association::Association;

impl Association {
    /// Returns an independent copy in the same state. Returns `None` if the policies or the protection cannot be copied.
    pub(crate) fn copied(&self) -> Option<Association> {
        Some(Association {
            config: self.config.clone(),
            profile: self.profile.clone(),
            policies: self.policies.copied()?,
            state: self.state.clone(),
            now: self.now,
            identity: self.identity,
            addresses: self.addresses.clone(),
            protection: self.protection.copied()?,
            paths: self.paths.clone(),
            reachability: self.reachability.clone(),
            sender: self.sender.clone(),
            transmission: self.transmission.clone(),
            recovery: self.recovery.clone(),
            receiver: self.receiver.clone(),
            reading: self.reading,
            ack: self.ack.clone(),
            control: self.control.clone(),
            stream_changes: self.stream_changes.clone(),
            outputs: self.outputs.clone(),
        })
    }

    /// Removes the last `bytes` user bytes that wait in the queue, as if the application had never sent them. Returns `false` and
    /// changes nothing if they are in other than whole unlimited messages in the order of the calls, or if not more than that waits.
    pub fn forget_last(&mut self, bytes: u64) -> bool {
        self.sender.forget_last(bytes)
    }
}
