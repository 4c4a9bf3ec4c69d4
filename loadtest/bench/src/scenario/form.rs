//! How values are written in the file of a scenario.

use std::time::Duration;

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Scenario;

/// How often applications change.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) enum Rate {
    /// As often as they are reported: closed loop.
    Max,
    /// Half as often as the last window with [`Self::Max`] found: open loop.
    Half,
    /// So many times a second, reported or not: open loop.
    PerSecond(f64),
}

impl TryFrom<Value> for Rate {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_f64()) {
            (Some("max"), _) => Ok(Self::Max),
            (Some("half"), _) => Ok(Self::Half),
            (_, Some(rate)) if rate > 0.0 && rate <= 1e6 => Ok(Self::PerSecond(rate)),
            _ => Err("a rate is max, half, or a number of changes a second above 0"),
        }
    }
}

/// A time, written as `5ms` or `1s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(pub(crate) Duration);

impl TryFrom<String> for Time {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let read = text.parse::<jiff::SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
        read.map(Self).ok_or("a time is written as 5ms, 20ms or 1s")
    }
}

pub(super) fn one() -> u64 {
    1
}

pub(super) fn single() -> u32 {
    1
}

pub(super) fn ten() -> u32 {
    10
}

pub(super) fn outstanding() -> u32 {
    128
}

pub(super) fn a_second() -> Time {
    Time(Duration::from_secs(1))
}

/// Reads a scenario; an error names the place.
pub(super) fn parse(value: &Value) -> anyhow::Result<Scenario> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if path == "." { anyhow!(inner) } else { anyhow!("{path}: {inner}") }
    })
}

/// Lays a mapping over another; a list takes the place of a list.
pub(super) fn lay_over(base: &mut Value, over: Map<String, Value>) {
    let Some(base) = base.as_object_mut() else { return };
    for (name, value) in over {
        match value {
            Value::Object(over) if base.get(&name).is_some_and(Value::is_object) => {
                lay_over(&mut base[&name], over);
            }
            value => {
                base.insert(name, value);
            }
        }
    }
}
