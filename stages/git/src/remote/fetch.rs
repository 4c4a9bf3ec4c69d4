//! One fetch: what the server has, what we lack of it, and the pack of that.
//!
//! All is said in one round: what we want, the newest commits that we have, and `done`. More rounds would find an older
//! common commit of histories that went apart long ago; then more arrives than need be, and nothing else.

use git2::Oid;

use super::FetchError;
use super::advertised::Advertised;
use super::connection::Connection;
use super::pack::PackReceiver;
use super::packet::{AGENT, Packet, delimiter, flush, line, text};

/// Asks for commits and all they follow that does not follow from `haves`, and takes the pack.
pub(super) async fn fetch(
    connection: &mut Connection,
    advertised: &Advertised,
    wants: &[Oid],
    haves: &[Oid],
    mut receiver: PackReceiver,
) -> Result<(), FetchError> {
    if advertised.second {
        connection.send(second(wants, haves)).await?;
        loop {
            match connection.packet().await? {
                Packet::Data(data) if text(&data) == "packfile" => break,
                Packet::Data(data) => connection.check(&text(&data))?,
                Packet::Delimiter | Packet::Flush => {}
                Packet::End => return Err(connection.broken("its answer holds no pack")),
            }
        }
    } else {
        if !advertised.has("side-band-64k") {
            return Err(connection.broken("it does not know side-band-64k, which every server of today does"));
        }
        connection.send(first(advertised, wants, haves)).await?;
    }
    loop {
        let Packet::Data(data) = connection.packet().await? else { break };
        match data.first() {
            Some(1) => receiver.take(data.slice(1..)).await?,
            Some(2) => {}
            Some(3) => return Err(connection.refusal(&text(&data.slice(1..)))),
            // Of the first version: which of `haves` it has as well.
            _ if !advertised.second && (data.starts_with(b"ACK ") || data.starts_with(b"NAK")) => {}
            _ => {
                connection.check(&text(&data))?;
                return Err(connection.broken("a part of its pack is of no band"));
            }
        }
    }
    connection.ended().await?;
    receiver.finish().await
}

/// What both versions are asked for. Progress is, and is passed over: some servers say nothing else for minutes while they count.
const WANTED: [&str; 2] = ["ofs-delta", "include-tag"];

fn second(wants: &[Oid], haves: &[Oid]) -> Vec<u8> {
    let mut request = Vec::new();
    line(&mut request, "command=fetch");
    line(&mut request, AGENT);
    delimiter(&mut request);
    for option in WANTED {
        line(&mut request, option);
    }
    for want in wants {
        line(&mut request, &format!("want {want}"));
    }
    for have in haves {
        line(&mut request, &format!("have {have}"));
    }
    line(&mut request, "done");
    flush(&mut request);
    request
}

fn first(advertised: &Advertised, wants: &[Oid], haves: &[Oid]) -> Vec<u8> {
    let mut options = " side-band-64k".to_owned();
    // Azure DevOps refuses, and AWS CodeCommit answers with nothing, whoever knows none of these; CodeCommit has the first alone. With
    // them more lines say which of `haves` the server has.
    let acks = ["multi_ack_detailed", "multi_ack"].iter().find(|option| advertised.has(option));
    for option in acks.into_iter().chain(WANTED.iter().filter(|option| advertised.has(option))) {
        options = format!("{options} {option}");
    }
    if advertised.capabilities.iter().any(|of| of.starts_with("agent=")) {
        options = format!("{options} {AGENT}");
    }
    let mut request = Vec::new();
    for want in wants {
        line(&mut request, &format!("want {want}{options}"));
        options.clear();
    }
    flush(&mut request);
    for have in haves {
        line(&mut request, &format!("have {have}"));
    }
    line(&mut request, "done");
    request
}
