//! Reads a body, bounded in time and in size as it comes and as it unpacks.

use std::io::{self, Read as _};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, header};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::quota::Passage;
use crate::refusal::Refusal;

/// A body from this many bytes on is unpacked on a thread that may block.
const LARGE: usize = 64 * 1024;
/// What is unpacked is counted in such steps.
const STEP: usize = 256 * 1024;

/// How large and how slow a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) packed: usize,
    pub(crate) unpacked: usize,
    pub(crate) within: Duration,
}

pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bounds: Bounds,
    passage: Passage,
) -> Result<(Vec<u8>, Passage), Refusal> {
    let taken = take(headers, &mut body, bounds, passage).await;
    // Of one that did not come nothing is waited for.
    if !matches!(taken, Ok(_) | Err(Refusal::Late(_) | Refusal::Broken)) {
        discard(headers, body, bounds).await;
    }
    taken
}

/// Reads what is not taken, within the bounds of what is: whoever stands between and still sends it would tell of a connection that broke, and not of
/// why this was refused. Who asks before they send it does not send it then.
pub(crate) async fn discard(headers: &HeaderMap, mut body: Body, bounds: Bounds) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let rest = async {
        let mut left = bounds.unpacked;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.into_data().map_or(0, |data| data.len());
            let Some(rest) = left.checked_sub(length) else { break };
            left = rest;
        }
    };
    // What comes later comes to nobody.
    let _ = tokio::time::timeout(bounds.within, rest).await;
}

async fn take(
    headers: &HeaderMap,
    body: &mut Body,
    bounds: Bounds,
    mut passage: Passage,
) -> Result<(Vec<u8>, Passage), Refusal> {
    let is_gzip = match headers.get(header::CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
        None | Some(b"" | b"identity") => false,
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => true,
        Some(_) => return Err(Refusal::Encoding),
    };
    let most = if is_gzip { bounds.packed } else { bounds.unpacked };
    if body.size_hint().lower() > most as u64 {
        return Err(Refusal::Large(most));
    }
    let all = tokio::time::timeout(bounds.within, collect(body, most, &mut passage)).await;
    let packed = all.map_err(|_| Refusal::Late(bounds.within.as_secs()))??;
    if !is_gzip {
        return Ok((packed, passage));
    }
    let large = packed.len() >= LARGE;
    let unpack = move || unpack(&packed, bounds.unpacked, &mut passage).map(|text| (text, passage));
    if large {
        // It ends however it goes, and does not panic.
        return tokio::task::spawn_blocking(unpack).await.unwrap_or(Err(Refusal::Busy));
    }
    unpack()
}

async fn collect(body: &mut Body, most: usize, passage: &mut Passage) -> Result<Vec<u8>, Refusal> {
    let mut body = Limited::new(body, most);
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => Refusal::Large(most),
            None => Refusal::Broken,
        })?;
        let data: Bytes = frame.into_data().unwrap_or_default();
        passage.hold(data.len())?;
        all.extend_from_slice(&data);
    }
    Ok(all)
}

fn unpack(packed: &[u8], most: usize, passage: &mut Passage) -> Result<Vec<u8>, Refusal> {
    let mut decoder = MultiGzDecoder::new(packed);
    let mut text = Vec::new();
    loop {
        let before = text.len();
        let step: io::Result<usize> = decoder.by_ref().take(STEP as u64).read_to_end(&mut text);
        if step.map_err(|_| Refusal::NotGzip)? == 0 {
            return Ok(text);
        }
        if text.len() > most {
            return Err(Refusal::LargeUnpacked(most));
        }
        passage.hold(text.len() - before)?;
    }
}
