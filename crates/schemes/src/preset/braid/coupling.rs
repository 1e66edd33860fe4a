//! Coupling of the paths that meet congestion (RFC 6356).
//!
//! Paths that share a bottleneck must together take what one flow takes there. Which of them share it cannot be told from
//! outside for certain, but paths that share a full one all meet congestion. So these, and only these, grow as one flow
//! and are cut together.

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "coupling, RFC 6356",
    rule: "a path meets congestion while it competes, and for max(20 base, 1 s) after a loss by congestion; growth of a path i \
           that does is multiplied by min(1, cwnd_i max(cwnd_j / rtt_j^2) / sum(cwnd_j / rtt_j)^2) over all paths j that do",
    file: file!(),
}];

/// A path that meets congestion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congested {
    /// In bytes.
    pub(super) cwnd: f64,
    /// In seconds, greater than zero.
    pub(super) rtt: f64,
}

/// What is left of a path's growth, 0 to 1.
pub(super) fn share_of_growth(own_cwnd: f64, congested: impl Iterator<Item = Congested>) -> f64 {
    let (mut rates, mut best) = (0.0, 0.0_f64);
    for path in congested {
        rates += path.cwnd / path.rtt;
        best = best.max(path.cwnd / (path.rtt * path.rtt));
    }
    if rates > 0.0 { (own_cwnd * best / (rates * rates)).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(own: f64, paths: &[(f64, f64)]) -> f64 {
        share_of_growth(own, paths.iter().map(|&(cwnd, rtt)| Congested { cwnd, rtt }))
    }

    #[test]
    fn a_path_alone_in_congestion_grows_in_full() {
        assert!((share(8.0, &[(8.0, 0.1)]) - 1.0).abs() < 1e-9);
        assert!((share(8.0, &[]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_equal_paths_together_grow_by_half_of_what_one_would() {
        assert!((share(8.0, &[(8.0, 0.1), (8.0, 0.1)]) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn no_path_grows_faster_than_it_would_by_itself() {
        assert!(share(100.0, &[(100.0, 1.0), (1.0, 0.01)]) <= 1.0);
    }
}
