//! Reads a body, bounded in time and in size as it comes and as it unpacks.

use std::io::{self, Read as _};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, header};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;

use crate::quota::Passage;
use crate::refusal::Refusal;

/// A body from this many bytes on is unpacked on a thread that may block.
const LARGE: usize = 64 * 1024;
/// What is unpacked is counted in such steps.
const STEP: usize = 256 * 1024;
/// Who is not known, or has all under way that they may have, keeps a connection for so long.
const ASIDE: Duration = Duration::from_secs(10);

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
    let begun = Instant::now();
    let taken = take(headers, &mut body, bounds, passage).await;
    // Of one that did not come nothing is waited for. One that was found too large late is not given its time once more: no answer
    // would be made in time, and whoever is told so sends it again.
    if !matches!(taken, Ok(_) | Err(Refusal::Late(_) | Refusal::Broken)) {
        let within = bounds.within.saturating_sub(begun.elapsed());
        discard(headers, body, Bounds { within, ..bounds }).await;
    }
    taken
}

/// Reads what is not taken, within the bounds of what is: whoever stands between and still sends it would tell of a connection that broke, and not of
/// why this was refused. Who asks before they send it does not send it then.
async fn discard(headers: &HeaderMap, mut body: Body, bounds: Bounds) {
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

/// The same of whoever has no share of what is under way, as nothing else bounds how many there are of it: for as long as takes to come
/// what a proxy has.
pub(crate) async fn put_aside(headers: &HeaderMap, body: Body, bounds: Bounds) {
    discard(headers, body, Bounds { within: bounds.within.min(ASIDE), ..bounds }).await;
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use hyper::body::Frame;
    use tokio::time::{Sleep, sleep};

    use super::*;
    use crate::quota::{Quota, Quotas};

    /// More than is taken, after a while if at all, and then nothing more without end.
    struct Slow(Option<Pin<Box<Sleep>>>);

    impl axum::body::HttpBody for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(wait) = &mut self.0 else { return Poll::Pending };
            ready!(wait.as_mut().poll(context));
            self.0 = None;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"more than is taken")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_refused_late_is_read_no_longer_than_one_that_is_taken() {
        let within = Duration::from_secs(30);
        let bounds = Bounds { packed: 4, unpacked: 4, within };
        let passage = Quotas::new(Quota { requests: 1, bytes: 100, all_bytes: 100 }).enter(1).unwrap();
        let body = Body::new(Slow(Some(Box::pin(sleep(Duration::from_secs(20))))));
        let begun = Instant::now();
        let refused = read(&HeaderMap::new(), body, bounds, passage).await.map(drop);
        assert_eq!(refused, Err(Refusal::Large(4)));
        assert!(begun.elapsed() < within + Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_no_share_and_sends_nothing_keeps_a_connection_for_a_short_time() {
        let bounds = Bounds { packed: 4, unpacked: 4, within: Duration::from_secs(3_600) };
        let begun = Instant::now();
        put_aside(&HeaderMap::new(), Body::new(Slow(None)), bounds).await;
        assert!(begun.elapsed() < ASIDE + Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}
