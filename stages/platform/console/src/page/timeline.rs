//! The timeline of an application: its deployments, each with the commits that it brought, and its changes of state.

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{CommitOf, SourceChange};

use super::application::{Asked, DAY, LONGEST, Tab};
use super::commit;
use super::pieces::{author, change, empty, first_line, health, outcome, people, person, plain, short, sync};
use super::provider::commit_link;
use crate::time::{absolute, lasting};
use crate::view::application::{Application, Transition};
use crate::view::deployment::{Deployment, Outcome};

/// Commits of a source that are not folded.
const SHOWN: usize = 3;

/// Deployments and changes of state in one order, the newest first.
pub(super) fn tab(asked: &Asked, application: &Application, now: Timestamp) -> Markup {
    enum Entry<'a> {
        Deployment(&'a Deployment),
        State(&'a Transition),
    }
    let deployments = application.life.deployments.iter().map(|one| (one.at, Entry::Deployment(one)));
    let states = application.transitions.iter().map(|one| (one.at, Entry::State(one)));
    let mut entries: Vec<_> = deployments.chain(states).collect();
    entries.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    if entries.is_empty() {
        return empty(
            "Nothing changed in this time",
            &html! {
                p { a href=(Asked { hours: LONGEST, from: None, to: None, ..asked.clone() }.link()) { "Show 90 days" } }
            },
        );
    }
    let of = |of_all, title: &str| {
        html! {
            a href=(Asked { of_all, ..asked.clone() }.link()) aria-current=[(of_all == asked.of_all).then_some("true")] { (title) }
        }
    };
    html! {
        nav.whose aria-label="Whose changes" { (of(false, "The application, and what goes through phases")) (of(true, "All resources")) }
        section.panel.list aria-label="Timeline" {
            table.timeline data-rows {
                thead { tr { th scope="col" { "when" } th scope="col" { span.hidden { "state" } } th scope="col" { "what" } th.narrow-away scope="col" { "by" } th.narrow-away scope="col" { "images" } th.number scope="col" { "took" } th scope="col" { span.hidden { "compare" } } } }
                tbody {
                    @for (at, entry) in &entries {
                        @let moment = Asked { from: None, to: Some(at.as_millisecond()), tab: Tab::Compare, resource: None, ..asked.clone() };
                        @match entry {
                            Entry::Deployment(one) => { tr data-key={"deployment/" (at.as_millisecond())} data-row {
                                @let end = one.finished.unwrap_or(now);
                                td.mute { (absolute(*at)) }
                                td { (outcome(one.outcome)) }
                                td.change { (if one.outcome == Outcome::Failed { "Not deployed: " } else { "Deployed " }) (change(&one.change)) (author(&one.change))
                                    @if !one.message.is_empty() { br; small.mute { bdi { (plain(&one.message)) } } } }
                                td.narrow-away { (people(one)) }
                                td.narrow-away { (images(one)) }
                                td.number.mute { (lasting(one.at, end)) }
                                td { a href=(Asked { from: Some(at.as_millisecond() - 1_000), to: Some(end.as_millisecond()), ..moment.clone() }.link()) { "Compare" } }
                            }
                            @if !one.brought.is_empty() { tr.brought data-key={"brought/" (at.as_millisecond())} { td colspan="7" { (brought(asked, &one.brought, *at)) } } } },
                            Entry::State(one) => tr data-key={"state/" (at.as_millisecond()) @if let Some(key) = &one.resource { "/" (key) }} data-row {
                                @let moment = Asked { resource: one.resource.clone(), ..moment.clone() };
                                td.mute { (absolute(*at)) }
                                td { @if let Some((_, to)) = one.health { (health(to)) } @else if let Some((_, to)) = one.sync { (sync(to)) } }
                                td {
                                    @if let Some(key) = &one.resource {
                                        a href=(Asked { from: None, tab: Tab::Resources, ..moment.clone() }.link()) { (key.kind) "/" (key.name) } " "
                                    }
                                    @if let Some((from, to)) = one.health { @if let Some(from) = from { span.mute { (from.word()) " → " } } (to.word()) " " }
                                    @if let Some((from, to)) = one.sync { @if let Some(from) = from { span.mute { (from.word()) " → " } } (to.word()) }
                                    @if !one.message.is_empty() { small.mute { " " bdi { (plain(&one.message)) } } }
                                }
                                td.narrow-away {} td.narrow-away {} td {}
                                td { a href=(Asked { from: Some(at.as_millisecond() - 1_000), ..moment.clone() }.link()) { "Compare" } }
                            },
                        }
                    }
                }
            }
        }
        @if application.is_cut { (cut(asked, "happened")) }
    }
}

/// What to say below the newest of what happened where there is more: a day has less of it than what is longer.
pub(super) fn cut(asked: &Asked, what: &str) -> Markup {
    let day = Asked { hours: DAY, from: None, ..asked.clone() };
    html! {
        p.foot { span { "More " (what) " in this time than stands here: these are the newest. "
            @if asked.hours > DAY { a href=(day.link()) { "Show 24 hours" } ", or choose an earlier moment." }
            @else { "Choose an earlier moment." } } }
    }
}

fn images(deployment: &Deployment) -> Markup {
    let moved = deployment.images.iter().filter(|image| image.before.as_ref() != Some(&image.after));
    html! {
        @for image in moved.take(3) {
            code.image title=(image.name) { (image.name.rsplit('/').next().unwrap_or_default()) " "
                @if let Some(before) = &image.before { span.faint { (before) " → " } } (image.after) } " "
        }
    }
}

/// The commits that a deployment brought, of each source of its application.
fn brought(asked: &Asked, sources: &[SourceChange], at: Timestamp) -> Markup {
    html! {
        @for (index, source) in sources.iter().enumerate() {
            @let fold = format!("{}/{index}", at.as_millisecond());
            @let (shown, folded) = source.commits.split_at(source.commits.len().min(SHOWN));
            p.mute {
                @if sources.len() > 1 { code.faint { (source.repository) } ": " }
                @if source.error.is_empty() { (said(source)) }
                @else { span.warn { "Which commits changed it is not known: " } (source.error) }
            }
            (commits(asked, source, shown, &fold, at))
            @if !folded.is_empty() {
                details data-fold=(fold) {
                    summary { "and " (folded.len()) " more" @if source.more { ", and older ones" } }
                    (commits(asked, source, folded, &fold, at))
                }
            }
        }
    }
}

fn said(source: &SourceChange) -> String {
    match source.commits.len() {
        0 => "No commit is known that changed it".to_owned(),
        _ if source.none_is_new => "No new commit changed it; the last that did is".to_owned(),
        1 if !source.more => "1 commit changed it".to_owned(),
        known if source.more => format!("More than {known} commits changed it, the newest of them:"),
        known => format!("{known} commits changed it"),
    }
}

fn commits(asked: &Asked, source: &SourceChange, commits: &[CommitOf], fold: &str, at: Timestamp) -> Markup {
    html! {
        ul.commits { @for one in commits {
            @let CommitOf { revision, author, message, made_from, paths, more_paths, .. } = one;
            @let files = (paths.len() as u64).saturating_add(*more_paths);
            li {
                @match commit_link(&source.repository, revision) {
                    Some(link) => a href=(link) rel="noreferrer" title=(revision) { code { (short(revision)) } },
                    None => code.faint title=(revision) { (short(revision)) },
                }
                " " (person(author)) " "
                bdi.message { (plain(first_line(message))) }
                @if let Some(of) = made_from { " " (commit::made_from(of)) }
                @if files > 0 {
                    " " a.what href=(commit::link(asked, at.as_millisecond(), revision)) { "What it changed" span.hidden { " in " (short(revision)) } }
                    details data-fold={(fold) "/" (revision)} {
                        summary { (files) @if files == 1 { " file" } @else { " files" } }
                        ul { @for path in paths { li { code { (path) } } }
                            @if *more_paths > 0 { li.mute { "and " (more_paths) " more" } } }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use stages_platform_store::ApplicationName;

    use super::*;

    #[test]
    fn a_day_is_offered_as_the_way_to_less_where_more_than_that_is_shown() {
        for (query, is_offered) in [("", true), ("days=2", true), ("days=1", false), ("hours=1", false)] {
            let id =
                ApplicationName { runtime: "prod".into(), namespace: "argocd".into(), name: "shop".into() };
            let told = cut(&Asked::parse(id, query), "drifted").into_string();
            assert!(told.contains("More drifted in this time than stands here"), "{told}");
            assert_eq!(told.contains("Show 24 hours"), is_offered, "{query}: {told}");
            assert_eq!(told.contains("Choose an earlier moment."), !is_offered, "{query}: {told}");
        }
    }
}
