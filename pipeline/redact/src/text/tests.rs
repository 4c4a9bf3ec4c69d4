//! Work on text is bounded.

use super::named::LOOKS;
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
        "a_key='x''",
        "db_dsn='a://b:c@''d''",
        "pw is pw as the pw ",
        "token=token,",
        "auth=auth,",
        " password=a b;c",
        "https://x.example/?token=a;",
    ];
    for text in flat.map(|one| one.repeat(400_000 / one.len())).into_iter().chain([nested]) {
        let marks = Marks::of(&text);
        assert!(!marks.is_empty());
        let scan = Scan::new(&text);
        let mut found = Vec::new();
        scan.names(&marks.names, &mut found);
        let most = (LOOKS + 1) * text.len();
        assert!(scan.looked.get() <= most, "{} of {}", scan.looked.get(), text.len());
        assert!(scan.searched.get() <= most, "{} searched of {}", scan.searched.get(), text.len());
    }
}

#[test]
fn a_text_of_placeholders_is_read_as_such_up_to_a_length() {
    use crate::placeholders::fill_all;
    assert!(fill_all(&"{{ .x }}".repeat(512)));
    assert!(!fill_all(&"{{ .x }}".repeat(513)));
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

#[test]
fn a_text_that_asks_for_a_secret_or_speaks_of_one_ends_with_its_quote() {
    for text in [
        "password = getpass(\"Password: \")",
        "token = input('Token: ')\nnext(1)",
        "echo \"Password: \" && stty -echo",
        "msg=\"password changed\" user_id=48291 ip=10.0.0.9",
        "set the password with `kargo admin password` first",
    ] {
        assert_eq!(hidden(text), text);
    }
    for (text, expected) in [
        ("don't forget the password: 'th1stle'", "don't forget the password: '#'"),
        ("msg=\"password is th1stle9\" user=1", "msg=\"password is #\" user=1"),
        ("log in with password `th1stle9`", "log in with password `#`"),
        (
            "rejected password body={\"password\":\"thistle\",\"region\":\"eu-1\"}",
            "rejected password body={\"password\":\"#\",\"region\":\"eu-1\"}",
        ),
    ] {
        assert_eq!(hidden(text), expected);
    }
}

#[test]
fn a_value_ends_where_its_program_ends_it() {
    for (text, expected) in [
        ("opts: [password: <<\"thistle\">>, port: 1]", "opts: [password: <<\"#\">>, port: 1]"),
        (
            "<Password><Value>thistle</Value><PlainText>true</PlainText></Password>",
            "<Password><Value>#</Value><PlainText>true</PlainText></Password>",
        ),
        ("tacacs server t\n key AkI6wEewtllhkudqYvvc\n", "tacacs server t\n key #\n"),
        ("key chain OSPF\n key 1\n", "key chain OSPF\n key 1\n"),
        ("adcli join --stdin-password <<< 'thistle'", "adcli join --stdin-password <<< '#'"),
        ("zip -r -P thistle /out/logs.zip /logs", "zip -r -P # /out/logs.zip /logs"),
        ("ipa-client-install -w thistle --unattended", "ipa-client-install -w # --unattended"),
        ("radtest ada thistle 10.0.0.9 0 testing", "radtest ada # 10.0.0.9 0 #"),
    ] {
        assert_eq!(hidden(text), expected);
    }
}

#[test]
fn what_is_read_elsewhere_is_no_secret_however_a_program_reads_it() {
    for text in [
        "let password = std::env::var(\"DB_PASSWORD\")?;",
        "var password = Environment.GetEnvironmentVariable(\"DB_PASSWORD\");",
        "const token = await getToken();",
        "const token = req.headers.authorization;",
        "const apiToken = localStorage.getItem('token') ?? '';",
        "dsn = \"postgres://{{ env \"DB_USER\" }}:{{ env \"DB_PASS\" }}@pg/shop\"",
        "vault kv put shop/db password=@pw.txt",
        "password: string | required=true",
        "LOCK_DSN=flock",
        "  -p, --password         ask for the password",
        "      --api-token=STRING            what it talks to the service with",
        "label.password=Mot de passe",
    ] {
        assert_eq!(hidden(text), text);
    }
    for (text, expected) in [
        ("const password = \"thistle\";", "const password = \"#\";"),
        ("const token = process.env.TOKEN || \"thistle\";", "const token = #;"),
        ("const secret = login(user, 'th1stle9');", "const secret = #;"),
        ("dsn = \"postgres://{{ env \"DB_USER\" }}:th1stle9@pg/shop\"", "dsn = \"#\""),
    ] {
        assert_eq!(hidden(text), expected);
    }
}

#[test]
fn a_line_that_is_a_user_and_a_password_is_a_logon_below_what_speaks_of_logons() {
    for (text, expected) in [
        ("Logins of staging:\n\nada:fig-Tree-77\nbob:th1stle9\n", "Logins of staging:\n\nada:#\nbob:#\n"),
        ("## Credentials\n- `admin:thistle`\n", "## Credentials\n- `admin:#`\n"),
        ("log in with\n  root / th1stle9\nthen restart", "log in with\n  root / #\nthen restart"),
        (
            "[admins]\nada = thistle\nbob=-pbkdf2-x\n\n[log]\nlevel = info\n",
            "[admins]\nada = #\nbob=#\n\n[log]\nlevel = info\n",
        ),
        ("[users]\nada = th1stle9, admin\n", "[users]\nada = #, admin\n"),
        ("[users]\nallow_sign_up = false\n", "[users]\nallow_sign_up = false\n"),
        // Nothing above speaks of logons.
        ("Ports:\n\nada:fig-Tree-77\n", "Ports:\n\nada:fig-Tree-77\n"),
        ("Logins:\n\nada:enabled\nweb:1.2.3\n", "Logins:\n\nada:enabled\nweb:1.2.3\n"),
        (
            "the login page moved\nregistry.example/web:1.2.3\n",
            "the login page moved\nregistry.example/web:1.2.3\n",
        ),
    ] {
        assert_eq!(hidden(text), expected);
    }
}

#[test]
fn what_a_here_document_tells_a_transfer_is_secret() {
    for (text, expected) in [
        (
            "ftp -n files.example <<END\nuser ada thistle\nput nightly.tgz\nEND\n",
            "ftp -n files.example <<END\nuser ada #\nput nightly.tgz\nEND\n",
        ),
        (
            "/usr/bin/ftp -inv h <<-'EOF'\n  quote USER ada\n  quote PASS thistle\nEOF\nuser ada thistle\n",
            "/usr/bin/ftp -inv h <<-'EOF'\n  quote USER ada\n  quote PASS #\nEOF\nuser ada thistle\n",
        ),
        ("lftp <<E\nopen -u ada,thistle host\nE", "lftp <<E\nopen -u ada,# host\nE"),
        (
            "curl -K - <<EOF\nuser = \"ada:thistle\"\nurl = https://a.example\nEOF",
            "curl -K - <<EOF\nuser = \"ada:#\"\nurl = https://a.example\nEOF",
        ),
        ("cat <<EOF\nuser ada thistle\nEOF", "cat <<EOF\nuser ada thistle\nEOF"),
    ] {
        assert_eq!(hidden(text), expected);
    }
}

#[test]
fn each_logon_and_each_line_of_a_here_document_is_found_once() {
    for one in ["login:\n", "creds ", "<<E\nuser a b\n", "ftp <<E ", "login\nada:th1stle9\n", "ftp <<E\n"] {
        let text = one.repeat(100_000 / one.len());
        let marks = Marks::of(&text);
        let scan = Scan::new(&text);
        let mut found = Vec::new();
        scan.logons(&marks.logons, &mut found);
        scan.here_documents(&marks.heres, &mut found);
        assert!(found.iter().zip(found.iter().skip(1)).all(|(one, next)| one.range.end <= next.range.start));
        let most = text.lines().count();
        assert!(
            found.len() <= most && (found.is_empty() != one.contains("a:th1stle9")),
            "{one:?}: {}",
            found.len()
        );
    }
}

#[test]
fn of_markdown_the_blocks_that_hold_a_manifest_are_read_by_themselves() {
    let text = "# How to\n\nMake it:\n\n```yaml\nkind: Secret\nstringData:\n  password: thistle\n```\n\nand read on.\n";
    let new = crate::Redactor::new(b"the key of the test").text(text).into_owned();
    assert!(!new.contains("thistle"), "{new}");
    assert!(
        new.starts_with("# How to\n\nMake it:\n\n```yaml\n") && new.ends_with("```\n\nand read on.\n"),
        "{new}"
    );
}

#[test]
fn of_a_comment_that_tells_a_secret_the_line_is_said() {
    let text = "a: 1\n# password: thistle9\nb: 2 # token: th1stle\n";
    let notes = crate::Redactor::new(b"the key of the test").explain(text).notes;
    let said: Vec<_> = notes.iter().map(|note| format!("{}: {}", note.place, note.rule)).collect();
    assert_eq!(said, ["line 2: comment", "line 3: comment"]);
}

#[test]
fn of_several_documents_the_one_is_said_and_what_an_alias_repeats_is_said_too() {
    let said = |text: &str| -> Vec<String> {
        let notes = crate::Redactor::new(b"the key of the test").explain(text).notes;
        notes.iter().map(|note| format!("{}: {}", note.place, note.rule)).collect()
    };
    assert_eq!(
        said(
            "a: 1\n---\nkind: Secret\nstringData: {p: thistle}\n---\nfile: |\n  a: 1\n  password: th1stle\n"
        ),
        ["document 2: stringData.p: part of a Secret", "document 3: file.password: value under a name",]
    );
    assert_eq!(
        said("x: &p thistle9\ndb: {password: *p}\n"),
        ["db.password: value under a name", "x: equal to a secret"]
    );
}

#[test]
fn commands_go_behind_a_run_of_marks_that_stays() {
    let digest = format!("{}{}", crate::PREFIX, "0a".repeat(crate::DIGITS / 2));
    let text = format!("{digest} {}mysql -u root -pth1stle", "x | base64 ".repeat(600));
    let out = crate::Redactor::new(b"key").text(&text).into_owned();
    assert!(!out.contains("th1stle"), "{out}");
}
