//! Work on text is bounded.

use super::*;

#[test]
fn values_within_values_are_looked_at_a_bounded_number_of_times() {
    let nested = r#""enc_key":{"a":"#.repeat(20_000) + &"}".repeat(20_000);
    let flat = [
        r#""enc_key":{"api_key":1,"#,
        r#""enc_key":["token":null,"#,
        r#""signing_key": {"api_key": "a","#,
        r#""auth_key":{ "hook_url": 1,"#,
        "'enc_key':{'api_key':1,",
        "a_key=",
    ];
    for text in flat.map(|one| one.repeat(400_000 / one.len())).into_iter().chain([nested]) {
        let marks = Marks::of(&text);
        assert!(!marks.is_empty());
        let scan = Scan::new(&text);
        let mut found = Vec::new();
        scan.names(&marks.names, &mut found);
        let most = (LOOKS + 1) * text.len();
        assert!(scan.looked.get() <= most, "{} of {}", scan.looked.get(), text.len());
    }
}

/// The text with each secret as `#`.
fn hidden(text: &str) -> String {
    let mut out = String::new();
    let mut done = 0;
    for secret in secrets(text, true) {
        out.push_str(text.get(done..secret.range.start).unwrap_or_default());
        out.push('#');
        done = secret.range.end;
    }
    out + text.get(done..).unwrap_or_default()
}

#[test]
fn the_columns_of_a_table_are_as_secret_as_their_names() {
    for (table, expected) in [
        ("user,password,role\nada,thistle,admin\nbob,,user", "user,password,role\nada,#,admin\nbob,,user"),
        ("name;api_key\r\nweb;t1\r\n", "name;api_key\r\nweb;#\r\n"),
        ("\"login\",\"token\"\n\"a\",\"x9\"", "\"login\",\"token\"\n\"a\",\"#\""),
        // The table ends where its lines have other columns.
        ("user,password\nada,thistle\nread, write, run", "user,password\nada,#\nread, write, run"),
        // A list of words is no head of a table.
        ("secrets, tokens and keys\nare, of course", "secrets, tokens and keys\nare, of course"),
    ] {
        assert_eq!(hidden(table), expected);
    }
}

#[test]
fn what_a_check_quotes_is_secret_and_the_name_of_a_type_is_not() {
    for (message, expected) in [
        (
            "env DB_PASSWORD must not be a literal: got \"thistle\"",
            "env DB_PASSWORD must not be a literal: got \"#\"",
        ),
        ("token must match ^ghs_, got 'thistle'", "token must match ^ghs_, got '#'"),
        ("password: expected a map, got \"string\"", "password: expected a map, got \"string\""),
        ("replicas: expected a number, got \"three\"", "replicas: expected a number, got \"three\""),
    ] {
        assert_eq!(hidden(message), expected);
    }
}

#[test]
fn a_name_and_a_value_alone_in_a_line_are_a_setting_among_others_of_that_form() {
    assert_eq!(
        hidden("remote_username bridge\nremote_password thistle\n"),
        "remote_username bridge\nremote_password #\n"
    );
    assert_eq!(hidden("remote_password thistle"), "remote_password thistle");
    assert_eq!(hidden("the list\nuser_password missing\n"), "the list\nuser_password missing\n");
}

#[test]
fn a_sentence_tells_the_password_behind_its_colon_or_in_the_next_line() {
    assert_eq!(
        hidden("A temporary password is generated for root@localhost: th1stle!2"),
        "A temporary password is generated for root@localhost: #"
    );
    assert_eq!(
        hidden("use the following password to proceed to installation:\n\n0a1b2c3dthistle4e\n\nThis"),
        "use the following password to proceed to installation:\n\n#\n\nThis"
    );
    assert_eq!(hidden("password was changed for user: ada2024"), "password was changed for user: ada2024");
}

#[test]
fn a_row_of_markdown_tells_its_default_in_the_last_cell() {
    assert_eq!(
        hidden("| `adminPassword` | The password | `\"th1stle\"` |"),
        "| `adminPassword` | The password | `\"#\"` |"
    );
    for row in ["| `adminPassword` | The password | `\"\"` |", "| The `password` is | `thistle` |"] {
        assert_eq!(hidden(row), row);
    }
}

#[test]
fn a_header_ends_with_the_quote_that_opened_before_its_name() {
    assert_eq!(
        hidden("curl -H \"X-API-Key: thistle\" -H \"Accept: text/html\" https://example.org"),
        "curl -H \"X-API-Key: #\" -H \"Accept: text/html\" https://example.org"
    );
}
