//! What is told as it comes.

use std::time::Duration;

use async_graphql::{Context, Result, Subscription};
use futures::Stream;
use jiff::Timestamp;

use super::inputs::{ApplicationId, ApplicationLogsOptionsInput, ResourceId};
use super::{caller, works};
use crate::desk::About;
use crate::error::ActError;
use crate::logs::{ApplicationLogsResponse, Following};
use crate::operation::Operation;
use crate::rollouts::named;

/// What is told as it comes.
pub(crate) struct Subscription;

/// Lines, unless others are asked for, and the most.
const LINES: i64 = 1_000;
const MOST: i64 = 100_000;
/// A stream ends after so long, and may be begun again.
const LONGEST: Duration = Duration::from_secs(3 * 3_600);
/// The same where nobody can be asked again whether they still may.
const OF_A_PASS: Duration = Duration::from_secs(15 * 60);

type Query = Vec<(&'static str, String)>;

fn moment(text: &str) -> std::result::Result<Timestamp, ActError> {
    text.parse().map_err(|_| ActError::Wrong("a time is to be written as 2026-01-31T12:00:00Z".to_owned()))
}

/// As Argo CD is asked.
fn query(
    (pod, container, resource): (Option<String>, Option<String>, Option<ResourceId>),
    options: ApplicationLogsOptionsInput,
) -> std::result::Result<Query, ActError> {
    let mut query = match (&pod, resource) {
        (None, None) => {
            return Err(ActError::Wrong(
                "say whose lines: podName with resource.namespace, or resource".to_owned(),
            ));
        }
        (Some(_), None) => {
            return Err(ActError::Wrong(
                "say where the pod is: resource of the kind Pod with its namespace".to_owned(),
            ));
        }
        (Some(_), Some(of)) => vec![("namespace", of.namespace)],
        (None, Some(of)) => of.query(),
    };
    if let Some(pod) = pod {
        named("a pod", &pod)?;
        query.push(("podName", pod));
    }
    let container = container.map(|container| ("container", container));
    query.extend(container);
    query.push(("follow", options.follow.unwrap_or(false).to_string()));
    query.push(("tailLines", options.tail_lines.unwrap_or(LINES).clamp(1, MOST).to_string()));
    query.extend(options.filter.filter(|text| !text.is_empty()).map(|text| ("filter", text)));
    if let Some(until) = options.until_time {
        moment(&until)?;
        query.push(("untilTime", until));
    }
    let since = match (options.since_seconds, options.since_time) {
        (Some(seconds), _) => Some(seconds),
        (None, Some(time)) => Some(Timestamp::now().as_second() - moment(&time)?.as_second()),
        (None, None) => None,
    };
    query.extend(since.map(|seconds| ("sinceSeconds", seconds.max(1).to_string())));
    Ok(query)
}

#[Subscription]
impl Subscription {
    /// Lines of the log of a pod, or of all pods of a resource: over a POST that accepts `text/event-stream`. The last item is
    /// `done`.
    async fn application_logs(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        pod_name: Option<String>,
        container: Option<String>,
        resource: Option<ResourceId>,
        options: Option<ApplicationLogsOptionsInput>,
    ) -> Result<impl Stream<Item = ApplicationLogsResponse>> {
        let (works, caller) = (works(context)?, caller(context)?);
        let detail = match (&pod_name, &resource) {
            (Some(pod), _) => {
                format!("Pod {}", pod.chars().filter(|c| !c.is_control()).take(253).collect::<String>())
            }
            (None, Some(of)) => of.place(),
            (None, None) => String::new(),
        };
        let about = About::new(Operation::APPLICATION_LOGS, application.subject()).of(detail);
        let begun = async {
            let place = works.streams.clone().try_acquire_owned();
            let place = place
                .map_err(|_| ActError::Busy("too many logs are followed: end one, or try again later"))?;
            let granted = works.desk.begin(caller, &about).await?;
            let query = query((pod_name, container, resource), options.unwrap_or_default())?;
            let within = if granted.lasts { LONGEST } else { OF_A_PASS };
            let opened = works.argocd.logs(&application.name(), query, within).await?;
            let (desk, caller) = (works.desk.clone(), caller.clone());
            Ok::<_, ActError>(Following { opened, desk, caller, about, lasts: granted.lasts, place }.items())
        };
        begun.await.map_err(|error| error.graphql())
    }
}
