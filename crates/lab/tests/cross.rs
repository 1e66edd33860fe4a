//! Cross traffic with congestion control.

use crate::common::{job, run};
use anabranch_lab::run::{Job, RunResult};

/// Returns a link of 10 Mbit/s for 30 s with this cross traffic.
fn link(cross: &str) -> String {
    format!(
        "[run]\nduration = \"30 s\"\n[association]\nrecv_buffer = \"1 MiB\"\n[[path]]\nname = \"a\"\nrate = \"10 Mbit/s\"\n\
         delay = \"20 ms\"\nqueue = \"100 packets\"\n[[path.background]]\n{cross}\n"
    )
}

fn goodput(cross: &str) -> f64 {
    run(&link(cross), "sctp", 1).goodput_kbps
}

#[test]
fn transfers_take_their_mean_rate_of_a_link_that_has_room() {
    let alone = goodput("kind = \"poisson\"\nrate = \"1 bit/s\"\npacket = \"1500 B\"");
    for control in ["cubic", "newreno"] {
        let beside = goodput(&format!(
            "kind = \"transfers\"\nrate = \"3 Mbit/s\"\nshape = 3\ncontrol = \"{control}\"\ncount = 1"
        ));
        let taken = alone - beside;
        // The mean of 30 s varies, and the flow fills what transfers leave.
        assert!((1500.0..4500.0).contains(&taken), "{control}: {taken} kbit/s");
    }
}

#[test]
fn sources_above_the_rate_of_the_link_leave_room_if_they_react() {
    let unmoved = goodput("kind = \"poisson\"\nrate = \"20 Mbit/s\"\npacket = \"1500 B\"");
    let video = goodput("kind = \"video\"\nrate = \"20 Mbit/s\"\ncontrol = \"newreno\"");
    let transfers = goodput("kind = \"transfers\"\nrate = \"12 Mbit/s\"");
    assert!(unmoved < 500.0, "{unmoved} kbit/s");
    assert!((2500.0..7500.0).contains(&video), "{video} kbit/s");
    assert!(transfers > 500.0, "{transfers} kbit/s");
}

#[test]
fn traffic_of_the_reverse_direction_takes_none_of_the_forward_one() {
    let forward = goodput("kind = \"video\"\nrate = \"8 Mbit/s\"");
    let reverse = goodput("kind = \"video\"\nrate = \"8 Mbit/s\"\ndirection = \"reverse\"");
    assert!(reverse > 1.3 * forward, "{reverse} {forward}");
}

#[test]
fn runs_with_reacting_traffic_depend_on_their_seed_only() {
    let text = link("kind = \"transfers\"\nrate = \"5 Mbit/s\"\ncount = 2\nstop = \"20 s\"");
    let first = run(&text, "cmt", 7);
    assert_eq!(first, run(&text, "cmt", 7));
    assert_ne!(first.goodput_kbps, run(&text, "cmt", 8).goodput_kbps);
    let unread = Job { digest: false, ..job(&text, "cmt", 7) }.run().expect("the scenario can be run");
    assert_eq!(unread, RunResult { digest: None, ..first });
}
