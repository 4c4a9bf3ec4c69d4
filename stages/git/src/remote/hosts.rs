//! SSH hosts that are known, read as OpenSSH reads its file of them.

use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use russh::keys::PublicKey;
use russh::keys::ssh_key::known_hosts::{Entry, HostPatterns, KnownHosts as Lines, Marker};
use sha1::Sha1;

use crate::pattern;

/// Lines that are read.
const MOST: usize = 20_000;

/// Keys of hosts, each with whose it is.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    // Every connection takes them along.
    entries: Arc<[Entry]>,
}

/// What a key of a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is the known one.
    Known,
    /// Nothing is known of this host.
    Unknown,
    /// Others are known, or this one is revoked.
    Changed,
    /// No key of this host is known, but an authority that signs such keys.
    OfAuthority,
}

impl KnownHosts {
    /// Reads a text of the form of `known_hosts`; lines that are none are passed over. Any blanks may stand between and before
    /// the parts of a line.
    pub fn read(text: &str) -> Self {
        let parts = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: String = text.lines().flat_map(|line| [parts(line), "\n".to_owned()]).collect();
        Self { entries: Lines::new(&lines).flatten().take(MOST).collect() }
    }

    /// Whether any key of a host is known.
    pub fn knows(&self, host: &str, port: u16) -> bool {
        self.keys(host, port).next().is_some()
    }

    /// The keys of a host.
    pub(super) fn keys(&self, host: &str, port: u16) -> impl Iterator<Item = &PublicKey> {
        self.of(host, port).filter(|entry| entry.marker().is_none()).map(Entry::public_key)
    }

    pub(super) fn judge(&self, host: &str, port: u16, key: &PublicKey) -> Judgement {
        let same = |of: &PublicKey| of.key_data() == key.key_data();
        let revoked = |entry: &Entry| entry.marker() == Some(&Marker::Revoked);
        if self.of(host, port).any(|entry| revoked(entry) && same(entry.public_key())) {
            return Judgement::Changed;
        }
        let mut keys = self.keys(host, port).peekable();
        if keys.peek().is_none() {
            let signs = |entry: &Entry| entry.marker() == Some(&Marker::CertAuthority);
            return if self.of(host, port).any(signs) { Judgement::OfAuthority } else { Judgement::Unknown };
        }
        if keys.any(same) { Judgement::Known } else { Judgement::Changed }
    }

    fn of(&self, host: &str, port: u16) -> impl Iterator<Item = &Entry> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let named = if port == 22 { host } else { format!("[{host}]:{port}") };
        self.entries.iter().filter(move |entry| matches(entry.host_patterns(), &named))
    }
}

fn matches(patterns: &HostPatterns, host: &str) -> bool {
    match patterns {
        HostPatterns::HashedName { salt, hash } => Hmac::<Sha1>::new_from_slice(salt)
            .is_ok_and(|mac| mac.chain_update(host.as_bytes()).verify_slice(hash).is_ok()),
        HostPatterns::Patterns(all) => {
            let excluded = all.iter().filter_map(|pattern| pattern.strip_prefix('!'));
            !excluded.into_iter().any(|of| is_of(of, host)) && all.iter().any(|of| is_of(of, host))
        }
    }
}

/// Whether a host is as a pattern of `*` and `?` says. What means more in patterns of paths is part of an address here, as in
/// `[host]:2222`.
fn is_of(pattern: &str, host: &str) -> bool {
    let literal = pattern.to_ascii_lowercase().replace('\\', r"\\").replace('[', r"\[");
    pattern::matches(literal.as_bytes(), host.as_bytes())
}

#[cfg(test)]
mod tests {
    use russh::keys::PublicKey;

    use super::{Judgement, KnownHosts};

    const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf";

    fn judge(text: &str, host: &str, port: u16) -> Judgement {
        KnownHosts::read(text).judge(host, port, &PublicKey::from_openssh(ONE).unwrap())
    }

    #[test]
    fn a_host_is_known_by_name_pattern_or_hash() {
        assert_eq!(judge(&format!("example.com,other {ONE}"), "Example.com", 22), Judgement::Known);
        assert_eq!(judge(&format!("*.example.com {ONE}"), "git.example.com", 22), Judgement::Known);
        assert_eq!(judge(&format!("[example.com]:2222 {ONE}"), "example.com", 2222), Judgement::Known);
        assert_eq!(judge(&format!("[example.com]:2222 {ONE}"), "example.com", 22), Judgement::Unknown);
        assert_eq!(judge(&format!("[*.example.com]:222? {ONE}"), "git.example.com", 2222), Judgement::Known);
        assert_eq!(judge(&format!("[a-z]xample.com {ONE}"), "example.com", 22), Judgement::Unknown);
        assert_eq!(
            judge(&format!("!git.example.com,*.example.com {ONE}"), "git.example.com", 22),
            Judgement::Unknown
        );
        // The name is `example.com`, hashed as `ssh-keygen -H` does it.
        let line = format!("|1|AAECAwQFBgcICQoLDA0ODxAREhM=|nnUK16ANsXd3hL31YfAkGOluSjU= {ONE}");
        assert_eq!(judge(&line, "example.com", 22), Judgement::Known);
        assert_eq!(judge(&line, "else.example.com", 22), Judgement::Unknown);
    }

    #[test]
    fn blanks_of_any_kind_stand_between_and_before_the_parts_of_a_line() {
        for line in [
            format!("  example.com {ONE}"),
            format!("example.com\t{}\r\n", ONE.replace(' ', "\t")),
            format!("example.com   {ONE} the key of the host # with a note\n"),
        ] {
            assert_eq!(judge(&line, "example.com", 22), Judgement::Known, "{line:?}");
        }
        let revoked = format!("example.com {ONE}\n\t@revoked\texample.com  {ONE}\n");
        assert_eq!(judge(&revoked, "example.com", 22), Judgement::Changed);
    }

    #[test]
    fn an_authority_makes_no_key_known() {
        let authority = format!("@cert-authority *.example.com {ONE}");
        assert_eq!(judge(&authority, "git.example.com", 22), Judgement::OfAuthority);
        assert_eq!(judge(&authority, "example.org", 22), Judgement::Unknown);
        assert_eq!(
            judge(&format!("{authority}\ngit.example.com {ONE}"), "git.example.com", 22),
            Judgement::Known
        );
        assert_eq!(
            judge(&format!("{authority}\ngit.example.com {OTHER}"), "git.example.com", 22),
            Judgement::Changed
        );
    }

    #[test]
    fn another_key_than_the_known_one_and_a_revoked_one_are_changed() {
        assert_eq!(judge(&format!("example.com {OTHER}"), "example.com", 22), Judgement::Changed);
        assert_eq!(
            judge(&format!("example.com {OTHER}\nexample.com {ONE}"), "example.com", 22),
            Judgement::Known
        );
        assert_eq!(
            judge(&format!("example.com {ONE}\n@revoked * {ONE}"), "example.com", 22),
            Judgement::Changed
        );
        assert_eq!(judge("nonsense\n# a comment\n", "example.com", 22), Judgement::Unknown);
    }
}
