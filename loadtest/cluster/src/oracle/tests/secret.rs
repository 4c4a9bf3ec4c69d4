//! Values of Secrets, in clear and not.

use super::super::secrets::Canaries;
use super::*;

const VALUE: &str = "correct-horse-battery";

fn canaries() -> Canaries {
    let mut canaries = Canaries::default();
    canaries.add(VALUE, "password of the Secret web/login");
    canaries
}

#[test]
fn a_value_that_is_not_masked_is_found() {
    let value = STANDARD.encode(VALUE);
    let wrong = spoilt(2, |draft| {
        draft.object["data"]["password"] = json!(value);
        draft.source["actualManifest"] = json!(draft.object.to_string());
    });
    assert_eq!(wrong, ["argocd/web Secret web/login: live data.password is not masked"]);
    let wrong = spoilt(2, |draft| {
        let desired = secret(false, &value);
        draft.source["desiredManifest"] = json!(desired.to_string());
        draft.source["gitManifest"] = json!(desired.to_string());
    });
    assert_eq!(wrong, ["argocd/web Secret web/login: desired data.password is not masked"]);
    let wrong = spoilt(2, |draft| {
        draft.object["data"] = json!({});
        draft.source["actualManifest"] = json!(draft.object.to_string());
    });
    assert_eq!(wrong, [r#"argocd/web Secret web/login: live data has the keys [], expected ["password"]"#]);
    let wrong = spoilt(2, |draft| {
        draft.object["type"] = json!("other");
        draft.source["actualManifest"] = json!(draft.object.to_string());
    });
    assert_eq!(wrong, [r#"argocd/web Secret web/login: live type is "other", expected "Opaque""#]);
}

#[test]
fn a_value_is_found_in_any_byte() {
    let leaks = |at: usize, spoil: &dyn Fn(&mut Draft)| {
        let mut drafts = told();
        spoil(&mut drafts[at]);
        let one = &drafts[at];
        canaries().leak_of(&one.entity, &one.payload())
    };
    assert_eq!(leaks(0, &|_| {}), None);
    assert_eq!(leaks(2, &|_| {}), None);
    let text = "password of the Secret web/login is in a report in clear";
    let of_secret = Some(format!("argocd/web Secret web/login: {text}"));
    let quoted = json!({"a": json!({"b": format!("x{VALUE}\n")}).to_string()}).to_string();
    assert_eq!(leaks(2, &|draft| draft.source["gitManifest"] = json!(quoted)), of_secret);
    assert_eq!(leaks(2, &|draft| draft.object["metadata"]["annotations"] = json!({"a": quoted})), of_secret);
    assert_eq!(leaks(0, &|draft| draft.source["x"] = json!(VALUE)), Some(format!("argocd/web: {text}")));
    for before in ["", "a", "ab", "abc", "user:"] {
        let encoded = STANDARD.encode(format!("{before}{VALUE}@host"));
        assert_eq!(leaks(2, &|draft| draft.object["data"]["x"] = json!(encoded)), of_secret, "{before}");
    }
}

#[test]
fn what_is_short_or_public_is_not_looked_for() {
    const PUBLIC: &str = "short several short pieces here MIIBszCCAVmgAwIBAgI 2026-11-21T10:00:00Z \
                          https://kubernetes.default.svc";
    let mut canaries = Canaries::default();
    for text in [
        "short",
        "several short pieces here",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgI\n",
        "2026-11-21T10:00:00Z",
        "https://kubernetes.default.svc",
    ] {
        canaries.add(text, "x");
    }
    assert_eq!(canaries.leak(PUBLIC.as_bytes()), None);
    canaries.add("https://user:hunter2hunter2@host/", "y");
    assert_eq!(canaries.leak(b"https://user:hunter2hunter2@host/"), Some("y"));
    canaries.add("two words: exactly-eight-and-more", "x");
    assert_eq!(canaries.leak(b"exactly-eight-and-mor"), None);
    assert_eq!(canaries.leak(b"..exactly-eight-and-more"), Some("x"));
}
