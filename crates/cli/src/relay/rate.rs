//! Rates of a link.

use crate::quantity;
use anabranch_core::time::Rate;

/// Reads the rate of a link. `key` is its name in errors.
pub(super) fn read_rate(key: &str, text: &str) -> Result<Rate, String> {
    let rate = quantity::read_rate(text).map_err(|error| format!("`{key}`: {error}"))?;
    if rate.as_bps() == 0 {
        return Err(format!(
            "`{key}`: a link that sends nothing; write a rate such as `10Mbit`, and cut it with `--cut`"
        ));
    }
    Ok(rate)
}
