//! Settings, by their pages: users, rules, tokens of runtimes, retention; each act is an admin's, and stands in the audit log.

use pipeline_core::SecretString;
use reqwest::StatusCode;
use stages_platform_console::table;
use stages_platform_store::{Account, RetentionDays, Role};

use crate::served::{Served, cookie};

impl Served {
    /// What the page says after a form; a redirect is followed.
    async fn send(&self, session: &str, path: &str, form: &[(&str, &str)]) -> String {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let asked = self.client.post(format!("{}{path}", self.url)).header("cookie", session).body(body);
        let response = asked.send().await.unwrap();
        match response.status() {
            StatusCode::SEE_OTHER => {
                let to = response.headers()["location"].to_str().unwrap().to_owned();
                self.page(session, &to).await
            }
            status => {
                assert_eq!(status, StatusCode::OK, "{path}");
                response.text().await.unwrap()
            }
        }
    }

    /// The acts of the audit log, the newest first.
    async fn acts(&self, count: u32) -> Vec<String> {
        let acts = self.store.audit(i64::MAX, count).await.unwrap();
        acts.into_iter().map(|act| format!("{} {} {}", act.who, act.act, act.subject)).collect()
    }
}

fn link(page: &str) -> String {
    let link = page.split("/welcome?token=").nth(1).unwrap().split(['"', '<', '&']).next().unwrap();
    link.to_owned()
}

#[tokio::test]
async fn every_act_that_another_site_sends_is_refused() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let acts: Vec<_> = table().into_iter().filter(|(method, ..)| *method == "POST").collect();
    assert!(acts.len() >= 15, "{}", acts.len());
    for (_, path, _) in acts {
        let asked = served.client.post(format!("{}{path}", served.url)).header("cookie", &session);
        let response = asked.header("sec-fetch-site", "cross-site").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
        let said = "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl\n";
        assert_eq!(response.text().await.unwrap(), said, "{path}");
    }
    assert_eq!(served.acts(1).await, ["ada user.sign-in ada"], "nothing was done");
}

#[tokio::test]
async fn whoever_sends_a_form_without_a_session_signs_in_and_is_back_where_it_stood() {
    let served = Served::new().await;
    let send = async |path: &str, from: Option<&str>| {
        let asked =
            served.client.post(format!("{}{path}", served.url)).header("accept", "text/html,*/*;q=0.8");
        let from = from.map(|from| format!("{}{from}", served.url));
        let response = from.into_iter().fold(asked, |asked, from| asked.header("referer", from)).send().await;
        let response = response.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path}");
        response.headers()["location"].to_str().unwrap().to_owned()
    };
    let stood = send("/settings/keys", Some("/settings?tab=a")).await;
    assert_eq!(stood, "/sign-in?next=%2Fsettings%3Ftab%3Da");
    // Somebody signs out in a second tab.
    assert_eq!(send("/sign-out", None).await, "/sign-in?next=%2F");
}

#[tokio::test]
async fn somebody_is_invited_sets_a_password_is_changed_kept_out_and_taken_away() {
    let served = Served::new().await;
    let ada = served.signed_in().await;
    for (form, why) in [
        (&[("name", ""), ("role", "member")][..], "A name has 1 to 60 characters."),
        (&[("name", "lin"), ("role", "owner")][..], "A role is 'admin' or 'member'."),
        (&[("name", "ADA"), ("role", "member")][..], "Somebody has that name: choose another."),
    ] {
        let page = served.send(&ada, "/settings/users", form).await;
        assert!(page.contains(why), "{why}");
    }
    let many = "x".repeat(101);
    let page =
        served.send(&ada, "/settings/users", &[("name", "lin"), ("role", "member"), ("teams", &many)]).await;
    assert!(page.contains("Somebody is in at most 50 teams, each of a name of at most 100 characters."));
    let form = [("name", "lin"), ("role", "member"), ("teams", "shop\u{7}x")];
    let page = served.send(&ada, "/settings/users", &form).await;
    let team = "The name of a team has no comma, no control character and no white space around it.";
    assert!(page.contains(team), "{page}");

    let page = served
        .send(&ada, "/settings/users", &[("name", "Lin"), ("role", "member"), ("teams", "shop, shop ,web")])
        .await;
    let token = link(&page);
    let welcome = served.client.get(format!("{}/welcome?token={token}", served.url)).send().await.unwrap();
    assert!(welcome.text().await.unwrap().contains("Welcome, lin"));
    // The name is that of whoever the link is for, whatever the form says.
    let form = [("token", &*token), ("name", "eve"), ("password", "a long enough one")];
    let response = served.post("/welcome", &form).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let lin = cookie(&response);
    assert_eq!(served.post("/welcome", &form).await.status(), StatusCode::GONE, "once");
    let people = served.store.people().await.unwrap();
    assert_eq!((&*people[1].name, &people[1].teams), ("lin", &vec!["shop".to_owned(), "web".to_owned()]));

    let admin = "This is the last admin who may come in and whom a person made one: make somebody else one first. An admin by a group of \
                 the provider counts once a person keeps them as one.";
    let page = served.send(&ada, "/settings/users/change", &[("name", "ada"), ("role", "member")]).await;
    assert!(page.contains(admin));
    let nobody = "There is nobody of that name (any more).";
    assert!(
        served
            .send(&ada, "/settings/users/change", &[("name", "eve"), ("role", "member")])
            .await
            .contains(nobody)
    );
    served
        .send(&ada, "/settings/users/change", &[("name", "lin"), ("role", "admin"), ("teams", "web")])
        .await;
    assert_eq!(served.acts(2).await, ["ada user.teams lin: web", "ada user.admin lin"]);
    served.page(&lin, "/settings/users").await;

    let status = async |session: &str| {
        let asked = served.client.get(format!("{}/find?q=a", served.url)).header("cookie", session);
        asked.send().await.unwrap().status()
    };
    let act = async |name: &'static str, act: &'static str| {
        served.send(&ada, "/settings/users/act", &[("name", name), ("act", act)]).await
    };
    let last = "There is nobody of that name (any more), or it is the last admin who may come in and whom a person made one: an admin \
                by a group of the provider does not count.";
    let page = act("lin", "disable").await;
    assert!(page.contains("disabled") && page.contains("Let in again"));
    assert_eq!(status(&lin).await, StatusCode::UNAUTHORIZED);
    let form = [("name", "lin"), ("password", "a long enough one")];
    assert_eq!(served.post("/sign-in", &form).await.status(), StatusCode::UNAUTHORIZED);
    assert!(act("ada", "disable").await.contains(last));
    assert!(act("ada", "remove").await.contains(last));
    act("lin", "enable").await;
    let response = served.post("/sign-in", &form).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let lin = cookie(&response);
    act("lin", "sign-out").await;
    assert_eq!(status(&lin).await, StatusCode::UNAUTHORIZED);
    assert!(act("lin", "sign-out").await.contains("They have no session."));
    assert!(act("lin", "anything").await.contains("There is no such act."));
    let again = link(&act("lin", "link").await);
    assert_ne!(again, token);
    assert!(!act("lin", "remove").await.contains(">lin<"));
    let stale = served.client.get(format!("{}/welcome?token={again}", served.url)).send().await.unwrap();
    assert_eq!(stale.status(), StatusCode::GONE);
    let acts = [
        "ada user.remove lin",
        "ada user.link lin",
        "ada user.sign-out lin",
        "lin user.sign-in lin",
        "ada user.enable lin",
        "ada user.disable lin",
    ];
    assert_eq!(served.acts(6).await, acts);
}

#[tokio::test]
async fn an_act_is_on_whoever_has_that_very_name() {
    let served = Served::new().await;
    let ada = served.signed_in().await;
    let by = stages_platform_store::By { who: "ada".to_owned(), how: "session" };
    // Such names were made of what a provider sent, before white space around them was dropped.
    for name in ["bob", " bob"] {
        let account = Account { name: name.to_owned(), password: String::new(), role: Role::Member };
        assert!(served.store.add_person(&by, &account, 1).await.unwrap());
    }
    let disabled = async || {
        let people = served.store.people().await.unwrap();
        people.into_iter().filter(|one| one.disabled).map(|one| one.name).collect::<Vec<_>>()
    };
    served.send(&ada, "/settings/users/act", &[("name", " bob"), ("act", "disable")]).await;
    assert_eq!(disabled().await, [" bob"]);
    served.send(&ada, "/settings/users/change", &[("name", " bob"), ("role", "admin")]).await;
    assert_eq!(served.acts(2).await, ["ada user.admin  bob", "ada user.disable  bob"]);
    let page = served.page(&ada, "/settings/users?name=+bob").await;
    assert!(page.contains("<input type=\"hidden\" name=\"name\" value=\" bob\">"), "{page}");
    // One that is invited is typed.
    let page = served.send(&ada, "/settings/users", &[("name", " Bob "), ("role", "member")]).await;
    assert!(page.contains("Somebody has that name: choose another."));
}

#[tokio::test]
async fn a_rule_is_tried_out_kept_changed_and_taken_away() {
    let served = Served::new().await;
    let (ada, _) = (served.signed_in().await, served.member().await);
    served
        .send(&ada, "/settings/users/change", &[("name", "lin"), ("role", "member"), ("teams", "shop")])
        .await;
    let empty = served.page(&ada, "/settings/rules").await;
    assert!(empty.contains("There is no rule yet: members see nothing, and admins everything."));
    let form = [
        ("id", "0"),
        ("entity", "gitopsApplications"),
        ("teams", "shop, nobodys"),
        ("action", "SYNC"),
        ("attribute", "RUNTIME"),
        ("key", ""),
        ("value", "prod"),
        ("attribute", "LABEL"),
        ("key", "team"),
        ("value", "<b>shop"),
        ("attribute", ""),
        ("key", ""),
        ("value", ""),
    ];
    let page = served.send(&ada, "/settings/rules/preview", &form).await;
    assert!(page.contains("<b>lin</b> gains this, for <b>0 applications</b>"), "{page}");
    assert!(page.contains("Nobody is in nobodys yet."));
    assert!(page.contains("They see these applications only if another rule lets them view them."));
    assert!(served.store.rules().await.unwrap().is_empty(), "it was tried out alone");
    let with = |name: &'static str, value: &'static str| {
        let mut form = form.to_vec();
        form.iter_mut().filter(|(key, _)| *key == name).for_each(|(_, old)| *old = value);
        form
    };
    for (form, why) in [
        (with("teams", ""), "a rule names 1 to 50 teams, each by at most 100 characters"),
        (with("entity", "everything"), "say what the rule is about"),
        (with("action", "DESTROY"), "there is no such action"),
        (with("key", "team"), "a LABEL has a key, and no other attribute has one"),
    ] {
        assert!(served.send(&ada, "/settings/rules", &form).await.contains(why), "{why}");
    }
    let page = served.send(&ada, "/settings/rules", &form).await;
    assert!(page.contains("Members of <b>shop</b> or <b>nobodys</b> may <b>sync</b> applications whose runtime is <b>prod</b> and whose label team is <b>&lt;b&gt;shop</b>."), "{page}");
    let id = served.store.rules().await.unwrap()[0].id.to_string();
    let page = served.page(&ada, &format!("/settings/rules?edit={id}")).await;
    assert!(page.contains("value=\"SYNC\" checked") && page.contains("value=\"&lt;b&gt;shop\""), "{page}");
    let mut changed = with("action", "VIEW");
    changed[0].1 = &id;
    changed.push(("action", "REFRESH"));
    let page = served.send(&ada, "/settings/rules", &changed).await;
    assert!(page.contains("may <b>view</b> and <b>refresh</b> applications"), "{page}");
    assert_eq!(served.store.rules().await.unwrap().len(), 1);
    served.send(&ada, "/settings/rules/remove", &[("id", &id)]).await;
    let gone = served.send(&ada, "/settings/rules/remove", &[("id", &id)]).await;
    assert!(gone.contains("There is no such rule (any more)."));
    assert!(
        served.send(&ada, "/settings/rules", &changed).await.contains("This rule is not there any more.")
    );
    let acts: Vec<_> =
        served.store.audit(i64::MAX, 3).await.unwrap().into_iter().map(|act| act.act).collect();
    assert_eq!(acts, ["rule.remove", "rule.change", "rule.add"]);
}

#[tokio::test]
async fn a_token_of_a_runtime_is_made_shown_once_and_taken_back() {
    let served = Served::new().await;
    let ada = served.signed_in().await;
    let by = stages_platform_store::By { who: "ada".to_owned(), how: "session" };
    let first = served.store.register(&by, "prod", "{}", false, 1).await.unwrap().unwrap();
    let page = served.send(&ada, "/settings/tokens", &[("runtime", "none")]).await;
    assert!(page.contains("There is no runtime of that name: add it first."));
    let page = served.send(&ada, "/settings/tokens", &[("runtime", "prod")]).await;
    let digits = page.split("gort_").map(|rest| rest.get(..64).unwrap_or_default());
    let token =
        digits.filter(|one| one.bytes().all(|byte| byte.is_ascii_hexdigit())).find(|one| one.len() == 64);
    let token = format!("gort_{}", token.unwrap());
    let secret = SecretString::from(&*token);
    assert!(served.store.runtime(&secret).await.unwrap().is_some());
    let listed = served.page(&ada, "/settings/tokens").await;
    let name = token.get(..13).unwrap();
    assert!(listed.contains(name) && !listed.contains(&token), "shown once");
    served.send(&ada, "/settings/tokens/remove", &[("token", name)]).await;
    assert!(served.store.runtime(&secret).await.unwrap().is_none());
    assert!(served.store.runtime(&first).await.unwrap().is_some(), "the other is good");
    let gone = served.send(&ada, "/settings/tokens/remove", &[("token", name)]).await;
    assert!(gone.contains("There is no such token (any more)."));
    assert!(
        served
            .page(&ada, "/settings/tokens")
            .await
            .contains("it is the only one, and the runtime is silent until it has another")
    );
    assert_eq!(served.acts(2).await, [format!("ada token.remove {name}"), "ada token.add prod".to_owned()]);
}

#[tokio::test]
async fn less_is_kept_once_somebody_has_seen_what_goes() {
    let served = Served::new().await;
    let ada = served.signed_in().await;
    let days = |history, keys| RetentionDays { history, keys };
    assert!(served.page(&ada, "/settings/retention").await.contains("As the file says"));
    for (history, keys, why) in [
        ("0", "1", "what is kept is kept for 1 to 3650 days"),
        ("many", "1", "what is kept is kept for 1 to 3650 days"),
        ("5", "6", "keys of reports are kept for no longer than the history"),
    ] {
        let page = served.send(&ada, "/settings/retention", &[("history", history), ("keys", keys)]).await;
        assert!(page.contains(why), "{why}");
    }
    // The file says 1,000 years: anything is less.
    let form = [("history", "30"), ("keys", "7")];
    let page = served.send(&ada, "/settings/retention", &form).await;
    assert!(page.contains("This cannot be taken back") && page.contains("<b>0 deployments</b>"), "{page}");
    assert_eq!(served.store.retention_days().await.unwrap(), None, "it was only asked for");
    let confirmed = [form[0], form[1], ("act", "set"), ("confirmed", "yes")];
    assert!(served.send(&ada, "/settings/retention", &confirmed).await.contains("Set here."));
    assert_eq!(served.store.retention_days().await.unwrap(), Some(days(30, 7)));
    // More is kept without a question.
    served.send(&ada, "/settings/retention", &[("history", "40"), ("keys", "7")]).await;
    assert_eq!(served.store.retention_days().await.unwrap(), Some(days(40, 7)));
    assert!(served.send(&ada, "/settings/retention", &[("act", "reset")]).await.contains("As the file says"));
    assert_eq!(served.store.retention_days().await.unwrap(), None);
    let acts = [
        "ada retention.reset as the file says",
        "ada retention.set history 40 d, keys 7 d",
        "ada retention.set history 30 d, keys 7 d",
    ];
    assert_eq!(served.acts(3).await, acts);
}
