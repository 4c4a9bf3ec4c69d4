//! What Argo CD says: its version, whether it knows the token, and whether its account sees clusters, which the app proxy tells of.

use super::{Asking, DAY, Request, SOON, Way, within};
use crate::rules::{Judged, Severity};

const SERVER: &str = "global.integrations.argo-cd.server";
/// The versions that were tried, the oldest and the newest.
const TRIED: ((u32, u32), (u32, u32)) = ((2, 12), (3, 3));

pub(super) fn check(judged: &mut Judged, asking: &mut Asking<'_>) {
    if judged.is_skipped("GR0205") || !judged.truth("reporter.enabled") {
        return;
    }
    if judged.truth("argo-cd.enabled") {
        return asking.unmeasured("GR0205", "a new Argo CD comes with the release");
    }
    let (path, base) = address(judged, asking);
    let authorities = asking.token(judged, None, &format!("{SERVER}.tls.caSecretKeyRef"));
    let way = Way {
        authorities: authorities.ok().map(|pem| pem.text().to_owned()),
        insecure: judged.truth(&format!("{SERVER}.tls.insecure")),
        ..asking.way()
    };
    let request = Request::get(format!("{base}/api/version"), Vec::new(), &way);
    let Some(answer) = asking.ask(judged, "GR0205", &path, &request) else { return };
    match answer.body["Version"].as_str().and_then(version) {
        Some(found) if found < TRIED.0 || found > TRIED.1 => {
            let found = format!("Argo CD {}.{}", found.0, found.1);
            let wanted =
                format!("{}.{} to {}.{}, which were tried", TRIED.0.0, TRIED.0.1, TRIED.1.0, TRIED.1.1);
            let todo = "upgrade it, or try this one with reporter.sink stdout first";
            judged.told(Severity::Warning, "GR0205", &path, found, &wanted, todo);
        }
        Some(_) => {}
        None => {
            let found = format!("an answer of status {} that is none of Argo CD", answer.status);
            let todo = "correct address and rootpath";
            return judged.told(Severity::Error, "GR0205", &path, found, "the API server of Argo CD", todo);
        }
    }
    token(judged, asking, &base, &way);
}

fn address(judged: &Judged, asking: &Asking<'_>) -> (String, String) {
    let part = |key: &str| judged.text(&format!("{SERVER}.{key}")).to_owned();
    let root = part("rootpath");
    let (path, base) = if part("url").is_empty() {
        let namespace = judged.text("global.integrations.argo-cd.namespace");
        let own = asking.place.map_or(judged.text("global.runtime.name"), |place| place.namespace);
        let namespace = if namespace.is_empty() { own } else { namespace };
        let port = judged.number(&format!("{SERVER}.port")).unwrap_or(80.0);
        let scheme = if port == 443.0 { "https" } else { "http" };
        (format!("{SERVER}.svc"), format!("{scheme}://{}.{namespace}.svc:{port}", part("svc")))
    } else {
        (format!("{SERVER}.url"), part("url"))
    };
    let base = format!("{}/{}", base.trim_end_matches('/'), root.trim_matches('/'));
    (path, base.trim_end_matches('/').to_owned())
}

fn token(judged: &mut Judged, asking: &mut Asking<'_>, base: &str, way: &Way) {
    if crate::rules::argocd_access(judged) == "password" {
        // Each login that is refused counts towards the account's being locked.
        return asking.unmeasured("GR0205", "a login is not tried: Argo CD counts those that fail");
    }
    let path = format!("{SERVER}.auth.tokenSecretKeyRef");
    let inline = format!("{SERVER}.auth.token");
    let token = match asking.token(judged, Some(&inline), &path) {
        Ok(token) => token,
        Err(why) => return asking.unmeasured("GR0205", why),
    };
    let path = if judged.is_empty(&inline) { path } else { inline };
    let headers = vec![("authorization", format!("Bearer {}", token.text()))];
    let request = Request::get(format!("{base}/api/v1/session/userinfo"), headers, way);
    let Some(answer) = asking.ask(judged, "GR0205", &path, &request) else { return };
    if answer.status >= 400 || answer.body["loggedIn"] != true {
        let found = format!("Argo CD does not know the token (status {})", answer.status);
        let todo = "make one: argocd account generate-token --account NAME";
        return judged.told(Severity::Error, "GR0205", &path, found, "a token of an account", todo);
    }
    let now = asking.network.now();
    if let Some(ends) = token.ends().filter(|ends| *ends < now + SOON * DAY) {
        let found = format!("a token that ends {}", within(ends - now));
        let todo = "make one that stays, or renew it in time: the reporter takes a new one without a restart";
        judged.told(Severity::Warning, "GR0205", &path, found, "a token that stays", todo);
    }
    clusters(judged, asking, &path, (base, &request));
}

/// Argo CD lists those clusters that the account may get. Where it lists none, an account that may get any is right: there is none,
/// as where Argo CD was told that its own cluster is no destination and knows no other.
fn clusters(judged: &mut Judged, asking: &mut Asking<'_>, path: &str, (base, known): (&str, &Request<'_>)) {
    if !judged.truth("appProxy.enabled") {
        return;
    }
    let at = |path: &str| Request::get(format!("{base}/api/v1/{path}"), known.headers.clone(), known.way);
    let Some(answer) = asking.ask(judged, "GR0205", path, &at("clusters")) else { return };
    let sees_some = answer.body["items"].as_array().is_some_and(|all| !all.is_empty());
    if sees_some || !matches!(answer.status, 200 | 401 | 403) {
        return;
    }
    if answer.status == 200 {
        let Some(may) = asking.ask(judged, "GR0205", path, &at("account/can-i/clusters/get/*")) else {
            return;
        };
        if may.body["value"] == "yes" {
            return;
        }
    }
    let found = format!("an account that sees no cluster of Argo CD (status {})", answer.status);
    let wanted = "an account that may get clusters, of which the app proxy tells the platform";
    let todo = "grant it clusters, get: a line such as p, role:runtime, clusters, get, *, allow in policy.csv of argocd-rbac-cm";
    judged.told(Severity::Warning, "GR0205", path, found, wanted, todo);
}

/// Major and minor of a text such as v3.2.0+66b2f30, or v2.10-2024.3.29-1dcc54e29 as the incumbent's Argo CD says it.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.trim_start_matches('v').split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_version_is_read_whatever_follows_its_minor() {
        for (text, found) in [
            ("v3.2.0+66b2f30", Some((3, 2))),
            ("v3.1.0-rc2", Some((3, 1))),
            ("v2.10-2024.3.29-1dcc54e29", Some((2, 10))),
            ("v2.10+1dcc54e", Some((2, 10))),
            ("2.12", Some((2, 12))),
            ("v2", None),
            ("v2.x", None),
            ("", None),
        ] {
            assert_eq!(version(text), found, "{text}");
        }
    }
}
