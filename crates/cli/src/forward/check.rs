//! `anabranch forward --check`: a measurement of each link alone, and of all together.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_forward::{MeasureBounds, Measured, configure, greet, measure};
use anabranch_net::{Config, PathAddress, udp_address};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::endpoint::{ConnectOptions, Connecting, FailedAttempt, through};
use crate::exit::{CommandError, Status};
use crate::output::{self, count};
use crate::table::TextTable;

/// Default amount of a measurement in each direction.
const BYTES: u32 = 16_000_000;
/// Default amount over links with a cost or limit.
const COSTLY_BYTES: u32 = 1_000_000;
/// Maximum time of a measurement in each direction.
const TIME: Duration = Duration::from_secs(3);
/// Time for a graceful end, after which the association is aborted.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Time for a TCP connection that shows whether a link drops UDP only.
const TCP_WITHIN: Duration = Duration::from_secs(2);

/// Reason for which a link cannot be used.
#[derive(Clone, Debug, PartialEq)]
struct Obstacle {
    /// Set if the host answers TCP over the link, and no UDP packet.
    is_udp_blocked: bool,
    /// Reason with a remedy.
    text: String,
}

/// Link, and the result of its measurement.
#[derive(Clone, Debug, PartialEq)]
struct Link {
    path: PathAddress,
    /// Property that determines the interface for outgoing packets.
    through: String,
    /// Set if the link has a cost or limit.
    is_costly: bool,
    /// Maximum number of bytes in each direction.
    bytes: u32,
    measured: Result<Measured, Obstacle>,
}

/// Results of a check.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    target: String,
    links: Vec<Link>,
    /// Name and result of all usable links together, if there are several. Without a chosen amount, links with a cost are left out.
    together: Option<(&'static str, Result<Measured, Obstacle>)>,
}

/// Parts of an attempt that all links share.
struct Check<'a> {
    target: &'a str,
    connect: &'a ConnectOptions,
    secured: Connecting,
    config: Config,
    /// Amount of each measurement, if the user has chosen it.
    bytes: Option<u32>,
}

/// Measures each link, and then all usable ones together.
pub(super) async fn check(
    target: &str,
    connect: &ConnectOptions,
    bytes: Option<u32>,
    json: bool,
) -> Result<Status, CommandError> {
    let check = Check {
        target,
        connect,
        secured: connect.secured(target)?,
        config: configure(connect.association.config()?),
        bytes,
    };
    let paths = connect.path_addresses(target).await?;
    if !json {
        output::notice(check.beginning(&paths));
    }
    let mut links = Vec::new();
    for path in paths {
        links.push(check.link(path).await);
    }
    let usable = || links.iter().filter(|link| link.measured.is_ok());
    let is_usable = usable().next().is_some();
    let joined: Vec<PathAddress> =
        usable().filter(|link| bytes.is_some() || !link.is_costly).map(|link| link.path).collect();
    let name = if joined.len() == usable().count() { "all" } else { "all without a cost" };
    let together = match joined.len() {
        0 | 1 => None,
        _ => Some((name, check.measure(&joined, bytes.unwrap_or(BYTES), &RefCell::default()).await)),
    };
    let report = Report { target: target.to_owned(), links, together };
    output::print(&if json { report.as_json().to_string() + "\n" } else { report.as_text() });
    Ok(if is_usable { Status::Success } else { Status::Failure })
}

impl Check<'_> {
    /// Returns the announcement of the measurements, with the bytes that they may use.
    fn beginning(&self, paths: &[PathAddress]) -> String {
        let megabytes = |bytes: u32| format!("{:.1} MB", 2.0 * f64::from(bytes) / 1e6);
        let is_reduced = self.bytes.is_none() && paths.iter().any(|path| self.connect.costs_bytes(*path));
        let reduced = format!(" ({} over links with a cost or limit)", megabytes(COSTLY_BYTES));
        format!(
            "measuring {} with at most {}{} and {} s each in both directions, one after another and then together; nothing is \
             forwarded",
            count(paths.len() as u64, "link", "links"),
            megabytes(self.bytes.unwrap_or(BYTES)),
            if is_reduced { &reduced } else { "" },
            TIME.as_secs() * 2,
        )
    }

    async fn link(&self, path: PathAddress) -> Link {
        let (binding, is_costly) = (RefCell::default(), self.connect.costs_bytes(path));
        let bytes = self.bytes.unwrap_or(if is_costly { COSTLY_BYTES } else { BYTES });
        let measured = self.measure(&[path], bytes, &binding).await;
        Link { path, through: binding.into_inner(), is_costly, bytes, measured }
    }

    /// Measures these paths in one association, with at most this number of bytes in each direction. Stores the binding of the first
    /// socket.
    async fn measure(
        &self,
        paths: &[PathAddress],
        bytes: u32,
        binding: &RefCell<String>,
    ) -> Result<Measured, Obstacle> {
        let bounds = MeasureBounds { bytes, time: TIME };
        let tried = self.connect.try_over(paths, (&self.config, &self.secured), async |endpoint| {
            binding.replace(through(&endpoint));
            let association =
                self.connect.connect(&endpoint, self.target, paths, self.config.clone()).await?;
            self.secured.confirm(&association, true)?;
            let failure = |why: String| {
                FailedAttempt::from(CommandError::failure(format!(
                    "{}: {why} ({})",
                    self.target,
                    named(paths)
                )))
            };
            let connected = greet((endpoint, association)).await.map_err(|failed| failure(failed.message))?;
            let measured = measure(&connected, bounds).await;
            // Bytes that are still buffered are not needed.
            let _ = timeout(ENDS_WITHIN, connected.association().shutdown()).await;
            connected.association().abort();
            measured.map_err(|why| failure(format!("the measurement failed: {why}")))
        });
        match (tried.await, paths) {
            (Ok(measured), _) => Ok(measured),
            (Err(failed), [path]) if failed.is_unanswered() && answers_tcp(*path).await => Err(Obstacle {
                is_udp_blocked: true,
                text: format!(
                    "{}: UDP is blocked on the link of {}: the host answers TCP over it, and no UDP packet; permit UDP to \
                     port {} in its firewalls, let the gateway listen on another port, or check --from of the gateway",
                    self.target,
                    named(paths),
                    udp_address(*path).port()
                ),
            }),
            (Err(failed), _) => Err(Obstacle { is_udp_blocked: false, text: failed.error.to_string() }),
        }
    }
}

fn named(paths: &[PathAddress]) -> String {
    let one = |path: &PathAddress| format!("{} to {}", path.local, udp_address(*path));
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns `true` if the host accepts or refuses a TCP connection over this link.
async fn answers_tcp(path: PathAddress) -> bool {
    let connecting = async {
        let socket = if path.local.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        #[cfg(target_os = "linux")]
        if let Some(interface) = anabranch_net::interface::interface_name(path.interface) {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        socket.bind(SocketAddr::new(path.local, 0))?;
        socket.connect(udp_address(path)).await
    };
    match timeout(TCP_WITHIN, connecting).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the cells of a result: whether it works, and its figures.
fn cells(measured: Result<&Measured, &Obstacle>) -> Vec<String> {
    let megabits =
        |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1}", rate / 1e6));
    match measured {
        Err(Obstacle { is_udp_blocked, .. }) => {
            let works = if *is_udp_blocked { "no UDP" } else { "no" };
            std::iter::once(works.to_owned()).chain(std::iter::repeat_n(String::new(), 5)).collect()
        }
        Ok(measured) => vec![
            "yes".to_owned(),
            megabits(measured.from_gateway_bps),
            megabits(measured.to_gateway_bps),
            format!("{:.1}", milliseconds(measured.rtt)),
            measured.loaded_rtt.map_or_else(|| "-".to_owned(), |rtt| format!("{:.1}", milliseconds(rtt))),
            format!("{:.2}", measured.loss * 100.0),
        ],
    }
}

fn kilobits(rate_bps: Option<f64>) -> Option<f64> {
    rate_bps.map(|rate| rate / 1e3)
}

fn as_json(measured: Result<&Measured, &Obstacle>) -> Value {
    match measured {
        Ok(measured) => json!({
            "works": true, "rtt_ms": milliseconds(measured.rtt), "loaded_rtt_ms": measured.loaded_rtt.map(milliseconds),
            "from_gateway_kbps": kilobits(measured.from_gateway_bps), "to_gateway_kbps": kilobits(measured.to_gateway_bps),
            "loss_percent": measured.loss * 100.0, "bytes": measured.bytes,
        }),
        Err(Obstacle { is_udp_blocked, text }) => {
            json!({ "works": false, "udp_blocked": is_udp_blocked, "reason": text })
        }
    }
}

impl Report {
    fn all(&self) -> impl Iterator<Item = Result<&Measured, &Obstacle>> {
        self.links
            .iter()
            .map(|link| &link.measured)
            .chain(self.together.as_ref().map(|(_, measured)| measured))
            .map(Result::as_ref)
    }

    fn as_text(&self) -> String {
        let table = TextTable::new().text("link").text("to").text("through").text("works");
        let mut table = ["down Mbit/s", "up Mbit/s", "RTT ms", "RTT at up ms", "loss at up %"]
            .into_iter()
            .fold(table, TextTable::figure);
        for Link { path, through, measured, .. } in &self.links {
            let ends = vec![path.local.to_string(), udp_address(*path).to_string(), through.clone()];
            table.row([ends, cells(measured.as_ref())].concat());
        }
        if let Some((name, together)) = &self.together {
            let ends = vec![(*name).to_owned(), String::new(), String::new()];
            table.row([ends, cells(together.as_ref())].concat());
        }
        let obstacles = self.all().filter_map(Result::err).map(|obstacle| format!("\n{}\n", obstacle.text));
        let used: u64 = self.all().filter_map(Result::ok).map(|measured| measured.bytes).sum();
        #[allow(clippy::cast_precision_loss)]
        let used = format!("\n{:.1} MB were used.\n", used as f64 / 1e6);
        table.print() + &obstacles.collect::<String>() + &used
    }

    fn as_json(&self) -> Value {
        let link = |Link { path, through, bytes, measured, .. }: &Link| {
            let mut object = as_json(measured.as_ref());
            object["local"] = json!(path.local.to_string());
            object["remote"] = json!(udp_address(*path).to_string());
            object["through"] = json!(through);
            object["max_bytes_per_direction"] = json!(bytes);
            object
        };
        json!({
            "target": self.target, "links": self.links.iter().map(link).collect::<Vec<_>>(),
            "together": self.together.as_ref().map(|(_, together)| as_json(together.as_ref())),
            "max_time_s_per_direction": TIME.as_secs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: Measured = Measured {
        rtt: Duration::from_millis(20),
        loaded_rtt: Some(Duration::from_micros(61_250)),
        from_gateway_bps: Some(48.2e6),
        to_gateway_bps: None,
        loss: 0.0123,
        bytes: 18_000_000,
    };

    fn report() -> Report {
        let path = |local: &str| {
            let remote = "192.0.2.1:9899".parse().expect("an address");
            PathAddress::over_udp(local.parse().expect(local), remote)
        };
        let blocked = Obstacle { is_udp_blocked: true, text: "UDP is blocked".to_owned() };
        let link = |local: &str, measured| Link {
            path: path(local),
            through: "wlan0".to_owned(),
            is_costly: false,
            bytes: BYTES,
            measured,
        };
        Report {
            target: "example.org".to_owned(),
            links: vec![link("10.0.0.1", Ok(MEASURED)), link("10.0.1.1", Err(blocked))],
            together: Some(("all", Ok(MEASURED))),
        }
    }

    #[test]
    fn text_has_a_line_for_each_link_its_obstacle_and_the_bytes_used() {
        let text = report().as_text();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let figures = ["yes", "48.2", "-", "20.0", "61.2", "1.23"];
        let first = [&["10.0.0.1", "192.0.2.1:9899", "wlan0"], &figures[..]].concat();
        assert!(rows.contains(&first), "{text}");
        assert!(rows.contains(&vec!["10.0.1.1", "192.0.2.1:9899", "wlan0", "no", "UDP"]), "{text}");
        assert!(rows.contains(&[&["all"], &figures[..]].concat()), "{text}");
        assert!(text.ends_with("\nUDP is blocked\n\n36.0 MB were used.\n"), "{text}");
    }

    #[test]
    fn json_has_the_bounds_and_the_result_of_each_link() {
        let json = report().as_json();
        assert_eq!(json["links"][0]["loss_percent"], 1.23);
        assert_eq!(json["links"][0]["to_gateway_kbps"], Value::Null);
        let blocked = &json["links"][1];
        assert_eq!((&blocked["works"], &blocked["udp_blocked"]), (&false.into(), &true.into()));
        assert_eq!(json["together"]["from_gateway_kbps"], 48.2e3);
        assert_eq!(json["links"][0]["max_bytes_per_direction"], 16_000_000);
    }
}
