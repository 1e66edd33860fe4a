//! Subjects of measurements.

use clap::{Args, Subcommand};

use crate::transfer::Transfer;
use crate::{Failure, crowd, process};

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Mbit/s of a transfer.
    Rate(Transfer),
    /// Processor seconds of a transfer.
    Cpu(Transfer),
    Crowd(Measure),
}

impl Subject {
    pub(crate) fn measure(&self) -> Result<f64, Failure> {
        match self {
            Subject::Rate(transfer) => transfer.rate(),
            Subject::Cpu(transfer) => transfer.cpu_seconds(),
            Subject::Crowd(measure) => process::figure_of(&measure.arguments()),
        }
    }
}

/// A measurement of many associations, in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Subcommand)]
pub(crate) enum Measure {
    /// Mbit/s of associations of one endpoint with a peer each, all sending.
    Rate(Crowd),
    /// Resident bytes of one endpoint for each of its idle associations.
    IdleBytes(Crowd),
    /// Share of a processor that idle associations of one endpoint use.
    IdleCpu(Crowd),
}

/// Many associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Args)]
pub(crate) struct Crowd {
    #[arg(long)]
    pub(crate) associations: u32,
}

impl Measure {
    pub(crate) async fn run(self) -> Result<f64, Failure> {
        match self {
            Measure::Rate(crowd) => crowd::rate(crowd).await,
            Measure::IdleBytes(crowd) => crowd::idle_bytes(crowd).await,
            Measure::IdleCpu(crowd) => crowd::idle_cpu(crowd).await,
        }
    }

    pub(crate) fn arguments(self) -> [String; 4] {
        let (name, crowd) = match self {
            Measure::Rate(crowd) => ("rate", crowd),
            Measure::IdleBytes(crowd) => ("idle-bytes", crowd),
            Measure::IdleCpu(crowd) => ("idle-cpu", crowd),
        };
        ["measure", name, "--associations", &crowd.associations.to_string()].map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::table::ROWS;
    use crate::{Action, Arguments};

    #[test]
    fn the_measurements_of_the_table_are_read_back_from_their_arguments() {
        let subjects = ROWS.iter().flat_map(|row| row.subjects());
        let measures = subjects.filter_map(|subject| match subject {
            Subject::Crowd(measure) => Some(measure),
            Subject::Rate(_) | Subject::Cpu(_) => None,
        });
        for measure in measures {
            let words = ["bench-wire".to_owned()].into_iter().chain(measure.arguments());
            match Arguments::try_parse_from(words).expect("arguments").action {
                Action::Measure(read) => assert_eq!(read, measure),
                other => panic!("{other:?}"),
            }
        }
    }
}
