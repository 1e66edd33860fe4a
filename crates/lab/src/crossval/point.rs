//! Points of ns-2, as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

const TWO_PATH: &str = include_str!("../../data/ns2/two-path.csv");
const SINGLE_PATH: &str = include_str!("../../data/ns2/single-path.csv");
const UNEQUAL_PATHS: &str = include_str!("../../data/ns2/unequal-paths.csv");
const THREE_PATH: &str = include_str!("../../data/ns2/three-path.csv");

/// A setting and ns-2's results for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name of the point.
    pub id: String,
    /// Family of the point.
    pub group: String,
    /// Parameters of the script.
    pub args: BTreeMap<String, String>,
    /// Number of runs that ended.
    pub n: u64,
    /// Number of runs that hung. The figures do not include them.
    pub hung: u64,
    /// Mean goodput in kbit/s.
    pub goodput_kbps: f64,
    /// Half-width of its 95 % interval, in kbit/s.
    pub half_width_kbps: f64,
    /// Share of path 1 in the data packets that arrived, if known.
    pub path1_share: Option<f64>,
    /// Mean retransmissions per run.
    pub retransmissions: f64,
    /// Mean time-outs per run, if known.
    pub timeouts: Option<f64>,
    /// Mean fast retransmissions per run, if known.
    pub fast_retransmits: Option<f64>,
}

/// Reason for which a file of points cannot be used.
#[derive(Debug, Error)]
#[error("ns-2's figures: {0}")]
pub struct PointError(#[from] csv::Error);

#[derive(Deserialize)]
struct PathRow {
    id: String,
    group: String,
    args: String,
    n: u64,
    hung: u64,
    goodput_kbps: f64,
    ci95: f64,
    path1_share: f64,
    rtx: f64,
    timeouts: f64,
    fast_rtx: Option<f64>,
}

#[derive(Deserialize)]
struct ThreePathRow {
    delays_ms: String,
    scheme: String,
    plr: String,
    n: u64,
    hung: u64,
    goodput_kbps: f64,
    ci95: f64,
    rtx_total: f64,
}

/// Returns all points: CMT over two paths, single-path SCTP, CMT over unequal paths with large buffers, CMT over three paths.
///
/// # Errors
/// [`PointError`] if the data does not have the expected columns.
pub fn all_points() -> Result<Vec<Point>, PointError> {
    let mut points = Vec::new();
    for text in [TWO_PATH, SINGLE_PATH, UNEQUAL_PATHS] {
        for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
            points.push(point_of(row?));
        }
    }
    for row in csv::Reader::from_reader(THREE_PATH.as_bytes()).deserialize() {
        points.push(three_path(row?));
    }
    Ok(points)
}

fn point_of(row: PathRow) -> Point {
    let pairs = row.args.split_whitespace().filter_map(|pair| pair.split_once('='));
    Point {
        args: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        id: row.id,
        group: row.group,
        n: row.n,
        hung: row.hung,
        goodput_kbps: row.goodput_kbps,
        half_width_kbps: row.ci95,
        path1_share: Some(row.path1_share),
        retransmissions: row.rtx,
        timeouts: Some(row.timeouts),
        fast_retransmits: row.fast_rtx,
    }
}

fn three_path(row: ThreePathRow) -> Point {
    let pf = if row.scheme == "cmt-pf" { "1" } else { "0" };
    let args =
        [("delays_ms", row.delays_ms.as_str()), ("plr", row.plr.as_str()), ("pf", pf), ("time", "100")];
    Point {
        id: format!("qa-{}-{}-{}", row.delays_ms, row.scheme, row.plr),
        group: "three-path".to_owned(),
        args: args.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        n: row.n,
        hung: row.hung,
        goodput_kbps: row.goodput_kbps,
        half_width_kbps: row.ci95,
        path1_share: None,
        retransmissions: row.rtx_total,
        timeouts: None,
        fast_retransmits: None,
    }
}

impl Point {
    /// Returns a parameter, or its default in the script.
    pub(crate) fn arg<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.args.get(name).map_or(default, String::as_str)
    }

    /// Returns the point's scheme as an expression.
    pub fn scheme(&self) -> String {
        if self.group == "single-path" {
            // The base agent of ns-2 sends every retransmission to the other path.
            return format!("sctp(rtx=alternate,trigger={})", self.arg("trig", "3"));
        }
        let rtx = match self.arg("rtx", "4") {
            "0" => "rtx-asap",
            "1" => "rtx-same",
            "2" => "rtx-ssthresh",
            "3" => "rtx-lossrate",
            _ => "rtx-cwnd",
        };
        let switch = |name| self.arg(name, "1") != "0";
        let name = if self.arg("pf", "0") == "1" { "cmt-pf" } else { "cmt" };
        format!(
            "{name}(rtx={rtx},trigger={},sfr={},cuc={},dac={})",
            self.arg("trig", "3"),
            switch("sfr"),
            switch("cuc"),
            switch("dac"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_ns2s_points_are_read() {
        let points = all_points().expect("the repository's own data");
        assert_eq!(points.len(), 49 + 6 + 14 + 20);
        assert_eq!(points.iter().filter(|p| p.group == "three-path").count(), 20);
    }

    #[test]
    fn every_point_makes_a_scheme_that_exists() {
        for point in all_points().expect("the repository's own data") {
            assert!(anabranch_schemes::registry::parse(&point.scheme()).is_ok(), "{}", point.id);
        }
    }
}
