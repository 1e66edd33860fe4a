//! Components, which expressions add to a scheme with `+`. Each has one file or folder with policy, parameters and card.

use crate::definition::Component;

modules! {
    /// All components, in display order.
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
