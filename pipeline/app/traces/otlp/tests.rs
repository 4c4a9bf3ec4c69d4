use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

use super::*;

fn settings(more: &[(&str, &str)]) -> Traces {
    let given = crate::config::Given {
        file: None,
        flags: [("traces.otlp.url", "http://collector:4318")]
            .iter()
            .chain(more)
            .map(|(path, text)| ((*path).to_owned(), "--set".to_owned(), (*text).to_owned()))
            .collect(),
    };
    let variables = [("HOSTNAME", "pod-1")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    crate::config::Config::load_given(&given, &variables.into()).unwrap().traces.unwrap()
}

#[test]
fn the_resource_says_whose_spans_they_are() {
    let of = |settings: &Traces| -> Vec<(String, String)> {
        let attributes = Source::new(settings).resource.attributes.into_iter();
        let text = |value: KeyValue| match value.value.and_then(|value| value.value) {
            Some(Value::StringValue(text)) => text,
            other => panic!("{other:?}"),
        };
        attributes.map(|attribute| (attribute.key.clone(), text(attribute))).collect()
    };
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let mut outside = settings(&[]);
    outside.host.namespace = None;
    let usual = [("service.name", "gitops-runtime"), ("service.version", VERSION)];
    let host = [("service.instance.id", "pod-1"), ("host.name", "pod-1")];
    assert_eq!(of(&outside), owned(&[usual, host].concat()));
    let mut inside = settings(&[("traces.service.name", "reporter"), ("traces.service.namespace", "shop")]);
    inside.host.namespace = Some("argocd".to_owned());
    let expected = [
        ("service.name", "reporter"),
        ("service.version", VERSION),
        ("service.namespace", "shop"),
        ("service.instance.id", "pod-1"),
        ("k8s.pod.name", "pod-1"),
        ("k8s.namespace.name", "argocd"),
    ];
    assert_eq!(of(&inside), owned(&expected));
}

#[test]
fn an_answer_says_how_many_spans_were_not_taken() {
    let answer = |rejected_spans| {
        let partial = ExportTracePartialSuccess { rejected_spans, error_message: "canary".to_owned() };
        ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()
    };
    assert_eq!(rejected(&answer(7)), 7);
    assert_eq!(rejected(&answer(-7)), 0);
    assert_eq!(rejected(&[]), 0);
    assert_eq!(rejected(b"{\"partialSuccess\": {}}"), 0, "an answer that is none");
}
