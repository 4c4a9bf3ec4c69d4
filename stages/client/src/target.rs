//! Where a peer is: its base address and the path under which it is served.
//!
//! takes: an address and a root path from the configuration - gives: escaped URLs below them - fails: with
//! [`TargetError`], which never repeats the address, because an address may hold a password.

use std::sync::Arc;

use reqwest::Url;

/// The base of every URL of one peer, e.g. `https://argocd.example/argo-cd`.
#[derive(Clone)]
pub struct Target {
    base: Url,
    host: Arc<str>,
}

/// An address that is not one of a peer, or a path that cannot be built below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL at all.
    #[error("the address is not a URL such as `https://argocd.example`")]
    NotAUrl,
    /// Neither `http` nor `https`.
    #[error("the address must begin with `http://` or `https://`")]
    Scheme,
    /// User name or password in the address, where logs and process lists would show them.
    #[error("the address must not hold a user name or a password")]
    Credentials,
    /// A query or a fragment, which no path can be put behind.
    #[error("the address must not hold a query or a fragment")]
    Query,
    /// An address at another host or port, or of another scheme.
    #[error("the address is not at the peer's host")]
    Elsewhere,
    /// An empty, `.` or `..` path segment: it would address something else than it names.
    #[error("an empty path segment, `.` and `..` cannot be addressed")]
    Segment,
}

impl Target {
    /// Builds a target of `address` (scheme, host, port and possibly a path) and `root`, the path under
    /// which the peer is served: `""`, `argo-cd`, `/argo-cd` and `/argo-cd/` are all understood.
    ///
    /// # Errors
    /// [`TargetError`] when `address` is no plain `http(s)` URL, or `root` climbs with `..`.
    pub fn new(address: &str, root: &str) -> Result<Self, TargetError> {
        let mut base = Url::parse(address).map_err(|_| TargetError::NotAUrl)?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(TargetError::Scheme);
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(TargetError::Credentials);
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(TargetError::Query);
        }
        let host = authority(&base).ok_or(TargetError::NotAUrl)?.into();
        let below: Vec<&str> = root.split('/').filter(|segment| !segment.is_empty()).collect();
        push(&mut base, &below)?;
        Ok(Self { base, host })
    }

    /// The URL of the path made of `segments` below the base; each segment is escaped, slashes included.
    ///
    /// # Errors
    /// [`TargetError::Segment`] when a segment is empty, `.` or `..`.
    pub fn url(&self, segments: &[&str]) -> Result<Url, TargetError> {
        let mut url = self.base.clone();
        push(&mut url, segments)?;
        Ok(url)
    }

    /// The URL of `path` below the base: `/`-separated segments and possibly a query, all escaped already.
    ///
    /// # Errors
    /// [`TargetError::Segment`] when a segment is empty, `.` or `..`; [`TargetError::NotAUrl`] when `path`
    /// does not begin with `/`.
    pub fn escaped(&self, path: &str) -> Result<Url, TargetError> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let below = path.strip_prefix('/').ok_or(TargetError::NotAUrl)?;
        if below.split('/').any(is_unaddressable) {
            return Err(TargetError::Segment);
        }
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{below}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        Ok(url)
    }

    /// The URL that the peer itself gave as that of one of its endpoints, as it stands.
    ///
    /// # Errors
    /// [`TargetError::Elsewhere`] when it is at another host or port, or of another scheme; [`TargetError::Credentials`] when it
    /// holds a user name or a password.
    pub fn told(&self, url: &Url) -> Result<Url, TargetError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        if url.origin() == self.base.origin() { Ok(url.clone()) } else { Err(TargetError::Elsewhere) }
    }

    /// The host, with its port where one is given; what errors and logs name the peer by.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// Whether connections to it are encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.base.scheme() == "https"
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("host", &self.host).finish_non_exhaustive()
    }
}

/// Host and explicit port of a URL.
pub(crate) fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

fn push(url: &mut Url, segments: &[&str]) -> Result<(), TargetError> {
    if segments.iter().any(|segment| is_unaddressable(segment)) {
        return Err(TargetError::Segment);
    }
    let mut path = url.path_segments_mut().map_err(|()| TargetError::NotAUrl)?;
    path.pop_if_empty().extend(segments);
    Ok(())
}

/// A URL parser takes these away, so that the URL would address something else.
fn is_unaddressable(segment: &str) -> bool {
    let dots = segment.replace("%2e", ".").replace("%2E", ".");
    matches!(dots.as_str(), "" | "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(address: &str, root: &str, segments: &[&str]) -> String {
        Target::new(address, root).unwrap().url(segments).unwrap().to_string()
    }

    #[test]
    fn paths_stand_below_the_root_however_it_is_written() {
        for root in ["argo-cd", "/argo-cd", "argo-cd/", "//argo-cd//"] {
            assert_eq!(url("https://a.example", root, &["api", "v1"]), "https://a.example/argo-cd/api/v1");
        }
        for address in ["https://a.example/x", "https://a.example/x/"] {
            assert_eq!(url(address, "/y/z", &["api"]), "https://a.example/x/y/z/api");
            assert_eq!(url(address, "", &["api"]), "https://a.example/x/api");
        }
        assert_eq!(url("http://a.example:8080", "", &["api"]), "http://a.example:8080/api");
    }

    #[test]
    fn segments_are_escaped() {
        let escaped = url("https://a.example", "", &["a b", "c/d", "e?f", "g#h", "i%j", "ü", "@sha256:0"]);
        assert_eq!(escaped, "https://a.example/a%20b/c%2Fd/e%3Ff/g%23h/i%25j/%C3%BC/@sha256:0");
    }

    #[test]
    fn escaped_paths_stand_as_they_are() {
        let target = Target::new("https://a.example/x/", "y").unwrap();
        let url = |path| target.escaped(path).map(|url| url.to_string());
        assert_eq!(url("/a%2Fb/c?d=%26e&f="), Ok("https://a.example/x/y/a%2Fb/c?d=%26e&f=".to_owned()));
        assert_eq!(url("/a"), Ok("https://a.example/x/y/a".to_owned()));
        assert_eq!(url("a"), Err(TargetError::NotAUrl));
        for path in ["/a//b", "/a/../b", "/a/%2e%2E/b", "/a/.", "/a/", "/?x"] {
            assert_eq!(url(path), Err(TargetError::Segment), "{path}");
        }
        let bare = Target::new("http://a.example", "").unwrap();
        assert_eq!(bare.escaped("/a/b?c").unwrap().as_str(), "http://a.example/a/b?c");
    }

    #[test]
    fn the_host_has_its_port_and_nothing_else() {
        assert_eq!(&**Target::new("https://a.example/x", "y").unwrap().host(), "a.example");
        assert_eq!(&**Target::new("http://127.0.0.1:81", "").unwrap().host(), "127.0.0.1:81");
        assert_eq!(&**Target::new("https://[::1]:8443", "").unwrap().host(), "[::1]:8443");
        assert!(Target::new("https://a.example", "").unwrap().is_https());
        assert!(!Target::new("http://a.example", "").unwrap().is_https());
        let shown = format!("{:?}", Target::new("http://a.example/path", "").unwrap());
        assert_eq!(shown, "Target { host: \"a.example\", .. }");
    }

    #[test]
    fn an_endpoint_that_the_peer_told_stands_as_it_is_and_is_nowhere_else() {
        let target = Target::new("https://a.example/x", "").unwrap();
        let told = |url: &str| target.told(&Url::parse(url).unwrap()).map(|url| url.to_string());
        for url in ["https://a.example/o/token/", "https://a.example:443/a//b?c=d"] {
            assert_eq!(told(url), Ok(url.replace(":443", "")));
        }
        for url in ["http://a.example/x", "https://a.example:8443/x", "https://b.example/x"] {
            assert_eq!(told(url), Err(TargetError::Elsewhere), "{url}");
        }
        assert_eq!(told("https://me:pw@a.example/x"), Err(TargetError::Credentials));
        assert_eq!(TargetError::Elsewhere.to_string(), "the address is not at the peer's host");
    }

    #[test]
    fn refuses_what_is_no_plain_address() {
        for (address, root, message) in [
            ("a.example", "", "the address is not a URL such as `https://argocd.example`"),
            ("argocd-server:443", "", "the address must begin with `http://` or `https://`"),
            ("ftp://a.example", "", "the address must begin with `http://` or `https://`"),
            ("https://me:pw@a.example", "", "the address must not hold a user name or a password"),
            ("https://me@a.example", "", "the address must not hold a user name or a password"),
            ("https://a.example/?x=1", "", "the address must not hold a query or a fragment"),
            ("https://a.example/#x", "", "the address must not hold a query or a fragment"),
            ("https://a.example", "a/../b", "an empty path segment, `.` and `..` cannot be addressed"),
        ] {
            assert_eq!(Target::new(address, root).unwrap_err().to_string(), message, "{address}");
        }
        let target = Target::new("https://a.example", "").unwrap();
        for segment in ["", ".", ".."] {
            assert_eq!(target.url(&["applications", segment]), Err(TargetError::Segment));
        }
    }
}
