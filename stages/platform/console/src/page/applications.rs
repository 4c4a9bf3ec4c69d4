//! Applications: where is it?

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{GroupBy, Mistyped, SortBy, Term};

use super::link::{application_key, application_path, with};
use super::pieces::{change, command, counted, empty, health, number, person, sync, who};
use super::shell::{Page, Section};
use super::views::{self, Views};
use crate::filter::Filter;
use crate::time::relative;
use crate::view::application::ApplicationRow;
use crate::view::listing::Listing;

pub(crate) fn page(
    filter: &Filter,
    listing: &Listing,
    views: &Views<'_>,
    is_admin: bool,
    now: Timestamp,
) -> Page {
    Page {
        title: "Applications".to_owned(),
        section: Section::Applications,
        bar: bar("/applications", filter, true),
        body: body(filter, listing, views, is_admin, now),
    }
}

/// The field with its chips, grouping and order.
pub(crate) fn bar(path: &str, filter: &Filter, grouped: bool) -> Markup {
    html! {
        form.filter role="search" action=(path) data-filter {
            label.field {
                kbd aria-hidden="true" { "/" }
                @for (index, term) in filter.terms.iter().enumerate() {
                    @if let Some((key, value)) = term.parts() {
                        span.chip {
                            (key) ": " b { (value) }
                            input type="hidden" name="q" value=(term.word());
                            a href=(with(path, &filter.without(index).query())) aria-label={"Remove " (key) ": " (value)} { "×" }
                        }
                    }
                }
                input type="text" name="q" value=(filter.text()) aria-label="Filter" autocomplete="off" spellcheck="false"
                    list="keys" placeholder=[filter.terms.is_empty().then_some("name, image, commit, or env: label: health: …")];
                datalist #keys { @for (key, example) in Term::KEYS { option value={(key) ":"} { (example) } } }
                kbd aria-hidden="true" { "Esc" }
            }
            @if grouped {
                label.select { "Group: " select name="group" {
                    @for one in GroupBy::ALL {
                        option value=(one.word()) selected[one == filter.grouping] { (one.word()) }
                    }
                } }
                label.select { "Sort: " select name="sort" {
                    @for one in SortBy::ALL {
                        option value=(one.word()) selected[one == filter.order] { (one.word()) }
                    }
                } }
            }
            noscript { button { "Filter" } }
        }
    }
}

fn body(filter: &Filter, listing: &Listing, views: &Views<'_>, is_admin: bool, now: Timestamp) -> Markup {
    html! {
        h1.hidden { "Applications" }
        (views::row(views, filter))
        (mistyped(filter))
        @if listing.rows.is_empty() {
            (nothing(filter, listing.total, listing.runtimes, is_admin))
        } @else {
            div.with-side {
                section.panel.list aria-label="Applications" {
                    (table(filter, listing, now))
                }
                aside.panel.preview #preview aria-label="Preview" aria-live="polite" {
                    p.mute { "Move with " kbd { "j" } " " kbd { "k" } " to see an application here." }
                }
            }
        }
        footer.foot {
            span { (number(listing.matching)) " of " (counted(listing.total, "application")) }
            span.left data-left=(left(filter, listing.matching)) role="status" {}
            (pager(filter, listing.matching, Filter::PAGE))
            span.hints aria-hidden="true" {
                kbd { "j" } " " kbd { "k" } " move · " kbd { "↵" } " open · " kbd { "[" } " " kbd { "]" } " next in filter · " kbd { "y" } " copy link"
            }
        }
    }
}

/// What a row leaves that is no longer among these: where there are more pages it may be on another.
fn left(filter: &Filter, matching: u64) -> &'static str {
    match (matching > Filter::PAGE, filter.terms.is_empty()) {
        (true, _) => "this page",
        (false, true) => "the list",
        (false, false) => "the filter",
    }
}

/// What is written as conditions are and is none: it is looked for as it stands, which is told.
pub(super) fn mistyped(filter: &Filter) -> Markup {
    html! {
        @for Mistyped { key, word, example } in Mistyped::of(&filter.terms) {
            p.warn role="status" {
                @match example {
                    Some(example) => { code { (word) } " is no value of it, and is searched for as text; one is " code { (example) } "." },
                    None => { "There is no key " code { (key) ":" } ", and " code { (word) } " is searched for as text. Keys are "
                        (Term::KEYS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ")) "." },
                }
            }
        }
    }
}

/// The way to the other pages of so many rows, where so many stand on one.
pub(super) fn pager(filter: &Filter, matching: u64, rows: u64) -> Markup {
    let page = |page| with("/applications", &Filter { page, ..filter.clone() }.query());
    let last = matching.saturating_sub(1) / rows;
    html! {
        @if last > 0 {
            nav.pager aria-label="Pages" {
                @if filter.page > 0 { a href=(page(filter.page - 1)) rel="prev" { "‹ Previous" } }
                span { "page " (filter.page + 1) " of " (last + 1) }
                @if filter.page < last { a href=(page(filter.page + 1)) rel="next" { "Next ›" } }
            }
        }
    }
}

fn table(filter: &Filter, listing: &Listing, now: Timestamp) -> Markup {
    html! {
        table.crowded data-rows {
            thead { tr {
                th scope="col" { span.hidden { "state" } }
                th scope="col" { "application" }
                th.narrow-away scope="col" { "runtime" }
                th.narrow-away.version scope="col" { "version" }
                th.narrow-away scope="col" { "change" }
                th.narrow-away scope="col" { "by" }
                th.number scope="col" { "deployed" }
            } }
            tbody {
                @for (index, row) in listing.rows.iter().enumerate() {
                    @let before = index.checked_sub(1).and_then(|before| listing.rows.get(before));
                    @if filter.grouping != GroupBy::Nothing && before.is_none_or(|before| before.group != row.group) {
                        @let count = listing.groups.iter().find(|one| one.name == row.group).map_or(0, |one| one.count);
                        tr.group data-part={"group/" (row.group)} { th scope="rowgroup" colspan="7" { (group(filter.grouping, &row.group)) " · " (number(count)) } }
                    }
                    (line(filter, row, now))
                }
            }
        }
    }
}

/// A group, or what its rows have none of.
fn group(grouping: GroupBy, name: &str) -> &str {
    match grouping {
        GroupBy::Environment if name.is_empty() => "no environment",
        GroupBy::Project if name.is_empty() => "no project",
        GroupBy::Product if name.is_empty() => "no product",
        _ => name,
    }
}

fn line(filter: &Filter, row: &ApplicationRow, now: Timestamp) -> Markup {
    let id = application_key(&row.id);
    html! {
        tr data-key=(id) data-row data-preview={"/preview/" (id)} data-state={(row.health.word()) " and " (row.sync.word())} {
            td.states { (health(row.health)) " " (sync(row.sync)) }
            td.what { a href=(with(&application_path(&row.id), &filter.query())) { (row.id.name) } @if let Some(one) = &row.change { (who(one)) } }
            td.narrow-away.mute { (row.id.runtime) }
            td.narrow-away.version { code { (row.version.as_deref().unwrap_or("")) } }
            td.narrow-away.change { @if let Some(one) = &row.change { div.one-line { (change(one)) } } }
            td.narrow-away.by { @if let Some(one) = &row.change { (person(&one.author)) } }
            td.number.mute { @if let Some(at) = row.deployed { (relative(at, now)) } }
        }
    }
}

/// Why there is nothing: of so many applications and runtimes in all.
pub(super) fn nothing(filter: &Filter, total: u64, runtimes: u64, is_admin: bool) -> Markup {
    if total == 0 && !is_admin {
        return match runtimes {
            0 => super::runtimes::not_seen("You see no application yet"),
            _ => super::runtimes::no_application(),
        };
    }
    if runtimes == 0 {
        return empty(
            "No runtime reports here yet",
            &html! {
                p { "Applications appear as soon as a runtime reports them." }
                p { a.button href="/runtimes/add" { "Add a runtime" } }
            },
        );
    }
    if total == 0 {
        return empty(
            "No application was reported yet",
            &html! {
                p { "A runtime is known and has sent nothing so far. Ask it what it sees:" }
                (command("gitops-runtime status"))
                p { a href="/runtimes" { "When runtimes were last heard of" } }
            },
        );
    }
    empty(
        "Nothing matches",
        &html! {
            p { (counted(total, "application")) (if total == 1 { " is" } else { " are" }) " known; none fits all of these. Take one away:" }
            p {
                @for (index, term) in filter.terms.iter().enumerate() {
                    a.button href=(with("/applications", &filter.without(index).query())) { (term.word()) " ×" } " "
                }
                a.button href="/applications" { "all of them" }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_goes_to_another_page_is_not_said_to_have_left_the_filter() {
        for (query, matching, told) in [
            ("", 201, "this page"),
            ("q=shop", 201, "this page"),
            ("", 200, "the list"),
            ("q=shop", 3, "the filter"),
        ] {
            assert_eq!(left(&Filter::parse(query), matching), told, "{query}, {matching}");
        }
    }
}
