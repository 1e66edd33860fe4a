//! Reads the points of ns-2: settings, and the figures that ns-2 gave.

use std::collections::BTreeMap;
use std::error::Error;
use std::str::FromStr;

use anyhow::Context as _;
use serde::Deserialize;

const TWO_PATH: &str = include_str!("../data/two-path.csv");
const SINGLE_PATH: &str = include_str!("../data/single-path.csv");
const UNEQUAL_PATHS: &str = include_str!("../data/unequal-paths.csv");
const THREE_PATH: &str = include_str!("../data/three-path.csv");

/// Setting that ns-2 was run with, and means over its runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Name of the point.
    pub(crate) id: String,
    /// Family of settings.
    pub(crate) group: String,
    /// Parameters of the script.
    pub(crate) args: BTreeMap<String, String>,
    /// Number of runs that hung. With one or more, the means contain the other runs only.
    pub(crate) hung: u64,
    /// Mean goodput in kbit/s.
    pub(crate) goodput_kbps: f64,
    /// Half-width of the 95 % interval of the goodput.
    pub(crate) half_width_kbps: f64,
    /// Share of path 1 in the data packets that arrived, if known.
    pub(crate) path1_share: Option<f64>,
    /// Mean number of retransmissions.
    pub(crate) retransmissions: f64,
    /// Time-outs, if known.
    pub(crate) timeouts: Option<f64>,
    /// Fast retransmissions, if known.
    pub(crate) fast_retransmits: Option<f64>,
}

#[derive(Deserialize)]
struct PathRow {
    id: String,
    group: String,
    args: String,
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
    hung: u64,
    goodput_kbps: f64,
    ci95: f64,
    rtx_total: f64,
}

/// Returns the points of CMT over two paths, single-path SCTP, CMT over unequal paths, and CMT over three paths.
pub(crate) fn all_points() -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for text in [TWO_PATH, SINGLE_PATH, UNEQUAL_PATHS] {
        for row in csv::Reader::from_reader(text.as_bytes()).deserialize::<PathRow>() {
            points.push(Point::from(row.context("figures of ns-2")?));
        }
    }
    for row in csv::Reader::from_reader(THREE_PATH.as_bytes()).deserialize() {
        points.push(three_path(row.context("figures of ns-2 for three paths")?));
    }
    Ok(points)
}

impl From<PathRow> for Point {
    fn from(row: PathRow) -> Point {
        let pairs = row.args.split_whitespace().filter_map(|pair| pair.split_once('='));
        Point {
            args: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            id: row.id,
            group: row.group,
            hung: row.hung,
            goodput_kbps: row.goodput_kbps,
            half_width_kbps: row.ci95,
            path1_share: Some(row.path1_share),
            retransmissions: row.rtx,
            timeouts: Some(row.timeouts),
            fast_retransmits: row.fast_rtx,
        }
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

    /// Returns `true` unless the parameter is 0.
    pub(crate) fn switch(&self, name: &str, default: &str) -> bool {
        self.arg(name, default) != "0"
    }

    /// Parses a parameter that is a number.
    pub(crate) fn number<N>(&self, name: &str, default: &str) -> anyhow::Result<N>
    where
        N: FromStr,
        N::Err: Error + Send + Sync + 'static,
    {
        let text = self.arg(name, default);
        text.parse().with_context(|| format!("parameter {name}={text}"))
    }

    /// Returns the scheme as an expression.
    pub(crate) fn scheme(&self) -> String {
        if self.group == "single-path" {
            // ns-2's base agent sends every retransmission to the other path.
            return "sctp(rtx=alternate,trigger=3)".to_owned();
        }
        let rtx = match self.arg("rtx", "4") {
            "0" => "rtx-asap",
            "1" => "rtx-same",
            "2" => "rtx-ssthresh",
            "3" => "rtx-lossrate",
            _ => "rtx-cwnd",
        };
        let name = if self.switch("pf", "0") { "cmt-pf" } else { "cmt" };
        let [sfr, cuc, dac] = ["sfr", "cuc", "dac"].map(|repair| self.switch(repair, "1"));
        format!("{name}(rtx={rtx},trigger=3,sfr={sfr},cuc={cuc},dac={dac})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_points_of_ns2_are_read() {
        let points = all_points().expect("the stored data");
        assert_eq!(points.len(), 49 + 6 + 14 + 20);
        assert_eq!(points.iter().filter(|point| point.group == "three-path").count(), 20);
    }

    #[test]
    fn every_point_names_an_existing_scheme() {
        for point in all_points().expect("the stored data") {
            assert!(anabranch_schemes::registry::parse(&point.scheme()).is_ok(), "{}", point.id);
        }
    }
}
