//! The figures of deployments, for the first page remembered.

use jiff::Timestamp;
use stages_platform_store::{Figures, Selection, Store, StoreError, View};

use super::remembered::Remembered;
use crate::view::shipping::{Shipping, Trend};

const DAY: i64 = 86_400_000;

pub(super) async fn read(
    store: &Store,
    view: &View,
    selection: &Selection,
    days: u32,
    now: Timestamp,
) -> Result<Shipping, StoreError> {
    let end = now.as_millisecond();
    let begin = end - i64::from(days) * DAY;
    let now = store.shipped(view, selection, (begin, end));
    let before = store.shipped(view, selection, (begin - i64::from(days) * DAY, begin));
    let (deployments, before) = tokio::try_join!(now, before)?;
    let trend = Trend { days, now: Figures::of(&deployments), before: Figures::of(&before) };
    Ok(Shipping { trend, deployments })
}

/// Of everything that somebody sees.
pub(super) async fn trend(
    store: &Store,
    view: &View,
    days: u32,
    now: Timestamp,
    remembered: &Remembered<Trend>,
) -> Result<Trend, StoreError> {
    if let Some(trend) = remembered.get(view, now).filter(|trend| trend.days == days) {
        return Ok(trend);
    }
    let Shipping { trend, .. } = read(store, view, &Selection::default(), days, now).await?;
    remembered.keep(view, now, trend);
    Ok(trend)
}
