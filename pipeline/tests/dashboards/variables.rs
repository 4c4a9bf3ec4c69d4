//! Fills variables in as Grafana does.

use std::collections::BTreeMap;

/// Variables by name: a dashboard's own, and Grafana's.
pub(crate) type Variables = BTreeMap<String, String>;

/// Replaces `$name` and `${name}`; a variable that is not known fails the test.
pub(crate) fn fill(text: &str, variables: &Variables) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}').expect("a closed brace"),
            None => {
                let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                part.split_at(end.unwrap_or(part.len()))
            }
        };
        let value = variables.get(name).unwrap_or_else(|| panic!("nothing fills in ${name} of {text}"));
        filled.push_str(value);
        filled.push_str(rest);
    }
    filled
}

/// Grafana's own variables of the time shown, for a data source that is scraped every second.
pub(crate) fn of_range(seconds: u64) -> Variables {
    let own = [
        // Four times the scrape interval, and more only where the time shown has more seconds than the panel points.
        ("__rate_interval", "4s".to_owned()),
        ("__interval", "1s".to_owned()),
        ("__range", format!("{seconds}s")),
        ("__range_s", seconds.to_string()),
        ("datasource", "prometheus".to_owned()),
    ];
    own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Values of which all are chosen, as they stand in a matcher `=~"$name"`.
pub(crate) fn all_of(values: &[String]) -> String {
    let escape = |value: &String| {
        let mut escaped = String::new();
        for letter in value.chars() {
            if r"\$^*{}[]'+?.()|".contains(letter) {
                escaped.push_str(r"\\");
            }
            escaped.push(letter);
        }
        escaped
    };
    match values {
        [] => panic!("a variable has no values"),
        [one] => escape(one),
        many => format!("({})", many.iter().map(escape).collect::<Vec<_>>().join("|")),
    }
}

/// `label_values(metric{...}, label)` as its two parts.
pub(crate) fn label_values(query: &str) -> (&str, &str) {
    let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values(SELECTOR, LABEL)")
}

#[test]
fn variables_are_filled_in_by_their_whole_names() {
    let mut variables = of_range(60);
    variables.insert("job".to_owned(), all_of(&["a.b".to_owned(), "c".to_owned()]));
    let text = r#"x{job=~"$job"}[$__range] / $__range_s + y[$__rate_interval] ${datasource}"#;
    let filled = r#"x{job=~"(a\\.b|c)"}[60s] / 60 + y[4s] prometheus"#;
    assert_eq!(fill(text, &variables), filled);
    assert_eq!(all_of(&["127.0.0.1:1".to_owned()]), r"127\\.0\\.0\\.1:1");
    assert_eq!(label_values(r#"label_values(x{a=~"$b", c="d"}, e)"#), (r#"x{a=~"$b", c="d"}"#, "e"));
}
