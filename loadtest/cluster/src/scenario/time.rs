//! How long a step may take, as its file says it.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// What is waited for where nothing is said.
const WITHIN: Duration = Duration::from_secs(300);

pub(super) fn within() -> Duration {
    WITHIN
}

pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<u64>().ok());
    match seconds {
        Some(seconds @ 1..=600) => Ok(Duration::from_secs(seconds)),
        _ => Err(D::Error::custom(format!("{text:?} is no time from 1s to 600s"))),
    }
}
