//! Those who send reports to the platform: threads with a connection each, which write requests that were made before and read
//! answers, and do nothing else. They share the machine's cores with what is measured, and a client that can do more takes as much
//! of them as the platform does.
//!
//! takes: bodies - gives: how long each took until it was acknowledged - calls: `POST /2.0/api/events`
//! fails: with any other answer than 200, but for 429, which is sent again a second later

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::bodies::Body;
use loadtest_sim::PATIENCE;

/// Connections that send at a time.
pub(super) const SENDERS: usize = 64;
/// Bytes of an answer at most.
const ANSWER: usize = 64 * 1024;

/// Whom they send to, and how they are known there.
#[derive(Debug, Clone)]
pub(super) struct Senders {
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

/// Requests that are ready to be written.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    all: Arc<Vec<Vec<u8>>>,
    address: SocketAddr,
}

impl Senders {
    /// The requests of these bodies.
    pub(super) fn requests(&self, bodies: &[Body]) -> Requests {
        Requests::of(self.address, bodies.iter().map(|body| (&*self.token, body)))
    }
}

impl Requests {
    /// Of these bodies, each with the token that it is sent by.
    pub(super) fn of<'a>(address: SocketAddr, bodies: impl IntoIterator<Item = (&'a str, &'a Body)>) -> Self {
        let request = |(token, Body { key, gzip }): (&str, &Body)| {
            let head = format!(
                "POST /2.0/api/events HTTP/1.1\r\nhost: {address}\r\nauthorization: {token}\r\ncontent-encoding: gzip\r\n\
                 idempotency-key: {key}\r\ncontent-length: {}\r\n\r\n",
                gzip.len()
            );
            [head.as_bytes(), gzip].concat()
        };
        Self { all: Arc::new(bodies.into_iter().map(request).collect()), address }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Sends all, each sender the next as soon as one is acknowledged; how long all took.
    pub(super) async fn at_once(&self) -> anyhow::Result<Duration> {
        self.run(|_, _| Duration::ZERO).await.map(|(took, _)| took)
    }

    /// Sends each at its time, so many a second, however long the ones before it take; a latency counts from then.
    pub(super) async fn at_a_rate(&self, rate: usize) -> anyhow::Result<Vec<Duration>> {
        let due = move |number: usize, since: Duration| {
            let due = Duration::from_secs_f64(number as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(since));
            due
        };
        self.run(due).await.map(|(_, latencies)| latencies)
    }

    /// Runs the senders, each of which waits for what it has to before it sends, and counts from then.
    async fn run(
        &self,
        wait: impl Fn(usize, Duration) -> Duration + Send + Sync + Copy + 'static,
    ) -> anyhow::Result<(Duration, Vec<Duration>)> {
        let requests = self.clone();
        let sent = tokio::task::spawn_blocking(move || {
            let senders = 0..SENDERS.min(requests.len());
            let connections = senders.map(|_| Connection::open(requests.address));
            let connections = connections.collect::<anyhow::Result<Vec<_>>>()?;
            let (next, begun) = (AtomicUsize::new(0), Instant::now());
            let send = |mut connection: Connection| {
                let mut latencies = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.all.get(number) else { return anyhow::Ok(latencies) };
                    let due = wait(number, begun.elapsed());
                    connection.send(request)?;
                    latencies.push(begun.elapsed().saturating_sub(due));
                }
            };
            std::thread::scope(|scope| {
                let send = &send;
                let senders: Vec<_> =
                    connections.into_iter().map(|connection| scope.spawn(move || send(connection))).collect();
                let mut latencies = Vec::new();
                for sender in senders {
                    let own = sender.join().map_err(|_| anyhow::anyhow!("a sender panicked"))?;
                    latencies.extend(own.context("send reports")?);
                }
                anyhow::Ok((begun.elapsed(), latencies))
            })
        });
        sent.await.context("send reports")?
    }
}

/// A connection that is used for one request after the other.
struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("connect to the platform")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, answer: Vec::new() })
    }

    /// Until it is acknowledged; one that is told to slow down does.
    fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        loop {
            self.stream.write_all(request).context("send a report")?;
            match self.read().context("read the answer")? {
                200 => return Ok(()),
                429 => std::thread::sleep(Duration::from_secs(1)),
                status => bail!("a report is answered {status}: {}", String::from_utf8_lossy(&self.answer)),
            }
        }
    }

    /// Reads a whole answer; its status.
    fn read(&mut self) -> anyhow::Result<u16> {
        self.answer.clear();
        let mut piece = [0; 4_096];
        loop {
            let count = self.stream.read(&mut piece)?;
            ensure!(count > 0, "the platform closed the connection");
            self.answer.extend(piece.iter().take(count));
            if let Some((status, length)) = head(&self.answer)? {
                ensure!(self.answer.len() <= length, "more was answered than was asked");
                if self.answer.len() == length {
                    return Ok(status);
                }
            }
            ensure!(self.answer.len() <= ANSWER, "an answer is longer than {ANSWER} bytes");
        }
    }
}

/// The status of an answer, and how long it is with its head; `None`: the head is not there yet.
fn head(answer: &[u8]) -> anyhow::Result<Option<(u16, usize)>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(answer.get(..end).unwrap_or_default()).context("a head that is text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let (status, length) = status.zip(length).context("a status and the length of what follows")?;
    Ok(Some((status, end + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end() {
        let text = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nretry-after: 1\r\n\r\n{}";
        assert_eq!(head(text).unwrap(), Some((429, text.len())));
        assert_eq!(head(&text[..40]).unwrap(), None);
        let error = head(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "a status and the length of what follows");
    }
}
