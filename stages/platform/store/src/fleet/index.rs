//! Keeps what lists are made of beside the history, within the transaction of a group of reports.

use std::borrow::Cow;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::placement::{Placement, version};
use crate::report::{Millis, Report};
use crate::rows::with_rows;

/// The most of a message that lists and searches hold.
const MESSAGE: usize = 1_024;
/// The most that is searched of one application: some hundred images, which stand last, beside all else.
const SEARCHED: usize = 65_536;

/// Of the columns of an application those that what follows of a report depends on, in the order that [`Index::read`] has.
macro_rules! indexed {
    () => {
        "a.held_uid, a.author, a.message, a.revision, a.health, a.health_since, a.sync, a.sync_since, a.deployed_at, \
         a.reported_at, a.deleted, a.phase, a.phase_at, a.phase_message"
    };
}
pub(crate) use indexed;

/// All that lists say of an application.
pub(crate) const LISTED: &str = "UPDATE applications SET project = named.column2, environment = named.column3, \
    cluster = named.column4, destination = named.column5, repository = named.column6, path = named.column7, \
    images = named.column8, version = named.column9, author = named.column10, message = named.column11, \
    revision = named.column12, search = named.column13, health = named.column14, health_since = named.column15, \
    health_message = named.column16, sync = named.column17, sync_since = named.column18, phase = named.column19, \
    phase_at = named.column20, phase_message = named.column21, product = named.column22, labels = named.column23, \
    held_uid = named.column24, listed = named.column25, deployed_at = named.column26, reported_at = named.column27, \
    deleted = named.column28 FROM (VALUES ROWS) AS named WHERE applications.id = named.column1";
/// What its end, and a report that is not its newest, change of that.
pub(crate) const HELD: &str = "UPDATE applications SET held_uid = named.column2, listed = named.column3, \
    reported_at = named.column4, deleted = named.column5 FROM (VALUES ROWS) AS named WHERE applications.id = named.column1";

/// What lists say of an application, as far as it depends on what they said before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index<'a> {
    /// For whoever compares: the incarnation that is held; empty where none is.
    held_uid: Cow<'a, str>,
    author: Cow<'a, str>,
    message: Cow<'a, str>,
    revision: Cow<'a, str>,
    health: Cow<'a, str>,
    health_since: Millis,
    sync: Cow<'a, str>,
    sync_since: Millis,
    deployed_at: Option<Millis>,
    reported_at: Millis,
    deleted: bool,
    /// How the last operation that was no dry run stands.
    phase: Cow<'a, str>,
    /// Since when that operation stands so.
    phase_at: Millis,
    /// What was said of that operation.
    phase_message: Cow<'a, str>,
}

impl<'a> Index<'a> {
    /// Of an application that nothing was reported of.
    pub(crate) fn new() -> Self {
        Self { health: state(None).into(), sync: state(None).into(), ..Self::default() }
    }

    /// From the columns `indexed!` of a row, of which the first is named.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self, StoreError> {
        let text = |column| row.text(first + column).map(Cow::Owned);
        Ok(Self {
            held_uid: text(0)?,
            author: text(1)?,
            message: text(2)?,
            revision: text(3)?,
            health: text(4)?,
            health_since: row.int(first + 5)?,
            sync: text(6)?,
            sync_since: row.int(first + 7)?,
            deployed_at: row.int_or_null(first + 8)?,
            reported_at: row.int(first + 9)?,
            deleted: row.int(first + 10)? != 0,
            phase: text(11)?,
            phase_at: row.int(first + 12)?,
            phase_message: text(13)?,
        })
    }

    /// Whether a report is of another life than the one that is held.
    pub(crate) fn is_of_another(&self, report: &Report) -> bool {
        !self.held_uid.is_empty() && self.held_uid != report.uid
    }

    /// What every report changes, whether or not it is the newest.
    pub(crate) fn hold(&mut self, report: &'a Report) {
        self.held_uid = if report.deleted { "" } else { &*report.uid }.into();
    }

    /// What an application's newest report says of it, and since when. One that tells its end tells nothing else.
    pub(crate) fn follow(&mut self, report: &'a Report, at: Millis) {
        self.reported_at = at;
        if report.deleted {
            self.deleted = true;
            return;
        }
        let revision = report.revision.as_deref().unwrap_or_default();
        let (author, message) =
            (begin(&report.commit.author, MESSAGE), begin(&report.commit.message, MESSAGE));
        // A report of the same commit that does not say whose it is does not take away what is known of it.
        for (known, said) in [(&mut self.author, author), (&mut self.message, message)] {
            if !said.is_empty() || self.revision != revision {
                *known = said.into();
            }
        }
        self.revision = revision.into();
        for (known, since, said) in [
            (&mut self.health, &mut self.health_since, state(report.health.as_deref())),
            (&mut self.sync, &mut self.sync_since, state(report.sync.as_deref())),
        ] {
            if *known != said || self.deleted || *since <= 0 {
                *since = at;
            }
            *known = said.into();
        }
        let deployed = report.operation.as_ref().filter(|one| one.phase == "Succeeded" && !one.is_dry_run);
        match &report.operation {
            // Nothing was changed: how it stands is as it was.
            Some(operation) if operation.is_dry_run => {}
            operation => {
                let operation = operation.as_ref();
                self.phase = operation.map_or("", |one| &*one.phase).into();
                self.phase_at = operation.map_or(0, |one| one.finished_at.unwrap_or(one.started_at));
                self.phase_message = begin(operation.map_or("", |one| &one.message), MESSAGE).into();
            }
        }
        self.deployed_at = deployed.and_then(|one| one.finished_at).or(self.deployed_at);
        self.deleted = false;
    }
}

/// What is written of one application.
pub(crate) struct Indexed<'i, 'a> {
    pub(crate) application: i64,
    pub(crate) index: &'i Index<'a>,
    /// The report that said last what it lists.
    pub(crate) held: &'a Report,
    /// The newest report that lists say, unless that is as it was.
    pub(crate) newest: Option<&'a Report>,
}

/// What follows of a report for the texts of lists.
struct Texts {
    version: String,
    search: String,
    labels: String,
}

impl Texts {
    fn of(report: &Report) -> Self {
        let images: Vec<String> = serde_json::from_str(&report.images).unwrap_or_default();
        let version = images.first().and_then(|image| version(image)).unwrap_or_default().to_owned();
        Self { version, search: search(report, &images), labels: labels(&report.placement) }
    }
}

/// Writes what lists say.
pub(crate) async fn write(connection: &mut Connection, all: &[Indexed<'_, '_>]) -> Result<(), StoreError> {
    let listing = |report: &Report| report.listed.iter().flat_map(|listing| listing.0).collect::<Vec<u8>>();
    let mut listed: Vec<(&Indexed<'_, '_>, &Report, Vec<u8>, Texts)> = Vec::new();
    let mut held: Vec<(&Indexed<'_, '_>, Vec<u8>)> = Vec::new();
    for one in all {
        match one.newest {
            Some(newest) => listed.push((one, newest, listing(one.held), Texts::of(newest))),
            None => held.push((one, listing(one.held))),
        }
    }
    let rows: Vec<_> =
        listed.iter().map(|(one, newest, listing, texts)| row(one, newest, listing, texts)).collect();
    with_rows(connection, LISTED, &rows).await?;
    let rows: Vec<_> = held
        .iter()
        .map(|(one, listing)| {
            let Indexed { application, index, .. } = one;
            let (uid, listing) = (Arg::Text(&index.held_uid), Arg::Bytes(listing));
            let (at, deleted) = (Arg::Int(index.reported_at), Arg::Int(index.deleted.into()));
            [Arg::Int(*application), uid, listing, at, deleted]
        })
        .collect();
    with_rows(connection, HELD, &rows).await.map(drop)
}

fn row<'r>(
    one: &'r Indexed<'_, '_>,
    report: &'r Report,
    listing: &'r [u8],
    texts: &'r Texts,
) -> [Arg<'r>; 28] {
    let (index, placement) = (one.index, &report.placement);
    [
        Arg::Int(one.application),
        Arg::Text(&placement.project),
        Arg::Text(placement.environment()),
        Arg::Text(&placement.cluster),
        Arg::Text(&placement.namespace),
        Arg::Text(&placement.repository),
        Arg::Text(&placement.path),
        Arg::Text(&report.images),
        Arg::Text(&texts.version),
        Arg::Text(&index.author),
        Arg::Text(&index.message),
        Arg::Text(&index.revision),
        Arg::Text(&texts.search),
        Arg::Text(&index.health),
        Arg::Int(index.health_since),
        Arg::Text(begin(report.health_message.as_deref().unwrap_or_default(), MESSAGE)),
        Arg::Text(&index.sync),
        Arg::Int(index.sync_since),
        Arg::Text(&index.phase),
        Arg::Int(index.phase_at),
        Arg::Text(&index.phase_message),
        Arg::Text(&placement.product),
        Arg::Text(&texts.labels),
        Arg::Text(&index.held_uid),
        Arg::Bytes(listing),
        Arg::IntOrNull(index.deployed_at),
        Arg::Int(index.reported_at),
        Arg::Int(index.deleted.into()),
    ]
}

/// Nothing said is that nobody can say.
fn state(said: Option<&str>) -> &str {
    said.filter(|said| !said.is_empty()).unwrap_or("Unknown")
}

/// The beginning of a text.
fn begin(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
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
    ];
    lines.iter_mut().for_each(|line| *line = line.replace(['\n', '='], " "));
    lines.extend(placement.labels.iter().map(|(key, value)| format!("{key}={value}").replace('\n', " ")));
    lines.push(images.join(" ").replace(['\n', '='], " "));
    let all = format!("\n{}\n", lines.join("\n")).to_lowercase();
    begin(&all, SEARCHED).to_owned()
}
