//! Scheme of the registry with an object of Python in some slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_core::policy::{Policies, Scheme};
use anabranch_core::profile::Profile;
use anabranch_schemes::congestion::GrowthGate;
use anabranch_schemes::registry::NamedScheme;
use pyo3::prelude::*;

use super::congestion::control;
use super::fault::Fault;
use super::hook::Hook;
use super::object::Object;
use super::retransmit::OwnRetransmit;
use super::scheduler::OwnScheduler;

/// Components of a scheme in Python: its name, its methods, and a function that creates the object of an association from the run's
/// seed and the association's number in the run.
pub(crate) struct OwnPolicies {
    pub(crate) name: String,
    factory: Py<PyAny>,
    hooks: Arc<[Hook]>,
}

impl OwnPolicies {
    pub(crate) fn new(name: String, factory: Py<PyAny>, hooks: &[String]) -> PyResult<Self> {
        let hooks: Vec<Hook> = hooks.iter().map(|hook| hook.parse()).collect::<PyResult<_>>()?;
        Ok(OwnPolicies { name, factory, hooks: hooks.into() })
    }

    /// Returns the scheme for one run.
    pub(crate) fn scheme(self: &Arc<Self>, base: NamedScheme, seed: u64, fault: Fault) -> OwnScheme {
        OwnScheme { own: Arc::clone(self), base, seed, fault, associations: AtomicU64::new(0) }
    }
}

pub(crate) struct OwnScheme {
    own: Arc<OwnPolicies>,
    base: NamedScheme,
    seed: u64,
    fault: Fault,
    associations: AtomicU64,
}

impl OwnScheme {
    /// Creates the object of the next association.
    fn object(&self) -> PyResult<Object> {
        let number = self.associations.fetch_add(1, Ordering::Relaxed);
        let object = Python::attach(|py| self.own.factory.call1(py, (self.seed, number)))?;
        Ok(Object::new(object, Arc::clone(&self.own.hooks), self.fault.clone()))
    }
}

impl Scheme for OwnScheme {
    fn policies(&self) -> Policies {
        let mut policies = self.base.policies();
        let object = match self.object() {
            Ok(object) => object,
            Err(error) => {
                // The run ends before the base makes a decision.
                self.fault.report(error);
                return policies;
            }
        };
        // Core reports an event to congestion control first. One slot passes it on.
        let mut tells = true;
        if [Hook::Grow, Hook::Cut, Hook::Pace].into_iter().any(|hook| object.has(hook)) {
            let cuc = self.base.values().switch("cuc");
            let gate = if cuc { GrowthGate::PseudoCumulative } else { GrowthGate::Cumulative };
            policies.congestion = Box::new(control(&object, gate, std::mem::take(&mut tells)));
        }
        if object.has(Hook::Pick) {
            let tells = std::mem::take(&mut tells);
            policies.scheduler = Box::new(OwnScheduler { object: object.clone(), tells });
        }
        if object.has(Hook::Route) {
            policies.retransmit = Box::new(OwnRetransmit { object, tells });
        }
        policies
    }

    fn is_multipath(&self) -> bool {
        self.base.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.base.profile(row)
    }
}
