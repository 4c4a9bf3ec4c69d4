//! What holds of every text: no panic, no canary, stable results.

use pipeline_redact::{PREFIX, Redactor};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::canary::{FIRST, assert_absent};

const SECRET_NAMES: [&str; 24] = [
    "password",
    "dbPassword",
    "DB_PASSWORD",
    "db-passwd",
    "secret",
    "clientSecret",
    "client_secret",
    "token",
    "AUTH_TOKEN",
    "x.auth.token",
    "apiKey",
    "api_key",
    "APIKEY",
    "api-key",
    "accessKey",
    "privateKey",
    "credential",
    "credentials",
    "connectionString",
    "passphrase",
    "signingKey",
    "stringData",
    "encryption_key",
    "secretKey",
];
const PLAIN_NAMES: [&str; 12] = [
    "a",
    "spec",
    "data",
    "metadata",
    "annotations",
    "items",
    "env",
    "name",
    "value",
    "helm",
    "status",
    "x-y",
];

fn redactor() -> Redactor {
    Redactor::new(b"the key of the properties")
}

/// A value with the canary at its one leaf, in objects and arrays under plain names.
fn nest(leaf: Value, path: &[(bool, usize)]) -> Value {
    path.iter().fold(leaf, |inner, (array, name)| match array {
        true => json!([1, inner, null]),
        false => {
            let mut object = serde_json::Map::new();
            object.insert(PLAIN_NAMES[name % PLAIN_NAMES.len()].to_owned(), inner);
            Value::Object(object)
        }
    })
}

fn path(most: usize) -> impl Strategy<Value = Vec<(bool, usize)>> {
    proptest::collection::vec((any::<bool>(), 0..PLAIN_NAMES.len()), 0..most)
}

fn yaml_like() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just("kind: Secret\n"),
            Just("---\n"),
            Just("data:\n"),
            Just("  a: b\n"),
            Just("password"),
            Just(": "),
            Just("="),
            Just("\""),
            Just("'"),
            Just("\\"),
            Just("://"),
            Just("u:p@"),
            Just("eyJ"),
            Just("."),
            Just("&a "),
            Just("*a\n"),
            Just("<<: "),
            Just("{"),
            Just("}"),
            Just("["),
            Just("]"),
            Just("-----BEGIN PRIVATE KEY-----"),
            Just("-----END"),
            Just("Bearer "),
            Just("--token "),
            Just("é"),
            Just("\n"),
            Just("|\n"),
            Just("<password>"),
            Just(";"),
            Just("value"),
            Just("name"),
            Just("@tcp("),
            Just("\u{feff}"),
            Just("#"),
            Just("?"),
            Just("ghp_"),
            Just("aaaaaaaaaaaaaaaaaaaaaaaa"),
        ],
        0..24,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![any::<String>(), yaml_like()]) {
        let redactor = redactor();
        let _ = redactor.manifest(&text);
        let _ = redactor.raw(&text);
        let once = redactor.text(&text).into_owned();
        prop_assert_eq!(once.contains(PREFIX), once != text || text.contains(PREFIX));
    }

    #[test]
    fn a_canary_under_a_secret_name_never_survives(
        name in proptest::sample::select(&SECRET_NAMES[..]),
        above in path(12),
        below in path(6),
    ) {
        let mut object = serde_json::Map::new();
        object.insert(name.to_owned(), nest(json!(FIRST.text), &below));
        let manifest = nest(Value::Object(object), &above);
        if manifest.is_object() || manifest.is_array() {
            let text = manifest.to_string();
            assert_absent(name, &redactor().manifest(&text), &FIRST);
            assert_absent(name, &redactor().raw(&text), &FIRST);
            let yaml = serde_saphyr::to_string(&manifest).unwrap();
            assert_absent(name, &redactor().raw(&yaml), &FIRST);
            let nested = json!({"kind": "ConfigMap", "data": {"a.json": text, "a.yaml": yaml}}).to_string();
            assert_absent(name, &redactor().manifest(&nested), &FIRST);
        }
    }

    #[test]
    fn a_canary_in_a_secret_never_survives(above in path(12), below in path(6), member in 0..3_usize) {
        let member = ["data", "stringData", "extra"][member];
        let secret = json!({"kind": "Secret", "metadata": {"name": "x"}, member: {"a": nest(json!(FIRST.text), &below)}});
        let text = nest(secret, &above).to_string();
        assert_absent(member, &redactor().manifest(&text), &FIRST);
    }

    #[test]
    fn a_canary_in_a_pair_never_survives(
        name in proptest::sample::select(&SECRET_NAMES[..]),
        above in path(12),
        label in proptest::sample::select(&["name", "key"][..]),
    ) {
        prop_assume!(name != "stringData");
        let text = nest(json!([{label: name, "value": FIRST.text}]), &above).to_string();
        assert_absent(name, &redactor().manifest(&text), &FIRST);
    }

    #[test]
    fn a_canary_in_an_assignment_never_survives(
        name in proptest::sample::select(&SECRET_NAMES[..]),
        before in "[a-z ]{0,12}",
        quote in proptest::sample::select(&["", "\"", "'"][..]),
        delimiter in proptest::sample::select(&["=", " = ", ": ", "=\t"][..]),
    ) {
        prop_assume!(name != "stringData");
        let text = format!("{before} {name}{delimiter}{quote}{}{quote} after", FIRST.text);
        assert_absent(name, &redactor().text(&text), &FIRST);
        let text = format!("{before} --{name} {quote}{}{quote} after", FIRST.text);
        assert_absent(name, &redactor().text(&text), &FIRST);
    }

    #[test]
    fn redacted_json_stays_as_it_is(name in proptest::sample::select(&SECRET_NAMES[..]), below in path(6)) {
        let text = json!({name: nest(json!(FIRST.text), &below)}).to_string();
        let once = redactor().manifest(&text).into_owned();
        prop_assert_eq!(redactor().manifest(&once), once.as_str());
    }

    #[test]
    fn a_number_beside_a_secret_keeps_each_of_its_digits(number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let number = json!(number).to_string();
        let text = format!(r#"{{"ratio":{number},"password":"hunter2"}}"#);
        let redacted = redactor().manifest(&text).into_owned();
        prop_assert!(redacted.contains(&format!(r#""ratio":{number}"#)), "{}", redacted);
    }
}

#[test]
fn the_data_of_a_secret_equals_its_string_data() {
    let redactor = redactor();
    let digest = |text: &str| {
        let redacted: Value = serde_json::from_str(&redactor.manifest(text)).unwrap();
        redacted
            .pointer("/data/a")
            .or(redacted.pointer("/stringData/a"))
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    let data = digest(r#"{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}"#);
    assert_eq!(data, digest(r#"{"kind":"Secret","stringData":{"a":"hunter2"}}"#));
    assert_eq!(data, redactor.digest(b"hunter2"));
    assert_eq!(data.len(), PREFIX.len() + 32);
    assert_ne!(data, Redactor::new(b"another key").digest(b"hunter2"));
}

#[test]
fn what_cannot_be_read_is_withheld_with_a_digest() {
    let redactor = redactor();
    assert_eq!(
        redactor.manifest("{"),
        format!(r#"{{"digest":"{}","withheld":"unparsable manifest"}}"#, redactor.digest(b"{"))
    );
    assert_eq!(
        redactor.raw("a: : ["),
        format!("# withheld: unparsable manifest ({})\n", redactor.digest(b"a: : ["))
    );
}

#[test]
fn an_object_nested_beyond_every_reader_does_not_overflow() {
    let mut value = json!({"password": FIRST.text});
    for _ in 0..1_000 {
        value = json!([value]);
    }
    assert!(redactor().value(&mut value));
    let mut levels = 0;
    let mut at = &value;
    while let Value::Array(items) = at {
        at = &items[0];
        levels += 1;
    }
    assert_eq!((levels, at.as_str()), (161, Some("unparsable manifest")));
}

#[test]
fn the_key_does_not_show() {
    assert_eq!(format!("{:?}", Redactor::new(b"secret")), "Redactor { .. }");
}

#[test]
fn what_is_hidden_in_megabytes_is_hidden_everywhere_and_nothing_else() {
    let redactor = redactor();
    let long = "https://x.example/a?b=c;".repeat(100_000);
    assert_eq!(redactor.text(&long), long);
    let many = format!("x{}", " password=a b;c".repeat(100_000));
    assert!(!redactor.text(&many).contains("=a"));
    let names = "token".repeat(400_000);
    assert_eq!(redactor.text(&names), names);
}

#[test]
fn what_once_froze_the_process_comes_back_to_the_byte() {
    let redactor = redactor();
    for one in ["://", "password-", "-----BEGIN ", "value=", "eyJ-------", "AKIA-------"] {
        let bomb = one.repeat(240_000 / one.len());
        assert_eq!(redactor.text(&bomb), bomb, "{one}");
        let object = json!({"kind": "ConfigMap", "data": {"a": bomb}}).to_string();
        assert_eq!(redactor.manifest(&object), object, "{one}");
    }
}

/// It took minutes while an automaton was made of what was replaced.
#[test]
fn a_value_that_repeats_itself_is_replaced_in_the_text_of_a_document() {
    use base64::Engine as _;

    let redactor = redactor();
    let long = "a1".repeat(120_000);
    let digest = redactor.digest(long.as_bytes());
    let json = |value: &str| json!({"x": {"password": value}}).to_string();
    // Of what is longer no comment stays.
    let short = "a1".repeat(14_000);
    let yaml = |value: &str| format!("# of {value}\nx:\n  password: '{value}' # once\n");
    for (text, redacted) in
        [(json(&long), json(&digest)), (yaml(&short), yaml(&redactor.digest(short.as_bytes())))]
    {
        let object = json!({"kind": "ConfigMap", "data": {"x": text}}).to_string();
        let expected = json!({"kind": "ConfigMap", "data": {"x": redacted}}).to_string();
        let told: String = redactor.manifest(&object).chars().take(300).collect();
        assert_eq!(told, expected);
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(&long);
    let mut secret =
        json!({"kind": "Secret", "metadata": {"annotations": {"note": long}}, "data": {"password": encoded}});
    assert!(redactor.value(&mut secret));
    assert!(!secret.to_string().contains("a1a1a1"));
}

#[test]
fn what_is_little_but_beginnings_of_tokens_goes_whole() {
    let redactor = redactor();
    for one in ["eyJ-", "AKIA-"] {
        let bomb = one.repeat(240_000 / one.len());
        let digest = redactor.digest(bomb.as_bytes());
        assert_eq!(redactor.text(&bomb), digest, "{one}");
        let object = json!({"kind": "ConfigMap", "data": {"a": bomb}}).to_string();
        let redacted = json!({"kind": "ConfigMap", "data": {"a": digest}}).to_string();
        assert_eq!(redactor.manifest(&object), redacted, "{one}");
    }
}

#[test]
fn what_unpacks_to_more_than_is_looked_into_is_sealed() {
    use std::io::Write as _;

    use base64::Engine as _;

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        packed.write_all(&[b'a'; 1_000_000]).unwrap();
    }
    let text = base64::engine::general_purpose::STANDARD.encode(packed.finish().unwrap());
    let object = json!({"kind": "ConfigMap", "data": {"a": text}}).to_string();
    assert!(!redactor().manifest(&object).contains(&text));
}
