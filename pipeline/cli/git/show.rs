//! How answers of a repository are shown: for people, for programs, for a comment.

use serde::Serialize;
use stages_git::manifests::Manifests;
use stages_git::shown;

use super::{ShownChanges, ShownCommit, ShownCommits, short};
use crate::cli::GitOutput;
use crate::cli::ask::show::{count, table};

/// Applications that a comment lists: a forge refuses one that is too long.
const IN_COMMENT: usize = 100;
/// Paths of an application that people are shown.
const PATHS: usize = 5;

fn document(of: &impl Serialize, output: GitOutput) -> anyhow::Result<String> {
    Ok(match output {
        GitOutput::Yaml => serde_saphyr::to_string(of)?,
        _ => serde_json::to_string_pretty(of)? + "\n",
    })
}

fn subject(commit: &ShownCommit) -> String {
    shown(commit.commit.message.lines().next().unwrap_or_default())
}

/// A name as it may stand in a cell of a Markdown table, where it may hold anything.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in shown(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A person or issue of that name would be told.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A text as it may stand in a span of code in a cell of a Markdown table.
fn code(text: &str) -> String {
    if text.contains(['`', '|']) { cell(text) } else { format!("`{}`", shown(text)) }
}

fn paths(paths: &[String], more: usize, each: fn(&str) -> String) -> String {
    let first: Vec<String> = paths.iter().take(PATHS).map(|path| each(path)).collect();
    let rest = paths.len() - first.len() + more;
    let first = first.join(", ");
    if rest == 0 { first } else { format!("{first} and {rest} more") }
}

fn plain(text: &str) -> String {
    shown(text)
}

pub(super) fn manifests(found: &Manifests, output: GitOutput) -> anyhow::Result<String> {
    let rows = |each: fn(&str) -> String| -> Vec<Vec<String>> {
        let row = |of: &stages_git::manifests::Manifest| {
            let kind =
                if of.group.is_empty() { of.kind.clone() } else { format!("{}.{}", of.kind, of.group) };
            let place = format!("{}:{}-{}", of.path, of.first_line, of.last_line);
            [kind, of.namespace.clone(), of.name.clone(), place].map(|text| each(&text)).to_vec()
        };
        found.manifests.iter().map(row).collect()
    };
    let header = ["KIND", "NAMESPACE", "NAME", "FILE"];
    Ok(match output {
        GitOutput::Json | GitOutput::Yaml => document(found, output)?,
        GitOutput::Table => {
            let mut text = table(4, &header, &rows(plain));
            for unread in &found.unread {
                text += &format!("not read: {}: {}\n", unread.path, unread.why);
            }
            text
        }
        GitOutput::Markdown => {
            let mut text = markdown(&["Kind", "Namespace", "Name", "File"], &rows(cell));
            for unread in &found.unread {
                text += &format!("\nNot read: {}: {}\n", cell(&unread.path), cell(&unread.why));
            }
            text
        }
    })
}

fn markdown(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", header.join(" | "), " --- |".repeat(header.len()));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

pub(super) fn commits(found: &ShownCommits, output: GitOutput) -> anyhow::Result<String> {
    let rows = |each: fn(&str) -> String| -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for application in &found.applications {
            for commit in &application.commits {
                rows.push(vec![
                    each(&application.application),
                    short(&commit.commit.revision).to_owned(),
                    commit.commit.date.clone(),
                    each(&commit.commit.author),
                    each(&subject(commit)),
                    paths(&commit.paths, commit.more_paths, each),
                ]);
            }
        }
        rows
    };
    let mut notes = Vec::new();
    if found.since.is_some() {
        for application in found.applications.iter().filter(|of| of.none_is_new && !of.commits.is_empty()) {
            notes.push(format!("{}: no commit is new; its newest is shown", plain(&application.application)));
        }
    }
    for application in found.applications.iter().filter(|of| of.commits.is_empty()) {
        notes.push(format!("{}: no commit ever changed it", plain(&application.application)));
    }
    for application in found.applications.iter().filter(|of| of.more) {
        notes.push(format!("{}: there are more; --limit shows them", plain(&application.application)));
    }
    if found.shallow {
        notes
            .push("the clone lacks older history: fetch it with --unshallow to see what is older".to_owned());
    }
    Ok(match output {
        GitOutput::Json | GitOutput::Yaml => document(found, output)?,
        GitOutput::Table => {
            let header = ["APPLICATION", "COMMIT", "DATE", "AUTHOR", "SUBJECT", "PATHS"];
            let text = table(6, &header, &rows(plain));
            notes.iter().fold(text, |text, note| text + note + "\n")
        }
        GitOutput::Markdown => {
            let header = ["Application", "Commit", "Date", "Author", "Subject", "Paths"];
            let text = markdown(&header, &rows(cell));
            notes.iter().fold(text, |text, note| text + "\n" + &cell(note) + "\n")
        }
    })
}

pub(super) fn changes(found: &ShownChanges, output: GitOutput) -> anyhow::Result<String> {
    let all = found.changed.len() + found.unchanged;
    let of = count(all as u64, "application");
    let sum = match found.changed.len() {
        0 => format!("none of {of} is changed"),
        1 => format!("1 of {of} is changed"),
        changed => format!("{changed} of {of} are changed"),
    };
    let elsewhere = match found.elsewhere {
        0 => String::new(),
        1 => "; 1 has nothing here".to_owned(),
        more => format!("; {more} have nothing here"),
    };
    let rows = |each: fn(&str) -> String, path: fn(&str) -> String, limit: usize| -> Vec<Vec<String>> {
        let row = |change: &super::ShownChange| {
            let commits: Vec<&str> =
                change.commits.iter().map(|commit| short(&commit.commit.revision)).collect();
            let authors: std::collections::BTreeSet<&str> = change
                .commits
                .iter()
                .map(|commit| commit.commit.author.split(" <").next().unwrap_or_default())
                .collect();
            let authors = authors.into_iter().map(each).collect::<Vec<_>>().join(", ");
            vec![
                each(&change.application),
                paths(&change.paths, change.more_paths, path),
                commits.join(" "),
                authors,
            ]
        };
        found.changed.iter().take(limit).map(row).collect()
    };
    Ok(match output {
        GitOutput::Json | GitOutput::Yaml => document(found, output)?,
        GitOutput::Table => {
            let header = ["APPLICATION", "PATHS", "COMMITS", "AUTHORS"];
            let text = if found.changed.is_empty() {
                String::new()
            } else {
                table(4, &header, &rows(plain, plain, usize::MAX))
            };
            format!("{text}{sum}{elsewhere}\n")
        }
        GitOutput::Markdown => {
            let mut text = format!("**{sum}**{elsewhere}\n");
            if !found.changed.is_empty() {
                text += "\n";
                text +=
                    &markdown(&["Application", "Paths", "Commits", "Authors"], &rows(cell, code, IN_COMMENT));
            }
            if found.changed.len() > IN_COMMENT {
                text += &format!("\nand {} more\n", found.changed.len() - IN_COMMENT);
            }
            text
        }
    })
}
