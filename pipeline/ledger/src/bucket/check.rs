//! Finds the claims that a process with these settings could not follow, before it tries.

use std::time::Duration;

use super::row::{Claim, FORMAT, Names, Place};
use pipeline_bus::BusError;
use pipeline_bus::jetstream::{Bucket, Difference, Entry};
use pipeline_ownership::sharding::Sharding;

/// Within this time all claims must have been read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The claims in `bucket` that refuse whoever has this sharding, those of `sink` or, where that is not known, of all sinks.
/// Nothing is written; a bucket that is absent refuses nobody.
///
/// # Errors
/// [`BusError`], when the server is away or refuses, or the sink's name is too long for a key.
pub async fn refusing_claims(
    bucket: &Bucket,
    sink: Option<&str>,
    sharding: Sharding,
) -> Result<Vec<Difference>, BusError> {
    let names = sink.map(Names::new).transpose()?;
    let entries = match bucket.load(&["claim.>".to_owned()], None, PATIENCE).await {
        Err(BusError::Gone { .. }) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut refusing: Vec<(u32, Difference)> = Vec::new();
    for Entry { key, value, .. } in entries {
        let shard = match &names {
            Some(names) => {
                names.parse(&key).filter(|(_, place)| *place == Place::Claim).map(|(shard, _)| shard)
            }
            None => key.rsplit('.').next().and_then(|shard| shard.parse().ok()),
        };
        let (Some(shard), Some(claim)) = (shard, Claim::read(&value)) else { continue };
        let differs = |what: &str, is: String, should: String| {
            let what = format!("claim of shard {shard} of the ledger: {what}");
            (shard, Difference { what, is, should })
        };
        if claim.format > FORMAT {
            refusing.push(differs("format", claim.format.to_string(), format!("{FORMAT} or less")));
        } else if claim.sharding != sharding.to_string() {
            // Anybody may have written it: what a terminal would obey is escaped.
            let is = claim.sharding.escape_default().to_string();
            refusing.push(differs("sharding", is, sharding.to_string()));
        }
    }
    refusing.sort_by_key(|(shard, _)| *shard);
    Ok(refusing.into_iter().map(|(_, difference)| difference).collect())
}
