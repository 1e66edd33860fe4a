//! Scenario file of a point's setting, with the topology of ns-2 link by link.

use std::fmt::Write as _;

use crate::crossval::Point;

/// Returns the scenario of a point.
pub fn scenario_text(point: &Point) -> String {
    let mut text = format!(
        "[run]\nduration = \"{} s\"\nstart = \"0.5 s\"\nprofile = \"ns2\"\n\n\
         [association]\nrecv_buffer = \"{} B\"\nsend_buffer = \"{}\"\nordered = {}\n",
        point.arg("time", "200"),
        point.arg("rbuf", "65536"),
        send_buffer(point.arg("sbuf", "0")),
        point.arg("unord", "0") == "0",
    );
    if point.group == "three-path" {
        three_paths(point, &mut text);
    } else {
        numbered_paths(point, &mut text);
    }
    text
}

fn send_buffer(bytes: &str) -> String {
    if bytes == "0" { "unlimited".to_owned() } else { format!("{bytes} B") }
}

/// Converts rates of ns-2, such as `10Mb` and `387Kb`.
fn rate(text: &str) -> String {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "Mb" => "Mbit/s",
        "Kb" => "kbit/s",
        _ => "bit/s",
    };
    format!("{number} {unit}")
}

fn numbered_paths(point: &Point, text: &mut String) {
    let count: usize = point.arg("n", "2").parse().expect("points number their paths");
    for path in 1..=count {
        let arg = |name: &str, default| point.arg(&format!("{name}{path}"), default);
        let bottleneck = Bottleneck {
            name: format!("path-{path}"),
            rate: rate(arg("bw", "1Mb")),
            delay: arg("d", "45ms").to_owned(),
            queue: arg("q", point.arg("q", "50")).to_owned(),
            loss: arg("plr", "0.01").to_owned(),
            reverse_loss: arg("rplr", "0").to_owned(),
        };
        let direction = if arg("rev", "0") == "1" { "reverse" } else { "forward" };
        bottleneck.write(text, |text| {
            let cbr = arg("cbr", "0");
            if cbr != "0" {
                let _ = write!(
                    text,
                    "[[link.background]]\nkind = \"cbr\"\nrate = \"{}\"\npacket = \"500 B\"\njitter = 0.5\n\
                     start = \"0.1 s\"\ndirection = \"{direction}\"\n",
                    rate(cbr),
                );
            }
        });
    }
}

fn three_paths(point: &Point, text: &mut String) {
    let delays: Vec<&str> = point.arg("delays_ms", "200-200-400").split('-').collect();
    let load: f64 = point.arg("load", "0.1").parse().unwrap_or(0.1);
    let rates = [("path-a", "387Kb", 387e3), ("path-b", "10Mb", 10e6), ("path-c", "2Mb", 2e6)];
    for ((name, rate_text, bps), delay) in rates.into_iter().zip(delays) {
        let bottleneck = Bottleneck {
            name: name.to_owned(),
            rate: rate(rate_text),
            delay: format!("{delay}ms"),
            queue: "50".to_owned(),
            loss: point.arg("plr", "0.02").to_owned(),
            reverse_loss: "0".to_owned(),
        };
        // Sources are on half of the time: each of the eight sends at twice its share of the load.
        let source_bps = (2.0 * load * bps / 8.0).round();
        bottleneck.write(text, |text| {
            for (packet, count) in [(44, 4), (576, 2), (1500, 2)] {
                let fragment = if packet > 1000 { "fragment = \"1000 B\"\n" } else { "" };
                let _ = write!(
                    text,
                    "[[link.background]]\nkind = \"pareto\"\nrate = \"{source_bps} bit/s\"\npacket = \"{packet} B\"\n{fragment}\
                     burst = \"500 ms\"\nidle = \"500 ms\"\nshape = 1.5\nstart = \"0.1 s\"\n\
                     count = {count}\n",
                );
            }
        });
    }
}

struct Bottleneck {
    name: String,
    rate: String,
    delay: String,
    queue: String,
    loss: String,
    reverse_loss: String,
}

impl Bottleneck {
    /// Writes the bottleneck between two access links of 100 Mbit/s and 1 us, as in the script.
    fn write(&self, text: &mut String, background: impl FnOnce(&mut String)) {
        let Bottleneck { name, rate, delay, queue, loss, reverse_loss } = self;
        for end in ["left", "right"] {
            let _ = write!(
                text,
                "\n[[link]]\nname = \"{name}-{end}\"\nrate = \"100 Mbit/s\"\ndelay = \"1 us\"\nqueue = \"50 packets\"\n",
            );
        }
        let _ = write!(
            text,
            "\n[[link]]\nname = \"{name}-middle\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue} packets\"\n\
             loss = [{{ model = \"bernoulli\", rate = {loss}, where = \"before-queue\", direction = \"forward\" }}, \
             {{ model = \"bernoulli\", rate = {reverse_loss}, where = \"before-queue\", direction = \"reverse\" }}]\n",
        );
        background(text);
        let _ = write!(
            text,
            "\n[[path]]\nname = \"{name}\"\nvia = [\"{name}-left\", \"{name}-middle\", \"{name}-right\"]\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossval::all_points;
    use anabranch_scenario::Scenario;

    #[test]
    fn every_point_makes_a_valid_scenario() {
        for point in all_points().expect("the repository's own data") {
            let text = scenario_text(&point);
            if let Err(error) = Scenario::parse(&text, "point.toml", &[]) {
                panic!("{}:\n{text}\n{error}", point.id);
            }
        }
    }

    #[test]
    fn rates_are_read_as_ns2_writes_them() {
        assert_eq!(["10Mb", "387Kb", "500"].map(rate), ["10 Mbit/s", "387 kbit/s", "500 bit/s"]);
    }
}
