//! Rules and open points that the cards of several schemes name.

use crate::registry::{Choice, Equation};

const CONGESTION: &str = "crates/schemes/src/congestion/control.rs";
const REPORTS: &str = "crates/schemes/src/loss/missing_reports.rs";
const ACKS: &str = "crates/schemes/src/ack/delayed.rs";

pub(crate) const SLOW_START: Equation = Equation {
    name: "RFC 9260 section 7.2.1, slow start",
    rule: "cwnd ≤ ssthresh, and cwnd was in full use when the SACK came: cwnd += min(bytes newly acknowledged, M), with M the \
           largest DATA chunk of the path",
    place: CONGESTION,
};

pub(crate) const AVOIDANCE: Equation = Equation {
    name: "RFC 9260 section 7.2.2, congestion avoidance",
    rule: "cwnd > ssthresh: partial_bytes_acked += bytes newly acknowledged; once it reaches cwnd, and cwnd was in full use: \
           partial_bytes_acked −= cwnd, cwnd += M",
    place: CONGESTION,
};

pub(crate) const CUMULATIVE_GROWTH: Equation = Equation {
    name: "RFC 9260 section 7.2.1, growth",
    rule: "windows grow only on a SACK that advances the association's cumulative TSN",
    place: CONGESTION,
};

pub(crate) const CUT: Equation = Equation {
    name: "RFC 9260 section 7.2.3, loss",
    rule: "ssthresh = max(cwnd / 2, 4 M); fast retransmit: cwnd = ssthresh, once per window of data; T3: cwnd = M. The cut is \
           made on the path that the chunk was last sent on",
    place: CONGESTION,
};

pub(crate) const FAST_RETRANSMIT: Equation = Equation {
    name: "RFC 9260 section 7.2.4, fast retransmit",
    rule: "a SACK reports a chunk missing if its TSN < the highest TSN that the SACK newly acknowledges; at `trigger` reports it \
           is lost, once; after that only T3 finds it lost again",
    place: REPORTS,
};

pub(crate) const DELAYED_ACKS: Equation = Equation {
    name: "RFC 9260 section 6.2, delayed acknowledgements",
    rule: "a SACK for every `sack-every` packets with DATA, `sack-delay` after the first of them at the latest; at once for a \
           duplicate, for a chunk with the I bit, and for a gap",
    place: ACKS,
};

pub(crate) const PATH_FAILURE: Equation = Equation {
    name: "RFC 9260 section 8.2, path failure",
    rule: "T3 expiries and unanswered HEARTBEATs in a row > Path.Max.Retrans (5): the path is inactive until something proves \
           that it works",
    place: "crates/schemes/src/failover/plain.rs",
};

pub(crate) const WINDOW_FILL: Equation = Equation {
    name: "scheduling, as in ns-2.35",
    rule: "in each send opportunity: from the path after the one that last carried new data, round the list once, send on each \
           path while outstanding < cwnd",
    place: "crates/schemes/src/scheduler/window_fill.rs",
};

pub(crate) const SFR: Equation = Equation {
    name: "SFR, split fast retransmit",
    rule: "a SACK reports a chunk that was last sent on path p missing if it newly acknowledges something on p and the chunk's \
           TSN < the highest TSN newly acknowledged on p",
    place: REPORTS,
};

pub(crate) const CUC_SEARCH: Equation = Equation {
    name: "CUC version 2, pseudo-cumulative TSNs",
    rule: "for each path: the earliest outstanding chunk that was sent once, and the earliest that was sent again; when either \
           is acknowledged, by the cumulative TSN or by a gap block, the path's pseudo-cumulative TSN advances",
    place: "crates/core/src/association/sack_in.rs",
};

pub(crate) const CUC_GROWTH: Equation = Equation {
    name: "CUC version 2, growth",
    rule: "a path's window may grow on a SACK that advances the path's pseudo-cumulative TSN, whatever the association's does",
    place: CONGESTION,
};

pub(crate) const DAC_RECEIVER: Equation = Equation {
    name: "DAC, receiver",
    rule: "gaps do not hurry a SACK; its flags say how many packets with DATA it answers",
    place: ACKS,
};

pub(crate) const DAC_SENDER: Equation = Equation {
    name: "DAC, sender",
    rule: "a SACK that reports a chunk missing counts as many reports as packets that it answers if it acknowledges on one \
           path only and nothing below the chunk's TSN there; else it counts one",
    place: REPORTS,
};

pub(crate) const RTX_BEST: Equation = Equation {
    name: "RTX-CWND, RTX-SSTHRESH, RTX-LOSSRATE",
    rule: "of the active paths the one with the largest cwnd, the largest ssthresh, or the lowest loss rate",
    place: "crates/schemes/src/retransmit/best.rs",
};

pub(crate) const RTX_ASAP: Equation = Equation {
    name: "RTX-ASAP",
    rule: "any active path with outstanding < cwnd; of several one by coins",
    place: "crates/schemes/src/retransmit/asap.rs",
};

pub(crate) const RTX_SAME: Equation = Equation {
    name: "RTX-SAME",
    rule: "the path that it was sent on, until that one is out of service; then the next",
    place: "crates/schemes/src/retransmit/same.rs",
};

pub(crate) const CHOICE_TRIGGER: Choice = Choice {
    question: "How many missing reports make a chunk lost?",
    answer: "Three, as in RFC 9260 and as ns-2.35 is set; RFC 2960 and the text of the papers say four.",
    parameter: "trigger",
};

pub(crate) const CHOICE_AROUND: Choice = Choice {
    question: "Which floors, bounds and timers hold around it?",
    answer: "Those of the profile. `rfc9260` keeps ssthresh at 4 M or more and stops growth in fast recovery; the multipath row \
             of `ns2` has a floor of 2 M and lets windows grow there, as ns-2's CMT agent does.",
    parameter: "",
};

pub(crate) const CHOICE_SCHEDULING: Choice = Choice {
    question: "In which order do paths get new data?",
    answer: "The paper only asks for room in the path's window. Taken from ns-2, whose rule is not packet round robin: \
             consecutive TSNs go to one path, and in a steady state the path whose data was acknowledged gets the new data.",
    parameter: "",
};

pub(crate) const CHOICE_NEW_ACK: Choice = Choice {
    question: "Is a chunk that only the cumulative TSN covers an acknowledgement on its path, for SFR and DAC?",
    answer: "As the profile says: yes in `rfc9260`, no in `ns2`, which looks at gap blocks only. It decides whether DAC takes a \
             SACK for mixed, and little else: the cumulative TSN is never above a missing one.",
    parameter: "",
};

pub(crate) const CHOICE_CUC: Choice = Choice {
    question: "Which version of CUC?",
    answer: "Version 2. Version 1 follows one TSN per path, which moves back when that chunk is sent again and is wrong when it \
             goes to another path. `cuc=false` gives the standard's rule, not version 1.",
    parameter: "cuc",
};

pub(crate) const CHOICE_DAC_FLAGS: Choice = Choice {
    question: "How do a SACK's flags say how many packets it answers?",
    answer: "As a number in the whole byte, as in ns-2. Other implementations use the two top bits or a field of their own.",
    parameter: "",
};

pub(crate) const CHOICE_DAC_TIMER: Choice = Choice {
    question: "What does a SACK say that the timer sent?",
    answer: "As the profile says: the number of packets in `rfc9260`; zero in `ns2`, where the timer clears the counter before \
             the SACK is built, so that such a SACK may report nothing missing.",
    parameter: "",
};

pub(crate) const CHOICE_RTX: Choice = Choice {
    question: "Which of the five retransmission policies?",
    answer: "RTX-CWND: the paper recommends it beside RTX-SSTHRESH, and it is ns-2's default.",
    parameter: "rtx",
};

pub(crate) const CHOICE_RTX_FULL: Choice = Choice {
    question: "What if the window of the chosen path is full?",
    answer: "The chunk waits for that path, as in ns-2: there is no second choice. RTX-ASAP looks at paths with room only.",
    parameter: "rtx",
};

pub(crate) const CHOICE_RTX_TIE: Choice = Choice {
    question: "Which of several equally good paths?",
    answer: "A coin along the list of paths, as in ns-2: each path that equals the best so far takes its place with probability \
             1/2. This is even for two paths, and favours later ones of more.",
    parameter: "",
};

pub(crate) const CHOICE_LOSS_RATE: Choice = Choice {
    question: "Which loss rate does RTX-LOSSRATE compare?",
    answer: "Bytes declared lost over bytes sent on the path since it exists. ns-2 is told the true rate by its script.",
    parameter: "",
};

pub(crate) const CHOICE_TIMEOUT_MARKS: Choice = Choice {
    question: "What does a T3 expiry mark as lost?",
    answer: "Everything outstanding on its path, as in RFC 9260 and in what ns-2 runs. The papers also propose to spare chunks \
             that were sent less than an SRTT ago; ns-2 has that as a comment.",
    parameter: "",
};
