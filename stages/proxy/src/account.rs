//! Whoever asks, as the platform knows them.

use crate::error::ActError;

/// An account of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// For people to read. It may be somebody else's once this account is taken away.
    pub(crate) name: String,
    /// What no other account ever had; an older platform does not say it.
    pub(crate) uid: Option<String>,
}

impl Account {
    /// What is kept for this account alone is kept under this. There is no falling back to the name: it would give whoever has the name
    /// next what is kept under it.
    pub(crate) fn uid(&self) -> Result<&str, ActError> {
        self.uid.as_deref().filter(|uid| !uid.is_empty()).ok_or_else(|| {
            let name = &self.name;
            ActError::Refused(format!(
                "the platform tells the name '{name}' and not which account has it, and Git tokens are kept for accounts: upgrade the platform"
            ))
        })
    }

    /// Whether this one has a name now that another account had.
    pub(crate) fn follows(&self, name: &str, uid: &str) -> bool {
        self.name == name && self.uid.as_deref() != Some(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_account_that_the_platform_does_not_tell_apart_nothing_is_kept() {
        let told = |uid: Option<&str>| Account { name: "ada".to_owned(), uid: uid.map(str::to_owned) };
        assert_eq!(told(Some("1f")).uid().unwrap(), "1f");
        for uid in [None, Some("")] {
            let error = told(uid).uid().unwrap_err();
            let text = "the platform tells the name 'ada' and not which account has it, and Git tokens are kept for accounts: upgrade the platform";
            assert_eq!((error.to_string(), error.code()), (text.to_owned(), "FORBIDDEN"));
        }
    }
}
