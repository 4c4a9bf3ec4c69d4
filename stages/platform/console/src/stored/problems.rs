//! What runtimes say is wrong with them, each with something to do.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::view::runtime::RuntimeProblem;

/// Problems of a runtime that are shown.
const PROBLEMS: usize = 20;
/// Characters of each text of a problem.
const TEXT: usize = 1_000;

/// A problem as the API keeps it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StoredProblem {
    level: String,
    title: String,
    message: String,
    suggestion: Option<String>,
    code: String,
    since: String,
    last_seen: String,
}

/// Errors before warnings, and otherwise as the runtime has them.
pub(super) fn read(body: &str) -> Vec<RuntimeProblem> {
    let all: Vec<Value> = serde_json::from_str(body).unwrap_or_default();
    let known = all.into_iter().filter_map(|one| serde_json::from_value::<StoredProblem>(one).ok());
    let mut problems: Vec<RuntimeProblem> = known.map(|one| problem(&one)).collect();
    problems.sort_by_key(|one| !one.error);
    problems.truncate(PROBLEMS);
    problems
}

fn problem(one: &StoredProblem) -> RuntimeProblem {
    let cut = |text: &str| text.chars().take(TEXT).collect::<String>();
    let moment = |text: &str| text.parse::<Timestamp>().ok();
    let own = one.suggestion.as_deref().map(str::trim).filter(|text| !text.is_empty());
    RuntimeProblem {
        error: one.level != "WARNING",
        suggestion: cut(own.unwrap_or_else(|| suggestion(&one.code))),
        title: cut(&one.title),
        message: cut(&one.message),
        since: moment(&one.since),
        seen: moment(&one.last_seen),
    }
}

/// What to do where the runtime has no word on it.
fn suggestion(code: &str) -> &'static str {
    match code {
        "BROKEN_REFERENCE" => {
            "What it names is not there, or may not be used: make it, or grant what `gitops-runtime rbac print --role app-proxy` prints."
        }
        "INACTIVE_RUNTIME" => {
            "Look whether its pods run, and ask it there: `gitops-runtime status`, and `/healthz?full=true`."
        }
        "INSUFFICIENT_RESOURCES" => {
            "Give its pods more memory or processor time: `kubectl describe pod` says which of them lacks what."
        }
        "RUNTIME_INSTALLATION_ERROR" => {
            "`gitops-runtime validate -f values.yaml` says what is wrong with the installation, each with line and cure."
        }
        "TRANSITIVE_ERROR" => "It follows from another error: mend that one first.",
        _ => "Its own log says more: `gitops-runtime runtime logs` with its name.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_first_each_with_something_to_do_and_what_is_none_is_left_out() {
        let body = r#"["it hurts", {"level": "WARNING", "title": "Quota", "code": "INSUFFICIENT_RESOURCES"},
            {"level": "ERROR", "title": "Git", "message": "no token", "suggestion": "add one", "code": "BROKEN_REFERENCE",
             "lastSeen": "2026-11-24T00:00:00Z", "since": "2026-11-23T00:00:00Z"},
            {"level": "ERROR", "title": "Argo CD", "suggestion": " ", "code": "TRANSITIVE_ERROR", "lastSeen": "soon"}]"#;
        let read = read(body);
        let told: Vec<_> = read.iter().map(|one| (one.error, &*one.title, &*one.suggestion)).collect();
        let more = "Give its pods more memory or processor time: `kubectl describe pod` says which of them lacks what.";
        let other = "It follows from another error: mend that one first.";
        assert_eq!(told, [(true, "Git", "add one"), (true, "Argo CD", other), (false, "Quota", more)]);
        let moment = |text: &str| text.parse::<Timestamp>().ok();
        assert_eq!(
            (read[0].seen, read[0].since),
            (moment("2026-11-24T00:00:00Z"), moment("2026-11-23T00:00:00Z"))
        );
        assert_eq!((read[1].seen, read[1].since), (None, None));
        assert_eq!(super::read("no JSON").len(), 0);
    }

    #[test]
    fn however_much_a_runtime_says_a_page_shows_some_of_it() {
        let one = serde_json::json!({"level": "ERROR", "title": "é".repeat(5_000), "code": "UNKNOWN"});
        let read = read(&Value::from(vec![one; 100]).to_string());
        assert_eq!((read.len(), read[0].title.chars().count()), (PROBLEMS, TEXT));
    }
}
