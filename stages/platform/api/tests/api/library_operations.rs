//! The same of operations that change something, and of what there is none of here: in the form that is asked for.

use serde_json::{Value, json};
use stages_platform_store::{Report, ResourceName, Rule, Text, VersionSource};

use crate::served::{Credential, Served, by, still};

const SETTINGS: &str = "mutation updateCsdpSettings($gitProvider: GitProviders!, $gitApiUrl: String!, $sharedConfigRepo: String!) { \
     updateCsdpSettings(gitProvider: $gitProvider, gitApiUrl: $gitApiUrl, sharedConfigRepo: $sharedConfigRepo) }";
const SUGGEST: &str = "mutation SuggestIscRepo($suggestedSharedConfigRepo: String!) { \
     suggestIscRepo(suggestedSharedConfigRepo: $suggestedSharedConfigRepo) }";
const DELETE_MANAGED: &str =
    "mutation DeleteManagedRuntime( $name: String! ) { deleteManagedRuntime(name: $name) }";
const MIGRATE: &str =
    "mutation migrateRuntime($runtimeName: String!) { migrateRuntime(runtimeName: $runtimeName) }";
const COMPONENTS: &str = "query Components($runtime: String!) { components(runtime: $runtime) { edges { node { \
     metadata { name runtime } version self { status { syncStatus healthStatus } errors { ...on SyncError{ title message \
     suggestion level } } } } } } }";
const WORKFLOW: &str = "metadata { uid name namespace runtime } projects spec { entrypoint templates { name } \
     workflowTemplateRef { name namespace } } status { phase progress nodes { type name } } \
     pipeline { metadata { name namespace } }";
const PIPELINE: &str =
    "metadata { name namespace runtime } self { healthStatus syncStatus version } projects spec { trigger }";
const ACCOUNT: &str = "{ me { activeAccount { gitProvider gitApiUrl sharedConfigRepo csdpValidated } } }";

fn settings(provider: &str, api: &str, repository: &str) -> Value {
    json!({"gitProvider": provider, "gitApiUrl": api, "sharedConfigRepo": repository})
}

async fn account(served: &Served, who: &Credential) -> (Value, Value, Value) {
    let told = served.data(who, ACCOUNT, json!({})).await["me"]["activeAccount"].take();
    (told["gitProvider"].clone(), told["gitApiUrl"].clone(), told["sharedConfigRepo"].clone())
}

#[tokio::test]
async fn an_admin_sets_the_repository_that_runtimes_share_and_everybody_is_told() {
    let served = Served::new().await;
    let repository = "https://git.example.com/shop/isc.git/all?ref=main";
    let set = settings("BITBUCKET_SERVER", "https://git.example.com/rest/api/1.0", repository);
    // Whoever reads this expects nothing, and reads no other answer.
    let done = served.data(&served.admin, SETTINGS, set).await;
    assert_eq!(done, json!({"updateCsdpSettings": null}));
    let expected =
        (json!("BITBUCKET_SERVER"), json!("https://git.example.com/rest/api/1.0"), json!(repository));
    for who in [&served.admin, &served.member, &served.runtime] {
        assert_eq!(account(&served, who).await, expected);
    }
    served.data(&served.admin, SETTINGS, settings("GITHUB", "", "https://github.com/shop/isc.git")).await;
    let expected = (json!("GITHUB"), Value::Null, json!("https://github.com/shop/isc.git"));
    assert_eq!(account(&served, &served.runtime).await, expected);
    let log = served.data(&served.admin, "{ auditLog(first: 1) { who act } }", json!({})).await;
    assert_eq!(log["auditLog"], json!([{"who": "ada", "act": "shared-configuration.set"}]));
    let api = "https://api.github.com";
    for (api, repository, said) in [
        (api, "git@github.com:shop/isc.git", "a URL begins with https://"),
        (
            api,
            "https://made-up-token@github.com/shop/isc.git",
            "a URL has no user and no token in it: each runtime has its own",
        ),
        (
            "https://made-up-token@github.com",
            "https://github.com/shop/isc.git",
            "a URL has no user and no token in it: each runtime has its own",
        ),
        (
            api,
            "https://github.com/shop/isc",
            "the URL of a repository is https://HOST/OWNER/REPO.git, with /PATH and ?ref=BRANCH behind it if need be",
        ),
    ] {
        let refused = served.refused(&served.admin, SETTINGS, settings("GITHUB", api, repository)).await;
        assert_eq!(refused, said);
    }
    let refused = served.refused(&served.admin, SETTINGS, settings("SVN", api, "https://a.b/c/d.git")).await;
    assert!(refused.contains("GitProviders") && !refused.contains("https"), "{refused}");
    assert_eq!(account(&served, &served.runtime).await, expected);
}

#[tokio::test]
async fn the_first_runtime_suggests_that_repository_and_any_other_is_told_of_it() {
    let served = Served::new().await;
    let eu1 = served.store.register(&by("ada"), "eu1", "{}", false, 0).await.unwrap().unwrap();
    let eu1 = ("authorization", pipeline_core::ExposeSecret::expose_secret(&eu1).to_owned());
    let suggest = |repository: &str| json!({"suggestedSharedConfigRepo": repository});
    let (first, second) = ("https://git.example.com/shop/isc.git", "https://git.example.com/shop/other.git");
    let holds = json!({"suggestIscRepo": first});
    assert_eq!(served.data(&served.runtime, SUGGEST, suggest(first)).await, holds);
    assert_eq!(served.data(&eu1, SUGGEST, suggest(second)).await, holds);
    assert_eq!(served.data(&served.admin, SUGGEST, suggest(second)).await, holds);
    assert_eq!(account(&served, &eu1).await, (Value::Null, Value::Null, json!(first)));
    let log = served.data(&served.admin, "{ auditLog(first: 1) { who how act } }", json!({})).await;
    let entry = json!({"who": "prod", "how": "token", "act": "shared-configuration.set"});
    assert_eq!(log["auditLog"], json!([entry]));
    let refused = served.refused(&eu1, SUGGEST, suggest("https://token@git.example.com/shop/isc.git")).await;
    assert_eq!(refused, "a URL has no user and no token in it: each runtime has its own");
}

#[tokio::test]
async fn the_runtime_that_was_added_first_has_what_holds_of_all() {
    let served = Served::new().await;
    let eu1 = served.store.register(&by("ada"), "eu1", "{}", false, 0).await.unwrap().unwrap();
    let eu1 = ("authorization", pipeline_core::ExposeSecret::expose_secret(&eu1).to_owned());
    let query = "{ shouldBeImplicitConfigurationRuntime }";
    let told = |is: bool| json!({"shouldBeImplicitConfigurationRuntime": is});
    assert_eq!(served.data(&served.runtime, query, json!({})).await, told(true));
    assert_eq!(served.data(&eu1, query, json!({})).await, told(false));
    let refused = served.refused(&served.admin, query, json!({})).await;
    assert_eq!(refused, "only the app proxy of a runtime may ask this: send the runtime's token");
    assert!(served.store.unregister(&by("ada"), "prod", 0).await.unwrap());
    assert_eq!(served.data(&eu1, query, json!({})).await, told(true));
}

#[tokio::test]
async fn a_managed_runtime_is_taken_away_as_one_and_none_is_migrated() {
    let served = Served::new().await;
    served.store.register(&by("ada"), "hosted", r#"{"managed":true}"#, false, 0).await.unwrap().unwrap();
    let delete =
        async |name: &str| served.refused(&served.admin, DELETE_MANAGED, json!({"name": name})).await;
    assert_eq!(delete("prod").await, "runtime 'prod' is not managed: deleteRuntime takes it away");
    assert_eq!(delete("none").await, "there is no runtime 'none'");
    assert_eq!(delete("").await, "there is no runtime ''");
    let done = served.data(&served.admin, DELETE_MANAGED, json!({"name": "hosted"})).await;
    assert_eq!(done, json!({"deleteManagedRuntime": 1}));
    assert_eq!(delete("hosted").await, "there is no runtime 'hosted'");
    let migrate =
        async |name: &str| served.refused(&served.admin, MIGRATE, json!({"runtimeName": name})).await;
    let said = "this platform migrates no runtime: convert the values of 'prod' with `gitops-runtime values convert`, install the \
                chart with them, and register the name anew with recover: true";
    assert_eq!(migrate("prod").await, said);
    assert_eq!(migrate("none").await, "there is no runtime 'none'");
    assert_eq!(migrate("").await, "there is no runtime ''");
}

#[tokio::test]
async fn components_are_the_roles_that_were_heard_of() {
    let served = Served::new().await;
    let (now, id) = (still().as_millisecond(), served.store.runtime_named("prod").await.unwrap().unwrap());
    served.store.keep_heard(id, ("reporter", "1.2.3"), now).await.unwrap();
    served.store.keep_heard(id, ("change-revision", ""), now - 20 * 60_000).await.unwrap();
    let node = |name: &str, version: &str, health: &str| {
        json!({"node": {"metadata": {"name": name, "runtime": "prod"}, "version": version,
            "self": {"status": {"syncStatus": null, "healthStatus": health}, "errors": []}}})
    };
    let edges = json!([node("change-revision", "", "UNKNOWN"), node("reporter", "1.2.3", "HEALTHY")]);
    let ask = async |who: &Credential, runtime: &str| {
        served.data(who, COMPONENTS, json!({"runtime": runtime})).await["components"]["edges"].take()
    };
    assert_eq!(ask(&served.runtime, "prod").await, edges);
    assert_eq!(ask(&served.admin, "prod").await, edges);
    assert_eq!(ask(&served.member, "prod").await, json!([]), "whoever sees nothing of a runtime");
    assert_eq!(ask(&served.admin, "none").await, json!([]));
    let pages = "{ components(runtime: \"prod\") { edges { cursor } pageInfo { startCursor endCursor hasNextPage } } }";
    let told = served.data(&served.admin, pages, json!({})).await;
    let info = json!({"startCursor": "change-revision", "endCursor": "reporter", "hasNextPage": false});
    assert_eq!(told["components"]["pageInfo"], info);
}

#[tokio::test]
async fn what_there_is_none_of_is_told_in_the_form_that_is_asked_for() {
    let served = Served::new().await;
    let filters = json!({"filters": {"runtime": "prod", "statuses": ["Failed"], "appNames": ["shop", null]}});
    let one = format!("query Workflow($uid: String!) {{ workflow(uid: $uid) {{ {WORKFLOW} }} }}");
    let workflows = format!(
        "query Workflows($filters: WorkflowsFilterArgs) {{ workflows(filters: $filters) {{ edges {{ node {{ {WORKFLOW} }} }} }} }}"
    );
    let pipeline = format!(
        "query Pipeline( $runtime: String! $name: String! $namespace: String ) {{ \
         pipeline(name: $name, namespace: $namespace, runtime: $runtime) {{ {PIPELINE} }} }}"
    );
    let pipelines = format!(
        "query Pipelines($filters: PipelinesFilterArgs) {{ pipelines(filters: $filters) {{ edges {{ node {{ {PIPELINE} }} }} }} }}"
    );
    let waiting = "query { productComponentsList(filters: { hasPendingPullRequests: true }) { id pendingPullRequests { repo id } } }";
    let named = json!({"runtime": "prod", "name": "ci", "namespace": "argo"});
    let version = json!({"latestCliRelease": env!("CARGO_PKG_VERSION")});
    for (query, variables, expected) in [
        (&*one, json!({"uid": "8a9b"}), json!({"workflow": null})),
        (&workflows, filters, json!({"workflows": {"edges": []}})),
        (&pipeline, named, json!({"pipeline": null})),
        (&pipelines, json!({"filters": {"name": "ci"}}), json!({"pipelines": {"edges": []}})),
        (waiting, json!({}), json!({"productComponentsList": []})),
        ("query LatestCliRelease { latestCliRelease }", json!({}), version),
    ] {
        assert_eq!(served.data(&served.runtime, query, variables).await, expected, "{query}");
    }
}

/// A report of a workflow in the namespace `builds`.
async fn workflow(served: &Served, application: &str, name: &str, version: i64, phase: &str) {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [{"name": "main"}], "workflowTemplateRef": {"name": "build"}},
        "status": {"phase": phase, "progress": "1/2", "startedAt": "2026-11-24T10:00:00Z",
            "nodes": {"n": {"type": "Pod", "name": "a-node", "message": "of no concern"}}},
    });
    let of = |report: &mut Report| {
        report.entity.resource = Some(ResourceName {
            api_version: "argoproj.io/v1alpha1".to_owned(),
            kind: "Workflow".to_owned(),
            namespace: "builds".to_owned(),
            name: name.to_owned(),
        });
        report.uid = format!("uid-of-{name}");
        report.version = Some(version);
        report.deleted = phase == "gone";
        report.object = Some(Text::new(object.to_string()));
        report.object_is_json = true;
    };
    served.report_of("prod", application, of).await;
}

#[tokio::test]
async fn workflows_are_told_to_whoever_sees_their_application_or_is_shown_them_by_a_rule() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    workflow(&served, "argocd/shop", "of-shop", 2, "Running").await;
    workflow(&served, "/", "alone", 3, "Failed").await;
    let ask = async |who: &Credential, filters: Value| {
        let query = "query Workflows($filters: WorkflowsFilterArgs) { workflows(filters: $filters) { edges { cursor } } }";
        let told = served.data(who, query, json!({"filters": filters})).await;
        let edges = told["workflows"]["edges"].as_array().unwrap();
        let name = |edge: &Value| edge["cursor"].as_str().unwrap().split('/').nth(2).unwrap().to_owned();
        edges.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    for who in [&served.admin, &served.runtime] {
        assert_eq!(ask(who, json!({})).await, "alone of-shop");
    }
    let one = format!("query Workflow($uid: String!) {{ workflow(uid: $uid) {{ {WORKFLOW} }} }}");
    let node = json!({"workflow": {
        "metadata": {"uid": "uid-of-of-shop", "name": "of-shop", "namespace": "builds", "runtime": "prod"},
        "projects": null,
        "spec": {"entrypoint": "main", "templates": [{"name": "main"}], "workflowTemplateRef": {"name": "build", "namespace": null}},
        "status": {"phase": "Running", "progress": "1/2", "nodes": [{"type": "Pod", "name": "a-node"}]},
        "pipeline": null,
    }});
    let uid = json!({"uid": "uid-of-of-shop"});
    assert_eq!(served.data(&served.admin, &one, uid.clone()).await, node);
    for (filters, expected) in [
        (
            json!({"runtime": "prod", "namespace": "builds", "groups": ["argoproj.io"], "statuses": []}),
            "alone of-shop",
        ),
        (json!({"runtime": "eu1"}), ""),
        (json!({"namespace": "argocd"}), ""),
        (json!({"statuses": ["Failed", "Error"]}), "alone"),
        (json!({"appNames": ["shop", null]}), "of-shop"),
        (json!({"workflowTemplate": "build", "workflowTemplateClusterScope": false}), "alone of-shop"),
        (json!({"workflowTemplate": "other"}), ""),
        (
            json!({"startDateFrom": "2026-11-24T11:00:00+01:00", "startDateTo": "2026-11-24T10:00:00Z"}),
            "alone of-shop",
        ),
        (json!({"startDateFrom": "2026-11-24T10:00:01Z"}), ""),
        (json!({"startDateTo": "yesterday"}), ""),
        (json!({"repositories": ["https://git.example.com/shop"]}), ""),
    ] {
        assert_eq!(ask(&served.admin, filters.clone()).await, expected, "{filters}");
    }
    // Whoever may see nothing is told of none, by its uid either.
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    let none = json!({"workflow": null});
    assert_eq!(ask(&served.member, json!({})).await, "");
    assert_eq!(served.data(&served.member, &one, uid.clone()).await, none);
    for (entity, name, value, expected) in [
        ("workflows", "NAMESPACE", "argocd", ""),
        ("workflows", "CLUSTER", "in-cluster", ""),
        ("workflowTemplates", "RUNTIME", "prod", ""),
        ("workflows", "NAMESPACE", "builds", "alone of-shop"),
        ("gitopsApplications", "NAMESPACE", "argocd", "of-shop"),
        ("gitopsApplications", "NAMESPACE", "builds", ""),
    ] {
        let rule = json!({"entityType": entity, "teams": ["shop"], "actions": ["VIEW"], "attributes": [{"name": name, "value": value}]});
        let rule: Rule = serde_json::from_value(rule).unwrap();
        assert!(served.store.add_rule(&by("ada"), &rule, now).await.unwrap());
        assert_eq!(ask(&served.member, json!({})).await, expected, "{entity} {name} {value}");
        let found = served.data(&served.member, &one, uid.clone()).await;
        assert_eq!(found["workflow"].is_null(), !expected.contains("of-shop"), "{entity} {name} {value}");
        let kept = served.store.rules().await.unwrap().last().unwrap().id;
        assert!(served.store.remove_rule(&by("ada"), kept, now).await.unwrap());
    }
    let eu1 = served.store.register(&by("ada"), "eu1", "{}", false, 0).await.unwrap().unwrap();
    let eu1 = ("authorization", pipeline_core::ExposeSecret::expose_secret(&eu1).to_owned());
    assert_eq!(ask(&eu1, json!({})).await, "", "a runtime is told of its own");
    // One that is gone is told of no more.
    workflow(&served, "/", "alone", 4, "gone").await;
    assert_eq!(ask(&served.admin, json!({})).await, "of-shop");
}

#[tokio::test]
async fn pages_of_workflows_leave_none_out_that_is_called_as_another_is() {
    let served = Served::new().await;
    for application in ["argocd/shop", "argocd/cart"] {
        served.report("prod", application).await;
        workflow(&served, application, "twice", 2, "Running").await;
    }
    workflow(&served, "/", "alone", 3, "Failed").await;
    let query = "query Page($first: Int, $after: String) { workflows(pagination: {first: $first, after: $after}) { \
                 edges { cursor } pageInfo { hasNextPage hasPrevPage startCursor endCursor } } }";
    let page = async |first: usize, after: &Value| {
        let variables = json!({"first": first, "after": after});
        served.data(&served.admin, query, variables).await["workflows"].take()
    };
    let whole = page(3, &Value::Null).await;
    let places: Vec<&Value> = whole["edges"].as_array().unwrap().iter().map(|edge| &edge["cursor"]).collect();
    let [alone, one, other] = places[..] else { panic!("{whole}") };
    assert_ne!(one, other);
    let info = |first: &Value, last: &Value, next: bool, prev: bool| json!({"hasNextPage": next, "hasPrevPage": prev, "startCursor": first, "endCursor": last});
    assert_eq!(whole["pageInfo"], info(alone, other, false, false), "a page of just as many is the last");
    for (number, place) in places.iter().enumerate() {
        let after = number.checked_sub(1).map_or(&Value::Null, |before| places[before]);
        let told = page(1, after).await;
        assert_eq!(told["edges"], json!([{"cursor": place}]));
        assert_eq!(told["pageInfo"], info(place, place, number < 2, number > 0));
    }
    let none = json!({"edges": [], "pageInfo": info(&Value::Null, &Value::Null, false, true)});
    assert_eq!(page(1, other).await, none);
    // A place that a former version told says no number: all of that name are before it.
    assert_eq!(page(1, &json!("prod/builds/alone")).await["edges"], json!([{"cursor": one}]));
    assert_eq!(page(1, &json!("prod/builds/twice")).await, none);
}

/// As an app proxy asks before it promotes.
#[tokio::test]
async fn what_a_promotion_wants_of_two_applications_is_told_to_whoever_sees_them() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let application = "{ metadata { name cluster namespace } specSource { repoURL targetRevision path } }";
    let query = format!(
        "query PromotionData( $srcRuntime: String! $srcNamespace: String! $srcName: String! $destRuntime: String! \
         $destNamespace: String! $destName: String! ) {{ \
         srcApp: application(runtime: $srcRuntime, namespace: $srcNamespace, name: $srcName) {application} \
         destApp: application(runtime: $destRuntime, namespace: $destNamespace, name: $destName) {application} \
         promotionTemplate(runtime: $destRuntime, namespace: $destNamespace, name: $destName) {{ \
         promotion {{ glob jsonPaths }} versionSource {{ file jsonPath }} }} }}"
    );
    let variables = json!({
        "srcRuntime": "prod", "srcNamespace": "argocd", "srcName": "none",
        "destRuntime": "prod", "destNamespace": "argocd", "destName": "shop",
    });
    let told = |source: Value| {
        let server = "https://kubernetes.default.svc";
        json!({
            "srcApp": null,
            "destApp": {
                "metadata": {"name": "shop", "cluster": server, "namespace": "argocd"},
                "specSource": {"repoURL": "https://git.example.com/shop", "targetRevision": null, "path": "deploy"},
            },
            "promotionTemplate": {"promotion": [], "versionSource": source},
        })
    };
    assert_eq!(served.data(&served.runtime, &query, variables.clone()).await, told(Value::Null));
    let source = VersionSource { file: "Chart.yaml".to_owned(), json_path: "$.version".to_owned() };
    served.store.set_version_source(&by("ada"), ("prod", None), Some(&source), 0).await.unwrap();
    let set = json!({"file": "Chart.yaml", "jsonPath": "$.version"});
    assert_eq!(served.data(&served.runtime, &query, variables.clone()).await, told(set));
    let nothing = json!({"srcApp": null, "destApp": null, "promotionTemplate": null});
    assert_eq!(served.data(&served.member, &query, variables).await, nothing);
}
