//! Spans as the messages of OTLP (`opentelemetry/proto/trace/v1/trace.proto`): pure.
//!
//! Names and attributes come from closed sets, but for the application's name, namespace, uid and resourceVersion.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use pipeline_core::Reason;
use pipeline_observe::spans::{self, Activity, EventEnd, EventSpan, SpanBatch};
use prost::Message as _;

use crate::app::VERSION;
use crate::config::Traces;

/// `SAMPLED` of the W3C's trace flags.
const SAMPLED: u32 = 1;

/// Whose spans they are.
pub(super) struct Source {
    resource: Resource,
    scope: InstrumentationScope,
}

impl Source {
    pub(super) fn new(settings: &Traces) -> Self {
        let mut attributes =
            vec![text("service.name", &settings.service.name), text("service.version", VERSION)];
        if let Some(namespace) = &*settings.service.namespace {
            attributes.push(text("service.namespace", namespace));
        }
        if let Some(host) = &settings.host.name {
            attributes.push(text("service.instance.id", host));
            let pod = settings.host.namespace.is_some();
            attributes.push(text(if pod { "k8s.pod.name" } else { "host.name" }, host));
        }
        if let Some(namespace) = &settings.host.namespace {
            attributes.push(text("k8s.namespace.name", namespace));
        }
        Self {
            resource: Resource { attributes, ..Resource::default() },
            scope: InstrumentationScope {
                name: "gitops-runtime".to_owned(),
                version: VERSION.to_owned(),
                ..InstrumentationScope::default()
            },
        }
    }

    /// The body of a request.
    pub(super) fn request(&self, batch: &[SpanBatch]) -> Vec<u8> {
        let spans = batch.iter().flat_map(|told| {
            let event = told.event.as_ref().map(|span| event(told, span));
            event.into_iter().chain(told.spans.iter().map(|span| part(told, span)))
        });
        let spans =
            ScopeSpans { scope: Some(self.scope.clone()), spans: spans.collect(), ..ScopeSpans::default() };
        let resource_spans = vec![ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }
}

/// How many spans the receiver did not take, by its answer; one that cannot be read says nothing.
pub(super) fn rejected(answer: &[u8]) -> usize {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
    usize::try_from(rejected).unwrap_or_default()
}

fn event(told: &SpanBatch, event: &EventSpan) -> Span {
    let mut attributes = vec![
        text("gitops.application.name", event.key.name()),
        text("gitops.application.namespace", event.key.namespace()),
        number("gitops.shard", event.shard),
        text("gitops.outcome", event.end.as_str()),
    ];
    if let Some(uid) = &event.uid {
        attributes.push(text("gitops.application.uid", uid));
    }
    if event.version.0 != 0 {
        attributes.push(text("gitops.application.resource_version", &event.version.number().to_string()));
    }
    if let Some(reason) = event.reason {
        attributes.push(text("gitops.reason", reason));
    }
    if event.left_out > 0 {
        attributes.push(number("gitops.spans_left_out", event.left_out));
    }
    let follows = event.follows.map(|(trace, span)| Link {
        trace_id: trace.to_be_bytes().to_vec(),
        span_id: span.to_be_bytes().to_vec(),
        flags: SAMPLED,
        ..Link::default()
    });
    Span {
        span_id: event.id.to_be_bytes().to_vec(),
        parent_span_id: event.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        name: "event".to_owned(),
        kind: SpanKind::Consumer.into(),
        attributes,
        links: follows.into_iter().collect(),
        status: (event.end == EventEnd::Parked).then(failed),
        ..timed(told, (event.from, event.to))
    }
}

fn part(told: &SpanBatch, span: &spans::Span) -> Span {
    let (name, kind, mut attributes) = match span.activity {
        Activity::Queue => ("queue", SpanKind::Internal, vec![]),
        Activity::RateLimit => ("rate limit wait", SpanKind::Internal, vec![]),
        Activity::RetryWait { reason } => {
            ("retry wait", SpanKind::Internal, vec![text("gitops.reason", reason.as_str())])
        }
        Activity::Read { failed } => {
            ("read", SpanKind::Client, vec![text("gitops.peer", "kubernetes"), outcome(failed, "ok")])
        }
        Activity::Enrich { attempt, reports, failed } => {
            let reports = u32::try_from(reports).unwrap_or(u32::MAX);
            let counts = [number("gitops.attempt", attempt), number("gitops.reports", reports)];
            ("enrich", SpanKind::Internal, counts.into_iter().chain([outcome(failed, "ok")]).collect())
        }
        Activity::Call { call, cached, failed } => {
            let outcome = outcome(failed, if cached { "cached" } else { "ok" });
            let attributes = vec![text("gitops.peer", "argocd"), text("gitops.call", call.as_str()), outcome];
            ("call", SpanKind::Client, attributes)
        }
        Activity::Report { kind, failed } => {
            let outcome = outcome(failed, "acknowledged");
            ("report", SpanKind::Client, vec![text("gitops.kind", kind.as_str()), outcome])
        }
    };
    let error = span.activity.failed();
    attributes.extend(error.map(|reason| text("error.type", reason.as_str())));
    let name = match span.activity {
        Activity::Call { call, .. } => format!("argocd {}", call.as_str()),
        _ => name.to_owned(),
    };
    Span {
        span_id: span.id.to_be_bytes().to_vec(),
        parent_span_id: span.parent.to_be_bytes().to_vec(),
        name,
        kind: kind.into(),
        attributes,
        status: error.map(|_| failed()),
        ..timed(told, (span.from, span.to))
    }
}

fn timed(told: &SpanBatch, (from, to): (std::time::Duration, std::time::Duration)) -> Span {
    let nanoseconds = |at| u64::try_from(told.time(at).as_nanosecond()).unwrap_or_default();
    Span {
        trace_id: told.trace.to_be_bytes().to_vec(),
        flags: SAMPLED,
        start_time_unix_nano: nanoseconds(from),
        end_time_unix_nano: nanoseconds(to),
        ..Span::default()
    }
}

fn outcome(failed: Option<Reason>, ok: &str) -> KeyValue {
    text("gitops.outcome", if failed.is_some() { "failed" } else { ok })
}

/// Without a text: `error.type` says why.
fn failed() -> Status {
    Status { code: StatusCode::Error.into(), ..Status::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u32) -> KeyValue {
    attribute(key, Value::IntValue(value.into()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests;
