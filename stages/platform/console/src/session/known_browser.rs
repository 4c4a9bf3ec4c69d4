//! Browsers that somebody signed in by a password with before: what they try is counted apart from what is tried elsewhere, so that
//! whoever tries passwords of a name keeps nobody from their own browser.
//!
//! Nothing is kept of them. A browser holds an id and its code, made with the hash of the password: nobody makes one without having
//! signed in, it is good for one name, and with another password it is good no more.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::SignedDuration;
use sha2::Sha256;
use stages_client::OwnCookie;

use super::token;
use crate::accounts::User;

/// A browser is known for so long after somebody signed in.
pub(crate) const LASTS: SignedDuration = SignedDuration::from_hours(180 * 24);

const PURPOSE: &str = "gitops-runtime: a browser that is known";

/// Where it is kept.
pub(crate) fn cookie(external: &str) -> OwnCookie {
    OwnCookie::new("known-browser", "/sign-in", external)
}

/// What a browser holds from now on that this user has signed in with.
pub(crate) fn fresh(user: &User) -> Result<String, getrandom::Error> {
    let id = token::fresh()?;
    // There is a code of whoever has a password, and nobody else signs in by one.
    let code = code(&id, user).map(|code| URL_SAFE_NO_PAD.encode(code.finalize().into_bytes()));
    Ok(format!("{id}.{}", code.unwrap_or_default()))
}

/// The id of a browser by what it holds; `None`: this user never signed in with it.
pub(crate) fn id_of<'c>(held: &'c str, user: &User) -> Option<&'c str> {
    let (id, told) = held.split_once('.')?;
    let told = URL_SAFE_NO_PAD.decode(told).ok()?;
    code(id, user)?.verify_slice(&told).ok().map(|()| id)
}

fn code(id: &str, User { name, password }: &User) -> Option<Hmac<Sha256>> {
    // Anybody could make the code of an account without a password.
    let mut code =
        Hmac::<Sha256>::new_from_slice(password.as_bytes()).ok().filter(|_| !password.is_empty())?;
    for part in [PURPOSE, id, name] {
        code.update(part.as_bytes());
        code.update(b"\n");
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_known_to_one_user_with_one_password() {
        let user = |name: &str, password: &str| User { name: name.to_owned(), password: password.to_owned() };
        let ada = user("ada", "$argon2id$one");
        let held = fresh(&ada).unwrap();
        assert_eq!(id_of(&held, &ada), held.split('.').next());
        assert_ne!(held, fresh(&ada).unwrap());
        for other in [user("lin", "$argon2id$one"), user("ada", "$argon2id$two"), user("ada", "")] {
            assert_eq!(id_of(&held, &other), None);
        }
        let without = user("mia", "");
        assert_eq!(id_of(&fresh(&without).unwrap(), &without), None);
        let (behind, before) = (held.split_at(1).1, held.split_at(held.len() - 4).0);
        for made_up in ["", ".", "A.", "A.A", behind, before, &format!("A{held}")] {
            assert_eq!(id_of(made_up, &ada), None, "{made_up}");
        }
    }
}
