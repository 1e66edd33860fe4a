//! Arbitrary sequences of changes: the association survives while one pair of addresses works.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_core::time::Span;
use anabranch_tests::duo::Duo;
use anabranch_tests::network::{Link, Side};
use proptest::prelude::*;

use crate::asconf::rig::{association, connected, data_flows, extra, setup};

#[derive(Clone, Debug)]
enum Op {
    Add(u8),
    Remove(usize),
    Send(Side, usize),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0_u8..6).prop_map(Op::Add),
        3 => (0_usize..8).prop_map(Op::Remove),
        2 => (prop::sample::select(vec![Side::A, Side::B]), 1_usize..30_000).prop_map(|(s, n)| Op::Send(s, n)),
        4 => (0_u64..3_000).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_address_changes_keep_the_transfer(
        ops in ops(),
        pairs in 1_usize..4,
        mobile in prop::sample::select(vec![Side::A, Side::B]),
        loss in prop::sample::select(vec![0_u32, 0, 50, 100]),
    ) {
        let mut duo = connected(setup(pairs));
        duo.kept = None;
        let link = Link { loss, reorder: loss, duplicate: loss / 2, ..duo.setup.link };
        duo.network = anabranch_tests::network::Network::new(link, 7);
        let present: BTreeSet<IpAddr> = (0..pairs).map(|pair| duo.setup.address(mobile, pair)).collect();
        let present = Rc::new(RefCell::new(present));
        let pass_present = |duo: &mut Duo| {
            let seen = Rc::clone(&present);
            // A removed address neither sends nor receives.
            duo.network.set_filter(move |packet| {
                let address = if packet.from == mobile { packet.source } else { packet.destination };
                seen.borrow().contains(&address)
            });
        };
        pass_present(&mut duo);
        for op in ops {
            let now = duo.now;
            match op {
                Op::Add(number) => {
                    let address = extra(mobile, number);
                    if present.borrow_mut().insert(address) {
                        // The association does without an address for which there is no room.
                        if association(&mut duo, mobile).add_local_address(now, address).is_err() {
                            present.borrow_mut().remove(&address);
                        }
                    }
                }
                Op::Remove(index) => {
                    let addresses: Vec<IpAddr> = present.borrow().iter().copied().collect();
                    if addresses.len() > 1 {
                        let address = addresses[index % addresses.len()];
                        present.borrow_mut().remove(&address);
                        let _ = association(&mut duo, mobile).remove_local_address(now, address);
                    }
                }
                Op::Send(side, size) => {
                    duo.send(side, size, 0, false);
                }
                Op::Pass(millis) => duo.run(Span::from_millis(millis)),
            }
            duo.settle();
        }
        data_flows(&mut duo);
        duo.network.heal();
        pass_present(&mut duo);
        duo.run(Span::from_secs(150));
        let locals: BTreeSet<IpAddr> =
            crate::asconf::rig::active(&duo, mobile).into_iter().map(|(local, _)| local).collect();
        prop_assert!(!locals.is_empty() && locals.is_subset(&present.borrow()), "{locals:?}");
    }
}
