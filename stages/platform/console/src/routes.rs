//! Every route, with who may.

use axum::routing::{MethodRouter, get, post};

use crate::console::{Console, commit, handlers, oidc, partial, settings, views};

/// Who may ask a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Anybody.
    Anyone,
    /// Somebody with a session.
    SignedIn,
    /// An admin with a session.
    Admin,
}

pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) who: Who,
    pub(crate) handler: MethodRouter<Console>,
}

fn reads(path: &'static str, who: Who, handler: MethodRouter<Console>) -> Route {
    Route { method: "GET", path, who, handler }
}

fn acts(path: &'static str, who: Who, handler: MethodRouter<Console>) -> Route {
    Route { method: "POST", path, who, handler }
}

/// The router is made from this list alone: a route that does not say who may cannot be written.
pub(crate) fn all() -> Vec<Route> {
    use Who::{Admin, Anyone, SignedIn};
    vec![
        reads("/", SignedIn, get(handlers::home)),
        reads("/applications", SignedIn, get(handlers::applications)),
        acts("/applications", SignedIn, post(views::act)),
        reads("/applications/{runtime}/{namespace}/{name}", SignedIn, get(handlers::application)),
        reads("/applications/{runtime}/{namespace}/{name}/deployments", SignedIn, get(handlers::deployed)),
        reads(
            "/applications/{runtime}/{namespace}/{name}/commits/{began}/{revision}",
            SignedIn,
            get(commit::commit),
        ),
        reads("/preview", SignedIn, get(partial::preview)),
        reads("/preview/{runtime}/{namespace}/{name}", SignedIn, get(handlers::preview)),
        reads("/deployments", SignedIn, get(handlers::deployments)),
        reads("/shipping", SignedIn, get(partial::shipping)),
        reads("/shipping/{days}", SignedIn, get(partial::shipping_of)),
        reads("/shipping/{days}/{figure}", SignedIn, get(handlers::shipping)),
        reads("/resources", SignedIn, get(handlers::resources)),
        reads("/runtimes", SignedIn, get(handlers::runtimes)),
        acts("/runtimes", Admin, post(handlers::add_runtime)),
        reads("/runtimes/add", Admin, get(handlers::add_runtime_form)),
        reads("/runtimes/add/{runtime}", Admin, get(handlers::added_runtime)),
        reads("/find", SignedIn, get(handlers::find)),
        reads("/live", SignedIn, get(handlers::live)),
        acts("/sign-out", SignedIn, post(handlers::sign_out)),
        reads("/settings", SignedIn, get(settings::keys)),
        acts("/settings/keys", SignedIn, post(settings::add_key)),
        acts("/settings/keys/remove", SignedIn, post(settings::remove_key)),
        reads("/settings/git", SignedIn, get(settings::git::show)),
        acts("/settings/identity", SignedIn, post(settings::identity::act)),
        reads("/settings/users", Admin, get(settings::people::list)),
        acts("/settings/users", Admin, post(settings::people::invite)),
        acts("/settings/users/change", Admin, post(settings::people::change)),
        acts("/settings/users/act", Admin, post(settings::people::act)),
        reads("/settings/rules", Admin, get(settings::rules::list)),
        acts("/settings/rules", Admin, post(settings::rules::keep)),
        acts("/settings/rules/preview", Admin, post(settings::rules::preview)),
        acts("/settings/rules/remove", Admin, post(settings::rules::remove)),
        reads("/settings/tokens", Admin, get(settings::tokens::list)),
        acts("/settings/tokens", Admin, post(settings::tokens::add)),
        acts("/settings/tokens/remove", Admin, post(settings::tokens::remove)),
        reads("/settings/retention", Admin, get(settings::retention::form)),
        acts("/settings/retention", Admin, post(settings::retention::keep)),
        reads("/audit", Admin, get(settings::audit)),
        reads("/sign-in", Anyone, get(handlers::sign_in_form)),
        acts("/sign-in", Anyone, post(handlers::sign_in)),
        reads("/login/oidc", Anyone, get(oidc::start)),
        reads("/login/oidc/callback", Anyone, get(oidc::callback)),
        reads("/welcome", Anyone, get(handlers::welcome_form)),
        acts("/welcome", Anyone, post(handlers::welcome)),
        reads("/assets", Anyone, get(partial::assets)),
        reads("/assets/{version}/{name}", Anyone, get(handlers::asset)),
    ]
}

/// Method, path and who may, of every route.
#[must_use]
pub fn table() -> Vec<(&'static str, &'static str, Who)> {
    all().into_iter().map(|route| (route.method, route.path, route.who)).collect()
}
