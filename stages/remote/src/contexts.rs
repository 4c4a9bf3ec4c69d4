//! The platforms that a person signed in to, and their keys: one file that nobody else may read.
//!
//! takes: a folder - gives: what stands in `contexts.yaml` there, and changes it as a whole, one process at a time
//! fails: when the file can be read by others, or says nothing that can be read

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pipeline_core::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use crate::environment::Environment;
use crate::error::RemoteError;

const FILE: &str = "contexts.yaml";
const LOCK: &str = "contexts.lock";
/// What is longer is no file of contexts.
const LONGEST: u64 = 1 << 20;
/// Contexts that are kept.
const MOST: usize = 200;

/// A platform that somebody signed in to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Context {
    /// What it is called here.
    pub(crate) name: String,
    /// Its address.
    pub(crate) platform: String,
    /// Who signed in.
    pub(crate) user: String,
    /// A file of authorities that are trusted beside the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Any certificate is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure: bool,
    /// Their API key.
    #[serde(serialize_with = "exposed")]
    pub(crate) key: SecretString,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one that is meant where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: Vec<Context>,
}

fn exposed<S: Serializer>(key: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.expose_secret())
}

fn file(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RemoteError {
    let path = path.to_path_buf();
    move |source| RemoteError::File { act, path, source }
}

fn folder(environment: &Environment) -> Result<&Path, RemoteError> {
    let none =
        || RemoteError::Missing("there is no place for contexts: set HOME or XDG_CONFIG_HOME".to_owned());
    environment.folder().ok_or_else(none)
}

impl Contexts {
    /// Reads them; where nobody signed in yet there are none.
    pub(crate) fn read(environment: &Environment) -> Result<Self, RemoteError> {
        let path = folder(environment)?.join(FILE);
        let opened = match File::open(&path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(file("read", &path)(error)),
        };
        let mode = opened.metadata().map_err(file("read", &path))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(RemoteError::Missing(format!(
                "{} holds keys and may be read by others (its mode is {mode:04o}): chmod 600 it, and take the keys in it back",
                path.display()
            )));
        }
        let mut text = String::new();
        opened.take(LONGEST).read_to_string(&mut text).map_err(file("read", &path))?;
        serde_saphyr::from_str(&text).map_err(|error| RemoteError::Contexts {
            line: error.location().map_or(0, |place| place.line()),
            path,
        })
    }

    /// Changes them, all or nothing, while nobody else does.
    pub(crate) fn change<T>(
        environment: &Environment,
        change: impl FnOnce(&mut Self) -> Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
        let folder = folder(environment)?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(file("make the folder", folder))?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.map_err(file("open", &path))?;
        lock.lock().map_err(file("lock", &path))?;
        let mut all = Self::read(environment)?;
        let done = change(&mut all)?;
        all.write(folder)?;
        Ok(done)
    }

    /// Writes them beside, and moves that into place: whoever reads meanwhile reads what was or what is.
    fn write(&self, folder: &Path) -> Result<(), RemoteError> {
        let text = serde_saphyr::to_string(self).map_err(|error| RemoteError::Format(error.into()))?;
        let (path, beside) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
        let written = || {
            let options =
                OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside);
            let mut beside = options?;
            // One that was left behind keeps the mode that it had.
            beside.set_permissions(Permissions::from_mode(0o600))?;
            beside.write_all(text.as_bytes())?;
            beside.sync_all()
        };
        written().map_err(file("write", &beside))?;
        std::fs::rename(&beside, &path).map_err(file("write", &path))
    }

    /// The one of that name.
    pub(crate) fn named(&self, name: &str) -> Result<&Context, RemoteError> {
        self.contexts.iter().find(|one| one.name == name).ok_or_else(|| self.unknown(name))
    }

    /// There is none of that name.
    pub(crate) fn unknown(&self, name: &str) -> RemoteError {
        let names: Vec<&str> = self.contexts.iter().map(|one| &*one.name).collect();
        RemoteError::Missing(match names.is_empty() {
            true => format!("there is no context '{name}': `gitops-runtime login URL` makes one"),
            false => format!("there is no context '{name}': there are {}", names.join(", ")),
        })
    }

    /// The one that is meant: named on the command line, else by the environment, else the current one.
    pub(crate) fn chosen(
        &self,
        given: Option<&str>,
        environment: &Environment,
    ) -> Result<&Context, RemoteError> {
        match given.or(environment.context.as_deref()).or(self.current.as_deref()) {
            Some(name) => self.named(name),
            None if self.contexts.is_empty() => Err(RemoteError::Missing(
                "nobody is signed in: `gitops-runtime login URL` signs you in to the platform at that address".to_owned(),
            )),
            None => Err(RemoteError::Missing(
                "no context is the current one: `gitops-runtime context use NAME` makes one so, or give --context"
                    .to_owned(),
            )),
        }
    }

    /// Adds one, or puts it in the place of the one of that name.
    pub(crate) fn put(&mut self, kept: Context) -> Result<(), RemoteError> {
        let same = self.contexts.iter().position(|one| one.name == kept.name);
        match same {
            Some(index) => self.contexts[index] = kept,
            None if self.contexts.len() >= MOST => {
                let text = format!("there are {MOST} contexts, and no more are kept: remove one");
                return Err(RemoteError::Missing(text));
            }
            None => self.contexts.push(kept),
        }
        self.contexts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn environment(folder: &Path) -> Environment {
        let folder = folder.display().to_string();
        Environment::of(|name| (name == "XDG_CONFIG_HOME").then(|| folder.clone()))
    }

    pub(crate) fn kept(name: &str) -> Context {
        Context {
            name: name.to_owned(),
            platform: "https://platform.example.com".to_owned(),
            user: "ada".to_owned(),
            ca_file: None,
            insecure: false,
            key: SecretString::from("goak_1: #\"'{"),
        }
    }

    #[test]
    fn what_is_kept_is_read_again_and_nobody_else_may_read_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let environment = environment(folder.path());
        assert!(Contexts::read(&environment).unwrap().contexts.is_empty());
        std::fs::create_dir(folder.path().join("gitops-runtime")).unwrap();
        let beside = folder.path().join("gitops-runtime/contexts.yaml.new");
        std::fs::write(&beside, "left behind").unwrap();
        Contexts::change(&environment, |all| all.put(kept("b"))).unwrap();
        Contexts::change(&environment, |all| all.put(kept("a"))).unwrap();
        let all = Contexts::read(&environment).unwrap();
        let names: Vec<&str> = all.contexts.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(all.contexts[0].key.expose_secret(), kept("a").key.expose_secret());
        let path = folder.path().join("gitops-runtime/contexts.yaml");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), beside.exists()), (0o600, false));
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let refused = Contexts::read(&environment).unwrap_err().line();
        let expected = format!(
            "{} holds keys and may be read by others (its mode is 0640): chmod 600 it, and take the keys in it back",
            path.display()
        );
        assert_eq!(refused, expected);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_without_its_content() {
        let folder = tempfile::TempDir::new().unwrap();
        let environment = environment(folder.path());
        Contexts::change(&environment, |all| all.put(kept("a"))).unwrap();
        let path = folder.path().join("gitops-runtime/contexts.yaml");
        std::fs::write(&path, "contexts:\n- name: a\n  key: [goak_canary\n").unwrap();
        let error = Contexts::read(&environment).unwrap_err();
        assert!(!error.line().contains("canary"), "{}", error.line());
        assert!(error.line().contains("is no file of contexts"), "{}", error.line());
        assert!(Contexts::change(&environment, |all| all.put(kept("b"))).is_err(), "it is not written over");
    }

    #[test]
    fn many_who_sign_in_at_once_are_all_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let environment = environment(folder.path());
        std::thread::scope(|scope| {
            for number in 0..16 {
                let environment = &environment;
                scope.spawn(move || {
                    Contexts::change(environment, |all| all.put(kept(&format!("c{number}")))).unwrap();
                });
            }
        });
        assert_eq!(Contexts::read(&environment).unwrap().contexts.len(), 16);
    }
}
