//! Keeps what lists are made of beside the history, within the transaction of each report.

use std::collections::BTreeMap;

use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::placement::{Placement, version};
use crate::report::{Delivery, Millis, Report};

/// The most of a message that lists and searches hold.
const MESSAGE: usize = 1_024;
/// The most that is searched of one application.
const SEARCHED: usize = 8_192;

/// What is held of an application for whoever compares: its incarnation, and what its last report lists.
pub(crate) struct Holding<'a> {
    uid: &'a str,
    listed: Vec<u8>,
}

impl<'a> Holding<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let uid = if report.deleted { "" } else { &report.uid };
        Self { uid, listed: report.listed.iter().flat_map(|listing| listing.0).collect() }
    }
}

/// A report that is not the newest changes what is held alone.
pub(crate) async fn hold(
    connection: &mut Connection,
    application: i64,
    holding: &Holding<'_>,
) -> Result<(), StoreError> {
    let sql = "UPDATE applications SET held_uid = $2, listed = $3 WHERE id = $1";
    let arguments = [Arg::Int(application), Arg::Text(holding.uid), Arg::Bytes(&holding.listed)];
    connection.execute(sql, &arguments).await.map(drop)
}

/// Nothing said is that nobody can say.
fn state(said: Option<&str>) -> &str {
    said.filter(|said| !said.is_empty()).unwrap_or("Unknown")
}

/// The beginning of a text.
fn begin(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// What an application's newest report says of it. One that tells its end tells nothing else.
pub(crate) async fn application(
    connection: &mut Connection,
    application: i64,
    report: &Report,
    holding: &Holding<'_>,
) -> Result<(), StoreError> {
    if report.deleted {
        let sql =
            "UPDATE applications SET deleted = 1, reported_at = $2, held_uid = $3, listed = $4 WHERE id = $1";
        let (uid, listed) = (Arg::Text(holding.uid), Arg::Bytes(&holding.listed));
        let arguments = [Arg::Int(application), Arg::Int(report.at), uid, listed];
        return connection.execute(sql, &arguments).await.map(drop);
    }
    let (placement, commit) = (&report.placement, &report.commit);
    let images: Vec<String> = serde_json::from_str(&report.images).unwrap_or_default();
    let search = search(report, &images);
    let operation = report.operation.as_ref();
    let phase_at = operation.map_or(0, |one| one.finished_at.unwrap_or(one.started_at));
    let deployed = operation.filter(|one| one.phase == "Succeeded").and_then(|one| one.finished_at);
    let sql = "UPDATE applications SET project = $2, environment = $3, cluster = $4, destination = $5, repository = $6, \
               path = $7, images = $8, version = $9, \
               author = CASE WHEN $10 = '' AND revision = $12 THEN author ELSE $10 END, \
               message = CASE WHEN $11 = '' AND revision = $12 THEN message ELSE $11 END, revision = $12, search = $13, \
               health_since = CASE WHEN health = $14 AND deleted = 0 AND health_since > 0 THEN health_since ELSE $16 END, \
               health = $14, health_message = $17, \
               sync_since = CASE WHEN sync = $15 AND deleted = 0 AND sync_since > 0 THEN sync_since ELSE $16 END, \
               sync = $15, phase = $18, phase_at = $19, phase_message = $20, \
               product = $22, labels = $23, held_uid = $24, listed = $25, \
               deployed_at = COALESCE($21, deployed_at), reported_at = $16, deleted = 0 WHERE id = $1";
    let arguments = [
        Arg::Int(application),
        Arg::Text(&placement.project),
        Arg::Text(placement.environment()),
        Arg::Text(&placement.cluster),
        Arg::Text(&placement.namespace),
        Arg::Text(&placement.repository),
        Arg::Text(&placement.path),
        Arg::Text(&report.images),
        Arg::Text(images.first().and_then(|image| version(image)).unwrap_or_default()),
        Arg::Text(begin(&commit.author, MESSAGE)),
        Arg::Text(begin(&commit.message, MESSAGE)),
        Arg::Text(report.revision.as_deref().unwrap_or_default()),
        Arg::Text(&search),
        Arg::Text(state(report.health.as_deref())),
        Arg::Text(state(report.sync.as_deref())),
        Arg::Int(report.at),
        Arg::Text(begin(report.health_message.as_deref().unwrap_or_default(), MESSAGE)),
        Arg::Text(operation.map_or("", |one| &one.phase)),
        Arg::Int(phase_at),
        Arg::Text(begin(operation.map_or("", |one| &one.message), MESSAGE)),
        Arg::IntOrNull(deployed),
        Arg::Text(&placement.product),
        Arg::Text(&labels(placement)),
        Arg::Text(holding.uid),
        Arg::Bytes(&holding.listed),
    ];
    connection.execute(sql, &arguments).await.map(drop)
}

/// Each on a line of its own, letter by letter: rules ask for them.
fn labels(placement: &Placement) -> String {
    let lines = placement.labels.iter().map(|(key, value)| format!("{key}={value}").replace('\n', " "));
    format!("\n{}\n", lines.collect::<Vec<_>>().join("\n\n"))
}

/// Lines in lower case, so that a label is a line of its own and no text can pass for one.
fn search(report: &Report, images: &[String]) -> String {
    let (placement, entity) = (&report.placement, &report.entity);
    let mut lines = vec![
        entity.app_name.clone(),
        entity.app_namespace.clone(),
        placement.project.clone(),
        report.revision.clone().unwrap_or_default(),
        report.commit.author.clone(),
        begin(&report.commit.message, MESSAGE).to_owned(),
        images.join(" "),
    ];
    lines.iter_mut().for_each(|line| *line = line.replace(['\n', '='], " "));
    lines.extend(placement.labels.iter().map(|(key, value)| format!("{key}={value}").replace('\n', " ")));
    let all = format!("\n{}\n", lines.join("\n")).to_lowercase();
    begin(&all, SEARCHED).to_owned()
}

/// Who has reported just now, and how long the newest of it was on the way.
pub(crate) async fn seen(
    connection: &mut Connection,
    all: &[&[Delivery]],
    now: Millis,
) -> Result<(), StoreError> {
    let mut newest = BTreeMap::<i64, Millis>::new();
    for deliveries in all {
        for delivery in *deliveries {
            let at = newest.entry(delivery.runtime).or_insert(delivery.report.at);
            *at = delivery.report.at.max(*at);
        }
    }
    for (runtime, at) in newest {
        let sql = "UPDATE runtimes SET seen_at = $2, lag = $3, \
                   reported_at = CASE WHEN reported_at > $4 THEN reported_at ELSE $4 END WHERE id = $1";
        let arguments = [Arg::Int(runtime), Arg::Int(now), Arg::Int((now - at).max(0)), Arg::Int(at)];
        connection.execute(sql, &arguments).await?;
    }
    Ok(())
}
