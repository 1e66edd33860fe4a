//! Components: what can be added to a scheme with `+`, one file or folder each, with policy, parameters and card.

use crate::definition::Component;

modules! {
    /// All components, in the order in which they are listed.
    COMPONENTS: Component = COMPONENT;
    round_robin,
    weighted,
    min_rtt,
    ecf,
    blest,
    sttf,
    otias,
    redundant,
    min_rtt_var,
    acpf,
    stms,
    dems,
    backup,
    cubic,
    bbr,
    copa,
    rack,
    nr_sack,
    split,
    opportunistic,
    rescheduling,
    xlink,
    paced,
}

#[cfg(test)]
mod tests;
