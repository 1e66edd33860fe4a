//! Description of a path in `--path`: its name, and its cost and limit.

use std::fmt;
use std::net::IpAddr;

use anabranch_net::interface::{LocalAddress, interface_name, local_addresses};
use anabranch_net::{LinkName, PathAddress, PathCost};

use super::calendar::Period;
use crate::quantity::read_size;

/// Maximum length of a description in bytes.
const MOST_BYTES: usize = 256;
/// Minimum and maximum limit of bytes.
const LIMITS: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000_000;

const EXAMPLE: &str = "such as wwan0,metered,limit=2GB/month,only=backup";

/// Maximum number of bytes of a link in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Bytes of IP packets, in both directions together.
    pub(super) bytes: u64,
    pub(super) period: Period,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", shown_bytes(self.bytes), self.period.name())
    }
}

/// Returns an amount with at most three digits before the point.
#[allow(clippy::cast_precision_loss)]
pub(super) fn shown_bytes(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.into_iter().find(|(unit, _)| bytes as f64 >= *unit);
    found.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{:.2} {name}", bytes as f64 / unit))
}

/// Path as the user describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathDescription {
    /// Address in its canonical form, or interface.
    name: String,
    cost: PathCost,
    limit: Option<Limit>,
}

impl PathDescription {
    /// Returns the address or interface.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the description has a cost or a limit.
    pub(crate) fn has_terms(&self) -> bool {
        self.cost != PathCost::Free || self.limit.is_some()
    }

    pub(super) fn cost(&self) -> PathCost {
        self.cost
    }

    pub(super) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Returns the link of the path.
    pub(super) fn link(&self) -> LinkName {
        match self.name.parse::<IpAddr>() {
            Ok(address) => LinkName::Address(address),
            Err(_) => LinkName::Interface(self.name.clone()),
        }
    }

    /// Returns the name under which the bytes are counted, given this machine's addresses: that of the interface, which may be
    /// named by each of its addresses.
    pub(super) fn counted_as(&self, locals: &[LocalAddress]) -> String {
        let LinkName::Address(address) = self.link() else { return self.name.clone() };
        let interface = locals.iter().find(|local| local.address == address).map(|local| &local.interface);
        interface.unwrap_or(&self.name).clone()
    }

    /// Returns `true` if a path begins at the described link.
    pub(crate) fn includes(&self, path: PathAddress) -> bool {
        match self.link() {
            LinkName::Address(address) => address == path.local,
            LinkName::Interface(name) => match interface_name(path.interface) {
                Some(interface) => interface == name,
                None => {
                    let has = |local: &LocalAddress| local.address == path.local && local.interface == name;
                    local_addresses().iter().any(has)
                }
            },
        }
    }
}

/// Terms of a description. Each can be given once.
#[derive(Default)]
struct Terms {
    is_metered: bool,
    is_backup: bool,
    limit: Option<Limit>,
}

impl Terms {
    fn add(&mut self, term: &str) -> Result<(), String> {
        let (key, value) = term.split_once('=').map_or((term, None), |(key, value)| (key, Some(value)));
        let is_twice = match (key, value) {
            ("metered", None) => std::mem::replace(&mut self.is_metered, true),
            ("only", Some("backup")) => std::mem::replace(&mut self.is_backup, true),
            ("only", _) => {
                return Err(format!("`{term}`: the only value of `only` is `backup`; write only=backup"));
            }
            ("limit", Some(limit)) => self.limit.replace(read_limit(limit)?).is_some(),
            ("limit", None) => {
                return Err("`limit` needs a size and a period, such as limit=2GB/month".to_owned());
            }
            _ => {
                return Err(format!(
                    "unknown term `{term}`; expected `metered`, `limit=SIZE/PERIOD` or `only=backup`, {EXAMPLE}"
                ));
            }
        };
        if is_twice { Err(format!("`{key}` was given twice; leave one out")) } else { Ok(()) }
    }
}

fn read_limit(text: &str) -> Result<Limit, String> {
    let (size, period) = text.split_once('/').ok_or_else(|| {
        format!("`{text}` is not a limit: a period is missing; expected a size per day, week or month, such as 2GB/month")
    })?;
    let period = Period::ALL.into_iter().find(|known| known.name() == period).ok_or_else(|| {
        format!("`{period}` is not a period; expected day, week or month, such as 2GB/month")
    })?;
    let bytes = read_size(size)?;
    if !LIMITS.contains(&bytes) {
        return Err(format!("`{size}` is not between 1 MB and 1000 TB; take a limit in this range, or none"));
    }
    Ok(Limit { bytes, period })
}

/// Reads the description of a path.
pub(crate) fn read_path(text: &str) -> Result<PathDescription, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("a path has at most {MOST_BYTES} bytes, {EXAMPLE}"));
    }
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    if name.is_empty() || name.contains('=') || name.contains(|c: char| c.is_control() || c == '/') {
        return Err(format!(
            "`{text}` does not begin with an address or interface; expected a path {EXAMPLE}"
        ));
    }
    let mut terms = Terms::default();
    for term in parts {
        terms.add(term)?;
    }
    let cost = match terms {
        Terms { is_backup: true, .. } => PathCost::Backup,
        Terms { is_metered: true, .. } => PathCost::Metered,
        Terms { .. } => PathCost::Free,
    };
    // Two forms of an address have one count.
    let name = name.parse().map_or_else(|_| name.to_owned(), |address: IpAddr| address.to_string());
    Ok(PathDescription { name, cost, limit: terms.limit })
}

/// Reads the description of a link with a cost or limit.
pub(crate) fn read_cost(text: &str) -> Result<PathDescription, String> {
    let described = read_path(text)?;
    match described.has_terms() {
        true => Ok(described),
        false => Err(format!("`{text}` has no cost or limit; expected one, {EXAMPLE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_in_any_order() {
        let backup = read_path("wwan0,metered,limit=2GB/month,only=backup").expect("a path");
        assert_eq!((backup.name(), backup.cost()), ("wwan0", PathCost::Backup));
        assert_eq!(backup.limit(), Some(Limit { bytes: 2_000_000_000, period: Period::Month }));
        assert_eq!(read_path("wwan0,only=backup,limit=2GB/month,metered"), Ok(backup));
        let plain = read_path("fd00::1").expect("a path");
        assert_eq!((plain.cost(), plain.limit(), plain.has_terms()), (PathCost::Free, None, false));
        assert_eq!(plain.link(), LinkName::Address("fd00::1".parse().expect("an address")));
        let limited = read_path("wwan0,limit=1.5GiB/day").expect("a path");
        assert_eq!((limited.cost(), limited.has_terms()), (PathCost::Free, true));
        assert_eq!(limited.limit().map(|limit| limit.to_string()), Some("1.61 GB/day".to_owned()));
    }

    #[test]
    fn forms_of_an_address_describe_one_link() {
        let forms = ["fd00::1", "fd00:0::1", "FD00:0:0:0:0:0:0:1"].map(|text| read_path(text).expect(text));
        assert_eq!([forms[1].name(), forms[2].name()], [forms[0].name(); 2]);
    }

    #[test]
    fn interface_and_its_addresses_share_a_count() {
        let Some(local) = local_addresses().into_iter().next() else { return };
        let name = |text: &str| read_path(text).expect(text).counted_as(&local_addresses());
        assert_eq!(name(&local.address.to_string()), local.interface);
        assert_eq!(name(&local.interface), local.interface);
        // An address that this machine does not have now.
        assert_eq!(name("192.0.2.77"), "192.0.2.77");
    }

    #[test]
    fn errors_name_input_cause_and_remedy() {
        for (text, cause) in [
            ("", "does not begin with"),
            (",metered", "does not begin with"),
            ("metered=1,x", "does not begin with"),
            ("../etc,metered", "does not begin with"),
            ("wwan0,", "unknown term ``"),
            ("wwan0,meterd", "unknown term `meterd`"),
            ("wwan0,metered=yes", "unknown term `metered=yes`"),
            ("wwan0,metered,metered", "`metered` was given twice"),
            ("wwan0,limit=1GB/day,limit=1GB/day", "`limit` was given twice"),
            ("wwan0,only=never", "the only value of `only` is `backup`"),
            ("wwan0,limit", "needs a size and a period"),
            ("wwan0,limit=2GB", "a period is missing"),
            ("wwan0,limit=2GB/year", "`year` is not a period"),
            ("wwan0,limit=2XB/month", "`2XB` is not a size"),
            ("wwan0,limit=-2GB/month", "is not a size"),
            ("wwan0,limit=0/month", "not between 1 MB and 1000 TB"),
            ("wwan0,limit=99999999GB/month", "not between 1 MB and 1000 TB"),
        ] {
            let error = read_path(text).expect_err(text);
            assert!(error.contains(cause), "{text}: {error}");
        }
        assert!(read_path(&format!("wwan0{}", ",metered".repeat(100))).is_err());
        assert!(read_cost("wwan0,metered").is_ok());
        assert!(read_cost("wwan0").expect_err("no term").contains("has no cost or limit"));
    }

    #[test]
    fn amounts_have_a_readable_unit() {
        let shown = [0, 999, 1_000, 1_234_567, 2_000_000_000].map(shown_bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "1.23 MB", "2.00 GB"]);
    }
}
