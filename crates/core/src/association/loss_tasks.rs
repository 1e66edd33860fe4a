//! Deadline of the loss policy: losses by time alone, and tail probes (RFC 8985 section 7).

use crate::association::{Association, policies};

impl Association {
    /// Handles the loss policy's deadline: marks chunks that are lost by time alone, and adds probes of unacknowledged tails.
    pub(crate) fn run_loss_tasks(&mut self) {
        self.sender.refresh_facts();
        let tasks = self.policies.loss_tasks(&policies::view(self.now, &self.paths, &self.sender));
        if let Some(chunks) = &tasks.recheck {
            self.recheck_losses(chunks);
        }
        for path in tasks.probes.iter() {
            self.paths.set_repeated_tail_probe(path, tasks.repeated.contains(path));
            self.transmission.add_tail_probe(path);
        }
    }
}
