//! When the other side was heard last, and whether it answers the pings of the multiplexer.
//!
//! The family's own pings are thirty seconds apart, and its silence is ninety long. Its multiplexer answers pings at any time, so
//! that whoever has answered one is known to be gone much earlier; who has not is given the family's time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_util::io::InspectReader;

use crate::lock::lock;

/// How many bytes the head of a frame has.
const HEAD: usize = 12;
const DATA: u8 = 0;
const PING: u8 = 2;
/// The flag of a ping's answer.
const ACK: u8 = 2;

/// Reads the heads of a multiplexer's frames as they pass.
struct FrameReader {
    liveness: Arc<Liveness>,
    head: [u8; HEAD],
    /// How many bytes of the head were read.
    at: usize,
    /// How many bytes of the frame's data come before the next head.
    left: usize,
}

/// When the other side was last heard, and whether it has answered a ping; shared with who waits for its silence.
#[derive(Debug)]
pub(super) struct Liveness(Mutex<LastHeard>);

#[derive(Debug, Clone, Copy)]
struct LastHeard {
    when: Instant,
    has_answered: bool,
}

impl Liveness {
    fn last(&self) -> LastHeard {
        *lock(&self.0)
    }

    /// Ends when nothing was heard for so long of a side that has answered a ping.
    pub(super) async fn lost_after(&self, silence: Duration) {
        loop {
            let last = self.last();
            let until = if last.has_answered { last.when } else { Instant::now() } + silence;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// A multiplexer's connection whose frames are noted as they are read.
pub(super) fn watched<S: AsyncRead + AsyncWrite>(
    connection: S,
) -> (impl AsyncRead + AsyncWrite, Arc<Liveness>) {
    let (mut frames, liveness) = FrameReader::new();
    (InspectReader::new(connection, move |bytes: &[u8]| frames.hear(bytes)), liveness)
}

impl FrameReader {
    fn new() -> (Self, Arc<Liveness>) {
        let last = LastHeard { when: Instant::now(), has_answered: false };
        let liveness = Arc::new(Liveness(Mutex::new(last)));
        (Self { liveness: liveness.clone(), head: [0; HEAD], at: 0, left: 0 }, liveness)
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        let mut has_answered = false;
        while !bytes.is_empty() {
            let length = bytes.len().min(if self.left > 0 { self.left } else { HEAD - self.at });
            let (these, rest) = bytes.split_at(length);
            bytes = rest;
            if self.left > 0 {
                self.left -= length;
                continue;
            }
            self.head[self.at..self.at + length].copy_from_slice(these);
            self.at = (self.at + length) % HEAD;
            if self.at == 0 {
                let [_, kind, _, flags, _, _, _, _, length @ ..] = self.head;
                self.left = if kind == DATA { u32::from_be_bytes(length) as usize } else { 0 };
                has_answered |= kind == PING && flags & ACK != 0;
            }
        }
        let mut last = lock(&self.liveness.0);
        last.when = Instant::now();
        last.has_answered |= has_answered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, data: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, kind, 0, flags, 0, 0, 0, 3];
        frame.extend((data.len() as u32).to_be_bytes());
        frame.extend(data);
        frame
    }

    #[test]
    fn an_answer_to_a_ping_is_told_from_data_in_pieces_of_any_size() {
        let answer = frame(PING, ACK, b"");
        // Data that looks like an answer, a question, and a window that grows: none has data of its own.
        let others = [frame(DATA, 0, &answer), frame(PING, 1, b""), frame(1, 0, b""), frame(DATA, ACK, b"")];
        let before = others.concat();
        for piece in [1, 5, HEAD, 1_000] {
            let (mut frames, liveness) = FrameReader::new();
            before.chunks(piece).for_each(|bytes| frames.hear(bytes));
            assert!(!liveness.last().has_answered, "in pieces of {piece}");
            answer.chunks(piece).for_each(|bytes| frames.hear(bytes));
            assert!(liveness.last().has_answered, "in pieces of {piece}");
        }
    }
}
