//! Values beside names that say secret: `password: x`, `--token=x`, `<password>x</password>`.

use std::ops::Range;

use super::super::names::{self, Class};
use super::super::programs::takes_secret;
use super::super::scan::Found;
use super::super::words::TERMS;
use super::super::{placeholders, prose, shape};
use super::value::{self, is_filled_line};
use super::{LINE, NAME, Name, PAIR, Scan, is_end, is_quote, is_quote_letter};

/// So often the length of a text is looked at for the values of its names, which may lie within each other; from the name
/// on that would have more looked at, the rest is secret.
pub(super) const LOOKS: usize = 16;
/// So many bytes are looked at however short the text is.
const LEAST_LOOKED: usize = 64 * 1024;

impl<'t> Scan<'t> {
    /// Values beside names. Each name is looked at once, and none within a value that was found.
    pub(super) fn names(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done {
                continue;
            }
            let start = at - (done..*at).rev().take_while(|before| self.is_of_name(*before)).count();
            let end = (*at..).find(|next| !self.is_of_name(*next)).unwrap_or(*at);
            done = end;
            let escaped =
                self.before(start) == Some(b'\\') && matches!(self.byte(start), Some(b'n' | b'r' | b't'));
            let start = start + usize::from(escaped && end > start + 1);
            let from = self.boundary(start.max(end.saturating_sub(NAME)));
            let Some(text) = self.text.get(from..end) else { continue };
            if self.before(start) == Some(b'{')
                && start >= 2
                && let Some(end) = self.text.get(start - 2..start).and_then(|_| self.placeholder(start - 2))
            {
                // `${PW:?must be set}`.
                done = end;
                continue;
            }
            if let Some(range) = self.told_before(text, start, end) {
                found.push(Found::new(range, "told in a sentence"));
            }
            if let Some(range) = self.in_next_line(text, start, end) {
                done = range.end;
                found.push(Found::new(range, "argument"));
                continue;
            }
            // Most words stand before nothing that could give them a value.
            let shut = self.shut(end);
            let closes = shut > end && matches!(self.byte(shut), Some(b'/' | b'}'));
            let plist = self.byte(shut) == Some(b'<') && self.before(start) == Some(b'>');
            if !closes
                && !plist
                && !matches!(self.byte(shut), Some(b' ' | b'\t' | b':' | b'=' | b'>' | b',' | b'(' | b')'))
            {
                continue;
            }
            let class = match self.class_of(text) {
                Class::Key if text == "default_signer" => self.class_of_words(text, start),
                Class::Plain => self.class_of_words(text, start),
                // PHP: `tcp://redis:6379?auth=x`.
                Class::Header if self.line_before(start, NAME).ends_with('?') && text == "auth" => {
                    Class::Scalar
                }
                class => class,
            };
            if class == Class::Plain {
                continue;
            }
            if text == "PASS"
                && (self.line_before(start, 16).trim() == "---" || names_a_test(self.line_from(end)))
            {
                // The result of a test.
                continue;
            }
            let quoted = self.opens_quoted(start)
                && self.byte(end).is_some_and(|byte| is_quote(byte) || byte == b'\\');
            let name = Name { text, start, quoted, apart: false };
            if let Some(range) = self.beside(name, end, class) {
                done = done.max(range.0.end);
                if let Some(new) = self.becomes(range.0.end) {
                    done = new.end;
                    found.push(Found::new(new, range.1));
                }
                found.push(Found::new(range.0, range.1));
            }
            done = done.max(self.refers.get());
        }
    }

    /// What `key` says behind another word, or as a parameter of a URL.
    fn class_of_words(&self, text: &str, start: usize) -> Class {
        if text == "default_signer" {
            // Of Joken, which takes any text there.
            return if self.head(start, PAIR).contains(":joken") { Class::Secret } else { Class::Key };
        }
        if text.starts_with("user_") {
            // Of a login module of Java's: `user_admin="x"`.
            let is_of_module = self.head(start, LINE).contains("LoginModule");
            return if is_of_module { Class::Scalar } else { Class::Plain };
        }
        if text == "key" && self.before(start) == Some(b'<') && self.byte(start + text.len()) == Some(b'>') {
            return Class::Key;
        }
        if text == "key" && self.opens_quoted(start) && self.is_above_secret(start) {
            return Class::Key;
        }
        let ciphers = |line: &str| ["cipher: ", "cipher\":"].iter().any(|sign| line.contains(sign));
        if text == "key" && (ciphers(self.line_from(start)) || ciphers(self.line_before(start, NAME))) {
            // What encrypts with it stands beside it: `key: x, cipher: aes`.
            return Class::Secret;
        }
        if !["key", "keys", "sig", "signature", "code"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Class::Plain;
        }
        let set = || self.line_from(start + text.len()).trim_start().starts_with('=');
        let is_set_key = text == "key" && self.leads_line(start) && set();
        if is_set_key {
            // Of the section in which it stands: `[jwt]`.
            let mut lines = self.head(start, LINE).lines().rev();
            let section = lines.find_map(|line| line.strip_prefix('[')?.trim_end().strip_suffix(']'));
            let owners = ["jwt", "encryption", "signing", "session", "cookie", "hmac", "csrf"];
            if section.is_some_and(|section| owners.iter().any(|owner| section.ends_with(owner))) {
                return Class::Secret;
            }
        }
        if matches!(self.before(start), Some(b'?' | b'&')) || is_set_key {
            return Class::Key;
        }
        if text == "key" && self.leads_line(start) && self.byte(start + text.len()) == Some(b' ') {
            // Of Cisco's servers of TACACS and RADIUS: `key x`, in a line of its own.
            let alone = self.line_from(start + text.len()).trim();
            if shape::is_key(alone) && alone.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Class::Key;
            }
        }
        let head = self.line_before(start, 32);
        // `encryption: {key: x}`.
        let owned = head.trim_end_matches(is_quote_letter).trim_end();
        // In the line before: of YAML, or of what is written in brackets.
        let above = (owned.is_empty() && text == "key").then(|| self.line_above(start - head.len()));
        let listed = owned.ends_with(',') && self.opens_quoted(start);
        let opened = self.opened(start).filter(|_| listed);
        let owned = above.or(opened).unwrap_or(owned).trim_end_matches(['{', '[', '(', ' ']);
        let owner = owned.strip_suffix(':').or_else(|| owned.strip_suffix("=>"));
        let nested = above.or(opened).is_some() || head.contains(['{', '[']);
        let head = match owner.filter(|_| nested) {
            Some(owner) => owner.replace(['{', '[', '"', '\''], " ").trim_end().to_owned() + " ",
            None => head.to_owned(),
        };
        match head.strip_suffix(' ').and_then(|head| head.rsplit(' ').next()) {
            Some(owner) if owner.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                let line =
                    self.line_from(start + text.len()).trim_start_matches([':', '=', ' ', '"', '\'', '`']);
                let word =
                    line.split(|letter: char| letter.is_whitespace() || is_quote_letter(letter)).next();
                match names::classify(&format!("{owner}_{text}")) {
                    Class::Plain => Class::Plain,
                    // `Invalid API key: x`.
                    Class::Secret if word.is_some_and(shape::is_password) => Class::Secret,
                    _ => Class::Key,
                }
            }
            _ => Class::Plain,
        }
    }

    /// Whether the next line holds the secret that goes with what stands at `at`: `'key' => 'x',` and `'secret' => 'y'`.
    fn is_above_secret(&self, at: usize) -> bool {
        let below = self.line_from(at + self.line_from(at).len() + 1).trim_start();
        ["'secret' =>", "\"secret\" =>"].iter().any(|secret| below.starts_with(secret))
    }

    /// The value that belongs to the name which ends at `end`.
    fn beside(&self, mut name: Name<'t>, end: usize, class: Class) -> Option<(Range<usize>, &'static str)> {
        let shut = self.shut(end);
        let gap = self.within(shut, 16, |byte| byte != b' ' && byte != b'\t');
        name.apart = gap > shut;
        let delimiter = self.byte(gap);
        match delimiter {
            Some(b':' | b'=') => self.named(&name, gap, class).map(|range| (range, "value beside a name")),
            Some(b'<') => self.plist(end).map(|range| (range, "text of an element")),
            Some(b'>') if shut == end => self
                .element(&name, end)
                // The key of a property list is a name itself.
                .filter(|range| name.text != "key" || self.text.get(range.clone()).is_some_and(shape::is_key))
                .map(|range| (range, "text of an element")),
            Some(b'>' | b'/' | b'}') if name.quoted || shut > end => self.attribute(&name, gap, class),
            Some(b'{') if self.line_before(name.start, 16).trim_start() == "variable \"" => {
                self.default_of(&name, gap, class).map(|range| (range, "value beside a name"))
            }
            Some(b',') if name.text.starts_with('-') => {
                let from = self.within(gap + 1, 4, |byte| byte != b' ' && !is_quote(byte));
                let end = self.within(from, LINE, |byte| is_end(byte) || matches!(byte, b',' | b']'));
                takes_secret(name.text, self.text.get(from..end)?).then_some((from..end, "argument"))
            }
            Some(b',') => self
                .comma(&name, gap, class)
                .map(|range| (range, "value beside a name"))
                .or_else(|| self.attribute(&name, gap, class))
                .or_else(|| self.told_further_on(&name, gap).map(|range| (range, "told in a sentence"))),
            // `getenv('PASSWORD') ?: 'x'`.
            Some(b')') if name.quoted => {
                let value = self.instead(gap)?;
                let text = self.text.get(value.clone())?;
                class.holds(name.text, text).then_some((value, "literal instead"))
            }
            Some(b'(') if gap == end => {
                let quote = self.byte(gap + 1).filter(|byte| is_quote(*byte))?;
                let value = gap + 2..self.close(gap + 2, quote);
                let text = self.text.get(value.clone())?;
                // What is asked for: `getpass("Password: ")`.
                let asks = text.trim_end().ends_with([':', '?']);
                // Of another secret what is made as keys are, and names none that is read: `getSecret("x")`.
                let reads = ["get", "read", "fetch", "find", "load"];
                let reads = || reads.iter().any(|reads| name.text.starts_with(reads));
                let secret = names::is_password(name.text) || shape::is_key(text) && !reads();
                (!asks && secret && !shape::is_harmless(text)).then_some((value, "value beside a name"))
            }
            _ if gap > shut && !name.quoted => self.apart(&name, gap, class),
            Some(b'|') => self.row(&name, gap, class).map(|range| (range, "value of a column")),
            _ if gap > shut => self
                .attribute(&name, gap, class)
                .or_else(|| self.set_to(&name, gap, class).map(|range| (range, "told in a sentence"))),
            _ => None,
        }
    }

    /// A value beside a name, on either side of `:` or `=` at `at`.
    pub(super) fn named(&self, name: &Name<'t>, at: usize, class: Class) -> Option<Range<usize>> {
        let delimiter = self.byte(at)?;
        if delimiter == b'=' && matches!(self.before(at), Some(b'!' | b'<' | b'~')) {
            return None;
        }
        let mut from = self.within(at + 1, 4, |byte| !matches!(byte, b'=' | b'>'));
        let spaced = self.byte(from).is_none_or(|byte| byte.is_ascii_whitespace());
        let quotes = self.byte(from).is_some_and(|byte| is_quote(byte) || byte == b'\\');
        let joined = || {
            let bare = !spaced && !quotes && !name.quoted && !is_header(name.text);
            self.byte(from) == Some(b'/')
                || bare && !self.follows_a_pair(name.start, from) && !self.is_header_alone(name.start, from)
        };
        if delimiter == b':'
            && self.line_before(name.start, 8).ends_with("://")
            && self.text.get(from..self.within(from, LINE, is_end)).is_some_and(|rest| rest.contains('@'))
        {
            // The user of a URL, whose password is found with it: `https://x-access-token:x@github.com/a/b`.
            return None;
        }
        // `${app.token:x}`, `${API_TOKEN:-x}`.
        let variable = || matches!(self.head(name.start, 2), "${" | "#{");
        if delimiter == b':' && from == at + 1 && !names::is_password(name.text) && !variable() && joined() {
            // `registry/token-service:1.2`, `app:/Secret:namespace/name`
            return None;
        }
        from = self.until(from, |byte| byte != b' ' && byte != b'\t');
        if delimiter == b':' && spaced && self.is_target(name, from) {
            return None;
        }
        if delimiter == b':' && self.ends_phrase(name, from)
            || delimiter == b'=' && spaced && self.is_unset(from)
        {
            return None;
        }
        if self.closes_text(name, from) {
            return None;
        }
        if class == Class::Users
            && delimiter == b':'
            && !name.quoted
            && !self.line_before(name.start, NAME).trim_start_matches([' ', '\t', '-']).is_empty()
        {
            // What is said of users, and no list of them: `error listing users: webhook:Timeout30s`.
            return None;
        }
        if delimiter == b':'
            && !name.quoted
            && let Some(value) = self.typed(from)
        {
            let text = self.text.get(value.clone())?;
            return (class.holds(name.text, text) && !prose::is_state(text)).then_some(value);
        }
        if delimiter == b'=' && spaced && self.is_field_number(name.start, from) {
            return None;
        }
        let rest = self.rest_of(name, from);
        if delimiter == b':'
            && spaced
            && !name.quoted
            && let Some(told) = prose::behind_verb(name.text, rest)
        {
            return Some(from + told.start..from + told.end);
        }
        // `Authorization: Token x`.
        let scheme = class == Class::Header && value::begins_scheme(rest);
        if delimiter == b':' && spaced && !name.quoted && !scheme && prose::follows(name.text, rest) {
            let checked = prose::checked(self.line_from(from)).filter(|_| class != Class::Key);
            return checked.map(|found| from + found.start..from + found.end);
        }
        if self.looked.get() > LEAST_LOOKED.max(LOOKS * self.bytes.len()) {
            return Some(from..self.bytes.len());
        }
        let value = match class {
            Class::Header => self.after_scheme(self.value(from, name, delimiter)?),
            _ => self.value(from, name, delimiter)?,
        };
        self.looked.set(self.looked.get().saturating_add(value.len()));
        let text = self.text.get(value.clone())?;
        if text.starts_with("{{") && placeholders::fill_all(text) {
            // Nothing in it is looked at: `{{ lookup('vault', 'secret=x') }}`.
            self.refers.set(value.end);
        }
        // One with quotes in its templates is not read as an address.
        let cut = text.contains("{{") && text.contains('"');
        if names::is_locator(name.text) && shape::holds_logon(text) && !cut {
            return None;
        }
        let names = |text: &str| {
            text.ends_with(')')
                && text.contains(", ")
                && text.bytes().all(|byte| byte.is_ascii_alphabetic() || b"(),._ ".contains(&byte))
        };
        let begins = !text.contains(char::is_whitespace) && !text.ends_with(')');
        if delimiter == b'=' && class == Class::Header && text.starts_with('(') && (begins || names(text)) {
            // Of Python, whose parts are looked at by themselves: `auth=("app", "x")`, `auth=(user, pw)`.
            return None;
        }
        let commented = text.split_once(" #").map_or(text, |(head, _)| head).trim_end();
        let value = value.start..value.start + commented.len();
        let text = commented;
        let members = class == Class::Header && text.contains(": ");
        let link = delimiter == b':'
            && spaced
            && !name.quoted
            && !self.leads_line(name.start)
            && shape::is_address(text);
        // A sentence goes on with where it is told; a comment is no value.
        if link
            || self.byte(value.start) == Some(b'#') && self.line_before(value.start, NAME).trim().is_empty()
        {
            return None;
        }
        if text.contains('\n') && (members || text.lines().all(is_filled_line)) {
            return None;
        }
        let tree = text.starts_with('{') && name.quoted && text.ends_with('}');
        if text.starts_with(['{', '['])
            && !tree
            && (class != Class::Secret || !text.contains('['))
            && !self.leads_line(name.start)
            && text.contains(": ")
            || (text.contains(": ") || text.contains("\":")) && self.is_structure(name.text, class, &value)
        {
            return None;
        }
        if prose::is_type(text) || delimiter == b'=' && self.line_before(name.start, LINE).contains("attrs") {
            // What a program takes, `password: Optional[str] = None`; which attribute of a directory holds it.
            return None;
        }
        let small = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let code = |code: &str| {
            code.bytes().all(|byte| byte.is_ascii_digit())
                || code.contains('_') && code.bytes().all(small)
                || !names::is_password(name.text) && TERMS.contains(code)
        };
        if delimiter == b':' && text.strip_suffix(':').is_some_and(code) {
            // The number or the name of an error: `failed to refresh token: invalid_grant: expired`.
            return None;
        }
        if delimiter == b'=' && !names::is_password(name.text) && prose::is_saying(text) {
            // `token=bucket algorithm for the rate limit`.
            return None;
        }
        let checksum = self.before(name.start) == Some(b'/')
            && shape::is_hash(text)
            && self
                .line_before(name.start, NAME)
                .rsplit([' ', '"', '\'', '{'])
                .next()
                .is_some_and(names::is_checksum);
        if shape::is_expression(text)
            && let Some(value) = self.instead(value.end)
        {
            return Some(value);
        }
        // What a program says of its flags: `--token=STRING    what it is for`.
        let help = name.text.starts_with('-')
            && text
                .split_once("  ")
                .is_some_and(|(word, _)| word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
        let told = checksum
            || help
            || delimiter == b'=' && self.is_computed(name.start, value.start, text)
            || self.bytes.get(at..at + 2).is_some_and(|sign| sign.contains(&b'='))
                && self.is_passed_on(name, at, value.start, text)
            || prose::is_state(text)
            || prose::is_label(text)
            || names::is_caption(name.text) && prose::is_caption(text)
            || !names::is_password(name.text) && self.is_told(name, &value, text);
        (!told && class.holds(name.text, text)).then_some(value)
    }

    /// Whether a program declares a variable with what it computes, `const token = req.headers.authorization;`, and no
    /// literal in it could be a secret: `process.env.TOKEN || "x"`.
    fn is_computed(&self, name: usize, from: usize, text: &str) -> bool {
        let head = self.line_before(name, NAME).split_whitespace().next_back().unwrap_or_default();
        let falls_back = ["|| ", "?? ", "?: ", " or "].iter().any(|or| {
            text.split_once(or).is_some_and(|(_, rest)| {
                rest.starts_with(is_quote_letter) && !["''", "\"\""].iter().any(|none| rest.starts_with(none))
            })
        });
        let mut literals = text.split(is_quote_letter).skip(1).step_by(2);
        matches!(head, "let" | "mut" | "var" | "val" | "const")
            && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && !self.before(from).is_some_and(is_quote)
            && !falls_back
            && !literals.any(|text| shape::is_key(text) || shape::is_password(text))
    }

    /// Whether a program gives a name what another one holds, `token = input.token`, `connect(user, password=password)`, or
    /// compares them, `if token == expected:`. The sign stands at `at`.
    fn is_passed_on(&self, name: &Name<'t>, at: usize, from: usize, text: &str) -> bool {
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        };
        let bare = text.trim_end_matches([',', ':']);
        let head = self.line_before(name.start, NAME);
        let argument = head.ends_with('(') || head.ends_with(", ");
        let of_call = argument
            && head.rsplit_once('(').is_some_and(|(head, rest)| {
                !rest.contains(')')
                    && head.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            });
        // `self.token = token`; an argument in a line of its own, `token=token,`.
        let own = ["self.", "this."].iter().any(|own| name.text.starts_with(own)) || text.ends_with(',');
        let compared = name.apart && self.text.get(at..).is_some_and(|rest| rest.starts_with("=="));
        (of_call || own || compared || name.apart && text.contains('.'))
            && !self.before(from).is_some_and(is_quote)
            && bare.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
            && bare.split('.').all(word)
            && (compared || bare.rsplit('.').next().is_some_and(|last| names::classify(last) != Class::Plain))
    }

    /// Whether the quote at `from` closes the text in which the name stands: `getpass("Password: ")`.
    fn closes_text(&self, name: &Name<'t>, from: usize) -> bool {
        let Some(quote) = self.byte(from).filter(|byte| is_quote(*byte) && !name.quoted) else {
            return false;
        };
        let rest = self.line_from(from + 1);
        let ends = rest.trim().is_empty()
            || rest.starts_with([')', ',', ';', ']', ' '])
            || [" && ", " | "].iter().any(|next| rest.starts_with(next));
        ends && self.line_before(name.start, NAME).bytes().filter(|byte| *byte == quote).count() % 2 == 1
    }

    /// `define('PASSWORD', 'x')`, `{default_pass, <<"x">>}`.
    fn comma(&self, name: &Name<'t>, at: usize, class: Class) -> Option<Range<usize>> {
        let head = self.line_before(name.start, 8).trim_end_matches(is_quote_letter);
        // Of Java, `of(CredentialsScope.GLOBAL, "id")`, it is a constant.
        let constant = !name.quoted && name.text.contains('.');
        // Of Capistrano: `set :db_password, "x"`.
        let symbol = head.ends_with(':') && head.trim_end_matches(':').trim() == "set";
        if constant || !symbol && !head.trim_end().ends_with(['(', '{']) {
            return None;
        }
        // WordPress sets its values below each other.
        let from = self.within(at + 1, 24, |byte| !matches!(byte, b' ' | b'<' | b'\t'));
        let quote = self.byte(from).filter(|byte| is_quote(*byte))?;
        let value = from + 1..self.close(from + 1, quote);
        let text = self.text.get(value.clone())?;
        let told = prose::is_label(text) || !text.bytes().any(|byte| byte.is_ascii_alphanumeric());
        (!told && class.holds(name.text, text)).then_some(value)
    }

    /// What a sentence tells of a password behind a comma: `rotate the password, it is now x`.
    fn told_further_on(&self, name: &Name<'t>, gap: usize) -> Option<Range<usize>> {
        let line = self.line_from(gap + 1);
        let says = [" was ", " now ", " is "].iter().any(|says| line.starts_with(says));
        let rest = line.strip_prefix(" it ").or_else(|| line.strip_prefix(' ').filter(|_| says));
        let rest = rest.filter(|_| names::is_password(name.text))?;
        let from = gap + 1 + line.len() - rest.len();
        let range = prose::told(name.text, Class::Secret, false, rest)?;
        // Who does it now is no password: `no more password, now Vault-Agent injects it`.
        let more = rest.get(range.end..).unwrap_or_default().trim_start_matches(is_quote_letter);
        let ends = [" for ", " of ", " in ", " on ", " and ", " until ", " as ", " ("];
        let acts = line.starts_with(" now ")
            && more.starts_with(' ')
            && !more.trim().is_empty()
            && !ends.iter().any(|word| more.starts_with(word));
        (!acts).then(|| from + range.start..from + range.end)
    }

    /// Whether a name is a file that is made of the one that stands behind it, as in a Makefile: `server.key: server.cnf`.
    fn is_target(&self, name: &Name<'_>, from: usize) -> bool {
        let first = self.line_from(from).split_whitespace().next().unwrap_or_default();
        let made = ["crt", "cnf", "pem", "key", "csr", "json", "conf", "p12", "der", "mk"];
        name.text.contains('.')
            && first.rsplit_once('.').is_some_and(|(_, end)| made.contains(&end))
            && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    }

    /// Whether a name ends what a sentence quotes, `LDAP Result Code 49 "Invalid Credentials": ...`, and no secret follows.
    fn ends_phrase(&self, name: &Name<'_>, from: usize) -> bool {
        let end = name.start + name.text.len();
        let Some(quote) = self.byte(end).filter(|byte| is_quote(*byte) && !name.quoted) else { return false };
        let phrase = self.line_before(name.start, NAME).rsplit_once(char::from(quote));
        let text = self.text.get(from..self.within(from, LINE, is_end)).unwrap_or_default();
        let is_pair = |text: &str| {
            text.split_once('=').is_some_and(|(name, _)| {
                name.len() <= 12 && name.bytes().all(|byte| byte.is_ascii_alphabetic())
            })
        };
        phrase.is_some_and(|(head, phrase)| {
            head.strip_suffix(' ')
                .is_some_and(|head| head.ends_with(|letter: char| letter.is_ascii_alphanumeric()))
                && phrase.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ')
        }) && (is_pair(text) || !shape::is_key(text) && !shape::is_password(text))
    }

    /// Whether the next name stands where a value would: `password= auth_user=`.
    fn is_unset(&self, from: usize) -> bool {
        let word = self.line_from(from).split_whitespace().next().unwrap_or_default();
        let small = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        word.split_once('=').is_some_and(|(name, value)| {
            small(name)
                && (value.is_empty() && name.contains('_')
                    || value.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                        && names::classify(name) != Class::Plain)
        })
    }

    /// Whether a name and a key behind it are all of a line or of what stands in quotes: `"apikey:x"`.
    fn is_header_alone(&self, start: usize, from: usize) -> bool {
        let open = self.before(start).unwrap_or(b'\n');
        let end = self.within(from, LINE, is_end);
        let closes = match self.byte(end) {
            None | Some(b'\n' | b'\r') => open == b'\n',
            Some(close) => is_quote(open) && open == close,
        };
        closes
            && self.text.get(from..end).is_some_and(|text| {
                !text.contains(['/', ':'])
                    && !shape::is_version(text)
                    && (shape::is_key(text) || shape::is_password(text) || prose::is_made_up(text))
            })
    }

    /// Whether a name stands in a list of pairs, and a key behind it: `username:ada,token:x`; `{User:ada Token:x}`, as Go
    /// prints them.
    fn follows_a_pair(&self, start: usize, from: usize) -> bool {
        let head = self.line_before(start, NAME);
        let sign = match self.before(start) {
            Some(b',') => ',',
            Some(b' ') if head.contains('{') => ' ',
            // `JWT:{Secret:x}`; `map[host:db token:x]`.
            Some(b'{' | b'[' | b' ') if head.ends_with(":{") || head.contains("map[") => {
                let end = self.within(from, LINE, |byte| matches!(byte, b'}' | b']') || is_end(byte));
                return self
                    .text
                    .get(from..end)
                    .map(|text| text.trim_start_matches('['))
                    .is_some_and(|text| shape::is_key(text) || shape::is_password(text));
            }
            _ => return false,
        };
        head.rsplit(sign).nth(1).is_some_and(|pair| pair.contains(':') && !pair.ends_with(':'))
            && self
                .text
                .get(from..self.within(from, LINE, |byte| matches!(byte, b',' | b'}') || is_end(byte)))
                .is_some_and(shape::is_key)
    }
}

/// Whether a name is one of a header that programs made up: `X-Api-Key:x`.
fn is_header(name: &str) -> bool {
    name.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("x-"))
}

/// Whether behind `PASS` nothing but the name of a test stands: `: TestLogin (0.01s)`, `: test_login.py`.
fn names_a_test(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(": ") else { return false };
    let (name, more) = rest.trim_end().split_once(' ').unwrap_or((rest.trim_end(), ""));
    let timed = more.strip_prefix('(').and_then(|more| more.strip_suffix("s)")).is_some_and(|time| {
        !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    });
    let letters = |signs: &'static [u8]| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphabetic() || signs.contains(&byte) || timed && byte.is_ascii_digit())
    };
    let of_go = name
        .strip_prefix("Test")
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()) && letters(b"_/"));
    let of_python = name.starts_with("test_") && name.ends_with(".py");
    let path = name.starts_with("test/") && letters(b"_-./");
    let secret = !timed && shape::is_password(name) || shape::is_key(name);
    (timed || more.is_empty()) && (of_go || of_python || path) && !secret
}
