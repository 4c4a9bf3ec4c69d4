//! Users and passwords in lines of their own, below what says so: `The logins of staging:`, and `ada:x`; the commands of a
//! transfer in a here-document, `user ada x`.

use std::ops::Range;

use super::super::scan::Found;
use super::super::shape;
use super::{LINE, NAME, Scan, is_quote_letter};

/// Lines of users that are read below one heading.
const LINES: usize = 32;

/// Programs that are told in a here-document who logs in.
const TRANSFERS: [&str; 8] = ["ftp", "lftp", "ncftp", "tnftp", "sftp", "ftps", "curl", "telnet"];

/// Users that nobody made up.
const USERS: [&str; 12] = [
    "admin",
    "administrator",
    "root",
    "user",
    "test",
    "demo",
    "guest",
    "postgres",
    "elastic",
    "sa",
    "app",
    "deploy",
];

impl<'t> Scan<'t> {
    /// Lines that are a user and a password each, below a short one that speaks of logons. Each line is read once.
    pub(super) fn logons(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done {
                continue;
            }
            let mut end = self.line_end(*at);
            done = end;
            let heading = self.line_before(*at, NAME).len() + end - at;
            if heading > NAME {
                continue;
            }
            // Of CouchDB, below whose section nothing else stands; of Shiro.
            let section = matches!(self.line_around(*at).trim(), "[admins]" | "[users]");
            for _ in 0..LINES {
                let start = self.within(end, 4, |byte| !matches!(byte, b'\r' | b'\n'));
                let line = self.line_from(start);
                let Some(range) = (if section {
                    admin(line, self.line_around(*at).trim() == "[users]")
                } else {
                    logon(line)
                }) else {
                    break;
                };
                found.push(Found::new(start + range.start..start + range.end, "logon in a line"));
                end = start + line.len();
                done = end;
            }
        }
    }

    /// What is told in the here-documents that begin at `marks` to programs that transfer files.
    pub(super) fn here_documents(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done {
                continue;
            }
            let end = self.line_end(*at);
            done = end;
            let rest = self
                .line_from(at + 2)
                .trim_start_matches(['-', '~', ' '])
                .trim_start_matches(is_quote_letter);
            let ends = rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next();
            let Some(ends) = ends.filter(|ends| !ends.is_empty()) else { continue };
            let transfers = self
                .line_before(*at, LINE)
                .split([' ', '\t', '|', ';', '&', '(', '/'])
                .any(|word| TRANSFERS.contains(&word));
            let mut next = end + 1;
            while transfers && next < self.bytes.len() {
                let line = self.line_from(next);
                done = next + line.len();
                if line.trim() == ends {
                    break;
                }
                if let Some(range) = told(line) {
                    found.push(Found::new(next + range.start..next + range.end, "here-document"));
                }
                next = self.line_end(done) + 1;
            }
        }
    }
}

/// The password of a line that is nothing but a user and one: `- ada:x`, `ada / x`.
fn logon(line: &str) -> Option<Range<usize>> {
    let bare = line.trim_matches([' ', '\t', '-', '*', '>', '`', '|', '"', '\'']);
    let from = line.find(bare)?;
    let (user, password) = bare.split_once(" / ").or_else(|| bare.split_once([':', '/']))?;
    let password = password.trim_start();
    let name = |user: &str| {
        (2..=64).contains(&user.len())
            && user.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte))
    };
    let user = user.trim_end_matches('`');
    // A trailer of a commit: `Change-Id: I84...`.
    let trailer = bare.contains(": ")
        && ["-id", "-by", "-on", "-to"].iter().any(|end| user.to_ascii_lowercase().ends_with(end));
    let password = password.trim_start_matches('`');
    let made = shape::is_password(password)
        || shape::is_key(password)
        || USERS.contains(&user) && password.len() >= 6 && !password.contains('/');
    let secret = name(user)
        && !trailer
        && !password.contains(char::is_whitespace)
        && !password.contains("://")
        && made
        && !shape::is_harmless(password)
        && !shape::is_version(password);
    secret.then(|| {
        let start = from + bare.len() - password.len();
        start..start + password.len()
    })
}

/// The password of a line that gives an administrator one: `ada = x`; with `roles`, they stand behind it: `ada = x, admin`.
fn admin(line: &str, roles: bool) -> Option<Range<usize>> {
    let (name, value) = line.split_once('=')?;
    let password = if roles { value.split(',').next()? } else { value }.trim();
    let secret = name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !password.is_empty()
        && (!roles || shape::is_password(password) || shape::is_key(password))
        && !shape::is_harmless(password);
    let start = name.len() + 1 + value.find(password)?;
    secret.then_some(start..start + password.len())
}

/// The password that a command tells: `user ada x`, `PASS x`, `open -u ada,x host`; `user = "ada:x"` of curl's settings.
fn told(line: &str) -> Option<Range<usize>> {
    let mut at = 0;
    let mut words = line.split([' ', '\t', '=']).filter_map(|word| {
        let start = at;
        at += word.len() + 1;
        let bare = word.trim_matches(is_quote_letter);
        let start = start + word.find(bare).unwrap_or_default();
        (!bare.is_empty()).then_some((bare, start..start + bare.len()))
    });
    let (mut command, _) = words.next()?;
    if command.eq_ignore_ascii_case("quote") || command == "open" {
        command = words.next()?.0;
    }
    let name = command.trim_start_matches('-').trim_end_matches(':').to_ascii_lowercase();
    let (first, place) = words.next()?;
    let place = match name.as_str() {
        "pass" => place,
        "user" | "u" | "login" | "proxy-user" => match first.split_once([':', ',']) {
            Some((user, _)) => place.start + user.len() + 1..place.end,
            None => words.next()?.1,
        },
        _ => return None,
    };
    (!shape::is_harmless(line.get(place.clone())?)).then_some(place)
}
