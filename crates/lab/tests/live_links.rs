//! Guarantees of profile `net` and its schemes on typical links.

use crate::common::run;
use rayon::prelude::*;

/// Rate in Mbit/s, round-trip time in ms, loss.
type Link = (u32, u32, f64);

/// Link that loses a tenth of packets and has a round-trip time of 300 ms.
const BAD: Link = (10, 300, 0.1);

fn path(&(rate, rtt, loss): &Link) -> String {
    // The queue is as long as the path's bandwidth-delay product, with the round-trip time limited to 40 ms to 300 ms, but at least
    // twenty packets.
    let queue = (rate * rtt.clamp(40, 300) / 12).clamp(20, 3000);
    let loss = if loss > 0.0 { format!("loss = {loss}\n") } else { String::new() };
    let delay_us = rtt * 500;
    format!(
        "[[path]]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay_us} us\"\nqueue = \"{queue} packets\"\n{loss}"
    )
}

/// Returns the mean goodput of two seeds in kbit/s.
fn goodput(scheme: &str, links: &[Link]) -> f64 {
    let paths: String = links.iter().map(path).collect();
    let head = "[run]\nduration = \"12 s\"\nprofile = \"net\"\n\
                [association]\nrecv_buffer = \"16 MiB\"\nencapsulation = \"udp\"\n";
    [1, 2].map(|seed| run(&format!("{head}{paths}"), scheme, seed).goodput_kbps).iter().sum::<f64>() / 2.0
}

#[test]
fn a_bad_path_costs_the_best_one_at_most_a_tenth() {
    let good = [
        (1, 5, 0.01),
        (1, 300, 0.0),
        (10, 5, 0.001),
        (10, 50, 0.0),
        (10, 300, 0.01),
        (50, 5, 0.01),
        (50, 50, 0.001),
    ];
    good.into_par_iter().for_each(|link| {
        let (alone, both) = (goodput("bonded", &[link]), goodput("bonded", &[link, BAD]));
        assert!(both >= 0.9 * alone, "{link:?}: {both:.0} of {alone:.0} kbit/s");
    });
}

#[test]
fn a_long_fat_path_comes_up_to_speed_beside_a_short_thin_one() {
    let (fat, thin) = ((50, 300, 0.0), (1, 50, 0.0));
    let (alone, both) = (goodput("bonded", &[fat]), goodput("bonded", &[thin, fat]));
    assert!(both >= 0.9 * alone, "{both:.0} of {alone:.0} kbit/s");
}

#[test]
fn two_equal_paths_carry_nearly_twice_as_much_as_one() {
    let links = [(1, 5, 0.0), (10, 50, 0.0), (10, 50, 0.001), (10, 5, 0.01), (50, 50, 0.0)];
    ["cmt", "bonded"]
        .into_par_iter()
        .flat_map(|scheme| links.into_par_iter().map(move |l| (scheme, l)))
        .for_each(|(scheme, link)| {
            let (one, two) = (goodput(scheme, &[link]), goodput(scheme, &[link, link]));
            assert!(two >= 1.8 * one, "{scheme}, {link:?}: {two:.0} of {one:.0} kbit/s");
        });
}
