//! One pass over a text says what stands in it that could be, or could name, a secret; the table's rows are then
//! searched in the runs that concern them, each once, and again behind what is no secret, as far as that stays linear: where
//! it would not, the rest of the run is taken for one. So the work is linear, whatever stands in the text.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use super::table::{Cut, ROWS};

/// A part of a text that is secret, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) range: Range<usize>,
    pub(crate) rule: &'static str,
}

impl Found {
    pub(crate) fn new(range: Range<usize>, rule: &'static str) -> Self {
        Self { range, rule }
    }
}

/// What a mark in a text is the beginning of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A match of this row.
    Row(usize),
    /// A part of a name that may say secret.
    Name,
    /// The `://` of a URL.
    Url,
    /// A PEM block.
    Pem,
    /// The scheme of an `Authorization`.
    Scheme,
    /// A program that takes secrets as arguments, or a flag that does whatever the program.
    Command,
    /// The word `value`, which is secret when the name beside it says so.
    Value,
    /// A statement that gives columns values.
    Insert,
    /// A word that speaks of logons, which may stand below.
    Logon,
    /// What opens a here-document.
    Here,
    /// A digest of ours.
    Digest,
}

/// Parts of names: every stem, weak word and owner of a key holds one (`names.rs`).
const NAMES: [&str; 109] = [
    "pass", "pwd", "pw", "psk", "pfx", "p12", "privk", "secr", "sig", "stringd", "tok", "totp", "otp", "key",
    "cred", "cook", "conn", "auth", "dsn", "dock", "bear", "jwt", "jks", "id_", "id-", "idrs", "salt",
    "hook", "ided", "idec", "licen", "pepper", "seed", "recov", "securej", "encrypt", "ycombt", "ycomb-t",
    "_pin", "-pin", "rpin", "_adm", "user_", "hmac", "ommunity", "sonar.l", "cal_user", "cleart", "clear-t",
    "clear_t", "ginpas", "mnemon", "kennw", "_pat", "-pat", "_api", "-api", "verifier", "users", "accounts",
    "ap_user", "dbroot", "bundle_", "kek", "pin:", "pin=", "pin\":", "pin to ", "pin is ", "pin of ",
    "pin for ", "pin_c", "pin-c", "pinc", ".pin", "pphrase", "p_phrase", "p-phrase", "contrase", "wachtw",
    "mdp", "senha", "heslo", "haslo", "hasł", "hasŁ", "salasana", "adgangsk", "senord", "jelsz", "parola",
    "geheimn", "gslt", "_priv", "hphrase", "vphrase", "preshare", "_sk", "unseal", "macaroon", "ion_code",
    "ite_code", "_iv", "n-verify", "n_verify", "api_h", "ock_code", "arm_code", "oor_code",
];

const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// What speaks of logons.
const LOGONS: [&str; 12] = [
    "[admins]",
    "[users]",
    "redential",
    "creds",
    "login",
    "log in",
    "logon",
    "log-in",
    "user:pass",
    "username:pass",
    "user/pass",
    "asic auth",
];

/// Bytes of a row's mark that are looked for, so that the automaton stays small.
const LONGEST: usize = 10;

static KINDS: LazyLock<(Vec<&'static str>, Vec<Mark>)> = LazyLock::new(|| {
    let mut texts = Vec::new();
    let mut marks = Vec::new();
    let mut add = |text: &'static str, mark: Mark| {
        texts.push(text);
        marks.push(mark);
    };
    for (number, row) in ROWS.iter().enumerate() {
        row.marks.iter().for_each(|text| add(text.get(..LONGEST).unwrap_or(text), Mark::Row(number)));
    }
    NAMES.iter().for_each(|text| add(text, Mark::Name));
    SCHEMES.iter().for_each(|text| add(text, Mark::Scheme));
    super::programs::marks().for_each(|text| add(text, Mark::Command));
    add("://", Mark::Url);
    add("-----begin ", Mark::Pem);
    add("private-lines:", Mark::Pem);
    add("insert into ", Mark::Insert);
    add("replace into ", Mark::Insert);
    LOGONS.iter().for_each(|text| add(text, Mark::Logon));
    add("<<", Mark::Here);
    add("value", Mark::Value);
    add(super::PREFIX, Mark::Digest);
    (texts, marks)
});

#[expect(clippy::expect_used, reason = "the marks are constants, which every test builds")]
fn automaton(texts: &[&str]) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(texts)
        .expect("an automaton of constant marks")
}

static MARKS: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(&KINDS.0));
static SUSPICIOUS: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(&NAMES));
static PATTERNS: [OnceLock<Regex>; ROWS.len()] = [const { OnceLock::new() }; ROWS.len()];

/// Whether anything in `text` could name a secret. What it lets through needs no closer look.
pub(crate) fn suspicious(text: &[u8]) -> bool {
    SUSPICIOUS.is_match(text)
}

/// Marks of one row between which nothing ends a run.
#[derive(Debug)]
struct Hits {
    row: usize,
    first: usize,
    last: usize,
    /// How long all of them are together.
    bytes: usize,
}

/// Where what stands in a text.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    rows: Vec<Hits>,
    pub(crate) names: Vec<usize>,
    pub(crate) urls: Vec<usize>,
    pub(crate) pems: Vec<usize>,
    pub(crate) schemes: Vec<usize>,
    pub(crate) commands: Vec<usize>,
    pub(crate) values: Vec<usize>,
    pub(crate) inserts: Vec<usize>,
    pub(crate) logons: Vec<usize>,
    pub(crate) heres: Vec<usize>,
    pub(crate) digests: Vec<usize>,
    /// Runs that go whole, unsearched.
    pub(crate) filled: Vec<Range<usize>>,
    /// Bytes that were handed to the automata.
    pub(crate) handed: usize,
}

impl Marks {
    /// Finds them, in one pass.
    pub(crate) fn of(text: &str) -> Self {
        let mut marks = Self { handed: text.len(), ..Self::default() };
        let mut latest = [usize::MAX; ROWS.len()];
        for hit in MARKS.find_overlapping_iter(text) {
            let at = hit.start();
            match KINDS.1.get(hit.pattern().as_usize()) {
                Some(Mark::Row(row)) => marks.row(text.as_bytes(), *row, hit.range(), &mut latest),
                Some(Mark::Name) => add(&mut marks.names, at),
                Some(Mark::Url) => marks.urls.push(at),
                Some(Mark::Pem) => marks.pems.push(at),
                Some(Mark::Scheme) => marks.schemes.push(at),
                Some(Mark::Command) => add(&mut marks.commands, at),
                Some(Mark::Value) => marks.values.push(at),
                Some(Mark::Insert) => marks.inserts.push(at),
                Some(Mark::Logon) => add(&mut marks.logons, at),
                Some(Mark::Here) => marks.heres.push(at),
                Some(Mark::Digest) => marks.digests.push(at),
                None => {}
            }
        }
        marks
    }

    /// Adds a mark of `row`: to those before it, as far as the run goes.
    fn row(&mut self, text: &[u8], row: usize, mark: Range<usize>, latest: &mut [usize; ROWS.len()]) {
        let at = mark.start;
        let (Some(cut), Some(latest)) = (ROWS.get(row).map(|row| row.cut), latest.get_mut(row)) else {
            return;
        };
        if let Some(hits) = self.rows.get_mut(*latest) {
            let between = text.get(hits.last + 1..at).unwrap_or_default();
            // A mark may begin with a byte that ends runs.
            if !between.iter().any(|byte| cut.ends(*byte)) {
                hits.first = hits.first.min(at);
                hits.last = hits.last.max(at);
                hits.bytes += mark.len();
                return;
            }
        }
        *latest = self.rows.len();
        self.rows.push(Hits { row, first: at, last: at, bytes: mark.len() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.names.is_empty()
            && self.urls.is_empty()
            && self.pems.is_empty()
            && self.schemes.is_empty()
            && self.commands.is_empty()
            && self.values.is_empty()
            && self.inserts.is_empty()
            && self.logons.is_empty()
            && self.heres.is_empty()
    }

    /// What the rows of the table find: each is searched once in each of the runs in which its marks stand.
    pub(crate) fn rows(&mut self, text: &str, found: &mut Vec<Found>) {
        if self.rows.is_empty() {
            return;
        }
        let mut done = [0; ROWS.len()];
        for hits in &self.rows {
            let (Some(row), Some(done)) = (ROWS.get(hits.row), done.get_mut(hits.row)) else { continue };
            let mut at = hits.first.max(*done);
            // What looks like one run is several where URLs stand in a row.
            while at <= hits.last {
                let run = around(text, at, *done, row.cut, &self.urls);
                if hits.fill(&run) {
                    found.push(Found::new(run.clone(), row.name));
                    self.filled.push(run.clone());
                } else {
                    found.extend(search(text, &run, hits, &mut self.handed));
                }
                at = run.end.max(at + 1);
                *done = at;
            }
        }
    }
}

/// Keeps `places` in order, each once. They come in the order of their ends, so little is out of order.
fn add(places: &mut Vec<usize>, at: usize) {
    let next = places.iter().rposition(|known| *known <= at).map_or(0, |before| before + 1);
    if next.checked_sub(1).and_then(|before| places.get(before)) != Some(&at) {
        places.insert(next, at);
    }
}

/// Bytes of the longest run in which groups are told from the whole match.
const GROUPS: usize = 4096;

impl Hits {
    /// Whether a long run is made of little but marks: nobody writes that but to make the search slow, so it goes whole,
    /// unsearched.
    fn fill(&self, run: &Range<usize>) -> bool {
        run.len() > GROUPS
            && run.contains(&self.first)
            && run.contains(&self.last)
            && self.bytes * 2 >= run.len()
    }
}

/// So often the length of a run is searched behind matches that are no secret; a long run once.
const PASSES: usize = 5;

/// Searches a row in one run.
fn search(text: &str, range: &Range<usize>, hits: &Hits, handed: &mut usize) -> Option<Found> {
    let run = text.get(range.clone())?;
    let pattern = pattern(hits.row)?;
    let row = ROWS.get(hits.row)?;
    let (mut from, mut searched) = (0, 0);
    let most = run.len() * if run.len() > GROUPS { 1 } else { PASSES };
    loop {
        searched += run.len() - from;
        if searched > most {
            // Nobody writes so many but to hide one behind them.
            let rest = hits.last >= range.start + from;
            return rest.then(|| Found::new(range.start + from..range.end, row.name));
        }
        *handed += run.len() - from;
        // Groups are dear to find: of a long run the whole match is taken.
        let (all, secret) = if run.len() > GROUPS {
            pattern.find_at(run.as_bytes(), from).map(|hit| (hit.range(), hit.range()))?
        } else {
            // Most runs match nothing, which is cheaper to tell than the groups.
            pattern.find_at(run.as_bytes(), from)?;
            let groups = pattern.captures_at(run.as_bytes(), from)?;
            let whole = groups.get(0)?;
            let secret = (1..groups.len()).find_map(|group| groups.get(group)).unwrap_or(whole);
            (whole.range(), secret.range())
        };
        let told = |text: &str| {
            super::shape::is_harmless(text) || super::shape::is_switch(text) || row.is_plain(text)
        };
        if run.get(secret.clone()).is_some_and(told) {
            from = secret.end.max(from + 1);
            if from >= run.len() {
                return None;
            }
            continue;
        }
        // Another may stand behind it: a row is searched once, so the rest of the run goes with it.
        let rest = hits.last >= range.start + all.end;
        let end = if rest { range.end } else { range.start + secret.end };
        return Some(Found::new(range.start + secret.start..end, row.name));
    }
}

fn pattern(number: usize) -> Option<&'static Regex> {
    let row = ROWS.get(number)?;
    #[expect(clippy::expect_used, reason = "the patterns are constants, which a test builds")]
    let build = || RegexBuilder::new(row.pattern).unicode(false).build().expect("a constant pattern");
    Some(PATTERNS.get(number)?.get_or_init(build))
}

/// For each byte, which runs end at it: 0 none, 1 those of words, 2 those of links too, 3 all.
const ENDS: [u8; 256] = {
    let mut ends = [0; 256];
    let (words, links) = (b",;()[]{}|&?#@!^", b" \t\n\x0c\r\"'`<>\\");
    let mut at = 0;
    while at < words.len() {
        ends[words[at] as usize] = 1;
        at += 1;
    }
    at = 0;
    while at < links.len() {
        ends[links[at] as usize] = 2;
        at += 1;
    }
    ends[b'\n' as usize] = 3;
    ends[b'\r' as usize] = 3;
    ends
};

impl Cut {
    /// Whether a run ends at this byte.
    fn ends(self, byte: u8) -> bool {
        let least = match self {
            Self::Word => 1,
            Self::Link => 2,
            Self::Line => 3,
        };
        ENDS.get(usize::from(byte)).is_some_and(|ends| *ends >= least)
    }
}

/// The run around `at`, which begins at `from` or later.
pub(crate) fn around(text: &str, at: usize, from: usize, cut: Cut, urls: &[usize]) -> Range<usize> {
    let bytes = text.as_bytes();
    let ends = |byte: &u8| cut.ends(*byte);
    let head = bytes.get(from..at).unwrap_or_default();
    let mut start = head.iter().rposition(ends).map_or(from, |found| from + found + 1);
    let mut limit = bytes.len();
    if cut == Cut::Link {
        // Of several URLs in a row each is a run of its own.
        let next = urls.partition_point(|url| *url <= at);
        if let Some(before) = next.checked_sub(1).and_then(|before| urls.get(before)) {
            start = start.max(scheme(bytes, *before, start));
        }
        if let Some(next) = urls.get(next).map(|next| scheme(bytes, *next, at + 1)) {
            limit = next.max(at + 1);
        }
    }
    let tail = bytes.get(at..limit).unwrap_or_default();
    // A mark may hold a byte that ends runs, such as its own quote.
    let end = tail.iter().skip(1).position(ends).map_or(limit, |found| at + 1 + found);
    start..end
}

/// Where the scheme of the URL begins whose `://` stands at `at`.
fn scheme(bytes: &[u8], at: usize, from: usize) -> usize {
    let head = bytes.get(from.max(at.saturating_sub(32)).min(at)..at).unwrap_or_default();
    let letters =
        head.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+.-:".contains(byte)).count();
    at - letters
}

#[cfg(test)]
mod tests;
