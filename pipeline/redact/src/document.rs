//! Texts that may be documents: raw manifests, files in ConfigMaps, values of Helm charts, annotations.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;

use super::tree::{self, Unreadable};
use super::walk::{DEPTH, Place, Walk, owned};
use super::{names, shape};

/// Texts within texts (JSON in an annotation in YAML in a ConfigMap ...).
const NESTED: usize = 6;

impl Walk<'_> {
    /// Redacts YAML or JSON text.
    pub(super) fn raw(mut self, text: &str) -> Result<Cow<'_, str>, Unreadable> {
        self.document(text, 0)
    }

    fn document<'t>(&mut self, text: &'t str, depth: usize) -> Result<Cow<'t, str>, Unreadable> {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        if trimmed.starts_with(['{', '['])
            && let Ok(mut value) = tree::json(text)
        {
            return Ok(match self.apart(|walk| walk.visit(&mut value, Place::Plain, depth + 1)) {
                true => Cow::Owned(value.to_string()),
                false => Cow::Borrowed(text),
            });
        }
        let mut documents = tree::yaml(text)?;
        if documents.iter().all(|document| !document.is_object() && !document.is_array()) {
            let manifest = self.nested == 0 && !documents.is_empty();
            if manifest || shape::mentions_secret(text) {
                return Err(Unreadable);
            }
            return Ok(self.redactor.text(text));
        }
        let sealed = (text.contains('&') && text.contains('*')).then(HashSet::new);
        let before = std::mem::replace(&mut self.sealed, sealed);
        let mut changed = self.apart(|walk| {
            for document in &mut documents {
                walk.visit(document, Place::Plain, depth + 1);
            }
            if let Some(sealed) = walk.sealed.take() {
                for document in &mut documents {
                    walk.sweep(document, &sealed, 0);
                }
            }
        });
        self.sealed = before;
        let comments = self.telling_comments(text);
        changed = changed || comments.is_some() || matches!(self.redactor.marked(text), Cow::Owned(_));
        if !changed {
            return Ok(Cow::Borrowed(text));
        }
        let mut new = tree::write_yaml(&documents);
        if let Some(comments) = comments {
            new.push_str(&format!("# withheld: comments ({})\n", self.redactor.digest(comments.as_bytes())));
        }
        Ok(Cow::Owned(new))
    }

    /// Runs `act` and says whether it changed anything.
    fn apart(&mut self, act: impl FnOnce(&mut Self)) -> bool {
        let before = std::mem::take(&mut self.changed);
        act(self);
        std::mem::replace(&mut self.changed, before)
    }

    /// The comments, if they hold a secret. Comments are found generously: a `#` inside a value counts too, which
    /// costs only a text that is written anew.
    fn telling_comments(&self, text: &str) -> Option<String> {
        if !text.contains('#') {
            return None;
        }
        let comments: String = text
            .lines()
            .filter_map(|line| {
                let start = line.match_indices('#').find(|(at, _)| {
                    line.get(..*at).is_some_and(|head| head.is_empty() || head.ends_with([' ', '\t']))
                })?;
                line.get(start.0 + 1..).map(|comment| format!("{comment}\n"))
            })
            .collect();
        let tell =
            shape::mentions_secret(&comments) || matches!(self.redactor.text(&comments), Cow::Owned(_));
        tell.then_some(comments)
    }

    /// Seals every text that equals one that was sealed elsewhere.
    fn sweep(&mut self, value: &mut Value, sealed: &HashSet<String>, depth: usize) {
        match value {
            Value::String(text) if sealed.contains(text) => {
                *value = Value::String(self.redactor.digest(text.as_bytes()));
                self.changed = true;
            }
            Value::Number(number) if sealed.contains(&number.to_string()) => {
                *value = Value::String(self.redactor.digest(number.to_string().as_bytes()));
                self.changed = true;
            }
            Value::Array(items) if depth < DEPTH => {
                items.iter_mut().for_each(|item| self.sweep(item, sealed, depth + 1));
            }
            Value::Object(map) if depth < DEPTH => {
                map.values_mut().for_each(|value| self.sweep(value, sealed, depth + 1));
                self.rename(map, |name| sealed.contains(name).then(|| name.to_owned()));
            }
            _ => {}
        }
    }

    /// A text: perhaps a document of its own, perhaps one in base64, else free text.
    pub(super) fn string(&mut self, text: &str, depth: usize) -> Option<String> {
        if text.len() < 4 {
            return None;
        }
        let opens = text.trim_start().starts_with(['{', '[']);
        let lines = text.trim_end().contains('\n') || opens || text.contains(": ");
        if lines && names::suspicious(text.as_bytes()) {
            return match self.nested_text(text, depth) {
                Ok(new) => owned(new),
                Err(Unreadable) if shape::mentions_secret(text) => Some(self.redactor.withheld(text)),
                Err(Unreadable) => owned(self.redactor.text(text)),
            };
        }
        if let Some(inner) = text_in_base64(text) {
            return self.string(&inner, depth + 1).map(|_| self.redactor.digest(text.as_bytes()));
        }
        owned(self.redactor.text(text))
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

/// The text that `text` encodes, where the whole of it is base64 of readable text.
fn text_in_base64(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let body = trimmed.trim_end_matches('=');
    if trimmed.len() < 20
        || !body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    {
        return None;
    }
    let bytes = STANDARD_NO_PAD.decode(body).ok()?;
    String::from_utf8(bytes).ok().filter(|inner| inner.contains(['=', ':', '.', '-', '{']))
}
