//! The deadline of the loss policy: chunks that time alone makes lost, and tail probes (RFC 8985 section 7).

use crate::association::{Association, policies};

impl Association {
    /// The loss policy's deadline: chunks that time alone has made lost, and a probe for a tail that nothing acknowledges.
    pub(crate) fn run_loss_tasks(&mut self) {
        self.sender.refresh_facts();
        let tasks = self.policies.loss_tasks(&policies::view(self.now, &self.paths, &self.sender));
        if tasks.recheck {
            self.recheck_losses();
        }
        for path in tasks.probes.iter() {
            self.paths.set_repeated_tail_probe(path, tasks.repeated.contains(path));
            self.transmission.add_tail_probe(path);
        }
    }
}
