//! The figures of deployments, for the first page remembered for a minute: it is read again with every change.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use stages_platform_store::{Figures, Selection, Store, StoreError, View};

use crate::view::shipping::{Shipping, Trend};

const DAY: i64 = 86_400_000;
/// Milliseconds that a trend is remembered for.
const REMEMBERED_FOR: i64 = 60_000;
/// Views of which one is remembered.
const VIEWS: usize = 64;

/// Trends by view, with when each was read.
pub(super) type Remembered = Arc<Mutex<Vec<(View, Timestamp, Trend)>>>;

pub(super) async fn read(
    store: &Store,
    view: &View,
    selection: &Selection,
    days: u32,
    now: Timestamp,
) -> Result<Shipping, StoreError> {
    let end = now.as_millisecond();
    let begin = end - i64::from(days) * DAY;
    let deployments = store.shipped(view, selection, (begin, end)).await?;
    let before = store.shipped(view, selection, (begin - i64::from(days) * DAY, begin)).await?;
    let trend = Trend { days, now: Figures::of(&deployments), before: Figures::of(&before) };
    Ok(Shipping { trend, deployments })
}

/// Of everything that somebody sees.
pub(super) async fn trend(
    store: &Store,
    view: &View,
    days: u32,
    now: Timestamp,
    remembered: &Remembered,
) -> Result<Trend, StoreError> {
    let fresh = |at: &Timestamp| (0..REMEMBERED_FOR).contains(&(now.as_millisecond() - at.as_millisecond()));
    let found = {
        let known = remembered.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|(of, at, trend)| of == view && trend.days == days && fresh(at))
            .map(|(.., trend)| *trend)
    };
    if let Some(trend) = found {
        return Ok(trend);
    }
    let Shipping { trend, .. } = read(store, view, &Selection::default(), days, now).await?;
    let mut known = remembered.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(of, at, _)| of != view && fresh(at));
    if known.len() < VIEWS {
        known.push((view.clone(), now, trend));
    }
    Ok(trend)
}
