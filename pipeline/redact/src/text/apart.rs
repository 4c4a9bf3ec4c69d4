//! Values that stand behind their names with nothing but space between: directives of configuration files, flags,
//! sentences.

use std::ops::Range;

use super::super::names::{self, Class};
use super::super::programs::{is_flag, takes_secret};
use super::super::words::{ABOUT, OWNS};
use super::super::{prose, shape};
use super::value::holds_keys;
use super::{LINE, NAME, Name, Scan, is_end, is_quote, is_quote_letter};

/// Words with which it is said what a password has to be.
const MUST: [&str; 5] = ["must", "should", "shall", "cannot", "may"];
/// Words behind which it is said who logs in.
const LOGS_IN: [&str; 5] = ["user", "username", "login", "account", "as"];
/// Words that stand before a password and say which one it is.
const WHOSE: [&str; 12] =
    ["the", "a", "new", "now", "temporary", "initial", "default", "admin", "root", "das", "neue", "jetzt"];
/// Words behind which a sentence says what something is.
const GIVES: [&str; 4] = ["as", "is", "als", "ist"];

impl<'t> Scan<'t> {
    /// A value that stands behind its name with nothing but space between: `requirepass x`, `user a password b`,
    /// `IDENTIFIED BY 'x'`, `the password is x`, `--password x`.
    pub(super) fn apart(
        &self,
        name: &Name<'t>,
        from: usize,
        class: Class,
    ) -> Option<(Range<usize>, &'static str)> {
        let first = self.byte(from).filter(|first| !matches!(first, b'}' | b')'))?;
        if matches!(first, b'|' | b'?') {
            // `process.env.TOKEN || "x"`.
            let value = self.instead(from)?;
            return class
                .holds(name.text, self.text.get(value.clone())?)
                .then_some((value, "literal instead"));
        }
        if name.text.starts_with('-') {
            let starts =
                !self.before(name.start).is_some_and(|byte| !byte.is_ascii_whitespace() && !is_quote(byte));
            let (from, to) = match first {
                b'-' => return None,
                quote if is_quote(quote) => (from + 1, self.close(from + 1, quote)),
                _ => (from, self.word_end(from)),
            };
            let flag = name.text;
            // What a program says of its flags; a password behind another flag: `-prootpass shop`.
            let help = from > name.start + name.text.len() + 1
                && (self.leads_line(name.start) || is_short_flag(self.line_before(name.start, 16).trim()))
                && self.line_from(from).split_whitespace().take(3).filter(|word| is_word(word)).count() == 3;
            let joined = flag.starts_with("-p")
                && ["mysql", "mariadb"]
                    .iter()
                    .any(|program| self.line_before(name.start, NAME).contains(program));
            if help || joined {
                return None;
            }
            if first == b'('
                && self.line_from(from).split(' ').nth(1).is_some_and(|word| word.starts_with("bytes)"))
            {
                return self
                    .numbered(from)
                    .filter(|range| takes_secret(flag, self.text.get(range.clone()).unwrap_or_default()))
                    .map(|range| (range, "argument"));
            }
            if self.text.get(from..to)?.starts_with("<<") {
                // A here-string.
                return None;
            }
            return (starts && takes_secret(flag, self.text.get(from..to)?))
                .then_some((from..to, "argument"));
        }
        let last = self.line_before(name.start, NAME).rsplit([' ', '\t']).next().unwrap_or_default();
        if last.starts_with('-') && last.ends_with('=') {
            // What a flag is set to, and no name: `vault login -method=userpass username=x`.
            return None;
        }
        // Of SQL: `PASSWORD E'x'`.
        let prefixed = matches!(first, b'N' | b'E') && self.byte(from + 1) == Some(b'\'');
        let (first, from) = if prefixed { (b'\'', from + 1) } else { (first, from) };
        let line = self.line_from(from);
        // Of PostgreSQL: `PASSWORD $$x$$`.
        if let Some((text, _)) = line.strip_prefix("$$").and_then(|rest| rest.split_once("$$"))
            && names::is_password(name.text)
            && self.before(name.start) != Some(b'$')
            && text.trim() == text
            && !shape::is_harmless(text)
        {
            return Some((from + 2..from + 2 + text.len(), "value beside a name"));
        }
        if self
            .line_before(name.start, NAME)
            .trim_start()
            .get(..11)
            .is_some_and(|head| head.eq_ignore_ascii_case("comment on "))
        {
            // Of SQL: what a column is for.
            return None;
        }
        if first == b'{' {
            let end = self.within(from, 4 * LINE, |byte| byte == b'}');
            let block = (line.trim_end() == "{" || end < from + line.len())
                && holds_keys(self.text.get(from + 1..end)?);
            return (block && self.byte(end) == Some(b'}')).then_some((from + 1..end, "block of keys"));
        }
        if matches!(first, b'!' | b'~') {
            return self.compared(name, from, class).map(|range| (range, "value beside a name"));
        }
        let quoted = is_quote(first);
        let word_end = if quoted { self.close(from + 1, first) } else { self.within(from, LINE, is_end) };
        let word = if quoted { from + 1..word_end } else { from..word_end };
        let text = self.text.get(word.clone())?.trim_end_matches([';', ',']);
        let word = word.start..word.start + text.len();
        let aside = text.starts_with('(') || matches!(text, "->" | "=>" | "-" | "–" | "—");
        if text.starts_with('(')
            && let Some(range) = behind_aside(line).filter(|_| names::is_password(name.text))
        {
            return Some((from + range.start..from + range.end, "told in a sentence"));
        }
        if aside && (names::is_password(name.text) || text.starts_with('(') && class == Class::Secret) {
            // `password (x)`, `API token (x)`, `DB_PASSWORD -> x`.
            return prose::told(name.text, class, false, line)
                .map(|range| (from + range.start..from + range.end, "told in a sentence"));
        }
        let sign = !text.bytes().any(|byte| byte.is_ascii_alphanumeric()) && !prose::says(text);
        // Of a usage: `--password PASSWORD [--token TOKEN]`.
        let bare = text.trim_start_matches('[');
        let flag = (bare.starts_with("--") || bare.len() == 2) && is_flag(bare);
        if sign || flag || text.starts_with('(') || shape::is_harmless(text) || shape::is_switch(text) {
            return None;
        }
        let rest = self
            .text
            .get(word_end + usize::from(quoted)..(from + line.len()).max(word_end + usize::from(quoted)))
            .unwrap_or_default();
        let alone = rest.trim().trim_end_matches(';').is_empty() || rest.trim_start().starts_with('#');
        let password = names::is_password(name.text);
        let head = self.line_before(name.start, NAME);
        // Files of configuration write them small; `DB_PASSWORD` in a sentence is a word of it.
        let small = !name.text.bytes().any(|byte| byte.is_ascii_uppercase());
        let directive = prose::is_directive(name.text) && (small || self.leads_line(name.start));
        // `login -p "$PASSWORD" r.example`: what is filled in is the value, not the name of one.
        let filled = self.before(name.start) == Some(b'$');
        let logon = ["user ", "login ", "username ", "machine ", "account ", "neighbor "]
            .iter()
            .any(|word| head.contains(word) && !filled)
            || name.text == "password"
                && ["login ", "user "]
                    .iter()
                    .any(|word| self.line_above(name.start).trim_start().starts_with(word));
        let above = self.line_above(name.start - head.len()).trim_start();
        let sets = matches!(head.trim(), "set" | "set $")
            && (head.starts_with([' ', '\t'])
                || head.ends_with('$')
                || ["set ", "edit ", "config "].iter().any(|word| above.starts_with(word)));
        // What a build prints: `Step 3/7 : ENV API_TOKEN x`.
        let instruction = head.rsplit(" : ").next().unwrap_or_default().trim();
        let sets = sets
            || matches!(
                if head.starts_with("Step ") { instruction } else { head.trim() },
                "SetEnv" | "setenv" | "ENV" | "Define" | "fastcgi_param" | "uwsgi_param" | "scgi_param"
                    // Of fish.
                    | "set -x" | "set -gx" | "set -Ux" | "set -lx" | "set -g" | "set -U"
            );
        if (sets
            || head.trim() == "enable"
                && (shape::is_password(text) || text.bytes().any(|byte| byte.is_ascii_uppercase())))
            && alone
            && matches!(class, Class::Secret | Class::Scalar)
            && !prose::is_word_of_prose(text)
            // Of such an address its logon alone is secret, and found by itself.
            && !(names::is_locator(name.text) && shape::holds_logon(text))
        {
            return Some((word, "directive"));
        }
        // `user is admin, pw is x`: the word that gives it stands before it.
        let gives = !alone && (GIVES.contains(&text) || !text.is_ascii() && prose::says(text));
        // `user "ada" password must be changed`, `login with user name and password fields`.
        let told_of = || {
            let whole =
                word.start == from && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b':');
            let bare = text.trim_end_matches(':');
            // `user root and password policy`, with which somebody logs in.
            let logs_in = || {
                let mut words = head.split_whitespace().rev().skip(1);
                let who = words.next();
                alone && who != Some("name") && words.next().is_some_and(|word| LOGS_IN.contains(&word))
            };
            let about = || ABOUT.contains(bare) && !prose::is_word_of_prose(bare) && !logs_in();
            whole && (!alone && MUST.contains(&bare) || head.ends_with(" and ") && about())
        };
        if (directive || logon && password)
            && !gives
            && !told_of()
            && (!prose::is_word_of_prose(text)
                || alone && head.trim().is_empty()
                || logon && ["user ", "machine "].iter().any(|word| head.trim_start().starts_with(word)))
        {
            return Some((word, "directive"));
        }
        if quoted {
            let clause = rest.split(';').next().unwrap_or_default();
            let missing = clause.trim_start().starts_with("not found")
                || clause.contains("does not exist")
                || names::may_refer(name.text)
                    && is_said_of_object(text, clause)
                    && !head.split_whitespace().next_back().is_some_and(names::owns_value);
            let key = shape::is_key(text) || shape::is_password(text);
            let upper = name.text.len() > 4 && name.text.bytes().all(|byte| byte.is_ascii_uppercase());
            let sql = first == b'\'' && upper;
            // A directive of its own line: `Pass "two words"`.
            let directive = alone && password && head.trim().is_empty() && !prose::is_saying(text);
            let spaced =
                text.contains(' ') && !sql && !directive && !prose::is_phrase_in_quotes(name.text, text);
            // A statement: `net { shared-secret "x"; }`.
            let opens = head.trim_end();
            let statement = rest.starts_with(';')
                && (opens.is_empty() || opens.ends_with(['{', ';']))
                && class == Class::Secret
                && class.holds(name.text, text);
            // `using token "x"`; of a Secret that would be its name.
            let used = ["using", "with"].iter().any(|word| head.trim_end().ends_with(word))
                && class == Class::Secret
                && !names::may_refer(name.text)
                && !text.contains(['-', '/', '.'])
                && text.len() >= 6;
            let any = password || sql || used || statement;
            let secret = !missing && !spaced && if any { !prose::is_name_of_field(text) } else { key };
            return secret.then_some((word, "value beside a name"));
        }
        let compound =
            name.text.contains(['_', '-', '.']) || name.text.bytes().any(|byte| byte.is_ascii_uppercase());
        let leads = head.trim_matches([' ', '\t', '#', ';', '{', '$']).is_empty();
        if leads && alone && !text.contains([':', '(']) {
            // `remote_password x`, of a file whose lines give one name one value each.
            // What nobody writes behind `password` but the password: `figTree`, and no type.
            let made = |byte: u8| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"!@#$%^&*+?".contains(&byte)
            };
            let made_up = || {
                text.bytes().any(|byte| byte.is_ascii_lowercase())
                    && text.bytes().skip(1).any(made)
                    && !prose::is_type(text)
                    && class.holds(name.text, text)
            };
            // Of Apache httpd: `SessionCryptoPassphrase Two_words`.
            let humps = || {
                password
                    && name.text.bytes().filter(u8::is_ascii_uppercase).count() > 1
                    && name.text.bytes().any(|byte| byte.is_ascii_lowercase())
                    && !text.bytes().all(|byte| byte.is_ascii_alphabetic())
            };
            let one_each = || {
                (small || head.starts_with([' ', '\t']) || humps())
                    && (name.text.contains(['_', '-', '.']) || small && password && made_up() || humps())
                    && !prose::is_name_of_field(text)
                    && (password || !text.bytes().all(|byte| byte.is_ascii_lowercase()))
            };
            // For how long one is good: `auth-gen-token 43200`.
            let number = name.text.ends_with("-token") && text.bytes().all(|byte| byte.is_ascii_digit());
            let secret = match class {
                Class::Key => shape::is_key(text),
                Class::Secret | Class::Scalar if one_each() && self.among_directives(name.start, from) => {
                    true
                }
                _ => {
                    shape::is_key(text)
                        || shape::is_password(text)
                        || (compound
                            && !prose::is_word_of_prose(text)
                            && text.bytes().any(|byte| byte.is_ascii_digit()))
                }
            };
            if secret && !number {
                return Some((word, "directive"));
            }
        }
        if self.before(name.start) == Some(b'/') {
            // The last part of a path: `ghcr.io/acme/auth to 1.2`, `/oauth/token x`.
            return None;
        }
        let checked = || prose::checked(line).filter(|_| class != Class::Key);
        // `SNMP community of the switches is x`, not `our community is x`.
        let community = name.text == "community"
            && (line.trim_start().starts_with("string") || head.to_ascii_lowercase().contains("snmp"));
        let owned = community || head.split_whitespace().next_back().is_some_and(names::owns_value);
        // To the quote that closes what the name stands in: `msg="password changed" user=1`.
        let opened = head.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
        let shut = opened
            .then(|| line.find('"').filter(|at| !line.get(..*at).is_some_and(|head| head.ends_with('\\'))));
        let within = shut.flatten().and_then(|at| line.get(..at)).unwrap_or(line);
        // `ada with password Lapland-Bunting so that it works`.
        let with = ["with ", "mit "].iter().any(|word| head.ends_with(word));
        if with && password && small && prose::is_two_names(text) {
            return Some((word, "told in a sentence"));
        }
        let told = prose::told(name.text, class, owned, within).or_else(checked);
        let told = told.map(|range| from + range.start..from + range.end);
        told.or_else(|| self.at_the_end(name, from, class).filter(|_| class != Class::Key))
            .or_else(|| self.assigned(name, from))
            .map(|range| (range, "told in a sentence"))
    }

    /// What stands before the brace in which the name at `start` is one of several: `"Jwt": {"Issuer": "x", "Key": "y"}`.
    pub(super) fn opened(&self, start: usize) -> Option<&'t str> {
        let head = self.line_before(start, NAME);
        let mut depth = 0_usize;
        for (at, byte) in head.bytes().enumerate().rev() {
            match byte {
                b'}' => depth += 1,
                b'{' if depth > 0 => depth -= 1,
                b'{' => return head.get(..=at),
                _ => {}
            }
        }
        None
    }

    /// What a name is compared with: `$http_x_token != "x"`; a variable of nginx with any word.
    fn compared(&self, name: &Name<'t>, from: usize, class: Class) -> Option<Range<usize>> {
        let line = self.line_from(from);
        let literal = line.trim_start_matches(['!', '=', '~', '*', ' ']);
        let start = from + line.len() - literal.len();
        let quote = self.byte(start).filter(|byte| is_quote(*byte));
        let value = match quote {
            Some(quote) => start + 1..self.close(start + 1, quote),
            None => {
                start..self.within(start, LINE, |byte| is_end(byte) || matches!(byte, b')' | b'{' | b';'))
            }
        };
        let text = self.text.get(value.clone())?;
        // Of nginx and of Varnish.
        let variable = (self.before(name.start) == Some(b'$') || name.text.contains("req.http."))
            && class == Class::Secret;
        let word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+/=".contains(&byte));
        // An expression, `^Bearer`.
        let expression = text.starts_with('^') && !text.bytes().any(|byte| byte.is_ascii_digit());
        let secret = shape::is_key(text)
            || shape::is_password(text) && !expression
            || variable && word && text.len() > 2 && !prose::is_word_of_prose(text) && !prose::is_state(text);
        (secret && (quote.is_some() || variable) && !shape::is_harmless(text)).then_some(value)
    }

    /// Whether the line above or below that of a name is one name and one value too.
    fn among_directives(&self, start: usize, from: usize) -> bool {
        let end = from + self.line_from(from).len();
        let below = self.line_from(self.within(end, 2, |byte| !byte.is_ascii_whitespace()));
        let above = self.line_above(start - self.line_before(start, NAME).len());
        [above, below].iter().any(|line| {
            let mut words = line.split_whitespace();
            let directive = words.next().is_some_and(|name| {
                name.starts_with(|letter: char| letter.is_ascii_alphabetic())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
                    && !prose::is_word_of_prose(name)
            });
            directive && matches!(words.count(), 1 | 2)
        })
        // Of Cisco: `line vty 0 4`.
        || ["line vty ", "line con ", "line aux "].iter().any(|begin| above.trim_start().starts_with(begin))
    }

    /// The argument of a flag that stands in a line of its own, as `kubectl describe` shows them.
    pub(super) fn in_next_line(&self, flag: &str, start: usize, end: usize) -> Option<Range<usize>> {
        if !flag.starts_with("--") || self.byte(end) != Some(b'\n') {
            return None;
        }
        let indent = self.line_before(start, NAME);
        let from = self.within(end + 1, NAME, |byte| byte != b' ');
        let word = self.text.get(from..self.within(from, LINE, |byte| byte == b'\n'))?.trim_end();
        let alone = indent.len() > 1 && indent.trim().is_empty() && from == end + 1 + indent.len();
        let argument = !word.is_empty() && !word.starts_with('-') && !word.contains(' ');
        (alone && argument && takes_secret(flag, word)).then(|| from..from + word.len())
    }

    /// The argument behind a flag, where it is said of each which it is and how long: `(10 bytes) 8: x (1 bytes)`.
    fn numbered(&self, from: usize) -> Option<Range<usize>> {
        let rest = self.text.get(from..self.boundary(from + LINE).min(self.text.len()))?;
        let (_, next) = rest.split_once(')')?;
        let (number, next) = next.trim_start().split_once(": ")?;
        let (value, size) = next.split_once(" (")?;
        let secret = number.bytes().all(|byte| byte.is_ascii_digit())
            && !value.contains('\n')
            && size.split(' ').nth(1).is_some_and(|word| word.starts_with("bytes)"));
        let start = from + rest.len() - next.len();
        secret.then(|| start..start + value.len())
    }

    /// A password that a sentence tells before the word: `use x as the password`, `x is the new password`.
    pub(super) fn told_before(&self, name: &str, start: usize, end: usize) -> Option<Range<usize>> {
        let whose = |word: &str| WHOSE.contains(&word);
        // Most words stand behind another one, and little is looked at.
        let last = self.head(start, 16).strip_suffix(' ')?.rsplit(' ').next()?;
        if !whose(last) && !GIVES.contains(&last) {
            return None;
        }
        let mut head = self.line_before(start, NAME).strip_suffix(' ')?;
        for _ in 0..3 {
            head = head.rsplit_once(' ').filter(|(_, word)| whose(word)).map_or(head, |(before, _)| before);
        }
        let head = head.rsplit_once(' ').filter(|(_, word)| GIVES.contains(word))?.0;
        let rest = self.line_from(end);
        let goes_on =
            [" for ", " of ", " in ", " on ", " and ", " from ", " until ", " now", " für ", ". ", ", "];
        if !rest.trim_matches(['.', '!', ',', ' ']).is_empty()
            && !goes_on.iter().any(|word| rest.starts_with(word))
        {
            return None;
        }
        let word = head.rsplit(' ').next()?;
        let bare = word.trim_matches(is_quote_letter);
        let from = start - self.line_before(start, NAME).len() + head.len() - word.len() + word.find(bare)?;
        let secret = shape::is_password(bare) || shape::is_key(bare) || prose::is_made_up(bare);
        (secret && names::is_password(name) && !shape::is_harmless(bare) && !shape::is_version(bare))
            .then(|| from..from + bare.len())
    }

    /// A secret that ends a sentence about it, behind its colon: `the password for root@localhost: x`.
    ///
    /// Of another secret only what has signs within it that nobody writes: `shared secret with ada: th1stle&thorn`. Not what
    /// is matched, `payments*`, nor a path or a reference, `docs/auth.md#flow`, `acme/shop#42`.
    fn at_the_end(&self, name: &Name<'t>, from: usize, class: Class) -> Option<Range<usize>> {
        let password = names::is_password(name.text);
        if !password && class != Class::Secret {
            return None;
        }
        let part = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let sign = |byte: u8| b"!#$%&*~".contains(&byte);
        let strange = |word: &str| {
            let mut threes = word.as_bytes().windows(3);
            let odd = |three: &[u8]| matches!(three, [before, odd, after] if part(*before) && sign(*odd) && part(*after));
            !word.contains('/') && threes.any(odd)
        };
        let line = self.line_from(from);
        let (head, word) = line.rsplit_once(':')?;
        // `password of the admin user: x`, not `password was changed for user: ada`.
        let of_user = line.starts_with("of the ") && head.split_whitespace().nth(3).is_some();
        let told = !of_user && head.split_whitespace().next_back().is_some_and(prose::introduces_other);
        let (word, start) = match word.trim() {
            // In the next line that is not empty.
            "" => {
                let end = from + line.len();
                let start = self.within(end, 8, |byte| !byte.is_ascii_whitespace());
                (self.text.get(start..self.within(start, NAME, is_end))?, start)
            }
            trimmed => (trimmed, from + line.len() - word.trim_start().len()),
        };
        // `passphrase of the disk: x`, not `passphrase prompt: x`.
        let first = head.split_whitespace().next();
        let phrase = first.is_none_or(|word| prose::says(word) || OWNS.contains(word))
            && prose::is_phrase_of_words(name.text, word);
        let made = shape::is_password(word) && (password || strange(word))
            || password && shape::is_key(word)
            || phrase;
        let secret = !told && !head.contains(':') && made;
        (secret && (phrase || head.split_whitespace().count() >= 2)).then(|| start..start + word.len())
    }
}

/// Whether what is quoted is the name of an object of which Kubernetes says something: `secrets "web-tls-7x2kq" is forbidden:
/// User "x" cannot get`, `Secret "web-tls" is invalid: data: Required value`.
fn is_said_of_object(text: &str, clause: &str) -> bool {
    let word = |part: &str| part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let name = text.contains('-')
        && !shape::is_uuid(text)
        && text.split(['-', '.']).any(word)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    let said = [
        " is forbidden: ",
        " is invalid: data",
        " is invalid: metadata",
        " is invalid: type: ",
        " is invalid: immutable",
        " is invalid: stringData",
        " in version \"v1\" cannot be handled",
        " for Certificate ",
        " deleted from ",
    ];
    let whole = clause.trim_end();
    name && (said.iter().any(|said| clause.starts_with(said))
        || matches!(whole, " already exists" | " created" | " configured" | " deleted"))
}

/// A secret behind the bracket that says whose it is: `(admin): x`.
fn behind_aside(line: &str) -> Option<Range<usize>> {
    let (whose, rest) = line.strip_prefix('(')?.split_once("):")?;
    let word = rest.split_whitespace().next()?;
    let secret = shape::is_password(word) || shape::is_key(word);
    let start = line.len() - rest.trim_start().len();
    (secret && whose.len() <= 32 && !whose.contains(')') && !shape::is_harmless(word))
        .then(|| start..start + word.len())
}

/// Whether a word is a flag of one letter and a comma, before its long name: `-p, --password`.
fn is_short_flag(word: &str) -> bool {
    word.len() == 3 && word.starts_with('-') && word.ends_with(',')
}

fn is_word(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphabetic())
}
