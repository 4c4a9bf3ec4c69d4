//! Programs that take secrets as arguments under names that do not say so, as data; and the reading of their
//! arguments, in a list or in a line.

use std::ops::Range;
use std::sync::LazyLock;

use super::names::{self, Class};
use super::words::TERMS;
use super::{prose, shape};

mod table;

use table::{PROGRAMS, Program};

/// Flags that take a user and a password, whatever the program.
const PAIRS: [&str; 4] = ["-u", "--user", "--proxy-user", "-U"];
/// Flags that take the value of a secret that another argument names.
const VALUES: [&str; 5] = ["--value", "--body", "--secret-value", "--string-value", "-b"];
/// Flags that take a password in many programs; of a program that is not known they count when their value looks like
/// one.
const USUAL: [&str; 5] = ["-p", "-a", "-P", "-w", "-pw"];

/// Flags that take a password behind a user: `-u ada -p x`.
const BEHIND: [&str; 4] = ["-p", "-P", "-w", "-pw"];
/// Programs that are given a user and take something else there: `journalctl -u nginx -p err`.
const OTHERS: [&str; 18] = [
    "sudo",
    "su",
    "doas",
    "gosu",
    "runuser",
    "journalctl",
    "mvn",
    "mvnw",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "python",
    "python3",
    "git",
    "ps",
    "lsof",
    "unshare",
];
/// Words that make a user or a new password.
const USERS: [&str; 10] = [
    "create-user",
    "create-admin",
    "createsuperuser",
    "add-user",
    "adduser",
    "useradd",
    "change-password",
    "reset-password",
    "set-password",
    "user-create",
];

/// What subcommands that name a secret do with it.
const VERBS: [&str; 10] =
    ["set", "get", "add", "create", "delete", "list", "reset", "rotate", "update", "change"];

/// What stands in a line that is to be read as a command.
pub(crate) fn marks() -> impl Iterator<Item = &'static str> {
    let named = PROGRAMS.iter().flat_map(|program| program.names.iter().copied());
    let long = named.filter(|name| name.len() > 3);
    let other = " -u |--user |--user=|-U |\"-u\"|mc alias|mc config|mc admin|7z a|7z x|rar a|rar x|zip -|bcp |creds |creds=|\
                 net ads|aws configure|aws ssm|config set|create secret|secret set|secrets set|variables set|:set |\
                 git config|user create|users create|user add|user update|hey -a|oha -a|ab -A|--key |--key=|bw login|bw unlock";
    long.chain(other.split('|')).chain(USERS)
}

/// Reads the arguments of one command, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    /// A bit for each program that was seen.
    programs: u64,
    /// What the next argument is.
    next: Option<Next>,
    /// Words that wait for their argument: program, word, arguments since.
    waiting: Option<(usize, usize, usize)>,
    /// A word said that something is set: the value of what is named next may follow.
    sets: bool,
    /// A word named a secret: `secret create`, `/shop/db-password`.
    named: bool,
    /// What follows is kept in a store of secrets, each under a name: `vault kv put path name=x`.
    keeps: bool,
    /// A user or a new password is made.
    makes: bool,
    /// The last word was one of users: `user create`.
    users: bool,
    /// Who logs in, as far as it was told.
    user: User,
    /// A program was seen that takes something else where others take passwords.
    other: bool,
}

/// Whether the last arguments were a flag and a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum User {
    #[default]
    No,
    Flag,
    Told,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    Secret,
    Pair(char),
    /// Secret when it looks like one.
    Perhaps,
    /// Secret when it looks like a key.
    Key,
    /// Secret, unless it is a port or a path.
    Behind,
    /// Cookies, each behind its name.
    Cookie,
    Named(String),
    /// A name, `=`, and one.
    Literal,
    /// A command that gives one: `--password-command "echo x"`.
    Command,
}

/// The names of programs by their first letter, each with the program's place in the table.
static NAMES: LazyLock<[Vec<(usize, &str)>; 256]> = LazyLock::new(|| {
    std::array::from_fn(|first| {
        let programs = PROGRAMS.iter().enumerate();
        let names =
            programs.flat_map(|(number, program)| program.names.iter().map(move |name| (number, *name)));
        names
            .filter(|(_, name)| {
                name.bytes().next().map(|byte| usize::from(byte.to_ascii_lowercase())) == Some(first)
            })
            .collect()
    })
});

impl Arguments {
    /// The program that a list of arguments goes to, by whatever names it: its image, its command.
    pub(crate) fn program(&mut self, name: &str) {
        if name.contains('=') {
            return;
        }
        let name = base(name).split([':', '@']).next().unwrap_or(name);
        let Some(first) = name.as_bytes().first().map(u8::to_ascii_lowercase) else { return };
        for (number, known) in NAMES.get(usize::from(first)).into_iter().flatten() {
            if name.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known))
                && (known.len() > 4 || name.len() == known.len() || matches!(*known, "snmp"))
            {
                self.programs |= 1 << number;
            }
        }
    }

    /// Whether anything is known of whom the arguments go to.
    pub(crate) fn is_known(&self) -> bool {
        self.programs != 0
    }

    /// What part of the next argument is secret.
    pub(crate) fn argument(&mut self, text: &str) -> Option<Range<usize>> {
        let user = std::mem::take(&mut self.user);
        if let Some(next) = self.next.take()
            && let Some(range) = self.after(&next, text)
        {
            return Some(range);
        }
        if let Some((program, word, since)) = self.waiting.take() {
            if text.starts_with('-') && text.len() > 1 {
                self.waiting = Some((program, word, since));
            } else if let Some((_, places)) =
                PROGRAMS.get(program).and_then(|program| program.words.get(word))
            {
                let since = since + 1;
                if places.iter().any(|place| *place > since) {
                    self.waiting = Some((program, word, since));
                }
                let setting = text.split_once('=').is_some_and(|(name, _)| {
                    names::classify(name) == Class::Plain
                        && name.bytes().all(|byte| byte.is_ascii_lowercase())
                });
                let told = setting
                    || is_metavariable(text)
                    || shape::is_harmless(text)
                    || prose::is_word_of_prose(text)
                    // How something is hashed: `mkpasswd -m sha-512`; where it goes to: `> /etc/pw`.
                    || TERMS.contains(text)
                    || !text.bytes().any(|byte| byte.is_ascii_alphanumeric());
                if places.contains(&since) && !told {
                    let oracle =
                        PROGRAMS.get(program).is_some_and(|program| program.names.contains(&"sqlplus"));
                    return if oracle { of_oracle(text) } else { Some(0..text.len()) };
                }
            }
        }
        if text.is_empty() || text.len() > 4096 {
            return None;
        }
        if text.starts_with('-') {
            let known = || self.known().any(|(_, program)| program.takes.contains(&text));
            if user == User::Told && !self.other && BEHIND.contains(&text) && !known() {
                self.next = Some(Next::Behind);
                return None;
            }
            if PAIRS.contains(&text) || text == "--username" {
                self.user = User::Flag;
            }
            self.flag(text)
        } else if let Some(setting) = text.strip_prefix('+').filter(|setting| is_flag(&format!("-{setting}")))
        {
            // Of game servers: `+rcon_password x`.
            if names::classify(setting) != Class::Plain {
                self.next = Some(Next::Named(setting.to_owned()));
            } else if setting == "sv_setsteamaccount" {
                self.next = Some(Next::Perhaps);
            }
            None
        } else {
            if user == User::Flag && is_user(text) {
                self.user = User::Told;
            }
            if self.keeps
                && let Some((_, value)) = text.split_once('=')
                && (shape::is_key(value) || shape::is_password(value))
                && !shape::is_harmless(value)
            {
                return Some(text.len() - value.len()..text.len());
            }
            if let Some(pass) = text.strip_prefix("pass:").filter(|pass| !shape::is_harmless(pass)) {
                return Some(text.len() - pass.len()..text.len());
            }
            self.program(text);
            self.word(text);
            self.key(text);
            self.other = self.other || OTHERS.contains(&base(text));
            let made = self.users && matches!(text, "create" | "add" | "update");
            self.users = matches!(text, "user" | "users" | "account");
            self.makes = self.makes || made || USERS.contains(&text);
            self.keeps = self.keeps || text == "put" && self.is("vault") || text == "set" && self.named;
            None
        }
    }

    /// What is set under a name that says secret: `consul kv put db/password x`, `aws configure set secret_key x`.
    fn key(&mut self, text: &str) {
        let key = text.rsplit(['/', ':']).next().unwrap_or(text);
        // `set-credentials` says what is done.
        let verb = key.split('-').next().is_some_and(|verb| VERBS.contains(&verb));
        if !verb
            && matches!(names::classify(key), Class::Secret | Class::Scalar)
            && !text.contains(['=', ' '])
        {
            self.named = true;
            let camel = || {
                text.as_bytes()
                    .windows(2)
                    .any(|pair| matches!(pair, [first, second] if first.is_ascii_lowercase() && second.is_ascii_uppercase()))
            };
            let compound = text.contains(['/', '_', '-', '.', ':']) || camel();
            if self.sets && compound {
                self.next = Some(Next::Named(key.to_owned()));
            }
        }
        // What Systems Manager of AWS encrypts.
        self.named = self.named || text == "SecureString";
        self.sets = self.sets || ["set", "put", "config"].contains(&text);
    }

    /// Whether the next argument is waited for.
    pub(crate) fn waits(&self) -> bool {
        self.next.is_some() || self.waiting.is_some()
    }

    fn after(&mut self, next: &Next, text: &str) -> Option<Range<usize>> {
        let whole = 0..text.len();
        match next {
            _ if text.starts_with('-') && text.len() > 1 && text.as_bytes().get(1) != Some(&b' ') => None,
            _ if shape::is_harmless(text) => None,
            Next::Secret => Some(whole),
            Next::Named(flag) => takes_secret(flag, text).then_some(whole),
            Next::Command => {
                let value = ["echo ", "printf "].iter().find_map(|echo| text.strip_prefix(echo))?.trim();
                let from = text.len() - value.len();
                (!shape::is_harmless(value)).then_some(from..text.len())
            }
            Next::Literal => {
                let (name, value) = text.split_once('=')?;
                // A command gives it: `--from-literal=key=$(openssl rand -hex 32)`.
                let told = value.starts_with("$(") || is_metavariable(value) || shape::is_harmless(value);
                (!told).then_some(name.len() + 1..text.len())
            }
            Next::Perhaps => (shape::is_key(text) || shape::is_password(text)).then_some(whole),
            Next::Key => (shape::is_key(text) && !text.contains('.')).then_some(whole),
            Next::Behind => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b":.-/".contains(&byte));
                let path = text.starts_with(['/', '.', '~']) || text.contains('/');
                let told = digits && (text.len() <= 5 || text.contains([':', '.']))
                    || path
                    || shape::is_switch(text)
                    || is_metavariable(text);
                (!told).then_some(whole)
            }
            Next::Cookie => (text.contains('=') && takes_secret("--cookie", text)).then_some(whole),
            Next::Pair(sign) => {
                // Samba's in a container: `-u "ada;x"`.
                let of_samba = || text.split_once(';').filter(|(user, _)| !user.contains(' '));
                let (user, password) = text.split_once(*sign).or_else(of_samba)?;
                if password.is_empty() && shape::is_key(user) && !shape::is_harmless(user) {
                    // A key alone, as Stripe takes it: `-u key:`.
                    return Some(0..user.len());
                }
                let password = password.trim_matches(['"', '\'']);
                let ids = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                let address = password.starts_with("//") || password.contains("://");
                // Of documentation.
                let example =
                    matches!(text, "user:password" | "username:password" | "user:pass" | "user:passwd");
                let metavariable =
                    text.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b':'))
                        && names::classify(password) != Class::Plain;
                (!(address
                    || metavariable
                    || example
                    || password.is_empty()
                    || shape::is_harmless(password)
                    || ids(user) && ids(password)))
                .then_some(whole)
            }
        }
    }

    fn flag(&mut self, text: &str) -> Option<Range<usize>> {
        if self.word(text) {
            return None;
        }
        for (_, program) in self.known() {
            if program.takes.contains(&text) {
                self.next = Some(Next::Secret);
                return None;
            }
            if program.pair.0.contains(&text) {
                self.next = Some(Next::Pair(program.pair.1));
                return None;
            }
            // `-uada:x`.
            if let Some(rest) = ["-u", "-U"]
                .iter()
                .find_map(|flag| text.strip_prefix(flag).filter(|_| program.pair.0.contains(flag)))
                && !rest.starts_with(['-', '='])
                && let Some(range) = self.after(&Next::Pair(program.pair.1), rest)
            {
                return Some(range.start + 2..range.end + 2);
            }
            // Several in one, the last of which takes it: `curl -fsSu ada:x`.
            if program.names.contains(&"curl") && is_cluster(text) {
                self.next = Some(Next::Pair(program.pair.1));
                return None;
            }
            for flag in program.joined {
                if let Some(rest) = text.strip_prefix(flag)
                    && !rest.is_empty()
                    && !rest.starts_with(['-', '='])
                    && !shape::is_harmless(rest)
                    // Of a usage: `mysql -u USER -pPASSWORD`.
                    && !matches!(rest, "PASSWORD" | "YOUR_PASSWORD")
                    && !(rest.starts_with("ort")
                        || rest.starts_with("rotocol")
                        || rest.starts_with("assword"))
                {
                    return Some(flag.len()..text.len());
                }
            }
        }
        if let Some((flag, value)) = text.split_once('=') {
            let at = flag.len() + 1;
            let takes = self.known().any(|(_, program)| program.takes.contains(&flag));
            let next = match flag {
                _ if takes => Next::Secret,
                "--from-literal" if self.named => Next::Literal,
                _ if self.named && VALUES.contains(&flag) => Next::Secret,
                "--key" => Next::Key,
                _ if PAIRS.contains(&flag) => Next::Pair(':'),
                _ => return None,
            };
            return self.after(&next, value).map(|range| at + range.start..at + range.end);
        }
        // Of a program that is not known: `-pKettle42`.
        if let Some(rest) = text.strip_prefix("-p").filter(|rest| rest.len() >= 8)
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit]
                .iter()
                .all(|kind| rest.bytes().any(|byte| kind(&byte)))
        {
            return Some(2..text.len());
        }
        if text == "-b" && self.is("curl") {
            self.next = Some(Next::Cookie);
        } else if self.makes && BEHIND.contains(&text) {
            self.next = Some(Next::Behind);
        } else if text == "--key" || text == "-k" && !self.other {
            self.next = Some(Next::Key);
        } else if PAIRS.contains(&text) {
            self.next = Some(Next::Pair(':'));
        } else if self.named && text == "--from-literal" {
            self.next = Some(Next::Literal);
        } else if self.named && VALUES.contains(&text) {
            self.next = Some(Next::Secret);
        } else if text.contains("pass") && (text.ends_with("-command") || text.ends_with("-cmd")) {
            self.next = Some(Next::Command);
        } else if is_flag(text) && names::classify(text) != Class::Plain {
            self.next = Some(Next::Named(text.to_owned()));
        } else if USUAL.contains(&text) {
            self.next = Some(Next::Perhaps);
        }
        None
    }

    /// Begins to wait for what stands behind this word; whether anything does.
    fn word(&mut self, text: &str) -> bool {
        let is = |word: &str| match word.strip_suffix('*') {
            Some(begin) => text.starts_with(begin),
            None => word.eq_ignore_ascii_case(text),
        };
        let found = self.known().find_map(|(number, program)| {
            let word = program.words.iter().position(|(words, _)| words.split(' ').any(is))?;
            Some((number, word, 0))
        });
        if found.is_some() {
            self.waiting = found;
        }
        found.is_some()
    }

    /// Whether this program was seen.
    fn is(&self, name: &str) -> bool {
        self.known().any(|(_, program)| program.names.contains(&name))
    }

    /// The programs that were seen, each with its place in the table.
    fn known(&self) -> impl Iterator<Item = (usize, &'static Program)> + use<> {
        let mut left = self.programs;
        let numbers = std::iter::from_fn(move || {
            let number = (left != 0).then_some(left.trailing_zeros())?;
            left &= left - 1;
            Some(number as usize)
        });
        numbers.filter_map(|number| PROGRAMS.get(number).map(|program| (number, program)))
    }
}

/// Whether `text` is several flags of curl in one, of which none but the last takes an argument, and that is the user.
fn is_cluster(text: &str) -> bool {
    let head = text.strip_prefix('-').and_then(|text| text.strip_suffix('u'));
    head.is_some_and(|head| {
        !head.is_empty() && head.bytes().all(|flag| b"fgiklnpqsvIJLNORSZ046#".contains(&flag))
    })
}

/// The last part of a path.
fn base(text: &str) -> &str {
    text.bytes().rposition(|byte| byte == b'/').and_then(|at| text.get(at + 1..)).unwrap_or(text)
}

/// The password of `user/password@address`.
fn of_oracle(text: &str) -> Option<Range<usize>> {
    let (user, rest) = text.split_once('/').filter(|(user, _)| !user.contains('@'))?;
    let password = rest.rsplit_once('@').map_or(rest, |(password, _)| password);
    (!password.is_empty()).then(|| user.len() + 1..user.len() + 1 + password.len())
}

/// Whether `text` is a command-line flag without a value.
pub(crate) fn is_flag(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    let dashes = text.len() - name.len();
    (1..=2).contains(&dashes)
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a word can be who logs in, and neither a number nor a file: `python -u app.py -p x`.
fn is_user(word: &str) -> bool {
    !word.contains('/')
        && ![".py", ".js", ".rb", ".sh"].iter().any(|end| word.ends_with(end))
        && !word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}

/// Whether a word stands for what is to be given: `SECRETKEY`, `USER:PASSWORD`.
fn is_metavariable(word: &str) -> bool {
    word.bytes().all(|byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b':' | b'=' | b',')
    }) && (names::classify(word) != Class::Plain || matches!(word, "USER" | "USERNAME"))
}

/// Whether `flag` followed by `value` passes a secret.
pub(crate) fn takes_secret(flag: &str, value: &str) -> bool {
    let metavariable = is_metavariable(value);
    // Of Docker's builds: `--secret id=npmrc,src=x`.
    let mount = ["id=", "type=", "source=", "src="].iter().any(|begin| value.starts_with(begin));
    // What is filled in, and has spaces in it.
    let filled =
        ["${{", "{{", "$("].iter().any(|begin| value.starts_with(begin)) && !value.ends_with(['}', ')']);
    if mount || filled || prose::is_word_of_prose(value) || metavariable {
        return false;
    }
    names::classify(flag).holds(flag, value)
}

/// The words of a command line from `from` to `end`, each with its place, quotes taken off.
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl<'t> Words<'t> {
    pub(crate) fn new(text: &'t str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end }
    }
}

impl<'t> Words<'t> {
    /// Where the word from `start` to `stop` ends when a template that it opens closes behind it.
    fn filled(&self, start: usize, stop: usize) -> usize {
        // Few words hold a brace, which is cheaper to tell than two of them.
        let word = self.text.get(start..stop).filter(|word| word.contains('{'));
        let opens = word.and_then(|word| word.rfind("{{")).map(|at| start + at);
        let Some(at) = opens.filter(|at| self.text.get(*at..stop).is_some_and(|rest| !rest.contains("}}")))
        else {
            return stop;
        };
        let mut until = self.end.min(at + 256);
        while !self.text.is_char_boundary(until) {
            until -= 1;
        }
        match self.text.get(at..until).and_then(|rest| rest.find("}}")) {
            Some(close) => at + close + 2,
            None => stop,
        }
    }

    /// The next word; with `whole`, one in quotes is taken as a whole, else what is quoted is read word by word.
    pub(crate) fn next(&mut self, whole: bool) -> Option<(Range<usize>, &'t str)> {
        let bytes = self.text.as_bytes().get(..self.end)?;
        let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
        let gap = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(byte, b'\\' | b',' | b'[' | b']')
                || (!whole && quote(byte))
        };
        let from = self.at + bytes.get(self.at..)?.iter().position(|byte| !gap(byte))?;
        let opening = bytes.get(from).copied().filter(quote);
        let start = from + usize::from(opening.is_some());
        let rest = bytes.get(start..)?;
        let stop = match opening {
            Some(opening) => rest.iter().position(|byte| *byte == opening),
            None => rest.iter().position(|byte| byte.is_ascii_whitespace() || quote(byte)),
        };
        let stop = stop.map_or(self.end, |found| start + found);
        // What is filled in is one word, whatever spaces are in it: `${{ secrets.X }}`.
        let stop = match opening {
            Some(_) => stop,
            None => self.filled(start, stop),
        };
        // `user:"password"` is one word.
        let inner = bytes.get(stop).filter(|byte| quote(byte)).filter(|_| {
            opening.is_none() && stop > start && matches!(bytes.get(stop - 1), Some(b':' | b'=' | b'%'))
        });
        let stop = inner.map_or(stop, |quote| {
            let rest = bytes.get(stop + 1..).unwrap_or_default();
            rest.iter().position(|byte| byte == quote).map_or(stop, |end| stop + 1 + end)
        });
        // The quote that opened before the word closes behind it, and opens no other.
        let closes = opening.is_none()
            && start > 0
            && bytes
                .get(start - 1)
                .filter(|byte| quote(byte))
                .is_some_and(|open| bytes.get(stop) == Some(open));
        self.at = stop + usize::from(opening.is_some() || inner.is_some() || closes);
        let word = self.text.get(start..stop)?;
        // Of a list without quotes: `[redis-cli, -a, x]`.
        let word = if opening.is_none() { word.trim_end_matches([',', ']']) } else { word };
        Some((start..start + word.len(), word))
    }
}
