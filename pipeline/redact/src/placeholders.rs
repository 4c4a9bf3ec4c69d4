//! What is filled in elsewhere: `${X}`, `$(X)`, `{{ .X }}`, `<password>`, `%s`.

use std::ops::Range;

use serde_json::Value;

use super::names;

/// Bytes of the longest text that is read as placeholders: the end of each is searched for in the rest of it.
const LONGEST: usize = 4096;

/// Whether placeholders are all that could be secret in `text`: nothing stands beside them but signs, a scheme, and
/// what URLs and names are made of when they stand for neither user nor password.
pub(super) fn fill_all(text: &str) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    let mut any = false;
    while at < text.len() {
        match one(text, at) {
            Some(end) => {
                any = true;
                rest.push(' ');
                at = end;
            }
            None => {
                let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { return false };
                rest.push(letter);
                at += letter.len_utf8();
            }
        }
    }
    any && rest.split(|letter: char| !letter.is_alphanumeric()).all(is_frame)
}

/// Whether `text` is nothing but pairs of a name and a value, and placeholders stand where a name says secret:
/// `host=db password={{ .password }}`.
pub(super) fn fill_pairs(text: &str) -> bool {
    if !text.contains('=') || !["{{", "${", "$("].iter().any(|open| text.contains(open)) {
        return false;
    }
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if let Some(end) = one(text, at) {
            rest.push('\0');
            at = end;
        } else {
            let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { return false };
            rest.push(letter);
            at += letter.len_utf8();
        }
    }
    let filled =
        |value: &str| !value.is_empty() && value.trim_matches(['"', '\'']).bytes().all(|byte| byte == 0);
    let harmless = |part: &str| {
        part.split_once('=').is_some_and(|(name, value)| match names::classify(name) {
            names::Class::Plain => {
                filled(value)
                    || !value.contains("://")
                        && !super::shape::is_key(value)
                        && !super::shape::is_password(value)
            }
            _ => filled(value),
        })
    };
    let mut parts = rest.split([';', ' ', '\n']).filter(|part| !part.is_empty());
    rest.contains('\0') && parts.all(harmless)
}

/// Whether `text` is JSON with templates in it, and no member of it holds a secret of its own:
/// `{"auths":{"ghcr.io":{"auth":"{{ .auth }}"}}}`.
pub(super) fn fill_members(text: &str) -> bool {
    if !text.starts_with('{') || text.starts_with("{{") || !text.contains("{{") {
        return false;
    }
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let template = text.get(at..).is_some_and(|rest| rest.starts_with("{{"));
        if let Some(end) = template.then(|| one(text, at)).flatten() {
            rest.push_str("${X}");
            at = end;
        } else {
            rest.push(letter);
            at += letter.len_utf8();
        }
    }
    super::tree::json(&rest).is_ok_and(|tree| is_filled("", &tree, 0))
}

/// Whether everything is filled in but what says whose or where it is.
fn is_filled(name: &str, value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(map) => depth < 8 && map.iter().all(|(name, value)| is_filled(name, value, depth + 1)),
        Value::String(text) => {
            let told =
                ["username", "user", "email", "type", "kind", "host", "registry", "region", "serveraddress"];
            fill_all(text)
                || told.contains(&name) && !super::shape::is_key(text) && !super::shape::is_password(text)
        }
        value => value.is_boolean() || value.is_null(),
    }
}

/// Words that stand beside placeholders and are no secret.
fn is_frame(word: &str) -> bool {
    word.len() <= 2
        || [
            "bearer", "basic", "token", "base64", "sha256", "http", "https", "secret", "password", "key",
            "user", "admin", "apikey", "local", "svc", "com", "default",
        ]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// The end of the placeholder that begins at `at`.
pub(super) fn one(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let range = |open: &str, close: &str| -> Option<Range<usize>> {
        let inner = rest.strip_prefix(open)?;
        inner.find(close).map(|end| open.len()..open.len() + end)
    };
    if rest.starts_with("{{") {
        let inner = range("{{", "}}")?;
        let text = rest.get(inner.clone())?;
        let after = at + inner.end + 2;
        return template(text).then_some(
            after + usize::from(rest.get(inner.end + 2..).is_some_and(|rest| rest.starts_with('}'))),
        );
    }
    if rest.starts_with("$${") || rest.starts_with("$$(") {
        // Escaped from who fills in the others.
        return one(text, at + 1);
    }
    if let Some(inner) = rest.strip_prefix("${{") {
        return inner.find("}}").map(|end| at + 3 + end + 2);
    }
    if rest.starts_with("${") || rest.starts_with("#{") || rest.starts_with("%{") || rest.starts_with("@{") {
        let inner = balanced(rest, 2)?;
        // Of FreeRADIUS: `%{control:User-Password}`, `%{1}`, `${.module}`; of a store of Telegraf: `@{store:token}`.
        let attribute = |text: &str| {
            let text = text.trim_start_matches('.');
            !text.is_empty()
                && (text.bytes().all(|byte| byte.is_ascii_digit())
                    || (rest.starts_with("%{") || rest.starts_with("@{"))
                        && text.split(':').count() == 2
                        && text.split(':').all(name))
        };
        if rest.get(2..inner).is_some_and(attribute) {
            return Some(at + inner + 1);
        }
        return variable(rest.get(2..inner)?.trim_start_matches('.')).then_some(at + inner + 1);
    }
    if rest.starts_with("$(") {
        let end = rest.find(')')?;
        let inner = rest.get(2..end)?;
        return (!inner.contains("echo ") && !inner.contains("printf ")).then_some(at + end + 1);
    }
    if let Some(inner) = range("$__", "}").filter(|_| {
        rest.starts_with("$__file{") || rest.starts_with("$__env{") || rest.starts_with("$__vault{")
    }) {
        return Some(at + inner.end + 1);
    }
    if let Some(inner) = range("%env(", ")%") {
        return Some(at + inner.end + 2);
    }
    if let Some(inner) = range("{.", "}").and_then(|inner| rest.get(inner)) {
        // A path of JSONPath: `{.data['password']}`.
        let path = inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-[]'\"@*".contains(&byte));
        return (path && !inner.is_empty() && !super::keys::holds_random(inner))
            .then_some(at + 2 + inner.len() + 1);
    }
    if let Some(inner) = rest.strip_prefix('(') {
        // `(known after apply)`, `(sensitive value)`.
        let told = ["known after apply)", "sensitive value)", "sensitive)", "write-only attribute)"];
        if let Some(told) = told.iter().find(|told| inner.starts_with(**told)) {
            return Some(at + 1 + told.len());
        }
    }
    if rest.starts_with("%(") {
        let end = rest.find(')')?;
        return name(rest.get(2..end)?).then_some(
            at + end + 1 + usize::from(rest.get(end + 1..).is_some_and(|rest| rest.starts_with(['s', 'd']))),
        );
    }
    if rest.starts_with('<') && !rest.starts_with("<<") && !rest.starts_with("<%") {
        let end = rest.find('>')?;
        let inner = rest.get(1..end)?;
        let words = inner.len() <= 128
            && inner.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && inner.chars().all(|letter| letter.is_ascii_alphanumeric() || " -_.:/#|'%,".contains(letter));
        return words.then_some(at + end + 1);
    }
    if let Some(inner) = range("[[", "]]").filter(|inner| {
        rest.get(inner.clone()).is_some_and(|inner| name(inner.trim().trim_start_matches('.')))
    }) {
        return Some(at + inner.end + 2);
    }
    for (open, close) in [
        ("((", "))"),
        ("<<", ">>"),
        ("<%=", "%>"),
        ("<%", "%>"),
        ("$[", "]"),
        ("%%", "%%"),
        ("@@", "@@"),
        ("@", "@"),
        ("%", "%"),
        ("__", "__"),
        ("!{", "}"),
        ("{", "}"),
        ("~~", "~~"),
        ("[", "]"),
    ] {
        // Of a variable with a default, `${X:secret}`, it is the name and what it falls back to.
        let falls_back = open == "{"
            && at
                .checked_sub(1)
                .and_then(|before| text.as_bytes().get(before))
                .is_some_and(|sign| b"$#%@".contains(sign));
        if let Some(inner) = range(open, close).filter(|_| !falls_back)
            && rest.get(inner.clone()).is_some_and(|inner| {
                let inner = inner.trim();
                // `<%= node['db']['password'] %>`.
                let read = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@[]'\":".contains(&byte);
                let expression = open.starts_with("<%")
                    && (super::shape::is_expression(inner) || inner.contains('[') && inner.bytes().all(read));
                let loud = open != "[" || inner.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
                loud && (expression || name(inner.rsplit(['/', ':']).next().unwrap_or(inner)))
                    && (open != "{" || inner.len() <= 40 && !is_made_up(inner))
                    && !inner.contains("__")
            })
        {
            return Some(at + inner.end + close.len());
        }
    }
    if let Some(inner) = rest.strip_prefix('$')
        && at == 0
        && inner.starts_with(|letter: char| letter.is_ascii_lowercase())
        && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
        && inner
            .rsplit(['.', ':'])
            .next()
            .is_some_and(|last| last.len() < inner.len() && names::classify(last) != names::Class::Plain)
    {
        // Argo CD's settings refer to keys of its Secret, or of another: `$dex.github.clientSecret`.
        return Some(text.len());
    }
    if let Some(inner) = rest.strip_prefix('$').map(|inner| inner.trim_end_matches(['"', '\'']))
        && inner.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'))
        && matches!(names::classify(inner), names::Class::Secret | names::Class::Link | names::Class::Scalar)
        && !["uper", "ecret", "trong", "imple"].iter().any(|sign| inner.starts_with(sign))
    {
        // Those of its notifications, and of PHP: `$slack-token`, `$dbpass`.
        return Some(at + 1 + inner.len());
    }
    if let Some(inner) = rest.strip_prefix('$')
        && inner.starts_with(|letter: char| letter.is_ascii_digit() || matches!(letter, '@' | '*'))
        && inner.as_bytes().get(1).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"$./,".contains(byte))
        && !at.checked_sub(1).and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_alphanumeric)
    {
        // What a script is called with: `$1`.
        return Some(at + 2);
    }
    if let Some(inner) = rest.strip_prefix('$') {
        let length = inner
            .bytes()
            .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
            .count();
        let bare =
            inner.as_bytes().get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'$');
        let begins = inner.starts_with(|letter: char| letter.is_ascii_uppercase() || letter == '_');
        return (begins && bare && length >= 2).then_some(at + 1 + length);
    }
    if let Some(inner) = rest.strip_prefix('%') {
        let letter = inner.chars().next()?;
        let alone = inner.chars().nth(1).is_none_or(|next| !next.is_ascii_alphanumeric());
        return ("sdvqx".contains(letter) && alone).then_some(at + 2);
    }
    None
}

/// Whether `text` is what a program reads elsewhere, and nothing in it is a literal but names: `get_token(user)`,
/// `config["secret"]`.
pub(super) fn is_read(text: &str) -> bool {
    let word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let path = |text: &str| text.split('.').all(word);
    let key = |text: &str| {
        let key = text.trim_matches(['"', '\'']);
        // `sys.argv[1]`, `tokens[user]`.
        let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        number
            || path(text)
            || text.len() == key.len() + 2
                && name(key)
                && !super::shape::is_key(key)
                && !super::shape::is_password(key)
    };
    if text.len() > 128 || !text.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_') {
        return false;
    }
    match (text.split_once('['), text.split_once('(')) {
        (Some((head, rest)), None) => {
            rest.strip_suffix(']').is_some_and(|rest| path(head) && rest.split("][").all(key))
        }
        (None, Some((head, rest))) => {
            let made = head.bytes().any(|byte| byte == b'_' || byte.is_ascii_uppercase());
            made && path(head) && rest.strip_suffix(')').is_some_and(|rest| rest.split(", ").all(path))
        }
        _ => false,
    }
}

/// The `}` that closes what is open at `from`.
fn balanced(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What stands in braces because ODBC has it so: `Password = {fig-tree-1}`.
fn is_made_up(inner: &str) -> bool {
    (inner.contains('-') && inner.bytes().any(|byte| byte.is_ascii_digit())
        || super::keys::holds_random(inner))
        && names::classify(inner) == names::Class::Plain
}

fn name(text: &str) -> bool {
    !text.is_empty()
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// A variable with what may stand behind its name: `X`, `X:-default`, `X:?message`. A default that could be a secret
/// makes it none.
fn variable(text: &str) -> bool {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"_.-/[]\"'() ".contains(&byte))
        .unwrap_or(text.len());
    let (head, tail) = text.split_at(end);
    let head = head.trim_end_matches('-');
    let argument = !head.is_empty() && head.bytes().all(|byte| byte.is_ascii_digit());
    if !argument && !head.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
        return false;
    }
    // `${X-default}`.
    if let Some((name, default)) = head
        .split_once('-')
        .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        && !name.is_empty()
    {
        return default.is_empty();
    }
    if tail.starts_with(":?") || tail.starts_with('?') || tail.is_empty() {
        return true;
    }
    // A store and a path in it: `${vault:secret/db#password}`, `${file:/run/x}`.
    if "vault file env secret secrets aws gcp azure ssm op sm consul k8s ENV secretManager directory dir configmaps \
        strimzidir strimzienv strimzifile strimzisecrets"
        .split(' ')
        .any(|store| store == head)
    {
        return true;
    }
    let default = tail.trim_start_matches([':', '-', '=', '+']);
    default.is_empty()
        || super::shape::is_harmless(default)
        || default.starts_with('#')
        || default.starts_with('%')
        || default.starts_with('|')
        || default.starts_with('@')
}

/// Whether a template holds no text that it could give as the value: `{{ "x" }}`, `{{ .a | default "x" }}` do.
fn template(text: &str) -> bool {
    let text = text.trim().trim_matches('-').trim();
    let literal = |text: &str| {
        let text = text.trim_start();
        text.starts_with(['"', '`']) && !text.starts_with("\"\"") && !text.starts_with("``")
    };
    // Of Jinja: `x | default('y')`.
    let falls_back = ["default('", "default(\""].iter().any(|open| {
        text.split_once(open).is_some_and(|(_, rest)| {
            let value = rest.split(['\'', '"']).next().unwrap_or_default();
            let mixed = value.bytes().any(|byte| byte.is_ascii_uppercase())
                && value.bytes().any(|byte| byte.is_ascii_digit())
                && value.bytes().any(|byte| byte.is_ascii_lowercase());
            mixed || super::shape::is_password(value) || super::shape::is_key(value)
        })
    });
    // Of Ansible, which hashes or encodes what stands before: `'x' | password_hash('sha512')`.
    let filtered =
        text.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).is_some_and(|(value, rest)| {
            let filter = rest.trim_start().strip_prefix('|').map_or("", str::trim_start);
            let makes = ["password_hash", "hash(", "b64encode"];
            !super::shape::is_harmless(value) && makes.iter().any(|known| filter.starts_with(known))
        });
    if falls_back || filtered {
        return false;
    }
    if literal(text) {
        return text.starts_with("\"{{") || text.contains("printf");
    }
    let behind =
        |word: &str| text.match_indices(word).any(|(at, _)| text.get(at + word.len()..).is_some_and(literal));
    !(text.len() <= 4096
        && (behind("default ") || behind("ternary ") || behind("coalesce ") || behind(":= ")))
}
