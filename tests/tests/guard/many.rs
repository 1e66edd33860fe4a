//! The cost of a call does not depend on the number of associations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_core::policy::{Estimates, PathEstimator, Policies, Scheme, Slot};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, AssociationConfig, Encapsulation, Endpoint, EndpointConfig, PacketBuffer, PathId,
};

/// Counter of deadline queries to an association.
struct Asked(Arc<AtomicU64>);

impl Slot for Asked {
    fn deadline(&self) -> Option<Time> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

impl PathEstimator for Asked {
    fn estimates(&self, _: PathId) -> Estimates {
        Estimates::default()
    }
}

struct Counting(Arc<AtomicU64>);

impl Scheme for Counting {
    fn policies(&self) -> Policies {
        let cmt = anabranch_schemes::registry::parse("cmt").expect("a preset").into_scheme();
        Policies { estimator: Box::new(Asked(Arc::clone(&self.0))), ..cmt.policies() }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

#[test]
fn deadlines_are_found_without_asking_every_association() {
    const MANY: u32 = 500;
    let asked = Arc::new(AtomicU64::new(0));
    let config = EndpointConfig {
        port: 1,
        addresses: Vec::new(),
        encapsulation: Encapsulation::None,
        accept: None,
        accept_from: AcceptFrom::Everyone,
        max_associations: MANY as usize,
        guard: None,
    };
    let mut endpoint = Endpoint::new(Time::ZERO, config, [1; 32]);
    let (mut now, mut buf) = (Time::ZERO, PacketBuffer::new());
    for n in 0..MANY {
        now += Span::from_micros(100);
        let pair = ([10, 0, 0, 1].into(), (0x0B00_0000 + n).to_be_bytes().into());
        let scheme = Arc::new(Counting(Arc::clone(&asked)));
        let config = AssociationConfig::new(scheme, Profile::rfc9260_multipath());
        endpoint.connect(now, 1, &[pair], config).expect("there is room");
        while endpoint.poll_transmit(now, &mut buf).is_some() {}
    }
    asked.store(0, Ordering::Relaxed);
    let (mut timeouts, mut packets) = (0_u64, 0_u64);
    while let Some(at) = endpoint.poll_timeout().filter(|_| timeouts < 4 * u64::from(MANY)) {
        assert!(at > now, "what was due is done");
        now = at;
        endpoint.handle_timeout(now);
        while endpoint.poll_transmit(now, &mut buf).is_some() {
            packets += 1;
        }
        while endpoint.poll_event().is_some() {}
        timeouts += 1;
    }
    assert_eq!(packets, timeouts, "one INIT for each T1");
    let each = asked.load(Ordering::Relaxed) / timeouts;
    assert!(each <= 8, "{each} questions for each time-out of {MANY} associations");
}
