//! Presets: the base schemes of expressions. Each has one file or folder with its own policies, parameters and card.

use crate::definition::Preset;

modules! {
    /// All presets, in display order.
    PRESETS: Preset = PRESET;
    sctp,
    naive_cmt,
    cmt,
    cmt_pf,
    a_cmt,
    db_cmt,
    cmt_dfr,
    cmt_qa,
    mptcp_lia,
    mptcp_olia,
    mptcp_balia,
    mptcp_ns2,
    cmt_rpv1,
    cmt_rpv2,
    smt_afr,
    bonded,
    braid,
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;
