//! An application's life as a strip: health, sync and drift as bars, deployments as marks, two handles for an interval.

use jiff::Timestamp;
use maud::{Markup, html};

use super::pieces::{name, plain, short};
use crate::view::application::Life;

const LEFT: f64 = 116.0;
const RIGHT: f64 = 1_174.0;
/// How moments within a day are told.
const HOUR: &str = "%H:%M";

/// Where a moment stands between two edges.
fn x(life: &Life, at: Timestamp, left: f64, right: f64) -> f64 {
    let from = life.from.as_millisecond();
    let whole = (life.to.as_millisecond() - from).max(1);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds within a window are far below 2^52")]
    let share = (at.as_millisecond() - from) as f64 / whole as f64;
    let place = left + share.clamp(0.0, 1.0) * (right - left);
    (place * 10.0).round() / 10.0
}

fn width(from: f64, to: f64) -> f64 {
    ((to - from - 1.0).max(1.5) * 10.0).round() / 10.0
}

/// The whole strip. `link` makes the address of an interval; the browser's script moves the handles.
pub(crate) fn strip(
    life: &Life,
    from: Timestamp,
    to: Timestamp,
    link: &dyn Fn(Timestamp, Timestamp) -> String,
) -> Markup {
    let place = |at| x(life, at, LEFT, RIGHT);
    let moments = moments(life);
    html! {
        svg.strip viewBox="0 0 1190 92" preserveAspectRatio="none" role="group" aria-label="Life of the application"
            data-strip data-begin=(life.from.as_millisecond()) data-end=(life.to.as_millisecond())
            data-from=(from.as_millisecond()) data-to=(to.as_millisecond()) data-left=(LEFT) data-right=(RIGHT)
            data-moments=(moments) {
            text.label x="16" y="40" { "health" }
            text.label x="16" y="62" { "in sync" }
            rect.interval x=(place(from)) y="4" width=(width(place(from), place(to))) height="66" {}
            @for span in &life.health {
                rect class=(span.state.class()) x=(place(span.from)) y="28" rx="1.5" height="14"
                    width=(width(place(span.from), place(span.to))) { title { (span.state.word()) } }
            }
            @for span in &life.sync {
                rect class={"pale " (span.state.class())} x=(place(span.from)) y="50" rx="1.5" height="14"
                    width=(width(place(span.from), place(span.to))) { title { (span.state.word()) } }
            }
            @for span in &life.drift {
                rect.warn x=(place(span.from)) y="50" rx="1.5" height="14"
                    width=(width(place(span.from), place(span.to))) { title { "drifted" } }
            }
            (days(life))
            @let marks = marks(life, &place);
            @for (index, (at, deployment)) in marks.iter().enumerate() {
                @let before = index.checked_sub(1).and_then(|before| life.deployments.get(before));
                @let since = before.map_or(life.from, |before| before.finished.unwrap_or(before.at));
                @let (revision, author) = (short(&deployment.change.revision), name(&deployment.change.author));
                a.mark href=(link(since, deployment.finished.unwrap_or(deployment.at)))
                    aria-label={"Compare before and after " (revision) @if !author.is_empty() { " by " (author) } ": " (deployment.outcome.word())} {
                    line x1=(at) x2=(at) y1="14" y2="66" {}
                    circle class=(deployment.outcome.class()) cx=(at) cy="13" r="5" {}
                    title { (revision) " · " (plain(&deployment.change.message)) @if !author.is_empty() { " · " (author) } " · " (deployment.outcome.word()) }
                    @let room = marks.get(index + 1).map_or(RIGHT + 20.0, |(next, _)| *next) - at;
                    @let wide = 13.0 + 7.0 * f64::from(u16::try_from(revision.chars().count()).unwrap_or(u16::MAX));
                    @if room > wide && at + wide < RIGHT + 20.0 { text.revision x=(at + 8.0) y="17" { (revision) } }
                }
            }
            (handle("from", "Earlier moment", place(from), from))
            (handle("to", "Later moment", place(to), to))
        }
    }
}

fn marks<'a>(
    life: &'a Life,
    place: &dyn Fn(Timestamp) -> f64,
) -> Vec<(f64, &'a crate::view::deployment::Deployment)> {
    life.deployments.iter().map(|one| (place(one.at), one)).collect()
}

fn handle(name: &str, label: &str, at: f64, moment: Timestamp) -> Markup {
    html! {
        g.handle data-handle=(name) tabindex="0" role="slider" aria-label=(label) aria-valuenow=(moment.as_millisecond())
            aria-valuetext=(moment.strftime("%a %-d %b %H:%M UTC")) {
            // Below the marks: the earlier moment is usually that of the last of them.
            line x1=(at) x2=(at) y1="19" y2="70" {}
            rect.grip x=(at - 8.0) y="19" width="16" height="53" {}
        }
    }
}

/// The moments at which anything changed: where handles stop by keyboard.
fn moments(life: &Life) -> String {
    let mut all: Vec<i64> = life.health.iter().map(|span| span.from.as_millisecond()).collect();
    all.extend(life.sync.iter().map(|span| span.from.as_millisecond()));
    all.extend(
        life.deployments.iter().flat_map(|one| {
            [Some(one.at), one.finished].into_iter().flatten().map(Timestamp::as_millisecond)
        }),
    );
    all.extend([life.from.as_millisecond(), life.to.as_millisecond()]);
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn days(life: &Life) -> Markup {
    let whole = life.to.as_second() - life.from.as_second();
    let (step, format) = match whole {
        0..=7_200 => (600, HOUR),
        7_201..=43_200 => (3_600, HOUR),
        43_201..=172_800 => (14_400, HOUR),
        172_801..=900_000 => (86_400, "%a"),
        // However long it is, there is room for its days.
        _ => (86_400 * (whole / 86_400 / 18).max(5), "%-d %b"),
    };
    let first = (life.from.as_second() / step + 1) * step;
    // Hours become those of whoever looks, in the browser; days are those of UTC.
    let is_hours = format == HOUR;
    html! {
        text.label x="16" y="86" data-zone=[is_hours.then_some(life.to.as_millisecond())] { "UTC" }
        @for second in (first..life.to.as_second()).step_by(usize::try_from(step).unwrap_or(86_400)) {
            @if let Ok(at) = Timestamp::from_second(second) {
                text.day x=(x(life, at, LEFT, RIGHT)) y="86" data-hour=[is_hours.then_some(at.as_millisecond())] { (at.strftime(format)) }
            }
        }
    }
}

/// Health alone, for a glance.
pub(crate) fn small(life: &Life) -> Markup {
    html! {
        svg.strip.small viewBox="0 0 290 10" preserveAspectRatio="none" role="img" aria-label="Health over time" {
            @for span in &life.health {
                @let from = x(life, span.from, 0.0, 290.0);
                rect class=(span.state.class()) x=(from) y="0" height="10" width=(width(from, x(life, span.to, 0.0, 290.0))) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stages_platform_store::ApplicationName;

    use super::*;
    use crate::view::application::Change;
    use crate::view::deployment::{Deployment, Outcome};

    #[test]
    fn how_a_deployment_ended_is_told_in_words_beside_its_colour() {
        let of = |at: i64| Timestamp::from_second(at).unwrap();
        let (runtime, namespace) = ("prod".to_owned(), "argocd".to_owned());
        let failed = Deployment {
            application: ApplicationName { runtime, namespace, name: "shop".to_owned() },
            at: of(100),
            finished: Some(of(110)),
            change: Change { revision: "1.2.3".to_owned(), ..Change::default() },
            by: None,
            images: Vec::new(),
            outcome: Outcome::Failed,
            message: String::new(),
            brought: Vec::new(),
        };
        let life = Life {
            from: of(0),
            to: of(200),
            first: None,
            health: Vec::new(),
            sync: Vec::new(),
            drift: Vec::new(),
            deployments: vec![failed],
        };
        let drawn = strip(&life, of(0), of(200), &|_, _| String::new()).0;
        assert!(drawn.contains("aria-label=\"Compare before and after 1.2.3: Failed\""), "{drawn}");
        assert!(drawn.contains("<title>1.2.3 ·  · Failed</title>"), "{drawn}");
    }
}
