//! Content of a RE-CONFIG that answers requests of the peer (RFC 6525 section 4.4).

use anabranch_wire::{NoSpace, PacketWriter, Param, ReconfigResult};
use arrayvec::ArrayVec;

/// Maximum number of requests in one RE-CONFIG (RFC 6525 section 3.1).
pub(crate) const MOST_REQUESTS: usize = 2;

/// Answers in one RE-CONFIG: numbers of requests with their results.
pub(crate) type AnswerList = ArrayVec<(u32, ReconfigResult), MOST_REQUESTS>;

/// Writes the answers to the requests of one RE-CONFIG.
pub(crate) fn write_answers(answers: &AnswerList, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
    writer.re_config(answers.iter().map(|&(response, result)| Param::ReconfigResponse {
        response,
        result,
        next_tsns: None,
    }))
}
