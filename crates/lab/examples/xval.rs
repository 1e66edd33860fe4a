use anabranch_lab::crossval::*;
fn main() {
    let f = std::env::args().nth(1).unwrap_or_default();
    let seeds = match std::env::args().nth(2) { Some(n) => Seeds { least: n.parse().unwrap(), most: n.parse().unwrap() }, None => Seeds::FULL };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let t = std::time::Instant::now();
    let mut all = vec![];
    for p in all_points().unwrap().iter().filter(|p| p.id.contains(&f)) {
        let c = run_point(p, seeds, None, &stop).unwrap();
        println!("{:24} n{:3} {:8.1}±{:5.1} ns2 {:8.1}±{:5.1} {:+6.2}% {:?} share {:.3}/{:.3} rtx {:.0}/{:.0} to {:.1}/{:.1} fr {:.0}/{:.0}", c.id, c.ours.n, c.ours.goodput_kbps, c.ours.half_width_kbps, c.ns2_goodput_kbps, c.ns2_half_width_kbps, c.difference_percent, c.verdict, c.ours.path1_share, c.ns2_path1_share.unwrap_or(0.), c.ours.retransmissions, c.ns2_retransmissions, c.ours.timeouts, c.ns2_timeouts.unwrap_or(0.), c.ours.fast_retransmits, c.ns2_fast_retransmits.unwrap_or(0.));
        all.push(c);
    }
    println!("{:?} {:?}", summarise(&all), t.elapsed());
}
