//! The repositories, each by a fixed recipe.

use std::path::Path;

use super::maker::{Entry, Kind, Maker};

const MANIFEST: &[u8] = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n";
/// Of directories in each other.
const LEVELS: usize = 10_000;
/// Files and directories that stand in trees where they would do harm if anybody wrote them out.
pub(super) const BAIT: [&str; 3] = ["bait.yaml", "bait-hook", "bait-link"];

/// What is to come of a question about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// An answer, in which all that is dangerous is a name; or, of a version, a refusal that ends with one of these.
    Answers(&'static [&'static str]),
    /// A refusal that ends with this.
    Refusal(&'static str),
}

/// A repository that was made to do harm.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) expected: Expected,
    /// The paths of applications that are asked about.
    pub(super) paths: Vec<String>,
    make: fn(&Maker, &Ground<'_>) -> anyhow::Result<String>,
}

/// Where it stands.
pub(super) struct Ground<'a> {
    /// The address of the server that serves it.
    pub(super) url: &'a str,
    /// A file of this machine that nobody may ever read.
    pub(super) secret: &'a Path,
    /// Bytes of the large file.
    pub(super) large: u64,
}

impl Recipe {
    /// All of them.
    pub(super) fn all() -> Vec<Self> {
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let deepest = vec!["d"; LEVELS].join("/");
        vec![
            Self {
                name: "names",
                about: "a newline, an escape and a tabulator in paths, and 4,000 bytes of one name",
                expected: Expected::Answers(&[]),
                paths: paths(&["", "a\nb", "-rf", "$(id)"]),
                make: names,
            },
            Self {
                name: "dot-git",
                about: ".git with hooks and a configuration, and ..",
                expected: Expected::Answers(&[]),
                paths: paths(&["", ".git", "..", "../..", ".git/hooks"]),
                make: dot_git,
            },
            Self {
                name: "links",
                about: "links that lead out, upwards, to each other and to themselves",
                expected: Expected::Answers(&[
                    "leads out of the repository",
                    "is behind more than 8 symbolic links",
                ]),
                paths: paths(&["", "up", "absolute", "round", "self", "chart"]),
                make: links,
            },
            Self {
                name: "large",
                about: "a file of zeros, a thousandth of its size on the wire",
                expected: Expected::Refusal(
                    "bytes, and no more than 104857600 are taken: raise the setting repositories.objectSize if there is memory for it",
                ),
                paths: paths(&["", "app"]),
                make: large,
            },
            Self {
                name: "deep",
                about: "10,000 directories in each other",
                expected: Expected::Answers(&[]),
                paths: vec![String::new(), "d".to_owned(), deepest],
                make: deep,
            },
            Self {
                name: "submodules",
                about: "submodules that hold each other, and themselves",
                expected: Expected::Answers(&["is in a submodule, which is another repository"]),
                paths: paths(&["", "own", "own/own", "other/own"]),
                make: submodules,
            },
        ]
    }

    /// Whether it is told of.
    pub(super) fn is_answered(&self) -> bool {
        matches!(self.expected, Expected::Answers(_))
    }

    /// Makes it in a folder: a commit that is plain, and one that is not. Gives the newer one.
    pub(super) fn make(&self, folder: &Path, ground: &Ground<'_>) -> anyhow::Result<String> {
        let maker = Maker::new(folder, self.name)?;
        let plain = maker.file(MANIFEST)?;
        maker.commit(&maker.tree(&[(Kind::File, "thing.yaml", &plain)])?)?;
        let tree = (self.make)(&maker, ground)?;
        maker.commit(&tree)
    }
}

fn names(maker: &Maker, _: &Ground<'_>) -> anyhow::Result<String> {
    let manifest = maker.file(MANIFEST)?;
    let inner = maker.tree(&[(Kind::File, "c\nd.yaml", &manifest), (Kind::File, "thing.yaml", &manifest)])?;
    let long = "n".repeat(4_000);
    let files = [
        "thing.yaml",
        "new\nline.yaml",
        "\u{1b}[31mred.yaml",
        "tab\t.yaml",
        "\"quoted\".yaml",
        long.as_str(),
    ];
    let files = files.map(|name| (Kind::File, name, manifest.as_str()));
    let directories = ["a\nb", "-rf", "$(id)", " "].map(|name| (Kind::Directory, name, inner.as_str()));
    maker.tree(&[&files[..], &directories].concat())
}

fn dot_git(maker: &Maker, _: &Ground<'_>) -> anyhow::Result<String> {
    let manifest = maker.file(MANIFEST)?;
    let hook = maker.file(b"#!/bin/sh\ntouch bait-hook\n")?;
    let config = maker.file(b"[core]\n\tfsmonitor = touch bait-hook\n\tsshCommand = touch bait-hook\n")?;
    let hooks = maker.tree(&[(Kind::File, "bait-hook", &hook), (Kind::File, "post-checkout", &hook)])?;
    let git = maker.tree(&[
        (Kind::File, "config", &config),
        (Kind::Directory, "hooks", &hooks),
        (Kind::File, "bait.yaml", &manifest),
    ])?;
    let up = maker.tree(&[(Kind::File, "bait.yaml", &manifest), (Kind::Directory, "..", &git)])?;
    let more = [".GIT", "git~1"].map(|name| (Kind::Directory, name, git.as_str()));
    let plain: [Entry<'_>; 4] = [
        (Kind::Directory, "..", &up),
        (Kind::Directory, ".", &up),
        (Kind::Directory, ".git", &git),
        (Kind::File, "thing.yaml", &manifest),
    ];
    maker.tree(&[&plain[..], &more].concat())
}

fn links(maker: &Maker, ground: &Ground<'_>) -> anyhow::Result<String> {
    let manifest = maker.file(MANIFEST)?;
    let secret = ground.secret.to_string_lossy();
    let absolute = maker.file(secret.as_bytes())?;
    let folder = maker.file(ground.secret.parent().unwrap_or(ground.secret).to_string_lossy().as_bytes())?;
    let up = maker.file(format!("../../../../../../../..{secret}").as_bytes())?;
    let to = |path: &str| maker.file(path.as_bytes());
    let (round, back, itself) = (to("back")?, to("round")?, to("self")?);
    let values = maker.file(b"a: 1\n")?;
    let chart_file = maker.file(b"apiVersion: v2\nname: x\nversion: 1.0.0\nappVersion: \"1\"\n")?;
    let chart = maker.tree(&[
        (Kind::File, "Chart.yaml", &chart_file),
        (Kind::Link, "Chart.lock", &up),
        (Kind::Link, "requirements.yaml", &absolute),
        (Kind::Link, "templates", &folder),
        (Kind::File, "values.yaml", &values),
    ])?;
    maker.tree(&[
        (Kind::Link, "absolute", &folder),
        (Kind::Link, "bait-link", &absolute),
        (Kind::Link, "bait.yaml", &up),
        (Kind::Link, "back", &back),
        (Kind::Directory, "chart", &chart),
        (Kind::Link, "round", &round),
        (Kind::Link, "self", &itself),
        (Kind::File, "thing.yaml", &manifest),
        (Kind::Link, "up", &to("../../..")?),
    ])
}

fn large(maker: &Maker, ground: &Ground<'_>) -> anyhow::Result<String> {
    let (manifest, zeros) = (maker.file(MANIFEST)?, maker.zeros(ground.large)?);
    let app = maker.tree(&[(Kind::File, "large.yaml", &zeros), (Kind::File, "thing.yaml", &manifest)])?;
    maker.tree(&[(Kind::Directory, "app", &app)])
}

fn deep(maker: &Maker, _: &Ground<'_>) -> anyhow::Result<String> {
    let manifest = maker.file(MANIFEST)?;
    let inner = maker.tree(&[(Kind::File, "thing.yaml", &manifest)])?;
    maker.nested(inner, LEVELS)
}

fn submodules(maker: &Maker, ground: &Ground<'_>) -> anyhow::Result<String> {
    let manifest = maker.file(MANIFEST)?;
    let url = ground.url;
    let modules = format!(
        "[submodule \"own\"]\n\tpath = own\n\turl = {url}/submodules.git\n[submodule \"other\"]\n\tpath = other\n\turl = \
         {url}/others.git\n[submodule \"up\"]\n\tpath = ../bait.yaml\n\turl = --upload-pack=touch bait-hook\n"
    );
    let modules = maker.file(modules.as_bytes())?;
    let id = "7".repeat(40);
    maker.tree(&[
        (Kind::File, ".gitmodules", &modules),
        (Kind::Submodule, "other", &id),
        (Kind::Submodule, "own", &id),
        (Kind::File, "thing.yaml", &manifest),
    ])
}
