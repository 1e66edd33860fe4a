//! Rates of a link.

use anabranch_core::time::Rate;
use anabranch_lab::scenario::units;

/// As in scenario files, or in short as tc writes it: `10Mbit`. `key` is what errors call it.
pub(super) fn read_rate(key: &str, text: &str) -> Result<Rate, String> {
    let long = if text.ends_with("bit") { format!("{text}/s") } else { text.to_owned() };
    let rate = units::parse_rate(&long).map_err(|error| format!("`{key}`: {error}"))?;
    if rate.as_bps() == 0 {
        return Err(format!(
            "`{key}`: a link that sends nothing; write a rate such as `10Mbit`, and cut it with `--cut`"
        ));
    }
    Ok(rate)
}
