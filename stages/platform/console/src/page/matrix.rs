//! The same application in each environment: what runs where, and where it is another version.

use maud::{Markup, html};
use stages_platform_store::{GroupBy, Term};

use super::applications::{bar, mistyped, nothing, pager};
use super::link::{application_key, application_path, with};
use super::pieces::{counted, health, number, short, sync};
use super::shell::{Page, Section};
use super::views::{self, Views};
use crate::filter::Filter;
use crate::view::application::ApplicationRow;
use crate::view::matrix::{Matrix, MatrixRow};
use crate::view::state::SyncStatus;

/// Applications of a cell that are shown; how many more there are leads to them.
const SHOWN: usize = 3;

pub(crate) fn page(filter: &Filter, matrix: &Matrix, views: &Views<'_>, is_admin: bool) -> Page {
    Page {
        title: "Applications".to_owned(),
        section: Section::Applications,
        bar: bar("/applications", filter, true),
        body: body(filter, matrix, views, is_admin),
    }
}

fn body(filter: &Filter, matrix: &Matrix, views: &Views<'_>, is_admin: bool) -> Markup {
    html! {
        h1.hidden { "Applications" }
        (views::row(views, filter))
        (mistyped(filter))
        @if matrix.rows.is_empty() {
            (nothing(filter, matrix.total, matrix.runtimes, is_admin))
        } @else {
            section.panel.list.matrix aria-label="Applications by environment" { (table(filter, matrix)) }
        }
        footer.foot {
            span { (counted(matrix.names, "name")) " of " (number(matrix.matching)) " of " (counted(matrix.total, "application")) }
            @if matrix.is_cut { span.warn { "The last of these names have more: filter for them." } }
            (pager(filter, matrix.names, Filter::NAMES))
            span.hints aria-hidden="true" {
                kbd { "j" } " " kbd { "k" } " move · " kbd { "↵" } " open · what differs from the column before it stands out"
            }
        }
    }
}

fn table(filter: &Filter, matrix: &Matrix) -> Markup {
    let is_elsewhere = matrix.rows.iter().any(|row| row.elsewhere > 0);
    html! {
        table data-rows {
            thead { tr {
                th scope="col" { "application" }
                @for environment in &matrix.environments {
                    th scope="col" { (if environment.is_empty() { "no environment" } else { environment }) }
                }
                @if is_elsewhere { th scope="col" { "elsewhere" } }
            } }
            tbody { @for row in &matrix.rows { (line(filter, matrix, row, is_elsewhere)) } }
        }
    }
}

fn line(filter: &Filter, matrix: &Matrix, row: &MatrixRow, is_elsewhere: bool) -> Markup {
    let mut before: Option<Vec<String>> = None;
    html! {
        tr data-key={"matrix/" (row.name)} data-row {
            th scope="row" { (row.name) }
            @for (cell, environment) in row.cells.iter().zip(&matrix.environments) {
                @let versions: Vec<String> = cell.iter().map(version).collect();
                @let is_same = !cell.is_empty() && before.as_ref() == Some(&versions);
                td class=[is_same.then_some("same")] {
                    @for one in cell.iter().take(SHOWN) { (application(filter, one, cell.len() > 1)) }
                    @if cell.len() > SHOWN { a href=(of(row, Some(environment))) { "+" (number((cell.len() - SHOWN) as u64)) } }
                }
                @if !cell.is_empty() { ({ before = Some(versions); "" }) }
            }
            @if is_elsewhere { td { @if row.elsewhere > 0 { a href=(of(row, None)) { "+" (number(row.elsewhere)) } } } }
        }
    }
}

/// The version of its first image, or else the beginning of its revision.
fn version(row: &ApplicationRow) -> String {
    let revision = row.change.as_ref().map(|change| short(&change.revision));
    row.version.clone().or(revision).unwrap_or_else(|| "no version".to_owned())
}

fn application(filter: &Filter, row: &ApplicationRow, is_one_of_many: bool) -> Markup {
    html! {
        a.cell href=(with(&application_path(&row.id), &filter.query())) data-application=(application_key(&row.id)) title={(row.id.name) " · " (row.id.runtime)} {
            (health(row.health)) " " code { (version(row)) }
            @if row.sync == SyncStatus::OutOfSync { " " (sync(row.sync)) }
            @if is_one_of_many { " " span.mute { (row.id.runtime) } }
        }
    }
}

/// The applications of a name, in one environment or in all.
fn of(row: &MatrixRow, environment: Option<&str>) -> String {
    let mut terms = vec![Term::Text(row.name.clone())];
    terms.extend(environment.map(|name| Term::Environment(vec![name.to_owned()])));
    with("/applications", &Filter { terms, grouping: GroupBy::Nothing, ..Filter::default() }.query())
}
