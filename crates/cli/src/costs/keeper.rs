//! Application of costs and limits while a command runs: uses of links for its endpoints, counts of their bytes, and bars of links
//! whose limit is used up.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use anabranch_net::{Endpoint, LinkName, LinkReport, LinkUse, Monitor, PathCost};
use anabranch_observe::{LinkCost, LinkCostSource, LinkLimit, Usage};
use serde_json::{Value, json};

use super::calendar::Day;
use super::description::{PathDescription, shown_bytes};
use super::meter::{Meter, MeterError};
use crate::exit::CommandError;
use crate::live_output;
use crate::state_dir::state_dir;

/// Time between two counts. A limit is exceeded by at most the bytes that a link carries in this time.
const COUNT_EVERY: Duration = Duration::from_millis(200);

/// Costs and limits of a command's links. Clones of its options share them, and so do all its endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    links: Vec<KeptLink>,
    endpoints: Vec<Counted>,
    last_endpoint: u64,
    is_running: bool,
}

/// Endpoint with the bytes of each link that are counted already.
#[derive(Debug)]
struct Counted {
    number: u64,
    monitor: Monitor,
    bytes: Vec<u64>,
}

/// Link with a cost or limit.
#[derive(Debug)]
struct KeptLink {
    name: String,
    link: LinkName,
    cost: PathCost,
    /// Bytes of this command.
    bytes: u64,
    meter: Option<Meter>,
    /// Set while the bytes cannot be stored.
    is_uncounted: bool,
}

/// Returns the state of a link in one line.
pub(crate) fn link_text(link: &LinkCost) -> String {
    let LinkCost { name, usage, bytes, limit } = link;
    let carried = format!("{name} ({}): {} carried", usage.name(), shown_bytes(*bytes));
    let Some(LinkLimit { used_bytes, limit_bytes, period, until }) = limit else { return carried };
    let (used, most) = (shown_bytes(*used_bytes), shown_bytes(*limit_bytes));
    format!("{carried}, {used} of {most} per {period} used until {until}")
}

/// Returns the state of a link for programs.
pub(crate) fn link_object(link: &LinkCost) -> Value {
    json!({ "event": "link", "name": link.name, "usage": link.usage, "bytes": link.bytes, "limit": link.limit })
}

impl KeptLink {
    fn open(path: &PathDescription, folder: &std::path::Path, today: Day) -> Result<Self, MeterError> {
        let limit = path.limit();
        let meter = limit.map(|limit| Meter::open(folder, path.name(), limit, today)).transpose()?;
        Ok(KeptLink {
            name: path.name().to_owned(),
            link: path.link(),
            cost: path.cost(),
            bytes: 0,
            meter,
            is_uncounted: false,
        })
    }

    fn usage(&self) -> LinkUse {
        match &self.meter {
            Some(meter) if meter.is_used_up() || self.is_uncounted => LinkUse::Barred,
            _ => LinkUse::At(self.cost),
        }
    }

    /// Counts bytes. Returns a notice about a change.
    fn count(&mut self, today: Day, bytes: u64) -> Option<String> {
        self.bytes += bytes;
        let before = self.usage();
        let meter = self.meter.as_mut()?;
        let counted = meter.count(today, bytes);
        let failed = counted.as_ref().err().map(ToString::to_string);
        let is_news = failed.is_some() && !self.is_uncounted;
        self.is_uncounted = failed.is_some();
        match (before, self.usage()) {
            _ if is_news => failed
                .map(|why| format!("{}: not used, because its bytes cannot be counted: {why}", self.name)),
            (LinkUse::At(_), LinkUse::Barred) => Some(self.used_up()),
            (LinkUse::Barred, LinkUse::At(_)) => Some(format!("{}: used again", self.name)),
            _ => None,
        }
    }

    fn used_up(&self) -> String {
        let until =
            self.meter.as_ref().map(|meter| (meter.limit().to_string(), meter.usage().until.to_string()));
        let (limit, until) = until.unwrap_or_default();
        format!("{}: its limit of {limit} is used up; it is not used before {until} (UTC)", self.name)
    }

    fn state(&self) -> LinkCost {
        let usage = match self.usage() {
            LinkUse::At(cost) => cost.into(),
            LinkUse::Barred => Usage::Barred,
        };
        let limit = self.meter.as_ref().map(|meter| LinkLimit {
            used_bytes: meter.usage().used_bytes,
            limit_bytes: meter.limit().bytes,
            period: meter.limit().period.name().to_owned(),
            until: meter.usage().until.to_string(),
        });
        LinkCost { name: self.name.clone(), usage, bytes: self.bytes, limit }
    }
}

impl Kept {
    /// Opens the links with a cost or limit, once for a command.
    fn open(&mut self, paths: &[PathDescription]) -> Result<(), CommandError> {
        let with_terms: Vec<&PathDescription> = paths.iter().filter(|path| path.has_terms()).collect();
        if !self.links.is_empty() || with_terms.is_empty() {
            return Ok(());
        }
        let folder = match with_terms.iter().any(|path| path.limit().is_some()) {
            true => folder()?,
            false => PathBuf::new(),
        };
        let mut links: Vec<KeptLink> = Vec::new();
        for path in with_terms {
            if links.iter().any(|other| other.name == path.name()) {
                return Err(CommandError::usage(format!(
                    "--path {}: it was named twice; leave one out",
                    path.name()
                )));
            }
            let link = KeptLink::open(path, &folder, Day::of(SystemTime::now()));
            let link =
                link.map_err(|error| CommandError::failure(format!("--path {}: {error}", path.name())))?;
            if link.usage() == LinkUse::Barred {
                live_output::notice(anabranch_transfer::escape(&link.used_up()));
            }
            links.push(link);
        }
        self.links = links;
        Ok(())
    }

    /// Counts the bytes that an endpoint reports. Returns notices about changes.
    fn count(&mut self, number: u64, reports: &[LinkReport]) -> Vec<String> {
        let today = Day::of(SystemTime::now());
        let counted = self.endpoints.iter_mut().find(|counted| counted.number == number);
        let Some(counted) = counted else { return Vec::new() };
        let mut notices = Vec::new();
        for (index, link) in self.links.iter_mut().enumerate() {
            let report = reports.iter().find(|report| report.name == link.link);
            let all = report.map_or(0, |report| report.sent_bytes + report.received_bytes);
            let new = all.saturating_sub(counted.bytes[index]);
            counted.bytes[index] = counted.bytes[index].max(all);
            notices.extend(link.count(today, new));
        }
        notices
    }

    /// Applies the current uses to all endpoints. A use that is set already changes nothing.
    fn apply(&self) {
        for counted in &self.endpoints {
            for link in &self.links {
                counted.monitor.set_link_use(link.link.clone(), link.usage());
            }
        }
    }
}

impl Costs {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the uses of these paths' links for a new endpoint.
    ///
    /// # Errors
    /// Returns an error if a path is named twice, or the count of a limited link cannot be read or stored.
    pub(crate) fn uses(&self, paths: &[PathDescription]) -> Result<Vec<(LinkName, LinkUse)>, CommandError> {
        let mut kept = self.lock();
        kept.open(paths)?;
        let today = Day::of(SystemTime::now());
        for link in &mut kept.links {
            // A new period may have begun, and other commands may have used the link.
            link.count(today, 0);
        }
        Ok(kept.links.iter().map(|link| (link.link.clone(), link.usage())).collect())
    }

    /// Counts the bytes of an endpoint until it ends, and applies limits to it. Call it in a runtime.
    pub(crate) fn keep(&self, endpoint: &Endpoint) {
        let mut kept = self.lock();
        if kept.links.is_empty() {
            return;
        }
        let bytes = vec![0; kept.links.len()];
        kept.last_endpoint += 1;
        let number = kept.last_endpoint;
        kept.endpoints.push(Counted { number, monitor: endpoint.monitor(), bytes });
        if !std::mem::replace(&mut kept.is_running, true) {
            tokio::spawn(run(Arc::downgrade(&self.0)));
        }
    }

    /// Counts the last bytes at the end of a command, and returns the states of all links with a cost or limit.
    pub(crate) async fn finish(&self) -> Vec<LinkCost> {
        count_all(&self.0).await;
        let today = Day::of(SystemTime::now());
        for meter in self.lock().links.iter_mut().filter_map(|link| link.meter.as_mut()) {
            // The rest of the reservation stays used if it cannot be returned.
            let _ = meter.close(today);
        }
        self.states()
    }

    /// Returns the states of all links with a cost or limit on request.
    pub(crate) fn source(&self) -> LinkCostSource {
        let costs = self.clone();
        Arc::new(move || costs.states())
    }

    /// Returns the states of all links with a cost or limit.
    fn states(&self) -> Vec<LinkCost> {
        self.lock().links.iter().map(KeptLink::state).collect()
    }
}

fn folder() -> Result<PathBuf, CommandError> {
    let folder = state_dir().ok_or_else(|| {
        CommandError::failure("--path: a limit is counted in XDG_STATE_HOME, and neither it nor a home folder is known: set one")
    })?;
    Ok(folder.join("anabranch").join("links"))
}

/// Counts and applies limits until the command forgets its costs.
async fn run(kept: Weak<Mutex<Kept>>) {
    let mut tick = tokio::time::interval(COUNT_EVERY);
    loop {
        tick.tick().await;
        let Some(kept) = kept.upgrade() else { return };
        count_all(&kept).await;
    }
}

async fn count_all(kept: &Arc<Mutex<Kept>>) {
    let mut reports = Vec::new();
    for (number, monitor) in endpoints(kept) {
        let is_gone = monitor.is_gone();
        reports.push((number, is_gone, monitor.links().await));
    }
    let kept = Arc::clone(kept);
    // Counting writes a file.
    let counting = tokio::task::spawn_blocking(move || {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notices = Vec::new();
        for (number, is_gone, links) in reports {
            notices.extend(kept.count(number, &links));
            kept.endpoints.retain(|counted| counted.number != number || !is_gone);
        }
        kept.apply();
        drop(kept);
        for notice in notices {
            live_output::notice(anabranch_transfer::escape(&notice));
        }
    });
    let _ = counting.await;
}

fn endpoints(kept: &Mutex<Kept>) -> Vec<(u64, Monitor)> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.endpoints.iter().map(|counted| (counted.number, counted.monitor.clone())).collect()
}
