//! What a client asks for with a proxy, if this server has it.

use pipeline_core::SecretString;

use super::messages::{Addresses, NewProxy};
use crate::Name;
use crate::visitors::Networks;

/// How many bytes the name of a proxy may have: what a client calls it, with the user before it.
const MAX_PROXY_NAME: usize = 256;

/// The tunnel that a client asks for, the token that opens it, and the networks that may visit; or why there is none, in the
/// words that the family has for it.
pub(super) fn requested_tunnel(proxy: &NewProxy) -> Result<(Name, SecretString, Networks), String> {
    let (called, kind) = (&proxy.proxy_name, proxy.proxy_type.as_str());
    match kind {
        "http" => {}
        "https" => return Err("type [https] not support when vhost_https_port is not set".to_owned()),
        "tcpmux" => {
            return Err(format!(
                "proxy [{called}] type [tcpmux] with multiplexer [httpconnect] requires tcpmux_httpconnect_port configuration"
            ));
        }
        // A proxy without a type is one of TCP.
        "" | "tcp" | "udp" => return Err("port not allowed".to_owned()),
        "xtcp" => return Err("xtcp is not supported in frps".to_owned()),
        "stcp" | "sudp" => return Err("this server has no type of proxy but http".to_owned()),
        _ => return Err(format!("proxy [{called}] type [{kind}] error")),
    }
    let unsupported = [
        ("custom_domains", !proxy.custom_domains.is_empty()),
        ("locations but /", proxy.locations.iter().any(|location| location != "/")),
        ("group", !proxy.group.is_empty()),
        ("http_user", !proxy.http_user.is_empty() || !proxy.http_pwd.is_empty()),
        ("host_header_rewrite", !proxy.host_header_rewrite.is_empty()),
        ("headers", !proxy.headers.is_empty()),
        ("route_by_http_user", !proxy.route_by_http_user.is_empty()),
    ];
    if let Some((what, _)) = unsupported.iter().find(|(_, is_asked)| *is_asked) {
        return Err(format!("this server has no {what}"));
    }
    if called.is_empty() || called.len() > MAX_PROXY_NAME {
        return Err(format!("the name of a proxy has 1 to {MAX_PROXY_NAME} characters"));
    }
    let name = Name::read(&proxy.subdomain).map_err(|error| error.to_string())?;
    let token = proxy.metas.get("Authorization").map(String::as_str).unwrap_or_default();
    let allowed = proxy.ips_allow_list.as_ref().map(Addresses::text).unwrap_or_default();
    let allowed = Networks::read(&allowed).map_err(|error| format!("ips_allow_list: {error}"))?;
    Ok((name, token.into(), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_server_does_not_have_is_refused_by_name() {
        let ask = |change: &dyn Fn(&mut NewProxy)| {
            let mut proxy = NewProxy {
                proxy_name: "a-b".to_owned(),
                proxy_type: "http".to_owned(),
                subdomain: "a-b".to_owned(),
                locations: vec!["/".to_owned()],
                ..NewProxy::default()
            };
            change(&mut proxy);
            requested_tunnel(&proxy).map(|(name, ..)| name.to_string())
        };
        assert_eq!(ask(&|_| {}).unwrap(), "a-b");
        assert_eq!(ask(&|proxy| proxy.proxy_name = "ada.web".to_owned()).unwrap(), "a-b", "of a user");
        let refused = |why: &str, change: &dyn Fn(&mut NewProxy)| assert_eq!(ask(change).unwrap_err(), why);
        for (kind, why) in [
            ("", "port not allowed"),
            ("tcp", "port not allowed"),
            ("udp", "port not allowed"),
            ("https", "type [https] not support when vhost_https_port is not set"),
            (
                "tcpmux",
                "proxy [a-b] type [tcpmux] with multiplexer [httpconnect] requires tcpmux_httpconnect_port configuration",
            ),
            ("xtcp", "xtcp is not supported in frps"),
            ("stcp", "this server has no type of proxy but http"),
            ("sudp", "this server has no type of proxy but http"),
            ("ftp", "proxy [a-b] type [ftp] error"),
        ] {
            refused(why, &|proxy| proxy.proxy_type = kind.to_owned());
        }
        refused("this server has no custom_domains", &|proxy| {
            proxy.custom_domains.push("x.example".to_owned());
        });
        refused("this server has no locations but /", &|proxy| proxy.locations.push("/x".to_owned()));
        refused("this server has no group", &|proxy| proxy.group = "g".to_owned());
        refused("this server has no http_user", &|proxy| proxy.http_pwd = "p".to_owned());
        refused("this server has no host_header_rewrite", &|proxy| {
            proxy.host_header_rewrite = "h".to_owned();
        });
        refused("this server has no headers", &|proxy| {
            drop(proxy.headers.insert("a".to_owned(), "b".to_owned()));
        });
        refused("this server has no route_by_http_user", &|proxy| proxy.route_by_http_user = "u".to_owned());
        refused("the name of a proxy has 1 to 256 characters", &|proxy| proxy.proxy_name.clear());
        refused("ips_allow_list: 'x' is neither an address nor a network such as 10.0.0.0/8", &|proxy| {
            proxy.ips_allow_list = Some(Addresses::List(vec!["10.0.0.1".to_owned(), "x".to_owned()]));
        });
    }
}
