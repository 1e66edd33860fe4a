//! Messages on their way from the endpoint to the readers of an association whose application uses streams.

use crate::message::Message;
use crate::shared::{INBOX_LIMIT, Inbound, State};
use crate::stream_state::{Ahead, InOrder, STREAM_CONTROL_PPID, Violation};

impl State {
    /// Stores a message for its reader, or handles it if it controls streams.
    pub(crate) fn sort_in(&mut self, message: Message) -> Result<(), Violation> {
        match message {
            control if control.ppid == STREAM_CONTROL_PPID && self.streams.is_controlled() => {
                self.handle_control(&control)
            }
            datagram if datagram.unordered => {
                self.store_datagram(datagram);
                Ok(())
            }
            message => self.streams.deliver(message),
        }
    }

    fn handle_control(&mut self, message: &Message) -> Result<(), Violation> {
        if !message.is_whole() {
            return Err(Violation::Malformed);
        }
        if message.unordered {
            let mut rest = &message.payload[..];
            while !rest.is_empty() {
                let (report, others) = Ahead::decode(rest).ok_or(Violation::Malformed)?;
                self.streams.report_of_peer(report)?;
                rest = others;
            }
            Ok(())
        } else {
            let end = InOrder::decode(&message.payload).ok_or(Violation::Malformed)?;
            self.streams.end_of_peer(message.stream, end)
        }
    }

    /// Stores an unordered message. A reader that is too slow loses the oldest ones, because they must not stop streams.
    fn store_datagram(&mut self, message: Message) {
        self.inbox_bytes += message.payload.len();
        self.inbox.push_back(Inbound::Message(message));
        while self.inbox_bytes > INBOX_LIMIT
            && let Some(oldest) = self.inbox.pop_front()
        {
            match oldest {
                Inbound::Message(message) => self.inbox_bytes -= message.payload.len(),
                Inbound::Restarted => self.inbox.push_front(Inbound::Restarted),
            }
        }
    }
}
