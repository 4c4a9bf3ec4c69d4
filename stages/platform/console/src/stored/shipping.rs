//! The figures of deployments, for the first page remembered.

use jiff::Timestamp;
use stages_platform_store::{DAY, Figures, Selection, Store, StoreError, View};

use super::remembered::Remembered;
use crate::view::shipping::{Shipping, Trend};

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
    let before = async {
        if !is_kept(store, 2 * days).await? {
            return Ok(None);
        }
        store.shipped(view, selection, (begin - i64::from(days) * DAY, begin)).await.map(Some)
    };
    let (deployments, before) = tokio::try_join!(now, before)?;
    let before = before.as_deref().map(Figures::of);
    let trend = Trend { days, now: Figures::of(&deployments), before };
    Ok(Shipping { trend, deployments })
}

/// Whether history is kept for so many days: what is left of a time that is not is no measure.
pub(super) async fn is_kept(store: &Store, days: u32) -> Result<bool, StoreError> {
    Ok(store.retention().await?.history.as_secs() >= u64::from(days) * 86_400)
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
