//! What an object holds that is secret by the name it stands under: `encryption: {key: x}`, `webhooks: [{url: x}]`.

use serde_json::Value;

use super::super::names::{self, Class};
use super::super::shape;
use super::{Place, Walk, is_secret_value};

impl Walk<'_> {
    /// The addresses of a webhook, or of those in a list: a random part in one opens it.
    pub(super) fn hooks(&mut self, hooks: &mut Value, depth: usize) {
        let hooks = match hooks {
            Value::Array(hooks) => hooks.as_mut_slice(),
            hook => std::slice::from_mut(hook),
        };
        for hook in hooks.iter_mut().filter_map(Value::as_object_mut) {
            for name in ["url", "uri", "endpoint"] {
                if let Some(link) = hook.get_mut(name)
                    && link.as_str().is_some_and(|text| text.contains("://") && shape::is_secret_link(text))
                {
                    self.seal(link, Place::Secret, depth);
                }
            }
        }
    }

    /// `key` below a name that makes a secret of it: `encryption: {key: x}`.
    pub(super) fn key_of_owner(&mut self, name: &str, value: &mut Value, depth: usize) {
        if let Value::Array(items) = value
            && names::classify(name) == Class::Key
        {
            // `admin_key: [{name: admin, key: x}]`.
            let keys = items.iter_mut().filter_map(|item| item.get_mut("key"));
            for key in keys.filter(|key| key.as_str().is_some_and(shape::is_key)) {
                self.seal(key, Place::Secret, depth);
            }
        }
        let Value::Object(inner) = value else { return };
        if let Some(value @ Value::Object(_)) = inner.get_mut("value") {
            return self.key_of_owner(name, value, depth);
        }
        if name.to_ascii_lowercase().ends_with("headers") {
            // What looks like a key in a header is one, but for what counts requests: `x-honeycomb-team: x`.
            for (header, value) in inner.iter_mut() {
                let id = names::words(header).iter().any(|word| {
                    matches!(word.as_str(), "id" | "etag" | "request" | "trace" | "digest" | "org" | "orgid")
                });
                if !id && value.as_str().is_some_and(|text| shape::is_key(text) && !text.contains(' ')) {
                    self.seal(value, Place::Secret, depth);
                }
            }
        }
        if names::is_environment(name) {
            // `extraSecretEnv: {FOO: x}`.
            for value in inner.values_mut() {
                if value.as_str().is_some_and(|text| shape::is_key(text) || shape::is_password(text)) {
                    self.seal(value, Place::Secret, depth);
                }
            }
        }
        let owner = name.to_ascii_lowercase();
        // `installationKey: {value: x}`; a salt whatever it looks like.
        if let Some(value) = inner.get_mut("value").filter(|value| value.is_string()) {
            let salt = owner.ends_with("salt");
            let class = if salt { Class::Secret } else { names::classify(name) };
            if salt || is_secret_value(name, class, value) {
                self.seal(value, Place::Secret, depth);
            }
        }
        if names::is_authentication(name) {
            // `digestAuth: {users: ["ada:realm:x"]}`.
            for (member, value) in
                inner.iter_mut().filter(|(member, _)| matches!(member.as_str(), "users" | "accounts"))
            {
                if is_secret_value(member, Class::Logon, value) {
                    self.seal(value, Place::Secret, depth);
                }
            }
        }
        // Of Rails, whose `primary_key` elsewhere names a column.
        let encrypts = owner.contains("encrypt");
        let is_key = |member: &str| {
            ["key", "keys", "salt"].iter().any(|known| member.eq_ignore_ascii_case(known))
                || encrypts && member == "primary_key"
        };
        if !inner.keys().any(|member| is_key(member)) {
            return;
        }
        // Beside what else a token is made with, whatever it looks like: `Jwt: {Key: x, Issuer: y}`.
        let signs = name == "encrypt"
            || matches!(names::words(name).concat().as_str(), "keyauth" | "apikey")
            || ["issuer", "audience", "cipher"].iter().any(|other| shape::member(inner, other).is_some());
        if ["name", "operator", "path", "effect", "secretName", "property"]
            .iter()
            .any(|other| inner.contains_key(*other))
        {
            return;
        }
        for (member, value) in inner.iter_mut().filter(|(member, _)| is_key(member)) {
            let class = names::classify(&format!("{name}.{member}"));
            let key = |item: &Value| item.as_str().is_some_and(shape::is_key);
            if class == Class::Secret && value.as_array().is_some_and(|items| items.iter().any(key)) {
                // `unseal: {keys: [x, y]}`.
                self.seal(value, Place::Secret, depth);
            }
            if let Value::String(text) = &*value
                && (shape::is_key(text) || class == Class::Secret && (signs || shape::is_password(text)))
                && (class != Class::Plain || encrypts)
            {
                self.seal(value, Place::Secret, depth);
            }
        }
    }
}
