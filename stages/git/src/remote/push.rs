//! One push: a branch is moved from the commit that it was seen at to another, or made where there was none, with the pack of
//! what the server lacks.
//!
//! The server moves the branch only if it is still where it was seen: what others pushed is never written over.

use bytes::BytesMut;
use git2::Oid;

use super::FetchError;
use super::advertised::Advertised;
use super::connection::Connection;
use super::packet::{self, AGENT, Packet, flush, text};

/// Bytes of what a server says of a push.
const LARGEST: usize = 64 * 1024;
/// Characters of what it says beside.
const BESIDE: usize = 300;

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The branch is where it should be.
    Moved,
    /// The branch is elsewhere by now; nothing was sent.
    Behind,
    /// The server does not move it, in its own words.
    Refused(String),
}

/// A push of one branch.
pub(super) struct Push<'a> {
    /// `refs/heads/…`.
    pub(super) name: &'a str,
    /// `None`: there was no such branch.
    pub(super) from: Option<Oid>,
    pub(super) to: Oid,
    pub(super) pack: &'a [u8],
}

impl Push<'_> {
    /// Pushes, over a connection to the service that receives.
    pub(super) async fn over(&self, connection: &mut Connection) -> Result<Pushed, FetchError> {
        let found = Advertised::read(connection, &[self.name.to_owned()]).await?;
        let now = found.refs.iter().find(|of| of.name == self.name).map(|of| of.target);
        if now != self.from {
            return Ok(Pushed::Behind);
        }
        if !found.has("report-status") {
            return Err(connection.broken("it does not say what becomes of a push"));
        }
        let is_banded = found.has("side-band-64k");
        connection.send(self.request(&found, is_banded)).await?;
        let (report, beside) = report(connection, is_banded).await?;
        self.judged(connection, report, &beside)
    }

    fn request(&self, found: &Advertised, is_banded: bool) -> Vec<u8> {
        let mut wants = " report-status".to_owned();
        if is_banded {
            wants.push_str(" side-band-64k");
        }
        if found.capabilities.iter().any(|of| of.starts_with("agent=")) {
            wants.extend([" ", AGENT]);
        }
        let mut request = Vec::new();
        let from = self.from.unwrap_or(Oid::ZERO_SHA1);
        packet::data(&mut request, &format!("{from} {} {}\0{wants}", self.to, self.name));
        flush(&mut request);
        request.extend_from_slice(self.pack);
        request
    }

    /// `unpack ok`, then `ok <name>` or `ng <name> <why>`.
    fn judged(
        &self,
        connection: &Connection,
        mut report: BytesMut,
        beside: &str,
    ) -> Result<Pushed, FetchError> {
        let mut is_unpacked = false;
        loop {
            match packet::take(&mut report).map_err(|why| connection.broken(why))? {
                Some(Packet::Data(data)) => {
                    let line = text(&data);
                    let refused = |why: &str| Ok(Pushed::Refused(said(why, beside)));
                    match line.split_once(' ') {
                        Some(("unpack", "ok")) => is_unpacked = true,
                        Some(("unpack", why)) => return refused(why),
                        Some(("ok", name)) if is_unpacked && name == self.name => return Ok(Pushed::Moved),
                        Some(("ng", rest)) => {
                            return refused(
                                rest.split_once(' ').map_or("it does not say why", |(_, why)| why),
                            );
                        }
                        _ => {}
                    }
                }
                Some(_) => {}
                None => return Err(connection.broken("it does not say what became of a push")),
            }
        }
    }
}

/// What the server reports, and what it says beside.
async fn report(connection: &mut Connection, is_banded: bool) -> Result<(BytesMut, String), FetchError> {
    let (mut report, mut beside) = (BytesMut::new(), String::new());
    while let Some(packet) = connection.next().await? {
        let Packet::Data(data) = packet else { break };
        match data.first() {
            _ if !is_banded => {
                let mut line = Vec::new();
                packet::data(&mut line, &text(&data));
                report.extend_from_slice(&line);
            }
            Some(1) => report.extend_from_slice(data.get(1..).unwrap_or_default()),
            Some(2) if beside.len() < BESIDE => beside.push_str(&text(&data.slice(1..))),
            Some(3) => return Err(connection.refusal(&text(&data.slice(1..)))),
            _ => {}
        }
        if report.len() > LARGEST {
            return Err(connection.broken("what it says of a push does not end"));
        }
    }
    Ok((report, beside))
}

/// One line of why, and the first of what was said beside.
fn said(why: &str, beside: &str) -> String {
    let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(BESIDE).collect::<String>();
    let why = clean(why);
    match beside.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{why} ({})", clean(line)),
        None => why,
    }
}
