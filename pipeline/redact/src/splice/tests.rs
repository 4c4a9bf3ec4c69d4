//! Nothing but the scalars that were replaced differs from what stood there.

use crate::Redactor;

/// The text as it leaves, each digest as `#`.
fn left(text: &str) -> String {
    let redactor = Redactor::new(b"the key of the test");
    let new = redactor.raw(text).into_owned();
    assert_eq!(redactor.raw(&new), new, "what is redacted changes when it is redacted again");
    let mut parts = new.split(crate::PREFIX);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('#');
        out.push_str(part.get(crate::DIGITS..).unwrap_or_default());
    }
    out
}

#[test]
fn quotes_comments_order_and_the_spelling_of_other_values_stay() {
    let text = "# a comment, ä\nzone: 'eu'   # another\nlist: [a, \"b\", 0x1F]\neula: Y\nid: 0xDEADBEEF\n\npassword: thistle # why\nother:\n- {token: 'this''tle', port: \"5432\"}\n- \"secret\": \"this\\ttle\"\nempty:\n";
    assert_eq!(
        left(text),
        "# a comment, ä\nzone: 'eu'   # another\nlist: [a, \"b\", 0x1F]\neula: Y\nid: 0xDEADBEEF\n\npassword: # # why\nother:\n- {token: '#', port: \"5432\"}\n- \"secret\": \"#\"\nempty:\n"
    );
}

#[test]
fn several_documents_stay_several() {
    let text = "---\nb: 1\na: {password: thistle}\n---\n# nothing\n---\nkind: Secret\nstringData: {a: thistle, b: 12}\n...\n";
    assert_eq!(
        left(text),
        "---\nb: 1\na: {password: #}\n---\n# nothing\n---\nkind: Secret\nstringData: {a: #, b: #}\n...\n"
    );
}

#[test]
fn lines_of_a_block_stay_where_no_secret_stands() {
    let text = "data:\n  app.ini: |\n    ; ü\n    [db]\n    password = thistle\n\n    name  =  shop\n  key: |-\n    -----BEGIN PRIVATE KEY-----\n    MIIEvQ\n    -----END PRIVATE KEY-----\n  last: >\n    postgres://app:thistle@db/x\n    and more\n  after: yes\n";
    assert_eq!(
        left(text),
        "data:\n  app.ini: |\n    ; ü\n    [db]\n    password = #\n\n    name  =  shop\n  key: |-\n    #\n  last: >\n    postgres://#@db/x and more\n  after: yes\n"
    );
    assert_eq!(left("a:\n  password: |\n    thistle\n  b: 1\n"), "a:\n  password: #\n  b: 1\n");
}

#[test]
fn json_keeps_its_order_and_its_spaces() {
    let text = "{\n\t\"z\": 1.50,\n  \"password\" : \"this\\u0074le\",\n  \"a\": [true , null, {\"token\":12345678}]\n}\n";
    assert_eq!(
        left(text),
        "{\n\t\"z\": 1.50,\n  \"password\" : \"#\",\n  \"a\": [true , null, {\"token\":\"#\"}]\n}\n"
    );
}

#[test]
fn what_an_alias_repeats_is_replaced_in_its_place() {
    assert_eq!(
        left("a: {password: &pw thistle}\nb: {token: *pw}\nc: *pw\n"),
        "a: {password: &pw #}\nb: {token: #}\nc: #\n"
    );
}

#[test]
fn a_secret_that_a_comment_tells_is_replaced_where_it_stands() {
    for text in [
        "b: 1 # password: thistle9\na: {password: thistle}\n",
        "# use ada / th1stle-9 for the demo\nb:   'x'  # the rest stays\n",
        "# postgres://app:thistle@db/shop\nname: \"web\"\n",
        "file: |\n  # a comment of the file: password: thistle9\n  a = 1\nb: 1 # token: th1stle\n",
    ] {
        let expected = ["ada / th1stle-9", "app:thistle@"].iter().fold(text.to_owned(), |text, told| {
            text.replace(told, &told.replace("th1stle-9", "#").replace("app:thistle", "#"))
        });
        let expected = expected.replace("thistle9", "#").replace("th1stle", "#").replace("thistle", "#");
        assert_eq!(left(text), expected);
    }
    // A manifest is only mentioned.
    let text = "# of kind: Secret or ConfigMap\na: {password: thistle}\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
}

#[test]
fn a_whole_secret_in_comments_goes_with_the_comments_around_it_and_the_others_stay() {
    for secret in [
        "# extra: []\n#   kind: Secret\n#   data:\n#     a: dGhpc3RsZQ==\n",
        "# kind: Secret\n\n# stringData: {a: dGhpc3RsZQ==}\n",
        "# {\"kind\": \"Secret\", \"data\": {\"a\": \"dGhpc3RsZQ==\"}}\n",
    ] {
        let new = left(&format!("# first\nb: 1\n{secret}a: {{password: thistle}} # last\n"));
        assert_eq!(new, "# first\nb: 1\n##\na: {password: #} # last\n");
    }
    let text =
        "# kind: Secret\n# metadata: {name: web}\na: 1\n# data: one of these\nb: {password: thistle}\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
}

#[test]
fn a_secret_that_stands_in_other_words_too_is_replaced_where_it_is_one() {
    for (text, expected) in [
        (
            "user: admin\npassword: admin\ngroup: administrators\n",
            "user: admin\npassword: #\ngroup: administrators\n",
        ),
        ("a: {password: web, name: web}\n---\nname: web\n", "a: {password: #, name: web}\n---\nname: web\n"),
        ("password: thistle\n---\nname: thistle\n", "password: #\n---\nname: thistle\n"),
        // One is a part of the other.
        (
            "a: {password: thistle}\nb: {password: thistles, note: it thistles}\n",
            "a: {password: #}\nb: {password: #, note: it thistles}\n",
        ),
    ] {
        assert_eq!(left(text), expected);
    }
}

#[test]
fn lines_that_are_folded_when_they_are_read_stay_lines() {
    let text = "Traceback (most recent call last):\n  File \"/app/mail.py\", line 41, in send\n    user = 'a', password = 'th1stle'\nout: \"one\n  Password=th1stle;Server=x\n  and password=th1stle2 too\"\n";
    assert_eq!(left(text), text.replace("th1stle2", "#").replace("th1stle", "#"));
}

#[test]
fn what_a_tag_refers_to_by_name_is_no_secret() {
    let text = "wifi: {password: !secret wifi_password, ssid: home}\ntoken: !env_var API_TOKEN\nother: {password: thistle}\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
}

#[test]
fn a_comment_that_repeats_a_secret_does_not_stay() {
    for text in [
        "# thistle is for the demo\npassword: thistle\n",
        "pin: 1\ndb_password: 4711 # was 4711 before\n",
        "url: postgres://app:thistle@db # thistle, as of old\n",
    ] {
        let new = left(text);
        assert!(!new.contains("thistle") && !new.contains("4711"), "{new}");
    }
    assert_eq!(left("# the demo\npassword: thistle\n"), "# the demo\npassword: #\n");
}

#[test]
fn comments_do_not_stay_beside_more_secrets_than_are_looked_for_in_them() {
    let secrets =
        |count: usize| format!("# {}\n{}", "a comment", "- password: thistle-0123456789\n".repeat(count));
    assert!(left(&secrets(3000)).starts_with("# a comment\n- password: #\n"));
    assert!(left(&secrets(5000)).starts_with("- password: #\n"));
}

#[test]
fn of_several_documents_those_without_a_secret_keep_every_byte() {
    let text = "# first\na:   'x'\n---\nb: {password: thistle}   # second\nfile: |\n  ---\n  c: 1\n---\n\nlist:\n-  0x1F\n- &one y\n- *one\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
    let text = "--- # opened\na: {password: thistle}\n--- \nb: 1\n...\n---\nc: {token: th1stle9}\n";
    assert_eq!(left(text), text.replace("thistle", "#").replace("th1stle9", "#"));
    let text = "a: 1\n---\r\nb: {password: thistle}\r\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
}

#[test]
fn a_comment_of_one_document_that_repeats_a_secret_of_another_does_not_stay() {
    let new = left("# thistle is for the demo\na: 1\n---\npassword: thistle\n");
    assert!(!new.contains("thistle") && new.contains("password: #"), "{new}");
}

#[test]
fn what_a_merge_repeats_is_replaced_in_its_place() {
    let text = "base: &b {user: ada, password: thistle} # shared\nderived:\n  <<: *b\n  host: pg\nlist:\n  - <<: [*b]\n    port: 1\n";
    assert_eq!(left(text), text.replace("thistle", "#"));
    let text = "x-env: &env\n  A: one\n  DB_PASSWORD: thistle\nweb:\n  environment:\n    <<: *env\n    TOKEN: th1stle\njob:\n  environment:\n    <<: *env\n    DB_PASSWORD: th1stle2\n";
    assert_eq!(left(text), text.replace("th1stle2", "#").replace("th1stle", "#").replace("thistle", "#"));
}

#[test]
fn a_secret_that_is_a_number_in_yaml_is_replaced_and_a_share_of_something_stays() {
    let text = "password: 71e48\nrootPassword: 123456789012345678901234567890\napiToken: 0.1234567890\ntoken_create: 0.25\n";
    assert_eq!(left(text), "password: #\nrootPassword: #\napiToken: #\ntoken_create: 0.25\n");
}
