//! Effect of `association.protection = "dtls"` on a run: more bytes and round trips, and no randomness.

use crate::common::run;

fn scenario(protection: &str, flow: &str) -> String {
    format!(
        "[run]\nduration = \"60 s\"\n[association]\nrecv_buffer = \"1 MiB\"\nprotection = \"{protection}\"\n\
         [[path]]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n[[path]]\nrate = \"5 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[flow]]\n{flow}"
    )
}

#[test]
fn protection_costs_its_bytes_and_a_round_trip() {
    let file = "kind = \"file\"\nsize = \"4 MB\"\n";
    let seconds = |protection| {
        let flow = &run(&scenario(protection, file), "cmt", 1).flows[0];
        assert_eq!(flow.intact, Some(true));
        flow.transfer_s.expect("a file arrives")
    };
    let (plain, protected) = (seconds("none"), seconds("dtls"));
    // A round trip of 40 ms, and 28 of 1,500 bytes.
    let expected = plain * 1500.0 / 1472.0 + 0.04;
    assert!((protected - expected).abs() < 0.1 * plain, "{plain} s, {protected} s");
    assert!(protected > plain + 0.035, "{plain} s, {protected} s");
}

#[test]
fn a_protected_run_depends_on_its_seed_alone() {
    let text =
        scenario("dtls", "kind = \"bulk\"\n").replace("delay = \"20 ms\"", "delay = \"20 ms\"\nloss = 0.02");
    let digest = |seed| run(&text, "bonded", seed).digest;
    assert_eq!(digest(3), digest(3));
    assert_ne!(digest(3), digest(4));
    assert_ne!(digest(3), run(&text.replace("dtls", "none"), "bonded", 3).digest);
}

#[test]
fn losses_of_the_handshake_are_no_obstacle() {
    let flow = "kind = \"messages\"\nsize = \"10 kB\"\ninterval = \"20 ms\"\ncount = 300\nstreams = 3\n";
    for seed in 1..6 {
        let text = scenario("dtls", flow).replace("delay = ", "loss = 0.1\ndelay = ");
        let result = run(&text, "cmt", seed);
        let flow = &result.flows[0];
        assert_eq!(
            (flow.intact, flow.delivered_bytes),
            (Some(true), 3_000_000),
            "seed {seed}: {:?}",
            flow.failure
        );
    }
}
