//! Application of costs and limits while a command runs: uses of links for its endpoints, counts of their bytes, and bars of links
//! whose limit is used up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use anabranch_net::interface::local_addresses;
use anabranch_net::{Endpoint, LinkName, LinkReport, LinkUse, Monitor, PathCost};
use anabranch_observe::{LinkCost, LinkCostSource, LinkLimit, Usage};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::MissedTickBehavior;

use super::calendar::Day;
use super::description::{PathDescription, shown_bytes};
use super::meter::{Meter, MeterError};
use crate::exit::CommandError;
use crate::live_output;
use crate::state_dir::state_dir;

/// Time between two counts. A limit is exceeded by at most the bytes that a link carries in this time.
const COUNT_EVERY: Duration = Duration::from_millis(200);
/// Time between two counts if no link has a limit, and between two accesses to the file of a link that carries nothing.
const IDLE_EVERY: Duration = Duration::from_secs(2);

/// Costs and limits of a command's links. Clones of its options share them, and so do all its endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Locked during accesses to files, so only threads for blocking calls lock it.
    meters: Mutex<LinkMeters>,
    /// Never locked while a file is accessed.
    endpoints: Mutex<Endpoints>,
    /// Copy of the links' states for readers. Never locked while a file is accessed.
    states: Mutex<Vec<LinkCost>>,
}

/// Links with a cost or limit.
#[derive(Debug, Default)]
struct LinkMeters(Vec<LimitedLink>);

#[derive(Debug, Default)]
struct Endpoints {
    counted: Vec<CountedEndpoint>,
    last_number: u64,
    is_running: bool,
}

/// Endpoint with the bytes of each link that are counted already.
#[derive(Debug)]
struct CountedEndpoint {
    number: u64,
    monitor: Monitor,
    bytes: BTreeMap<LinkName, u64>,
}

/// Report of an endpoint.
struct Report {
    number: u64,
    is_gone: bool,
    links: Vec<LinkReport>,
}

/// Link with a cost or limit.
#[derive(Debug)]
struct LimitedLink {
    name: String,
    link: LinkName,
    cost: PathCost,
    /// Bytes of this command.
    bytes: u64,
    meter: Option<Meter>,
    /// Bytes that are not stored, because the last count has failed.
    pending: u64,
    /// Set while the count cannot be read or stored.
    is_uncounted: bool,
    /// Time of the last access to the file.
    accessed: Instant,
}

/// Returns the state of a link in one line.
pub(crate) fn link_text(link: &LinkCost) -> String {
    let LinkCost { name, usage, bytes, limit } = link;
    let carried = format!("{name} ({}): {} carried", usage.name(), shown_bytes(*bytes));
    let Some(LinkLimit { used_bytes, limit_bytes, period, until }) = limit else { return carried };
    let (used, most) = (shown_bytes(*used_bytes), shown_bytes(*limit_bytes));
    format!("{carried}, {used} of {most} per {period} used in the period that ends before {until}")
}

/// Returns the state of a link for programs.
pub(crate) fn link_object(link: &LinkCost) -> Value {
    json!({ "event": "link", "name": link.name, "usage": link.usage, "bytes": link.bytes, "limit": link.limit })
}

impl LimitedLink {
    fn open(path: &PathDescription, folder: &Path, today: Day) -> Result<Self, MeterError> {
        let open = |limit| Meter::open(folder, &path.counted_as(&local_addresses()), limit, today);
        let meter = path.limit().map(open).transpose()?;
        Ok(LimitedLink {
            name: path.name().to_owned(),
            link: path.link(),
            cost: path.cost(),
            bytes: 0,
            meter,
            pending: 0,
            is_uncounted: false,
            accessed: Instant::now(),
        })
    }

    fn usage(&self) -> LinkUse {
        match &self.meter {
            Some(meter) if meter.is_used_up() || self.is_uncounted => LinkUse::Barred,
            _ => LinkUse::At(self.cost),
        }
    }

    /// Counts bytes, and those of a failed count again. Returns a notice about a change.
    fn count(&mut self, today: Day, bytes: u64) -> Option<String> {
        self.bytes += bytes;
        let before = self.usage();
        let meter = self.meter.as_mut()?;
        self.accessed = Instant::now();
        self.pending = self.pending.saturating_add(bytes);
        let failed = meter.count(today, self.pending).err().map(|error| error.to_string());
        if failed.is_none() {
            self.pending = 0;
        }
        let is_new = failed.is_some() && !self.is_uncounted;
        self.is_uncounted = failed.is_some();
        match (before, self.usage()) {
            _ if is_new => failed
                .map(|why| format!("{}: not used, because its bytes cannot be counted: {why}", self.name)),
            (LinkUse::At(_), LinkUse::Barred) => Some(self.used_up()),
            (LinkUse::Barred, LinkUse::At(_)) => Some(format!("{}: the link is used again", self.name)),
            _ => None,
        }
    }

    /// Counts pending bytes, and returns the rest of the reservation. The rest stays used if a count fails.
    fn close(&mut self, today: Day) -> Option<String> {
        let notice = if self.pending > 0 { self.count(today, 0) } else { None };
        if let Some(meter) = self.meter.as_mut().filter(|_| self.pending == 0) {
            let _ = meter.close(today);
        }
        notice
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

impl LinkMeters {
    /// Opens the links with a cost or limit, once for a command. Returns notices about links that are not used.
    fn open(&mut self, paths: &[PathDescription], today: Day) -> Result<Vec<String>, CommandError> {
        if !self.0.is_empty() {
            return Ok(self.count(&BTreeMap::new(), today, Duration::ZERO));
        }
        let folder = match paths.iter().any(|path| path.limit().is_some()) {
            true => folder()?,
            false => PathBuf::new(),
        };
        self.open_in(&folder, paths, today)?;
        Ok(self.0.iter().filter(|link| link.usage() == LinkUse::Barred).map(LimitedLink::used_up).collect())
    }

    fn open_in(&mut self, folder: &Path, paths: &[PathDescription], today: Day) -> Result<(), CommandError> {
        for path in paths.iter().filter(|path| path.has_terms()) {
            if let Err(error) = self.add(path, folder, today) {
                // Reservations of the other links are returned.
                self.close(today);
                self.0.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &PathDescription, folder: &Path, today: Day) -> Result<(), CommandError> {
        let name = path.name();
        if self.0.iter().any(|other| other.name == name) {
            return Err(CommandError::usage(format!("{name}: the link was named twice; leave one out")));
        }
        let link = LimitedLink::open(path, folder, today);
        self.0.push(link.map_err(|error| CommandError::failure(format!("{name}: {error}")))?);
        Ok(())
    }

    /// Counts new bytes. A link without new bytes is counted if its file was not accessed for `idle`, because a new period may have
    /// begun, and other commands may have used the link. Returns notices about changes.
    fn count(&mut self, new: &BTreeMap<LinkName, u64>, today: Day, idle: Duration) -> Vec<String> {
        let mut notices = Vec::new();
        for link in &mut self.0 {
            let bytes = new.get(&link.link).copied().unwrap_or(0);
            if bytes > 0 || link.accessed.elapsed() >= idle {
                notices.extend(link.count(today, bytes));
            }
        }
        notices
    }

    fn close(&mut self, today: Day) -> Vec<String> {
        self.0.iter_mut().filter_map(|link| link.close(today)).collect()
    }

    fn uses(&self) -> Vec<(LinkName, LinkUse)> {
        self.0.iter().map(|link| (link.link.clone(), link.usage())).collect()
    }
}

impl CountedEndpoint {
    /// Adds the bytes since the last report to `new`.
    fn add_new(&mut self, links: &[LinkReport], new: &mut BTreeMap<LinkName, u64>) {
        for report in links {
            let counted = self.bytes.entry(report.name.clone()).or_default();
            let all = report.sent_bytes + report.received_bytes;
            *new.entry(report.name.clone()).or_default() += all.saturating_sub(*counted);
            *counted = all.max(*counted);
        }
    }
}

impl Endpoints {
    fn add(&mut self, monitor: Monitor) {
        self.last_number += 1;
        let bytes = BTreeMap::new();
        self.counted.push(CountedEndpoint { number: self.last_number, monitor, bytes });
    }

    /// Returns the bytes of each link since the last reports, and removes endpoints that have ended.
    fn new_bytes(&mut self, reports: &[Report]) -> BTreeMap<LinkName, u64> {
        let mut new = BTreeMap::new();
        for report in reports {
            let counted = self.counted.iter_mut().find(|counted| counted.number == report.number);
            if let Some(counted) = counted {
                counted.add_new(&report.links, &mut new);
            }
            self.counted.retain(|counted| counted.number != report.number || !report.is_gone);
        }
        new
    }

    fn monitors(&self) -> Vec<(u64, Monitor)> {
        self.counted.iter().map(|counted| (counted.number, counted.monitor.clone())).collect()
    }
}

impl Shared {
    fn endpoints(&self) -> MutexGuard<'_, Endpoints> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> MutexGuard<'_, Vec<LinkCost>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the links, prints the returned notices, and passes the new uses and states on.
    fn change(
        &self,
        change: impl FnOnce(&mut LinkMeters) -> Result<Vec<String>, CommandError>,
    ) -> Result<Vec<(LinkName, LinkUse)>, CommandError> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let notices = change(&mut meters)?;
        *self.states() = meters.0.iter().map(LimitedLink::state).collect();
        let uses = meters.uses();
        for (_, monitor) in self.endpoints().monitors() {
            for (link, usage) in &uses {
                // A use that is set already changes nothing.
                monitor.set_link_use(link.clone(), *usage);
            }
        }
        drop(meters);
        for notice in notices {
            live_output::notice(anabranch_transfer::escape(&notice));
        }
        Ok(uses)
    }

    /// Calls [`change`](Self::change) in a thread for blocking calls, because it accesses files.
    async fn change_blocking(
        self: &Arc<Self>,
        change: impl FnOnce(&mut LinkMeters) -> Result<Vec<String>, CommandError> + Send + 'static,
    ) -> Result<Vec<(LinkName, LinkUse)>, CommandError> {
        let shared = Arc::clone(self);
        let changing = tokio::task::spawn_blocking(move || shared.change(change)).await;
        changing.unwrap_or_else(|failed| Err(CommandError::failure(format!("costs of links: {failed}"))))
    }

    /// Counts the bytes of all endpoints.
    async fn count_all(self: &Arc<Self>) {
        let mut reports = Vec::new();
        let monitors = self.endpoints().monitors();
        for (number, monitor) in monitors {
            let is_gone = monitor.is_gone();
            reports.push(Report { number, is_gone, links: monitor.links().await });
        }
        let new = self.endpoints().new_bytes(&reports);
        let count = move |meters: &mut LinkMeters| Ok(meters.count(&new, today(), IDLE_EVERY));
        // A failed count gives a notice and bars the link.
        let _ = self.change_blocking(count).await;
    }
}

impl Costs {
    /// Returns the uses of these paths' links for a new endpoint.
    ///
    /// # Errors
    /// Returns an error if a path is named twice, or the count of a limited link cannot be read or stored.
    pub(crate) async fn uses(
        &self,
        paths: &[PathDescription],
    ) -> Result<Vec<(LinkName, LinkUse)>, CommandError> {
        if !paths.iter().any(PathDescription::has_terms) {
            return Ok(Vec::new());
        }
        let paths = paths.to_vec();
        self.0.change_blocking(move |meters| meters.open(&paths, today())).await
    }

    /// Counts the bytes of an endpoint until it ends, and applies limits to it. Call it in a runtime.
    pub(crate) fn watch(&self, endpoint: &Endpoint) {
        let has_limits = self.0.states().iter().any(|link| link.limit.is_some());
        if self.0.states().is_empty() {
            return;
        }
        let mut endpoints = self.0.endpoints();
        endpoints.add(endpoint.monitor());
        if !std::mem::replace(&mut endpoints.is_running, true) {
            let every = if has_limits { COUNT_EVERY } else { IDLE_EVERY };
            tokio::spawn(run(Arc::downgrade(&self.0), every));
        }
    }

    /// Runs a command, and counts the last bytes of its links, also after a failure. Returns the result, and the states of all links
    /// with a cost or limit.
    pub(crate) fn block_on<T>(
        &self,
        runtime: &Runtime,
        command: impl Future<Output = T>,
    ) -> (T, Vec<LinkCost>) {
        runtime.block_on(async {
            let ended = command.await;
            (ended, self.finish().await)
        })
    }

    /// Counts the last bytes, and returns the states of all links with a cost or limit.
    async fn finish(&self) -> Vec<LinkCost> {
        if self.0.states().is_empty() {
            return Vec::new();
        }
        self.0.count_all().await;
        self.0.endpoints().counted.clear();
        let _ = self.0.change_blocking(|meters| Ok(meters.close(today()))).await;
        self.states()
    }

    /// Returns the states of all links with a cost or limit on request.
    pub(crate) fn source(&self) -> LinkCostSource {
        let costs = self.clone();
        Arc::new(move || costs.states())
    }

    /// Returns the states of all links with a cost or limit at the last count.
    fn states(&self) -> Vec<LinkCost> {
        self.0.states().clone()
    }
}

fn today() -> Day {
    Day::of(SystemTime::now())
}

fn folder() -> Result<PathBuf, CommandError> {
    let folder = state_dir().ok_or_else(|| {
        CommandError::failure("a limit of a link is counted in XDG_STATE_HOME, and neither it nor a home folder is known: set one")
    })?;
    Ok(folder.join("anabranch").join("links"))
}

/// Counts and applies limits until the command forgets its costs.
async fn run(shared: Weak<Shared>, every: Duration) {
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        shared.count_all().await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::read_path;
    use super::*;

    fn day(text: &str) -> Day {
        Day::read(text).expect(text)
    }

    fn open(folder: &Path, description: &str) -> LimitedLink {
        let path = read_path(description).expect("a path");
        LimitedLink::open(&path, folder, day("2026-11-28")).expect("it opens")
    }

    fn used(link: &LimitedLink) -> u64 {
        link.state().limit.expect("a limit").used_bytes
    }

    #[test]
    fn link_is_barred_until_the_bytes_of_a_failed_count_are_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut link = open(folder.path(), "wwan0,limit=1GB/month");
        let blocker = folder.path().join("wwan0.new");
        std::fs::create_dir(&blocker).expect("a folder in place of the file");
        let notice = link.count(day("2026-11-28"), 5_000_000).expect("a notice");
        assert!(notice.contains("cannot be counted"), "{notice}");
        for _ in 0..3 {
            assert_eq!(link.count(day("2026-11-28"), 0), None);
            assert_eq!(link.usage(), LinkUse::Barred);
        }
        assert_eq!(link.count(day("2026-11-28"), 1_000), None);
        std::fs::remove_dir(&blocker).expect("it is removed");
        assert_eq!(link.count(day("2026-11-28"), 0), Some("wwan0: the link is used again".to_owned()));
        assert_eq!(link.usage(), LinkUse::At(PathCost::Free));
        assert_eq!((used(&link), link.bytes), (5_001_000, 5_001_000));
        assert_eq!(link.close(day("2026-11-28")), None);
        assert_eq!(used(&open(folder.path(), "wwan0,limit=1GB/month")), 5_001_000);
    }

    #[test]
    fn end_of_a_command_stores_pending_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut link = open(folder.path(), "wwan0,limit=1GB/month");
        let blocker = folder.path().join("wwan0.new");
        std::fs::create_dir(&blocker).expect("a folder in place of the file");
        link.count(day("2026-11-28"), 5_000_000);
        std::fs::remove_dir(&blocker).expect("it is removed");
        assert!(link.close(day("2026-11-28")).is_some());
        assert_eq!(used(&open(folder.path(), "wwan0,limit=1GB/month")), 5_000_000);
    }

    #[test]
    fn error_in_one_link_returns_the_reservations_of_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["wwan0,limit=1GB/month", "wwan0,metered"].map(|text| read_path(text).expect("a path"));
        let mut meters = LinkMeters::default();
        let error = meters.open_in(folder.path(), &paths, day("2026-11-28")).expect_err("a name given twice");
        assert!(error.to_string().contains("named twice"), "{error}");
        assert!(meters.0.is_empty());
        assert_eq!(used(&open(folder.path(), "wwan0,limit=1GB/month")), 0);
    }

    #[test]
    fn idle_link_leaves_its_file_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meters = LinkMeters(vec![open(folder.path(), "wwan0,limit=1GB/month")]);
        std::fs::remove_file(folder.path().join("wwan0.json")).expect("a file");
        std::fs::create_dir(folder.path().join("wwan0.json")).expect("a folder in place of the file");
        let hour = Duration::from_secs(3600);
        assert!(meters.count(&BTreeMap::new(), day("2026-11-28"), hour).is_empty());
        assert_eq!(meters.count(&BTreeMap::new(), day("2026-11-28"), Duration::ZERO).len(), 1);
    }

    #[test]
    fn states_are_read_while_a_file_is_accessed() {
        let costs = Costs::default();
        let folder = tempfile::tempdir().expect("a folder");
        let link = open(folder.path(), "wwan0,limit=1GB/month");
        let opened = costs.0.change(|meters| {
            meters.0.push(link);
            Ok(Vec::new())
        });
        assert_eq!(opened.expect("it opens").len(), 1);
        let _accessed = costs.0.meters.lock().expect("no other user");
        assert_eq!(costs.source()().len(), 1);
    }
}
