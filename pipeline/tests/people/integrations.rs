//! Git providers of a runtime, and people's tokens there.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::app_proxy::AppProxy;
use crate::desk::{Desk, Said};

struct Working {
    desk: Desk,
    proxy: AppProxy,
}

impl Working {
    async fn start() -> Self {
        let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
        Self { desk, proxy }
    }

    async fn typed(&self, arguments: &[&str], input: &str) -> Said {
        let all = [&["git"], arguments, &["--app-proxy", &self.proxy.url]].concat();
        self.desk.typed(&all, input).await
    }

    /// The field that was asked, and with what.
    fn asked(&self) -> Vec<(String, Value)> {
        self.proxy.changed().into_iter().map(|(field, variables, _)| (field, variables)).collect()
    }
}

#[tokio::test]
async fn integrations_are_listed_with_who_is_registered() {
    let working = Working::start().await;
    let (day, now) = (SignedDuration::from_hours(24), Timestamp::now());
    let at = |days: i32| now + day * days;
    let users = json!([
        {"userId": "ada", "isValid": true, "expiresAt": null},
        {"userId": "lin", "isValid": false, "expiresAt": at(1)},
        {"userId": "eve", "isValid": true, "expiresAt": at(20)},
        {"userId": "tom", "isValid": true, "expiresAt": at(13)},
        {"userId": "kim", "isValid": true, "expiresAt": at(-2)},
    ]);
    let one = json!({
        "name": "default", "provider": "GITHUB", "apiUrl": "https://api.github.com",
        "sharingPolicy": "ALL_USERS_IN_ACCOUNT", "registeredUsers": 5, "users": users,
    });
    working.proxy.answers("gitIntegrations", &[json!([one])]);
    let list = ["integration", "list", "--runtime", "prod"];
    let out = working.typed(&list, "").await.done();
    let words: Vec<&str> = out.split_whitespace().collect();
    let on = |days: i32| at(days).strftime("%Y-%m-%d").to_string();
    let wanted = format!(
        "NAME PROVIDER API FOR REGISTERED default GITHUB https://api.github.com everybody ada, lin (again), eve, tom (ends \
         {}), kim (ended {})",
        on(13),
        on(-2)
    );
    assert_eq!(words.join(" "), wanted);
    let names = [&list[..], &["-o", "name"]].concat();
    assert_eq!(working.typed(&names, "").await.done(), "default\n");
    let document = working.typed(&[&list[..], &["-o", "json"]].concat(), "").await.done();
    assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), json!([one]));
}

#[tokio::test]
async fn a_token_that_is_consented_to_in_a_browser_is_registered_with_the_line_that_it_shows() {
    let working = Working::start().await;
    let url =
        "https://runtime.example.com/app-proxy/api/git-auth/github?userId=ada&accountId=default&state=s";
    working.proxy.answers("beginGitAuth", &[json!({"url": url})]);
    working.proxy.answers("finishGitAuth", &[json!({"name": "lab"})]);
    let register = ["integration", "register", "--browser", "--name", "lab", "--runtime", "prod"];
    let said = working.typed(&register, "1.0a.line\n").await;
    let open = format!("gitops-runtime: open {url} in your browser, and consent there\n");
    assert_eq!((said.err.as_str(), said.code), (open.as_str(), 0));
    assert_eq!(said.done(), "the Git integration lab has your token\n");
    let finish = json!({"args": {"name": "lab", "line": "1.0a.line"}});
    let asked = [("beginGitAuth".to_owned(), json!({"name": "lab"})), ("finishGitAuth".to_owned(), finish)];
    assert_eq!(working.asked(), asked);
    let none =
        "gitops-runtime: there is no line: it is asked for on a terminal, else read from standard input\n";
    assert_eq!(working.typed(&register, "").await.refused(), (1, format!("{open}{none}")));
    let dry = working.typed(&[&register[..], &["--dry-run"]].concat(), "").await.done();
    assert_eq!(dry, "would register a token that you consent to in a browser with the Git integration lab\n");
    assert_eq!(working.asked(), [("beginGitAuth".to_owned(), json!({"name": "lab"}))]);
    let file = working.typed(&[&register[..], &["--token-file", "token"]].concat(), "").await;
    assert!(file.code == 2 && file.err.contains("cannot be used with"), "{file:?}");
}

#[tokio::test]
async fn what_is_changed_is_said_before_and_asked_as_the_schema_has_it() {
    let working = Working::start().await;
    let named = json!({"name": "lab"});
    for field in [
        "addGitIntegration",
        "editGitIntegration",
        "registerToGitIntegration",
        "deregisterFromGitIntegration",
    ] {
        working.proxy.answers(field, std::slice::from_ref(&named));
    }
    working.proxy.answers("removeGitIntegration", &[Value::Null]);
    let ada = json!({"userId": "ada", "isValid": true, "expiresAt": null});
    let kept = json!({
        "name": "lab", "provider": "GITLAB", "apiUrl": "https://git.example", "sharingPolicy": "ACCOUNT_ADMINS", "users": [ada],
    });
    working.proxy.answers("gitIntegration", &[kept]);
    let cases: [(&[&str], &str, &str, &str, Value); 5] = [
        (
            &["add", "gitlab", "--api-url", "https://git.example", "--sharing", "admins"],
            "add the Git integration lab of GitLab at https://git.example, for admins",
            "was added",
            "addGitIntegration",
            json!({"args": {"name": "lab", "provider": "GITLAB", "apiUrl": "https://git.example", "sharingPolicy": "ACCOUNT_ADMINS"}}),
        ),
        (
            &["edit", "--sharing", "everybody"],
            "make the Git integration lab one for everybody",
            "was changed",
            "editGitIntegration",
            json!({"args": {"name": "lab", "apiUrl": null, "sharingPolicy": "ALL_USERS_IN_ACCOUNT"}}),
        ),
        (
            &["register"],
            "register your token with the Git integration lab",
            "has your token",
            "registerToGitIntegration",
            json!({"args": {"name": "lab", "token": "canary-of-git", "username": null}}),
        ),
        (
            &["deregister"],
            "have the Git integration lab forget your token",
            "has forgotten your token",
            "deregisterFromGitIntegration",
            json!({"name": "lab"}),
        ),
        (
            &["remove"],
            "remove the Git integration lab, and every token registered with it",
            "was removed",
            "removeGitIntegration",
            json!({"name": "lab"}),
        ),
    ];
    for (arguments, does, is, field, variables) in cases {
        let of = |more: &[&'static str]| {
            let begin = [&["integration"][..], arguments, &["--runtime", "prod", "--name", "lab"]].concat();
            begin.into_iter().chain(more.iter().copied()).map(str::to_owned).collect::<Vec<_>>()
        };
        let run = async |more: &[&'static str]| {
            let all = of(more);
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            working.typed(&all, "canary-of-git\n").await
        };
        let (more, asked) = match field {
            "removeGitIntegration" => ("  the token of ada\n", &["gitIntegration"][..]),
            "editGitIntegration" => ("- for admins\n+ for everybody\n", &["gitIntegration"][..]),
            _ => ("", &[][..]),
        };
        assert_eq!(run(&["--dry-run"]).await.done(), format!("would {does}\n{more}"));
        let fields: Vec<String> = working.asked().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, asked, "{field}");
        let destroys = matches!(field, "deregisterFromGitIntegration" | "removeGitIntegration");
        if destroys {
            let unasked =
                format!("gitops-runtime: this would {does}: give --yes, since nobody can be asked\n");
            assert_eq!(run(&[]).await.refused().1, unasked);
            assert_eq!(working.asked(), [], "{field}");
        }
        let done = run(if destroys { &["--yes"] } else { &[] }).await;
        assert!(!format!("{done:?}").contains("canary"), "a token is printed");
        assert_eq!(done.done(), format!("the Git integration lab {is}\n"));
        assert_eq!(working.asked(), [(field.to_owned(), variables)]);
    }
}

#[tokio::test]
async fn a_token_is_checked_and_a_refusal_is_told_and_none_stands_on_the_command_line() {
    let working = Working::start().await;
    working.proxy.answers("gitToken", &[json!({"expiresAt": null})]);
    let check = ["token", "check", "--runtime", "prod"];
    let taken = "the provider of the Git integration default takes your token\n";
    assert_eq!(working.typed(&check, "").await.done(), taken);
    assert_eq!(working.asked(), [("gitToken".to_owned(), json!({"name": "default"}))]);
    for (days, soon) in
        [(20, ""), (13, "gitops-runtime: it ends within 14 days: register another one before\n")]
    {
        let at = Timestamp::now() + SignedDuration::from_hours(24) * days;
        working.proxy.answers("gitToken", &[json!({"expiresAt": at})]);
        let until = at.strftime("%Y-%m-%d");
        let said = working.typed(&check, "").await;
        assert_eq!(said.err, soon);
        let taken = format!("the provider of the Git integration default takes your token, until {until}\n");
        assert_eq!(said.done(), taken);
    }
    working.proxy.refuses("gitToken", "'ada' has no token registered with the Git integration default");
    let said = working.typed(&check, "").await.refused().1;
    assert!(said.ends_with(": 'ada' has no token registered with the Git integration default\n"), "{said}");
    let register = ["integration", "register", "--runtime", "prod"];
    let none = "gitops-runtime: there is no token: it is asked for on a terminal, else read from standard input, or give --token-file\n";
    assert_eq!(working.typed(&register, "").await.refused().1, none);
    let wrong = "gitops-runtime: this is no token: a token is one word, which is made on a page of the Git provider\n";
    assert_eq!(working.typed(&register, "two words").await.refused().1, wrong);
}
