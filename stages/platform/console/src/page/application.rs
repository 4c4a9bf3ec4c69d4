//! An application: what changed, and when? Its address says which tab, which moments, which resource, and the filter that
//! it was opened from.

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{ApplicationName, Position};
use url::form_urlencoded;

use super::acts::Acts;
use super::against_git::{against, whole};
use super::link::{application_key, application_path, with};
use super::missing::nothing;
use super::pieces::{counted, empty, first_line, health, name, number, plain, prose, short, sync};
use super::shell::{Page, Section};
use super::{cure, diff, drift, events, files, strip, timeline, tree};
use crate::filter::Filter;
use crate::fleet::{Side, Steps, Window};
use crate::time::{absolute, ago, in_sentence, lasting, relative, since, when};
use crate::view::application::Application;
use crate::view::resource::{Resource, ResourceKey};
use crate::view::state::{Health, SyncStatus};

/// The tabs of an application: in its address they stand by their titles in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tab {
    #[default]
    Tree,
    Resources,
    Timeline,
    Compare,
    Drift,
    Errors,
    Events,
    Files,
}

impl Tab {
    const ALL: [Self; 8] = [
        Self::Tree,
        Self::Resources,
        Self::Timeline,
        Self::Compare,
        Self::Drift,
        Self::Errors,
        Self::Events,
        Self::Files,
    ];

    fn word(self) -> String {
        self.title().to_lowercase()
    }

    fn title(self) -> &'static str {
        match self {
            Self::Tree => "Tree",
            Self::Resources => "Resources",
            Self::Timeline => "Timeline",
            Self::Compare => "Compare",
            Self::Drift => "Drift",
            Self::Errors => "Errors",
            Self::Events => "Events",
            Self::Files => "Files",
        }
    }
}

/// Hours of a day, of what the strip shows unless an address says otherwise, and the most that it does.
pub(crate) const DAY: i64 = 24;
const WEEK: i64 = 7 * DAY;
pub(crate) const LONGEST: i64 = 90 * DAY;

/// Hours that the strip may be asked to show, with their names.
const RANGES: [(i64, &str); 6] =
    [(1, "1 h"), (6, "6 h"), (DAY, "24 h"), (WEEK, "7 d"), (28 * DAY, "28 d"), (LONGEST, "90 d")];

/// What of an application is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: ApplicationName,
    pub(crate) tab: Tab,
    /// Milliseconds.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// Hours that the strip shows.
    pub(crate) hours: i64,
    pub(crate) resource: Option<ResourceKey>,
    pub(crate) side: Side,
    /// The timeline tells of all resources.
    pub(crate) of_all: bool,
    pub(crate) filter: Filter,
}

impl Asked {
    pub(crate) fn parse(id: ApplicationName, query: &str) -> Self {
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        let moment = |name: &str| {
            let at = value(name)?.parse().ok()?;
            Timestamp::from_millisecond(at).is_ok().then_some(at)
        };
        let number = |name: &str| value(name)?.parse::<i64>().ok();
        let hours = number("hours").or_else(|| Some(number("days")?.saturating_mul(DAY)));
        let tab = value("tab").and_then(|word| Tab::ALL.into_iter().find(|tab| tab.word() == word));
        Self {
            id,
            tab: tab.unwrap_or_default(),
            from: moment("from"),
            to: moment("to"),
            hours: hours.unwrap_or(WEEK).clamp(1, LONGEST),
            resource: value("r").and_then(|key| key.parse().ok()),
            side: value("side")
                .and_then(|word| Side::ALL.into_iter().find(|side| side.word() == word))
                .unwrap_or(Side::Live),
            of_all: value("of").is_some_and(|of| of == "all"),
            filter: Filter::parse(query),
        }
    }

    /// What of its life that is: the strip ends with the later moment if that lies before all that it would show.
    pub(crate) fn window(&self, now: Timestamp) -> Window {
        // What is still to come is not known: it is shown as it is now.
        let at = |at: Option<i64>| Timestamp::from_millisecond(at?).ok().filter(|at| *at < now);
        let (from, to) = (at(self.from), at(self.to));
        let shown = jiff::SignedDuration::from_hours(self.hours);
        let begin = |end: Timestamp| end.checked_sub(shown).unwrap_or(Timestamp::UNIX_EPOCH);
        let end = match to {
            Some(to) if to < begin(now) => to,
            _ => now,
        };
        let begin = from.map_or(begin(end), |from| begin(end).min(from));
        let steps = match (self.tab, self.of_all) {
            (Tab::Timeline, true) => Steps::OfAll,
            (Tab::Timeline, false) => Steps::OfPhases,
            _ => Steps::None,
        };
        Window { begin, end, from, to, steps, drifts: self.tab == Tab::Drift }
    }

    pub(crate) fn link(&self) -> String {
        with(&application_path(&self.id), &self.query())
    }

    pub(crate) fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(self.filter.query());
        if self.tab != Tab::default() {
            query.append_pair("tab", &self.tab.word());
        }
        for (name, moment) in [("from", self.from), ("to", self.to)] {
            if let Some(moment) = moment {
                query.append_pair(name, &moment.to_string());
            }
        }
        if self.hours != WEEK {
            let is_days = self.hours % DAY == 0;
            let (name, count) = if is_days { ("days", self.hours / DAY) } else { ("hours", self.hours) };
            query.append_pair(name, &count.to_string());
        }
        if let Some(resource) = &self.resource {
            query.append_pair("r", &resource.to_string());
        }
        if self.side != Side::Live {
            query.append_pair("side", self.side.word());
        }
        if self.of_all {
            query.append_pair("of", "all");
        }
        query.finish()
    }
}

/// The two moments that a page shows, and the manifests of the chosen resource at both.
pub(crate) struct Interval {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) resource: Option<ResourceKey>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// What Git says at the later one.
    pub(crate) desired: Option<String>,
}

/// Before the last deployment, until the end: what an interval is if nobody chose one.
pub(crate) fn interval(application: &Application, window: Window) -> (Timestamp, Timestamp) {
    let to = window.to.unwrap_or(window.end);
    let before = application.life.deployments.iter().rev().find(|one| one.at < to);
    let from = before
        .map_or(window.begin, |one| one.at.checked_sub(jiff::SignedDuration::from_secs(1)).unwrap_or(one.at));
    (window.from.unwrap_or(from).min(to), to)
}

pub(crate) fn page(
    asked: &Asked,
    application: &Application,
    interval: &Interval,
    neighbours: &Position,
    acts: &Acts,
    now: Timestamp,
) -> Page {
    Page {
        title: application.row.id.name.clone(),
        section: Section::Applications,
        bar: bar(asked, neighbours),
        body: body(asked, application, interval, acts, now),
    }
}

fn bar(asked: &Asked, neighbours: &Position) -> Markup {
    let query = asked.filter.query();
    let terms: Vec<String> = asked
        .filter
        .terms
        .iter()
        .map(|term| match term.parts() {
            Some((_, value)) => value,
            None => term.word(),
        })
        .collect();
    let neighbour = |id: &ApplicationName| {
        Asked { id: id.clone(), from: None, to: None, resource: None, ..asked.clone() }.link()
    };
    html! {
        nav.crumbs aria-label="Where this is" {
            a href=(with("/applications", &query)) data-back { "Applications" }
            @if !terms.is_empty() { span.faint aria-hidden="true" { "›" } a.terms href=(with("/applications", &query)) { (terms.join(", ")) } }
            @if let Some(position) = neighbours.position {
                span.mute.position { (number(position)) " of " (number(neighbours.matching)) }
            } @else if neighbours.matching > 0 {
                span.warn { "no longer in this filter" }
            }
            @if let Some(id) = &neighbours.previous {
                a.button rel="prev" href=(neighbour(id)) aria-label={"Previous: " (id.name)} { "‹ " kbd aria-hidden="true" { "[" } }
            }
            @if let Some(id) = &neighbours.next {
                a.button rel="next" href=(neighbour(id)) aria-label={"Next: " (id.name)} { "› " kbd aria-hidden="true" { "]" } }
            }
        }
    }
}

/// Which application it is, as of when, and what can be done with it.
fn title(
    asked: &Asked,
    application: &Application,
    interval: &Interval,
    acts: &Acts,
    now: Timestamp,
) -> Markup {
    let row = &application.row;
    html! {
        div.title data-key={"title/" (application_key(&row.id))} data-application=(application_key(&row.id))
            data-runtime=(row.id.runtime) data-namespace=(row.id.namespace) data-name=(row.id.name) {
            (health(row.health))
            h1 { (row.id.name) }
            span.mute {
                @if !row.environment.is_empty() { (row.environment) " · " }
                (row.id.runtime)
                @if !row.project.is_empty() { " · project " (row.project) }
            }
            @if let Some(change) = &row.change {
                span.tag { (sync(row.sync)) " " (if row.sync == SyncStatus::Synced { "synced to " } else { "at " })
                    code title=(change.revision) { (short(&change.revision)) } }
            }
            @match application.moment {
                Some(moment) => span.warn.as-of { "as it was " (absolute(moment)) " · "
                    a href=(Asked { from: None, to: None, ..asked.clone() }.link()) { "show it now" } },
                None => span.faint.as-of {
                    @if application.as_of == Timestamp::UNIX_EPOCH { "not reported itself" }
                    @else { "as of " (since(application.as_of, now)) }
                },
            }
            @if application.deleted { span.warn { "deleted: this is its history" } }
            span.grow {}
            span.acts { (acts.of_application(&row.id.name, application.is_syncing)) }
            button type="button" data-copy-moment data-from=(interval.from.as_millisecond()) data-to=(interval.to.as_millisecond()) {
                "Copy link to this moment " kbd aria-hidden="true" { "y" }
            }
        }
    }
}

fn body(
    asked: &Asked,
    application: &Application,
    interval: &Interval,
    acts: &Acts,
    now: Timestamp,
) -> Markup {
    let row = &application.row;
    let link = |from: Timestamp, to: Timestamp| {
        let (from, to) = (Some(from.as_millisecond()), Some(to.as_millisecond()));
        Asked { from, to, tab: Tab::Compare, resource: None, ..asked.clone() }.link()
    };
    let counts = |tab| match tab {
        Tab::Resources => application.resources.len(),
        Tab::Drift => application.drifts.len(),
        Tab::Errors => application.problems.len(),
        _ => 0,
    };
    html! {
        (title(asked, application, interval, acts, now))
        div.why data-part="why" {
            @if let Some(since) = application.silent_since.filter(|_| application.moment.is_none()) {
                p.warn.cause { "◌ The reporter of " (row.id.runtime) " is silent since " (when(since, now)) ": this is what it said last." }
            }
            @if let Some(cause) = &application.cause { (sentence(application, cause, now)) }
        }
        section.panel.life aria-label="Life" {
            (strip::strip(&application.life, interval.from, interval.to, &link))
            nav.days aria-label="Time shown" {
                @for (hours, name) in RANGES {
                    a href=(Asked { hours, ..asked.clone() }.link()) aria-current=[(hours == asked.hours).then_some("true")] { (name) }
                }
            }
        }
        nav.tabs aria-label="Of the application" data-key="tabs" {
            @for tab in Tab::ALL {
                a href=(Asked { tab, ..asked.clone() }.link()) aria-current=[(tab == asked.tab).then_some("page")] {
                    (tab.title()) @if counts(tab) > 0 { " " span.mute { (counts(tab)) } }
                }
            }
        }
        div #tab {
            @match asked.tab {
                Tab::Tree => { (tree_tab(asked, application)) },
                Tab::Resources => { (resources_tab(asked, application, interval, acts, now)) },
                Tab::Timeline => { (timeline::tab(asked, application, now)) },
                Tab::Compare => { (compare_tab(asked, application, interval)) },
                Tab::Drift => { (drift::tab(asked, application)) },
                Tab::Errors => { (errors_tab(application, now)) },
                Tab::Events => { (events::tab(asked, application)) },
                Tab::Files => { (files::tab(asked, application, acts)) },
            }
        }
    }
}

/// What fails, since when, and which change of whom came before it.
fn sentence(application: &Application, cause: &crate::view::application::Cause, now: Timestamp) -> Markup {
    html! {
        p.cause.bad {
            (cause.message) " since " (when(cause.since, now))
            @if let Some((change, at)) = &cause.after {
                ", " (lasting(*at, cause.since)) " after " code { (short(&change.revision)) }
                @if !change.message.is_empty() { " “" bdi { (plain(first_line(&change.message))) } "”" }
                @if !change.author.is_empty() { " by " bdi { (plain(name(&change.author))) } }
            } @else if application.row.deployed.is_none() { "; no deployment of it is known" }
        }
    }
}

fn chosen(asked: &Asked, key: &ResourceKey, tab: Tab) -> String {
    Asked { tab, resource: Some(key.clone()), ..asked.clone() }.link()
}

fn no_resources(application: &Application) -> Markup {
    empty(
        "No resource was reported at that moment",
        &html! {
            p { "Resources come with the first report of each. If this lasts, ask the runtime what it knows:" }
            (super::pieces::command(&format!("gitops-runtime explain {}", application.row.id.name)))
        },
    )
}

fn tree_tab(asked: &Asked, application: &Application) -> Markup {
    let row = &application.row;
    html! {
        section.panel.canvas aria-label="Tree" tabindex="0" data-key="tree" {
            @if application.resources.is_empty() { (no_resources(application)) } @else {
                (tree::tree(&row.id.name, row.health, &application.resources, None, &|key| chosen(asked, key, Tab::Resources)))
            }
        }
    }
}

fn resources_tab(
    asked: &Asked,
    application: &Application,
    interval: &Interval,
    acts: &Acts,
    now: Timestamp,
) -> Markup {
    if application.resources.is_empty() {
        return no_resources(application);
    }
    html! {
        div.halves {
            section.panel.list aria-label="Resources" {
                table data-rows {
                    thead { tr { th scope="col" { span.hidden { "state" } } th scope="col" { "resource" } th.narrow-away scope="col" { "namespace" } th.number scope="col" { "since" } } }
                    tbody {
                        @for one in &application.resources {
                            tr data-key={"resource/" (one.key)} data-row aria-selected=[(Some(&one.key) == asked.resource.as_ref()).then_some("true")] {
                                td.states { @if let Some(state) = one.health { (health(state)) } @else { span.glyph {} } " " (sync(one.sync)) }
                                td.what { a href=(chosen(asked, &one.key, Tab::Resources)) { span.mute { (one.key.kind) "/" } (one.key.name) }
                                    @if !one.message.is_empty() { small.mute { " " bdi { (plain(&one.message)) } } } }
                                td.narrow-away.mute { (one.key.namespace) }
                                // What is listed need not have been reported yet.
                                td.number.mute { @if one.since > Timestamp::UNIX_EPOCH { (relative(one.since, now)) } }
                            }
                        }
                    }
                }
            }
            section.panel.source aria-label="Manifest" tabindex="0" data-key="manifest" {
                @match &interval.resource {
                    None => { p.mute.pad { "Choose a resource: its live state is laid beside what Git says." } },
                    Some(key) => {
                        @let listed = application.resources.iter().find(|one| one.key == *key);
                        @let is_missing = listed.is_some_and(|one| one.health == Some(Health::Missing));
                        @let is_out_of_sync = listed.is_some_and(|one| one.sync == SyncStatus::OutOfSync);
                        header { b { (key.kind) "/" (key.name) }
                            @if interval.after.is_some() && interval.desired.is_some() { span.mute { "live (+) against desired (−)" } }
                            (acts.of_resource(key, interval.after.as_deref(), is_missing))
                            a href=(chosen(asked, key, Tab::Events)) { "events" }
                            a href=(chosen(asked, key, Tab::Compare)) { "between two moments" } }
                        @if let Some(panel) = interval.after.as_deref().and_then(|live| super::progress::panel(live, now)) { (panel) }
                        @match (&interval.after, &interval.desired) {
                            (Some(live), Some(desired)) => { (against((desired, live), key, is_out_of_sync)) },
                            (Some(only), None) => { p.mute.pad { "Nothing in Git says what it should be." } (whole(only)) },
                            (None, Some(only)) => { p.mute.pad { (nowhere(is_missing)) } (whole(only)) },
                            (None, None) => { p.mute.pad { "No manifest of it was reported by then." } },
                        }
                    },
                }
            }
        }
    }
}

/// What to say of a resource of which nothing runs, as far as it was reported.
fn nowhere(is_missing: bool) -> &'static str {
    match is_missing {
        true => "It is not on the cluster: a sync would make this.",
        false => "What runs of it was not reported; this is what Git says.",
    }
}

fn compare_tab(asked: &Asked, application: &Application, interval: &Interval) -> Markup {
    if application.resources.is_empty() {
        return no_resources(application);
    }
    let row = &application.row;
    let changed = application.resources.iter().filter(|one| one.changed).count();
    let revision = |at: Timestamp| {
        application
            .life
            .deployments
            .iter()
            .rev()
            .find(|one| one.at <= at)
            .map(|one| short(&one.change.revision))
    };
    // Of the time before its first report nothing is known.
    let first = application.life.first.filter(|first| *first > interval.from);
    let side = |side| Asked { side, ..asked.clone() }.link();
    let current = |side| (asked.side == side).then_some("true");
    html! {
        div.halves.compare {
            section.panel.canvas aria-label="What changed" tabindex="0" data-key="changed" {
                h2 { "Changed between " (absolute(interval.from)) " and " @if asked.to.is_some() { (absolute(interval.to)) } @else { "now" }
                    ": " (changed) " of " (counted(application.resources.len() as u64, "resource")) }
                @if let Some(first) = first { p.mute { "Nothing was reported before " (absolute(first)) ": what was there by then is not known." } }
                (tree::tree(&row.id.name, row.health, &application.resources, interval.resource.as_ref(), &|key| chosen(asked, key, Tab::Compare)))
            }
            section.panel.source aria-label="Differences" tabindex="0" data-key="differences" {
                @match &interval.resource {
                    None => { p.mute.pad { "No resource changed between these moments. Choose one to see it, or move a handle." } },
                    Some(key) => {
                        header {
                            b { (key.kind) "/" (key.name) }
                            code.faint { (revision(interval.from).unwrap_or_default()) " → " (revision(interval.to).unwrap_or_default()) }
                            span.sides { @for (index, one) in Side::ALL.into_iter().enumerate() {
                                @if index > 0 { " · " }
                                a href=(side(one)) aria-current=[current(one)] { (if one == Side::Git { "Git" } else { one.word() }) }
                            } }
                        }
                        @match (&interval.before, &interval.after) {
                            (None, None) if asked.side == Side::Git => { p.mute.pad { "No file of Git that makes it was reported for either moment: it comes of a chart or an overlay, or its reporter does not read the repository." } },
                            (None, None) => { p.mute.pad { "No manifest of it was reported for either moment." } },
                            (before, after) => {
                                @if before.is_none() { p.mute.pad { "It was not " (if first.is_some() { "reported yet" } else { "there" }) " at the earlier moment." } }
                                @if after.is_none() { p.mute.pad { "It was gone at the later moment." } }
                                (diff::diff(before.as_deref().unwrap_or(""), after.as_deref().unwrap_or(""), "The same at both moments."))
                            },
                        }
                    },
                }
            }
        }
    }
}

fn errors_tab(application: &Application, now: Timestamp) -> Markup {
    if application.problems.is_empty() {
        return empty(
            "Nothing is wrong",
            &html! { p { "No error and no warning came with its last report." } },
        );
    }
    html! {
        section.panel.list aria-label="Errors" {
            ul.problems data-key="problems" {
                @for one in &application.problems {
                    li {
                        span class={"glyph " (if one.error { "bad" } else { "warn" })} role="img" aria-label=(if one.error { "error" } else { "warning" }) { (if one.error { "✕" } else { "▲" }) }
                        div {
                            @if let Some(resource) = &one.resource { b { (resource) } }
                            p { bdi { (plain(&one.message)) } }
                            @if let Some(cure) = cure::of(one.resource.as_deref(), &one.message) {
                                p.cure { span.mute { "What to do: " } (prose(cure)) }
                            }
                            small.mute { "last seen " (in_sentence(&ago(one.at, now))) }
                        }
                    }
                }
            }
        }
    }
}

/// The one that a comparison begins with: a changed one that is not well, else a changed one.
pub(crate) fn first_changed(resources: &[Resource]) -> Option<ResourceKey> {
    let changed = resources.iter().filter(|one| one.changed);
    changed.min_by_key(|one| one.health.unwrap_or(Health::Healthy)).map(|one| one.key.clone())
}

/// What to say of an application that was never reported, or that whoever looks may not see: which of both is not told.
pub(crate) fn unknown(id: &ApplicationName, is_admin: bool) -> Page {
    nothing(
        "Not known",
        Section::Applications,
        if is_admin {
            "This application is not known"
        } else {
            "This application is not known, or not yours to see"
        },
        &html! {
            p {
                @if is_admin { "Nobody reported " } @else { "Nobody reported, or no rule of your teams shows you, " }
                b { (id.name) } " in " (id.namespace) " of runtime " (id.runtime) "."
            }
            p { a.button href=(with("/applications", &format!("q={}", percent_encoding::utf8_percent_encode(&id.name, super::link::SEGMENT)))) { "Search for its name" } }
        },
    )
}
