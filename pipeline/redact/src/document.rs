//! Texts that may be documents: raw manifests, files in ConfigMaps, values of Helm charts, annotations.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::comments::Comments;
use super::packed::{self, Packed};
use super::scan::Found;
use super::splice::{Changes, GONE, Spliced, reads_as, splice_those};
use super::tree::{self, Unreadable};
use super::walk::{DEPTH, Place, Walk, owned};
use super::{keys, names, placeholders, prose, shape};

/// Texts within texts (JSON in an annotation in YAML in a ConfigMap ...).
const NESTED: usize = 6;

impl Walk<'_> {
    /// Redacts YAML or JSON text.
    pub(super) fn raw<'t>(&mut self, text: &'t str) -> Result<Cow<'t, str>, Unreadable> {
        self.document(text, 0)
    }

    /// Whether a text is a template of a manifest: YAML, once its placeholders are filled.
    pub(super) fn is_template(&self, text: &str) -> bool {
        let filled = without_templates(text, &mut Vec::new());
        text.trim_end().contains('\n')
            && tree::yaml(&filled).is_ok_and(|all| all.iter().any(|one| one.is_object() || one.is_array()))
    }

    fn document<'t>(&mut self, text: &'t str, depth: usize) -> Result<Cow<'t, str>, Unreadable> {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        if trimmed.starts_with(['{', '['])
            && let Ok(mut value) = tree::json(text)
        {
            let first = self.opens();
            let changed = self.apart(|walk| walk.visit(&mut value, Place::Plain, depth + 1));
            let new = changed.then(|| {
                let ends = [(true, self.fragments.len())];
                let new = self.spliced(text, std::slice::from_ref(&value), first, &ends);
                let new = new.filter(|new| matches!(self.redactor.marked(&new.text), Cow::Borrowed(_)));
                Cow::Owned(new.map_or_else(|| value.to_string(), |new| new.text))
            });
            self.closes();
            return Ok(new.unwrap_or(Cow::Borrowed(text)));
        }
        let mut filled = Vec::new();
        let mut documents = match tree::yaml(text) {
            Ok(documents) => documents,
            Err(_) if text.contains("{{") => tree::yaml(&without_templates(text, &mut filled))?,
            Err(unreadable) => return Err(unreadable),
        };
        if documents.iter().all(|document| !document.is_object() && !document.is_array()) {
            let manifest = self.nested == 0 && !documents.is_empty();
            if manifest || shape::mentions_secret(text) {
                return Err(Unreadable);
            }
            return Ok(self.free(text, depth));
        }
        self.tagged.extend(tagged(text).map(str::to_owned));
        let sealed = (text.contains('&') && text.contains('*')).then(HashSet::new);
        let before = std::mem::replace(&mut self.sealed, sealed);
        let first = self.opens();
        let several = documents.len() > 1;
        // Of each document, whether it changed, and how many fragments were kept when it was done.
        let mut which = vec![(false, first); documents.len()];
        let mut changed = self.apart(|walk| {
            for (number, (document, (which, end))) in documents.iter_mut().zip(&mut which).enumerate() {
                walk.number(number, several);
                *which = walk.apart(|walk| walk.visit(document, Place::Plain, depth + 1));
                *end = walk.fragments.len();
                walk.changed |= *which;
            }
            if let Some(sealed) = walk.sealed.take() {
                for (number, (document, (which, _))) in documents.iter_mut().zip(&mut which).enumerate() {
                    walk.number(number, several);
                    let swept = walk.apart(|walk| walk.sweep(document, &sealed, 0));
                    *which |= swept;
                    walk.changed |= swept;
                }
            }
        });
        self.sealed = before;
        self.number(0, false);
        let comments = Comments::of(text);
        let tell = comments.dumps().next().is_some() || !self.found(&comments.text, depth).is_empty();
        changed = changed || tell || matches!(self.redactor.marked(text), Cow::Owned(_));
        let spliced =
            (changed && filled.is_empty()).then(|| self.spliced(text, &documents, first, &which)).flatten();
        self.closes();
        if !changed {
            return Ok(Cow::Borrowed(text));
        }
        if let Some(new) = spliced.and_then(|new| self.without_told(new, &documents, depth))
            && matches!(self.redactor.marked(&new), Cow::Borrowed(_))
        {
            return Ok(Cow::Owned(new));
        }
        let mut new = tree::write_yaml(&documents);
        for (number, template) in filled.iter().enumerate() {
            new = new.replace(&stand_in(number), template);
        }
        if tell {
            self.note("comment");
            new.push_str(&format!(
                "# withheld: comments ({})\n",
                self.redactor.digest(comments.text.as_bytes())
            ));
        }
        Ok(Cow::Owned(new))
    }

    /// Begins to keep what is replaced in a document: from which fragment on.
    fn opens(&mut self) -> usize {
        if self.open == 0 {
            self.keeps = GONE;
        }
        self.open += 1;
        self.fragments.len()
    }

    /// What was kept of a document is of use to the one in which it stands, and to no other.
    fn closes(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.keeps = 0;
            self.fragments.clear();
        }
    }

    /// The text with what was replaced in its documents, and nothing else: `ends` says of each whether it changed, and
    /// where what was kept of it ends.
    fn spliced(
        &self,
        text: &str,
        documents: &[Value],
        first: usize,
        ends: &[(bool, usize)],
    ) -> Option<Spliced> {
        let starts = std::iter::once(first).chain(ends.iter().map(|(_, end)| *end));
        let changes = starts.zip(ends).map(|(start, (changed, end))| {
            let fragments = self.fragments.get(start..*end).unwrap_or_default();
            Changes { changed: *changed, fragments }
        });
        splice_those(text, documents, &changes.collect::<Vec<_>>())
    }

    /// The text without the secrets that its comments tell or repeat, each replaced where it stands. Nothing when that
    /// cannot be done, or would not read back as the same.
    fn without_told(&mut self, spliced: Spliced, documents: &[Value], depth: usize) -> Option<String> {
        let Spliced { text, gone } = spliced;
        let comments = Comments::of(&text);
        if comments.text.is_empty() {
            return Some(text);
        }
        if gone.iter().any(String::is_empty) || gone.iter().map(String::len).sum::<usize>() > GONE {
            return None;
        }
        let mut found = self.found(&comments.text, depth);
        found.extend(comments.dumps());
        found.extend(comments.repeat(&gone)?);
        if found.is_empty() {
            return Some(text);
        }
        found.sort_by_key(|found| found.range.start);
        let mut out = String::with_capacity(text.len() + found.len() * 64);
        let (mut done, mut told) = (0, 0);
        let mut places = Vec::new();
        for found in &found {
            // One that overlaps the last goes with what is left of it.
            let range = found.range.start.max(told)..found.range.end;
            if range.is_empty() {
                continue;
            }
            told = range.end;
            let place = comments.place(&range)?;
            out.push_str(text.get(done..place.start)?);
            out.push_str(&self.redactor.digest(comments.text.get(range)?.as_bytes()));
            done = place.end;
            places.push(Found::new(place, "comment"));
        }
        out.push_str(text.get(done..)?);
        if !reads_as(&out, documents) {
            return None;
        }
        if let Some(notes) = &mut self.notes {
            notes.lines(&text, &places);
        }
        Some(out)
    }

    /// Notes which document is looked at, of several that do not stand in another.
    fn number(&mut self, number: usize, several: bool) {
        if self.nested == 0
            && let Some(notes) = &mut self.notes
        {
            notes.document = several.then_some(number + 1);
        }
    }

    /// Runs `act` and says whether it changed anything.
    fn apart(&mut self, act: impl FnOnce(&mut Self)) -> bool {
        let before = std::mem::take(&mut self.changed);
        act(self);
        std::mem::replace(&mut self.changed, before)
    }

    /// Seals every text that equals one that was sealed elsewhere.
    fn sweep(&mut self, value: &mut Value, sealed: &HashSet<String>, depth: usize) {
        match value {
            Value::String(text) if sealed.contains(text) => {
                self.note("equal to a secret");
                *value = Value::String(self.redactor.digest(text.as_bytes()));
                self.changed = true;
            }
            Value::Number(number) if sealed.contains(&number.to_string()) => {
                self.note("equal to a secret");
                *value = Value::String(self.redactor.digest(number.to_string().as_bytes()));
                self.changed = true;
            }
            Value::Array(items) if depth < DEPTH => {
                for (number, item) in items.iter_mut().enumerate() {
                    self.step(|| number.to_string());
                    self.sweep(item, sealed, depth + 1);
                    self.back();
                }
            }
            Value::Object(map) if depth < DEPTH => {
                for (name, value) in map.iter_mut() {
                    self.step(|| name.clone());
                    self.sweep(value, sealed, depth + 1);
                    self.back();
                }
                self.rename(map, |name| sealed.contains(name).then(|| name.to_owned()));
            }
            _ => {}
        }
    }

    /// A text: perhaps a document of its own, perhaps one that is encoded or packed, else free text.
    pub(super) fn string(&mut self, text: &str, depth: usize) -> Option<String> {
        if text.len() < 4 {
            return None;
        }
        let opens = text.trim_start().starts_with(['{', '[']);
        let flow = || shape::ends_in_flow(text) && (text.contains(": {") || text.contains(": ["));
        let lines = text.trim_end().contains('\n') || opens || flow();
        if lines
            && names::suspicious(text.as_bytes())
            && !packed::is_encoded(text)
            && !prose::is_message(text)
            && !is_assigned(text)
        {
            return match self.nested_text(text, depth) {
                Ok(new) => owned(new),
                Err(Unreadable) if shape::mentions_secret(text) && !is_fenced(text) => {
                    self.note("unreadable");
                    Some(self.redactor.withheld(text))
                }
                Err(Unreadable) => owned(self.free(text, depth)),
            };
        }
        if self.holds_secret(text, depth) {
            self.note("encoded");
            let digest = self.redactor.digest(text.as_bytes());
            self.keep(text, &digest);
            return Some(digest);
        }
        owned(self.free(text, depth))
    }

    /// Whether `text` is base64, of whatever alphabet and however wrapped, of something that holds a secret.
    fn holds_secret(&mut self, text: &str, depth: usize) -> bool {
        if self.nested >= NESTED || depth > DEPTH / 2 {
            return packed::is_encoded(text) && text.len() > 64;
        }
        match packed::unpack(text, &mut self.unpack) {
            Packed::No => false,
            Packed::TooLarge => true,
            Packed::Text(inner) => {
                self.nested += 1;
                let (notes, kept) = (self.notes.take(), self.fragments.len());
                let changed = self.apart(|walk| walk.changed = walk.string(&inner, depth + 1).is_some());
                self.notes = notes;
                self.fragments.truncate(kept);
                self.nested -= 1;
                changed
            }
        }
    }

    /// Free text; a text that quotes a whole Secret is withheld.
    pub(super) fn free<'t>(&mut self, text: &'t str, depth: usize) -> Cow<'t, str> {
        if shape::dumps_secret(text) {
            let fences = fences(text);
            if fences.len() > 1 {
                return match self.fenced(text, &fences, depth) {
                    Some(new) => Cow::Owned(new),
                    None => Cow::Borrowed(text),
                };
            }
            if is_manifests(text)
                && let Ok(new) = self.nested_text(text, depth)
            {
                return new;
            }
            self.note("quoted Secret");
            return Cow::Owned(self.redactor.withheld(text));
        }
        if let Some(plain) = packed::unquoted(text)
            && let Cow::Owned(new) = self.free(&plain, depth)
        {
            return Cow::Owned(new);
        }
        let found = self.found(text, depth);
        self.replace(text, &found)
    }

    /// A text of Markdown, of which each block of code is read by itself; nothing where nothing is secret.
    fn fenced(&mut self, text: &str, fences: &[Range<usize>], depth: usize) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut changed = false;
        for part in fences.iter().filter_map(|range| text.get(range.clone())) {
            let new = self.string(part, depth + 1);
            changed |= new.is_some();
            out.push_str(new.as_deref().unwrap_or(part));
        }
        changed.then_some(out)
    }

    /// What is secret in free text.
    fn found(&mut self, text: &str, depth: usize) -> Vec<Found> {
        let mut found = super::text::secrets(text, true);
        let mut more = Vec::new();
        let mut done = 0;
        for run in packed::runs(text) {
            if run.start < done {
                continue;
            }
            let next = found.partition_point(|found| found.range.end <= run.start);
            let known = found.get(next).is_some_and(|found| found.range.start < run.end);
            if !known && text.get(run.clone()).is_some_and(|inner| self.holds_secret(inner, depth + 1)) {
                done = packed::wrapped(text, &run);
                more.push(Found::new(run.start..done, "encoded"));
                continue;
            }
            let inner = text.get(run.clone()).filter(|_| !known).unwrap_or_default();
            for part in packed::segments(inner) {
                if inner.get(part.clone()).is_some_and(|inner| self.holds_secret(inner, depth + 1)) {
                    more.push(Found::new(run.start + part.start..run.start + part.end, "encoded"));
                }
            }
        }
        if text.contains('%') {
            for run in packed::escaped(text) {
                let (inner, places) = text.get(run.clone()).map(packed::unescape).unwrap_or_default();
                let known =
                    found.iter().any(|found| found.range.start < run.end && run.start < found.range.end);
                if known {
                    continue;
                }
                let twice = packed::is_escaped_twice(text.get(run.clone()).unwrap_or_default());
                let mut secrets = super::text::secrets(&inner, true);
                let mut places = places;
                if secrets.is_empty() && twice {
                    let (again, stood) = packed::unescape(&inner);
                    places = stood.iter().filter_map(|at| places.get(*at).copied()).collect();
                    secrets = super::text::secrets(&again, true);
                }
                for secret in secrets {
                    let place = |at: usize| places.get(at).map_or(run.end, |place| run.start + place);
                    more.push(Found::new(place(secret.range.start)..place(secret.range.end), "encoded"));
                }
            }
        }
        if !more.is_empty() {
            found.append(&mut more);
            found.sort_by_key(|found| found.range.start);
        }
        found
    }

    pub(super) fn nested_text<'t>(
        &mut self,
        text: &'t str,
        depth: usize,
    ) -> Result<Cow<'t, str>, Unreadable> {
        if self.nested >= NESTED || depth > DEPTH / 2 {
            return Ok(Cow::Owned(self.redactor.withheld(text)));
        }
        self.nested += 1;
        let mut new = self.document(text, depth);
        self.nested -= 1;
        if let Ok(Cow::Owned(new)) = &mut new
            && !text.ends_with('\n')
        {
            new.truncate(new.trim_end_matches('\n').len());
        }
        new
    }
}

/// The parts of a text that lines of three backquotes part, each fence a part of its own.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            parts.extend([from..at, at..at + line.len()]);
            from = at + line.len();
        }
        at += line.len();
    }
    parts.push(from..at);
    parts
}

/// Whether a text is settings that read as YAML by chance, their braces as its own: `general: {`, and below it `secret = "x"`.
fn is_assigned(text: &str) -> bool {
    let assigns = |line: &str| {
        line.trim_start().split_once('=').is_some_and(|(name, _)| {
            let name = name.trim_end();
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        })
    };
    let opens =
        |line: &str| line.trim_end().strip_suffix('{').is_some_and(|head| head.trim_end().ends_with(':'));
    // No line of such settings reads `c: |`, `- x` or `name: x`.
    let known = |line: &str| {
        let line = line.trim();
        let within = line.split_once(": {").is_some_and(|(_, rest)| rest.ends_with('}') && assigns(rest));
        line.is_empty()
            || line.starts_with(['#', '}', '{', ')', '('])
            || line.starts_with("//")
            || line.ends_with('{')
            || assigns(line)
            || within
    };
    text.contains('{')
        && text.lines().zip(text.lines().skip(1)).any(|(line, next)| opens(line) && assigns(next))
        && text.lines().all(known)
}

/// Whether a text is Markdown with blocks of code.
pub(super) fn is_fenced(text: &str) -> bool {
    text.contains("```") && fences(text).len() >= 5
}

/// Whether a text is manifests, and nothing else.
pub(super) fn is_manifests(text: &str) -> bool {
    let begins = ["apiVersion:", "kind:", "---", "{"].iter().any(|begin| text.starts_with(begin));
    let manifest = |one: &Value| one.get("apiVersion").is_some() && one.get("kind").is_some();
    begins && tree::yaml(text).is_ok_and(|all| all.iter().all(|one| one.is_null() || manifest(one)))
}

/// What tags refer to by name: what is kept in another file, given in the environment, or made by a template.
fn tagged(text: &str) -> impl Iterator<Item = &str> {
    let tags = [
        "secret",
        "env",
        "env_var",
        "ENV",
        "Env",
        "Ref",
        "GetAtt",
        "Sub",
        "ImportValue",
        "include",
        "file",
        "File",
        "KeyOf",
        "vault",
    ];
    text.match_indices(" !").filter_map(move |(at, sign)| {
        let line = text.get(at + sign.len()..)?.lines().next()?;
        let (tag, name) = line.split_once(' ')?;
        let name = name.split([',', '}']).next()?.split(" #").next()?.trim().trim_matches(['"', '\'']);
        // `!vault secret/app#password`.
        let path = tag == "vault" && name.contains('/') && !keys::holds_random(name);
        (tags.contains(&tag) && !name.is_empty() && (path || !shape::is_key(name))).then_some(name)
    })
}

/// What stands for the template of this number.
fn stand_in(number: usize) -> String {
    format!("__template_{number}__")
}

/// The text with a name in the place of each template, so that it reads as YAML; lines of templates alone are left
/// empty. A template that could give a text of its own gets a name that is no placeholder.
fn without_templates(text: &str, filled: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let inner = bare.strip_prefix("{{").and_then(|bare| bare.strip_suffix("}}"));
        if inner.is_some_and(|inner| !inner.contains("}}")) {
            out.push('\n');
            continue;
        }
        let mut rest = line;
        while let Some((head, tail)) = rest.split_once("{{") {
            let Some((template, after)) = tail.split_once("}}") else { break };
            out.push_str(head);
            let whole = format!("{{{{{template}}}}}");
            if placeholders::one(&whole, 0).is_some() {
                out.push_str(&stand_in(filled.len()));
                filled.push(whole);
            } else {
                out.push_str(&"template".repeat(2));
                out.push_str(&filled.len().to_string());
            }
            rest = after;
        }
        out.push_str(rest);
    }
    out
}
