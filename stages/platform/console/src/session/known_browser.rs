//! Browsers that somebody signed in by a password with before: what they try is counted apart from what is tried elsewhere, so that
//! whoever tries passwords of a name keeps nobody from their own browser.
//!
//! Nothing is kept of them. A browser holds an id, an end and their code, made with the hash of the password: nobody makes one without
//! having signed in, it is good for one name, and it is good no more with another password, or once its end has come.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use sha2::Sha256;
use stages_client::OwnCookie;
use stages_platform_store::Account;

use super::token;

/// A browser is known for so long after somebody signed in.
pub(crate) const LASTS: SignedDuration = SignedDuration::from_hours(180 * 24);

const PURPOSE: &str = "gitops-runtime: a browser that is known";

/// Where it is kept.
pub(crate) fn cookie(external: &str) -> OwnCookie {
    OwnCookie::new("known-browser", "/sign-in", external)
}

/// What a browser holds from now on that this user has signed in with.
pub(crate) fn fresh(user: &Account, now: Timestamp) -> Result<String, getrandom::Error> {
    let signed = format!("{}.{}", token::fresh()?, (now + LASTS).as_second());
    // There is a code of whoever has a password, and nobody else signs in by one.
    let code = code(&signed, user).map(|code| URL_SAFE_NO_PAD.encode(code.finalize().into_bytes()));
    Ok(format!("{signed}.{}", code.unwrap_or_default()))
}

/// The id of a browser by what it holds; `None`: this user never signed in with it, or it is over.
pub(crate) fn id_of<'c>(held: &'c str, user: &Account, now: Timestamp) -> Option<&'c str> {
    let (signed, told) = held.rsplit_once('.')?;
    let told = URL_SAFE_NO_PAD.decode(told).ok()?;
    code(signed, user)?.verify_slice(&told).ok()?;
    let (id, until) = signed.split_once('.')?;
    (now.as_second() < until.parse().ok()?).then_some(id)
}

fn code(signed: &str, Account { name, password, .. }: &Account) -> Option<Hmac<Sha256>> {
    // Anybody could make the code of an account without a password.
    let mut code =
        Hmac::<Sha256>::new_from_slice(password.as_bytes()).ok().filter(|_| !password.is_empty())?;
    for part in [PURPOSE, signed, name] {
        code.update(part.as_bytes());
        code.update(b"\n");
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use stages_platform_store::Role;

    use super::*;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    fn user(name: &str, password: &str) -> Account {
        Account { name: name.to_owned(), password: password.to_owned(), role: Role::Member }
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_900_000_000).unwrap()
    }

    #[test]
    fn a_browser_is_known_to_one_user_with_one_password() {
        let ada = user("ada", "$argon2id$one");
        let held = fresh(&ada, now()).unwrap();
        assert_eq!(id_of(&held, &ada, now()), held.split('.').next());
        assert_ne!(held, fresh(&ada, now()).unwrap());
        for other in [user("lin", "$argon2id$one"), user("ada", "$argon2id$two"), user("ada", "")] {
            assert_eq!(id_of(&held, &other, now()), None);
        }
        let without = user("mia", "");
        assert_eq!(id_of(&fresh(&without, now()).unwrap(), &without, now()), None);
        let (behind, before) = (held.split_at(1).1, held.split_at(held.len() - 4).0);
        for made_up in ["", ".", "A.", "A.A", "A..A", "A.9.A", behind, before, &format!("A{held}")] {
            assert_eq!(id_of(made_up, &ada, now()), None, "{made_up}");
        }
    }

    #[test]
    fn a_cookie_that_was_copied_ends_when_the_browsers_own_does() {
        let ada = user("ada", "$argon2id$one");
        let held = fresh(&ada, now()).unwrap();
        let end = now() + LASTS;
        assert!(id_of(&held, &ada, end - SECOND).is_some());
        assert_eq!(id_of(&held, &ada, end), None);
        // Nobody puts the end off, nor brings one from before it had an end.
        let parts: Vec<&str> = held.split('.').collect();
        let later = (end + LASTS).as_second().to_string();
        for made_up in [
            [parts[0], &later, parts[parts.len() - 1]].join("."),
            [parts[0], parts[parts.len() - 1]].join("."),
        ] {
            assert_eq!(id_of(&made_up, &ada, end), None, "{made_up}");
        }
    }
}
