//! Who may have a repository: applications of the project whose credentials open it, where AppProjects permit that.

use serde_json::json;
use stages_git::remote::{Access, Credential, Credentials, Projects, Tenant};

use crate::support::{Cache, Forge, Serving, address, commit, text};

fn of_project(project: &str, url: &str, token: &str) -> Credential {
    Credential {
        from: format!("the Secret argocd/{project}"),
        url: url.to_owned(),
        project: Some(project.to_owned()),
        bearer: Some(token.to_owned().into()),
        ..Credential::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_credentials_of_a_project_brought_is_given_to_its_applications_alone() {
    let forge = Forge::new();
    let id = commit(&forge.repository("a"), "main", "b.yaml", "b: 1\n");
    let serving = Serving { authorization: Some("Bearer right".to_owned()), ..Serving::new(&forge) };
    let url = format!("{}/a.git", serving.http().await);
    let cache = Cache::new(|_| {}).await;
    let credentials =
        Credentials::new(vec![of_project("shop", &url, "right"), of_project("web", &url, "wrong")]);
    cache.checkouts.set_access(Access { credentials, ..Access::default() });
    let of = async |project: &str| {
        let scoped = cache.checkouts.scope(&address(&url), Some(&Tenant::new(project, "argocd")));
        let scoped = scoped.map_err(|error| error.to_string())?;
        cache.checkouts.checkout_of(&scoped, &id).await.map_err(|error| error.to_string())
    };
    assert_eq!(text(&of("shop").await.unwrap(), "b.yaml").await.as_deref(), Some("b: 1\n"));
    // The commit is there by now, and its id is known to everybody.
    let refused = format!(
        "{url} refused the credentials of the Secret argocd/web: they are wrong, expired, or may not read it"
    );
    assert_eq!(of("web").await.unwrap_err(), refused);
    let others = format!(
        "{url} has credentials of other projects than default alone: give Argo CD a Secret for it with that project, or without any"
    );
    assert_eq!(of("").await.unwrap_err(), others);
    let nobody = format!(
        "{url} has credentials of projects alone, for their applications: give Argo CD a Secret for it without a project"
    );
    assert_eq!(cache.refusal(&url, &id).await, nobody);

    // A Secret whose project is taken away, and given again, leaves to nobody what it brought.
    let any = Credential { project: None, ..of_project("shop", &url, "right") };
    cache.checkouts.set_access(Access { credentials: Credentials::new(vec![any]), ..Access::default() });
    cache.checkout(&url, &id).await.unwrap();
    of("").await.unwrap();
    let credentials = Credentials::new(vec![of_project("shop", &url, "right")]);
    cache.checkouts.set_access(Access { credentials, ..Access::default() });
    assert_eq!(of("").await.unwrap_err(), others);
    assert_eq!(cache.refusal(&url, &id).await, nobody);
    of("shop").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn app_projects_are_heeded_before_anybody_is_asked() {
    let forge = Forge::new();
    forge.repository("a");
    let serving = Serving::new(&forge);
    let url = format!("{}/a.git", serving.http().await);
    let cache = Cache::new(|_| {}).await;
    let project = |name: &str, repositories: &[&str]| json!({"metadata": {"name": name}, "spec": {"sourceRepos": repositories}});
    let all = [project("default", &["*"]), project("shop", &["https://git.example/*"]), project("own", &[])];
    let own = Credential { bearer: None, ..of_project("own", &url, "") };
    cache.checkouts.set_access(Access {
        credentials: Credentials::new(vec![own]),
        projects: Some(Projects::read("argocd", &all, "")),
        ..Access::default()
    });
    let of = async |project: &str, namespace: &str| {
        let scoped = cache.checkouts.scope(&address(&url), Some(&Tenant::new(project, namespace)));
        let scoped = scoped.map_err(|error| error.to_string())?;
        cache.checkouts.checkout_of(&scoped, "main").await.map_err(|error| error.to_string())
    };
    for (project, namespace, refused) in [
        ("shop", "argocd", format!("{url} is no repository of AppProject shop: add it to spec.sourceRepos there")),
        ("gone", "argocd", "there is no AppProject gone in namespace argocd".to_owned()),
        (
            "default",
            "elsewhere",
            "an application of namespace elsewhere is none of AppProject default: add the namespace to spec.sourceNamespaces there"
                .to_owned(),
        ),
    ] {
        assert_eq!(of(project, namespace).await.unwrap_err(), refused);
    }
    assert_eq!(serving.requests(), 0, "nobody was asked");
    of("default", "argocd").await.unwrap();
    of("own", "argocd").await.unwrap();
    cache.checkout(&url, "main").await.unwrap();
}
