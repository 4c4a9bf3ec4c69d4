//! A cookie that a site gives to browsers for itself alone.

use axum::http::header::{self, HeaderMap};

/// What a browser takes from this very host alone, over https, for all of its paths.
const HOST: &str = "__Host-";

/// A cookie of a site, which no script reads. Where the site is reached over https, what a neighbour sets for the domain of both is
/// another cookie; over http nobody can tell them apart.
#[derive(Debug, Clone)]
pub struct OwnCookie {
    name: &'static str,
    /// Where the site is reached over https it is for all paths.
    path: &'static str,
    is_https: bool,
    /// Of the site's pages, as people reach it.
    origin: String,
}

impl OwnCookie {
    /// For paths below `path`, of a site that people reach at `external`.
    #[must_use]
    pub fn new(name: &'static str, path: &'static str, external: &str) -> Self {
        let origin = external.trim_end_matches('/').to_owned();
        Self { name, path, is_https: external.starts_with("https:"), origin }
    }

    /// The session of whoever is signed in to a platform that people reach at `external`.
    #[must_use]
    pub fn session(external: &str) -> Self {
        Self::new("session", "/", external)
    }

    const fn prefix(&self) -> &'static str {
        if self.is_https { HOST } else { "" }
    }

    /// Its value; over https none where a request has two of it, one of which this host did not give.
    #[must_use]
    pub fn read<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut found = pairs
            .filter(|(name, _)| name.strip_prefix(self.prefix()) == Some(self.name))
            .map(|(_, value)| value);
        let first = found.next()?;
        (!self.is_https || found.next().is_none()).then_some(first)
    }

    /// As `Set-Cookie` has it: for so many seconds.
    #[must_use]
    pub fn set(&self, value: &str, seconds: u64) -> String {
        let (prefix, name) = (self.prefix(), self.name);
        let (path, secure) = if self.is_https { ("/", "; Secure") } else { (self.path, "") };
        format!("{prefix}{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
    }

    /// As `Set-Cookie` has it: it is over.
    #[must_use]
    pub fn over(&self) -> String {
        self.set("", 0)
    }

    /// Whether a request was sent by a page of the site, by the page's origin: that of the host that was asked, or the address that people
    /// have, as a proxy on the way may change the host; `None` where a request names no origin.
    #[must_use]
    pub fn is_from_the_site(&self, headers: &HeaderMap) -> Option<bool> {
        let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or_default();
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_asked = |(_, of): (&str, &str)| Some(of) == host || origin == self.origin;
        Some(origin.split_once("://").is_some_and(is_asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(external: &str, lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        OwnCookie::session(external).read(&headers).map(str::to_owned)
    }

    #[test]
    fn over_https_it_is_this_hosts_alone() {
        let cookie = OwnCookie::new("attempt", "/login", "https://platform.example.com");
        assert_eq!(
            cookie.set("a=b", 600),
            "__Host-attempt=a=b; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure"
        );
        assert_eq!(cookie.over(), "__Host-attempt=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure");
        let read = |lines: &[&str]| read("https://platform.example.com", lines);
        assert_eq!(read(&["theme=dark; __Host-session=a=b"]).as_deref(), Some("a=b"));
        assert_eq!(read(&["session=planted; __Host-session=own"]).as_deref(), Some("own"));
        assert_eq!(read(&["session=planted"]), None);
        assert_eq!(read(&["__host-session=planted"]), None);
        assert_eq!(read(&["__Host-session=own; __Host-session=own"]), None);
        assert_eq!(read(&["__Host-session=own", "theme=dark; __Host-session=planted"]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn over_http_it_is_for_its_path_and_the_first_of_its_name() {
        let cookie = OwnCookie::new("attempt", "/login", "http://localhost:8080");
        assert_eq!(cookie.set("a", 600), "attempt=a; Path=/login; HttpOnly; SameSite=Lax; Max-Age=600");
        assert_eq!(cookie.over(), "attempt=; Path=/login; HttpOnly; SameSite=Lax; Max-Age=0");
        let read = |lines: &[&str]| read("http://localhost:8080", lines);
        assert_eq!(read(&["theme=dark; session=a", "session=b"]).as_deref(), Some("a"));
        assert_eq!(read(&["__Host-session=a"]), None);
    }
}
