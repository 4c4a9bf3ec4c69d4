//! Differences line by line: of two manifests, as YAML, and of a file that a commit changed.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Lines of all differences of a page: those of files alone may be a hundred thousand, each of one letter.
pub(crate) const LINES: usize = 10_000;

/// What the API server writes into a manifest for itself is taken out.
pub(crate) fn clean(manifest: &mut Value) {
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        for own in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(own);
        }
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        annotations.map(|all| all.remove("kubectl.kubernetes.io/last-applied-configuration"));
    }
}

/// Manifests as YAML, without what the API server writes for itself.
pub(crate) fn yaml(manifest: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(manifest) else {
        return manifest.to_owned();
    };
    clean(&mut value);
    serde_saphyr::to_string(&value).unwrap_or_else(|_| manifest.to_owned())
}

/// Both manifests line by line, with three lines around each change; `same` is what to say where there is none.
pub(crate) fn diff(before: &str, after: &str, same: &str) -> Markup {
    let (before, after) = (yaml(before), yaml(after));
    if before == after {
        return html! { p.mute.pad { (same) } };
    }
    // A manifest of a megabyte is compared more coarsely rather than late.
    let compared = TextDiff::configure().timeout(Duration::from_millis(500)).diff_lines(&before, &after);
    let groups = compared.grouped_ops(3);
    let rows = groups.iter().enumerate().flat_map(|(index, group)| {
        let gap = (index > 0).then_some(Row::Gap);
        let changes = group.iter().flat_map(|op| compared.iter_changes(op)).map(|change| {
            let line = change.new_index().or(change.old_index()).map_or(0, |index| index + 1);
            Row::Line(change.tag(), line, change.value().trim_end_matches('\n'))
        });
        gap.into_iter().chain(changes)
    });
    table(rows, &mut { LINES })
}

/// A unified diff without its head, as a runtime tells it; what is no line of one is passed over. So many lines of it are shown, of
/// which the page has fewer then.
pub(crate) fn unified(text: &str, room: &mut usize) -> Markup {
    // The lines that are next on both sides.
    let mut next: Option<(usize, usize)> = None;
    let rows = text.lines().flat_map(|line| {
        let mut gap = None;
        let row = match (line.split_at_checked(1), &mut next) {
            (Some(("@", _)), next) => {
                gap = next.is_some().then_some(Row::Gap);
                *next = head(line).or(*next);
                None
            }
            (Some((" ", text)), Some((old, new))) => {
                (*old, *new) = (*old + 1, *new + 1);
                Some(Row::Line(ChangeTag::Equal, *new - 1, text))
            }
            (Some(("-", text)), Some((old, _))) => {
                *old += 1;
                Some(Row::Line(ChangeTag::Delete, *old - 1, text))
            }
            (Some(("+", text)), Some((_, new))) => {
                *new += 1;
                Some(Row::Line(ChangeTag::Insert, *new - 1, text))
            }
            _ => None,
        };
        gap.into_iter().chain(row)
    });
    table(rows, room)
}

/// Where a hunk begins on both sides: `@@ -from,lines +from,lines @@`.
fn head(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let from = |word: &str| usize::try_from(word.split(',').next()?.parse::<u32>().ok()?).ok();
    Some((from(words.next()?)?, from(words.next()?.strip_prefix('+')?)?))
}

/// One row of a difference.
enum Row<'a> {
    /// Lines that are alike stand here, and are left out.
    Gap,
    /// A line, with its number.
    Line(ChangeTag, usize, &'a str),
}

fn table<'a>(rows: impl Iterator<Item = Row<'a>>, room: &mut usize) -> Markup {
    let mut rows = rows.fuse();
    let shown: Vec<Row<'_>> = rows.by_ref().take(*room).collect();
    *room -= shown.len();
    let more = rows.filter(|row| matches!(row, Row::Line(..))).count();
    html! {
        table.diff aria-label="Differences" {
            tbody {
                @for row in shown {
                    @match row {
                        Row::Gap => { tr.gap { td {} td {} td { "⋯" } } },
                        Row::Line(tag, line, text) => {
                            @let (class, sign, said) = match tag {
                                ChangeTag::Delete => ("gone", "-", "removed"),
                                ChangeTag::Insert => ("new", "+", "added"),
                                ChangeTag::Equal => ("same", " ", ""),
                            };
                            tr class=(class) {
                                td.line { (line) }
                                td.sign { span aria-hidden="true" { (sign) } span.hidden { (said) } }
                                td { (replaced(text)) }
                            }
                        },
                    }
                }
                @if more > 0 {
                    tr.gap { td {} td {} td { "⋯ " (more) @if more == 1 { " more line" } @else { " more lines" }
                        ", and no more than " (LINES) " are shown here" } }
                }
            }
        }
    }
}

/// What stands in the place of a secret value, before its digest.
const REPLACED: &str = "redacted:hmac-sha256:";
/// Digits of such a digest, and how many of them are shown.
const DIGEST: usize = 32;
const SHOWN: usize = 8;

/// A text, in which it is told of what stands in the place of secret values that it does.
pub(crate) fn replaced(text: &str) -> Markup {
    let mut parts = text.split(REPLACED);
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| {
        let digest = part.get(..DIGEST).filter(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        (digest, part.get(digest.map_or(0, str::len)..).unwrap_or_default())
    });
    html! {
        (first)
        @for (digest, behind) in rest {
            @match digest {
                Some(digest) => span.replaced title={ (REPLACED) (digest) } { "replaced · hmac " (digest.get(..SHOWN).unwrap_or_default()) "…" },
                None => (REPLACED),
            }
            (behind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_was_replaced_is_told_as_such_with_the_begin_of_its_digest() {
        let digest = "9f2c".repeat(8);
        let line = format!("value: redacted:hmac-sha256:{digest} # <b>");
        let expected = format!(
            "value: <span class=\"replaced\" title=\"redacted:hmac-sha256:{digest}\">replaced · hmac 9f2c9f2c…</span> # &lt;b&gt;"
        );
        assert_eq!(replaced(&line).0, expected);
        for line in ["", "value: redacted:hmac-sha256:9f2c", "redacted:hmac-sha256:\u{e9}", "no secret"] {
            assert_eq!(replaced(line).0, line);
        }
    }

    #[test]
    fn a_changed_field_is_one_line_gone_and_one_new() {
        let before =
            r#"{"kind":"Deployment","metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":2}}"#;
        let after =
            r#"{"kind":"Deployment","metadata":{"name":"a","resourceVersion":"9"},"spec":{"replicas":3}}"#;
        let markup = diff(before, after, "").into_string();
        assert_eq!(markup.matches("<tr class=\"gone\">").count(), 1, "{markup}");
        assert_eq!(markup.matches("<tr class=\"new\">").count(), 1, "{markup}");
        assert!(markup.contains("<td>  replicas: 3</td>"), "{markup}");
        assert!(!markup.contains("resourceVersion"), "{markup}");
    }

    #[test]
    fn what_only_the_api_server_changed_is_the_same() {
        let of = |version: u32| {
            format!(
                r#"{{"metadata":{{"name":"a","resourceVersion":"{version}","managedFields":[{version}]}}}}"#
            )
        };
        assert!(diff(&of(1), &of(2), "It is the same.").into_string().contains("It is the same."));
    }

    #[test]
    fn a_unified_diff_is_shown_with_the_numbers_of_its_lines_and_what_is_none_is_passed_over() {
        let text = "stray\n+stray\n@@ -9,3 +9,3 @@\n a\n-<b>\n+c\n d\n@@ -30,1 +30,2 @@\n e\n+\n\\ No newline\n@@ odd\n é\n";
        let markup = unified(text, &mut { LINES }).into_string();
        let rows: Vec<String> = markup
            .split("<tr class=\"")
            .skip(1)
            .map(|row| {
                let class = row.split('"').next().unwrap();
                let cells: Vec<&str> = row
                    .split("<td")
                    .skip(1)
                    .map(|cell| cell.split_once('>').unwrap().1.split("</td>").next().unwrap())
                    .collect();
                format!("{class} {} {}", cells[0], cells[2])
            })
            .collect();
        let expected = [
            "same 9 a",
            "gone 10 &lt;b&gt;",
            "new 10 c",
            "same 11 d",
            "gap  ⋯",
            "same 30 e",
            "new 31 ",
            "gap  ⋯",
            "same 32 é",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_page_shows_so_many_lines_of_all_differences_and_says_where_it_is_cut() {
        let lines = |many: usize| format!("@@ -0,0 +1,{many} @@\n{}", "+\n".repeat(many));
        let (mut room, is_shown) = (LINES, |markup: &str| markup.matches("<tr class=\"new\">").count());
        let first = unified(&lines(LINES - 2), &mut room).into_string();
        assert_eq!((is_shown(&first), first.contains("⋯"), room), (LINES - 2, false, 2));
        let second = unified(&lines(3), &mut room).into_string();
        assert_eq!((is_shown(&second), room), (2, 0));
        assert!(second.contains("⋯ 1 more line, and no more than 10000 are shown here"), "{second}");
        let third = unified(&lines(100_000), &mut room).into_string();
        assert_eq!(is_shown(&third), 0);
        assert!(third.contains("⋯ 100000 more lines, and no more than 10000 are shown here"), "{third}");
        let manifest = |lines: usize| (0..lines).map(|n| format!("- {n}\n")).collect::<String>();
        let manifests = diff("", &manifest(LINES + 5), "").into_string();
        assert_eq!(is_shown(&manifests), LINES);
        assert!(manifests.contains("⋯ 5 more lines"));
    }
}
