//! What is wrong with the settings: all of it at once, each with the path of the setting and what to write
//! instead.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;

use super::units::{Size, Unit as _};

/// Where a value comes from, from the weakest to the strongest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `config/default.yaml`.
    Default,
    /// The file that was given.
    File(String),
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl Origin {
    /// Which of two stands above the other: ours above the incumbent's variables.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(_) => 1,
            Self::Variable(name) if !name.starts_with(super::environment::PREFIX) => 2,
            Self::Variable(_) => 3,
            Self::Flag(_) => 4,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File(path) => f.write_str(path),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The path of the setting, the name of a variable, or of a file.
    pub(crate) at: String,
    /// What is wrong, and what would be right. Never holds a secret.
    pub(crate) text: String,
    /// Who said so, when it is not the file.
    pub(crate) from: Option<Origin>,
    /// Nothing is wrong but that something is not given, which the environment may still give.
    pub(crate) missing: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "config: {}: {}", self.at, self.text)?;
        match &self.from {
            Some(from @ (Origin::Variable(_) | Origin::Flag(_))) => write!(f, " (from {from})"),
            _ => Ok(()),
        }
    }
}

/// Everything that is wrong; as text, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// Adds one.
    pub(crate) fn add(&mut self, at: impl Into<String>, text: impl Into<String>) {
        self.0.push(Problem { at: at.into(), text: text.into(), from: None, missing: false });
    }

    /// Adds one that a file, a variable or a flag said.
    pub(crate) fn said(&mut self, at: impl Into<String>, text: impl Into<String>, from: Origin) {
        self.0.push(Problem { at: at.into(), text: text.into(), from: Some(from), missing: false });
    }

    /// Adds one where two ways to say one thing are both taken.
    pub(crate) fn exclusive(&mut self, both: bool, at: &str, other: &str) {
        if both {
            self.add(at, format!("excludes {other}: give one of them"));
        }
    }

    /// Adds one where a token is given as it is and in a file.
    pub(crate) fn token(&mut self, group: &str, token: &Option<SecretString>, file: &Option<PathBuf>) {
        let both = token.is_some() && file.is_some();
        self.exclusive(both, &format!("{group}.token"), &format!("{group}.tokenFile"));
    }

    /// Adds one where a time is none.
    pub(crate) fn positive(&mut self, at: &str, time: Duration) {
        if time.is_zero() {
            self.add(at, "must be longer than 0");
        }
    }

    /// Adds one where bytes are fewer than `least`.
    pub(crate) fn at_least(&mut self, at: &str, bytes: &Size, least: &str) {
        if Size::read(least).is_ok_and(|least| bytes.0 < least.0) {
            self.add(at, format!("must be at least {least}"));
        }
    }

    /// Adds one where bytes are more than `most`.
    pub(crate) fn at_most(&mut self, at: &str, bytes: &Size, most: &str) {
        if Size::read(most).is_ok_and(|most| bytes.0 > most.0) {
            self.add(at, format!("must be at most {most}"));
        }
    }

    /// Adds one for something that is not given.
    pub(crate) fn missing(&mut self, at: impl Into<String>, text: impl Into<String>) {
        self.0.push(Problem { at: at.into(), text: text.into(), from: None, missing: true });
    }

    /// Leaves out what is only not given.
    pub(crate) fn without_missing(mut self) -> Self {
        self.0.retain(|problem| !problem.missing);
        self
    }

    /// The path and the text of each.
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0.into_iter().map(|problem| (problem.at, problem.text)).collect()
    }

    /// Whether something is wrong besides what is only not given.
    pub(crate) fn is_wrong(&self) -> bool {
        self.0.iter().any(|problem| !problem.missing)
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}")?;
        }
        let count = match self.0.len() {
            1 => "1 problem".to_owned(),
            many => format!("{many} problems"),
        };
        write!(f, "config: {count}; gitops-runtime config print shows every setting")
    }
}

impl std::error::Error for Problems {}

/// `; did you mean 'x'?` for the candidate that is nearest to `name`, or nothing when none is near.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    pipeline_doctor::nearest(name, candidates)
        .map_or_else(String::new, |candidate| format!("; did you mean '{candidate}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_no_far_one() {
        assert_eq!(did_you_mean("evnts", ["bytes", "events"]), "; did you mean 'events'?");
        assert_eq!(did_you_mean("QUEUE", ["queue"]), "; did you mean 'queue'?");
        assert_eq!(did_you_mean("banana", ["bytes", "events"]), "");
    }
}
