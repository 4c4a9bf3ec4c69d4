//! How long what is kept.

use maud::html;
use stages_platform_store::{RetentionDays, TooOld};

use super::{Said, above, settings, tabs};
use crate::page::pieces::number;
use crate::page::shell::Page;

/// `set` is what holds if it was set here, `file` what holds otherwise; `asked` waits for whoever asked to have seen what goes.
pub(crate) fn page(
    set: Option<RetentionDays>,
    file: RetentionDays,
    asked: Option<(RetentionDays, TooOld)>,
    said: &Said<'_>,
) -> Page {
    let now = set.unwrap_or(file);
    let shown = asked.map_or(now, |(asked, _)| asked);
    settings(
        "Retention",
        html! {
            h1 { "Settings" }
            (tabs("/settings/retention", true))
            (above(said, &html! {}))
            @if let Some((asked, old)) = asked {
                section.panel.form aria-label="What goes" role="alert" {
                    h2 { "This cannot be taken back" }
                    p { "With " (asked.history) " days of history instead of " (now.history) ", these go within minutes: "
                        b { (number(old.deployments)) " deployments" } ", " b { (number(old.drifts)) " drifts" } ", "
                        b { (number(old.acts)) " entries of the audit log" } ", and every state of applications and resources that ended before." }
                    p.mute { "What each application is in now stays, however old." }
                    form.acts method="post" action="/settings/retention" {
                        input type="hidden" name="history" value=(asked.history);
                        input type="hidden" name="keys" value=(asked.keys);
                        input type="hidden" name="act" value=(if asked == file && set.is_some() { "reset" } else { "set" });
                        input type="hidden" name="confirmed" value="yes";
                        button.primary { "Keep " (asked.history) " days" }
                        a.button href="/settings/retention" { "Leave it at " (now.history) }
                    }
                }
            }
            form.panel.form method="post" action="/settings/retention" {
                h2 { "How long what is kept" }
                label for="history" { "Days of history" }
                input #history type="number" name="history" min="1" max="3650" required value=(shown.history) aria-describedby="history-rule";
                p.mute #history-rule { "States of applications and resources, deployments, drifts, and the audit log." }
                label for="keys" { "Days of idempotency keys" }
                input #keys type="number" name="keys" min="1" max="3650" required value=(shown.keys) aria-describedby="keys-rule";
                p.mute #keys-rule { "A report that is sent again later than this counts as a new one." }
                button.primary { "Save" }
            }
            @match set {
                Some(_) => { form.foot method="post" action="/settings/retention" {
                    input type="hidden" name="act" value="reset";
                    span { "Set here. The file says " (file.history) " and " (file.keys) " days (" code { "platformServer.retention" } ")." }
                    button { "As the file says" }
                } },
                None => { p.mute { "As the file says (" code { "platformServer.retention" } "); what is set here holds above it." } },
            }
        },
    )
}
