//! What a server says that it has: its protocol's version, its capabilities, and its branches and tags.

use git2::Oid;

use super::FetchError;
use super::connection::Connection;
use super::packet::{AGENT, Packet, delimiter, flush, line, text};

/// Branches and tags that are read of one repository.
const MOST_REFS: usize = 200_000;
/// Bytes of their names.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Other names that are passed over, such as those of pull requests: nothing of them is kept.
const MOST_OTHERS: usize = 2_000_000;
/// Characters of a name; git itself cannot keep longer ones in files.
const LONGEST: usize = 1_024;

/// A branch, a tag, or `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ref {
    pub(super) name: String,
    /// What it names: a commit, or the object of a tag.
    pub(super) target: Oid,
    /// The commit that a tag's object names.
    pub(super) peeled: Option<Oid>,
}

impl Ref {
    /// What a revision of this name means.
    pub(super) fn commit(&self) -> Oid {
        self.peeled.unwrap_or(self.target)
    }
}

/// How much a server named so far.
#[derive(Default)]
struct Named {
    /// Bytes of names that were asked for.
    bytes: usize,
    /// Names that were not.
    others: usize,
}

/// What a server says of a repository.
#[derive(Debug, Default)]
pub(super) struct Advertised {
    /// The second version of the protocol is spoken.
    pub(super) second: bool,
    /// Of the first version: what the server can do.
    pub(super) capabilities: Vec<String>,
    pub(super) refs: Vec<Ref>,
}

impl Advertised {
    /// Reads the greeting of a server, and asks for what begins with one of `prefixes` where it can be asked.
    pub(super) async fn read(connection: &mut Connection, prefixes: &[String]) -> Result<Self, FetchError> {
        let mut found = Self::default();
        let mut first = connection.packet().await?;
        if matches!(&first, Packet::Data(data) if data.starts_with(b"# service=")) {
            if connection.packet().await? != Packet::Flush {
                return Err(connection.broken("its greeting is not that of a Git server"));
            }
            first = connection.packet().await?;
        }
        if matches!(&first, Packet::Data(data) if text(data) == "version 2") {
            found.second = true;
            found.capabilities(connection).await?;
            return found.list(connection, prefixes).await;
        }
        let mut next = first;
        let mut so_far = Named::default();
        while let Packet::Data(data) = next {
            let of = text(&data);
            let of = match of.split_once('\0') {
                Some((of, capabilities)) => {
                    found.capabilities = capabilities.split(' ').map(str::to_owned).collect();
                    found.capabilities.iter().try_for_each(|of| check_format(connection, of))?;
                    of.to_owned()
                }
                None => of,
            };
            connection.check(&of)?;
            if of != "version 1" && !of.starts_with("shallow ") {
                found.named(connection, prefixes, &of, &mut so_far)?;
            }
            next = connection.packet().await?;
        }
        Ok(found)
    }

    /// The server of the first version has this capability.
    pub(super) fn has(&self, name: &str) -> bool {
        self.capabilities.iter().any(|of| of == name)
    }

    async fn capabilities(&mut self, connection: &mut Connection) -> Result<(), FetchError> {
        while let Packet::Data(data) = connection.packet().await? {
            let of = text(&data);
            check_format(connection, &of)?;
            if self.capabilities.len() < 256 {
                self.capabilities.push(of);
            }
        }
        Ok(())
    }

    async fn list(mut self, connection: &mut Connection, prefixes: &[String]) -> Result<Self, FetchError> {
        let mut request = Vec::new();
        line(&mut request, "command=ls-refs");
        line(&mut request, AGENT);
        delimiter(&mut request);
        line(&mut request, "peel");
        line(&mut request, "ref-prefix HEAD");
        for prefix in prefixes {
            line(&mut request, &format!("ref-prefix {prefix}"));
        }
        flush(&mut request);
        connection.send(request).await?;
        let mut so_far = Named::default();
        loop {
            match connection.packet().await? {
                Packet::Data(data) => {
                    let of = text(&data);
                    connection.check(&of)?;
                    self.named(connection, prefixes, &of, &mut so_far)?;
                }
                _ => return Ok(self),
            }
        }
    }

    /// `<id> <name>`, in the second version with attributes after it; `<id> <name>^{}` in the first names a tag's commit. A server of
    /// the first names all that it has, one of the second may.
    fn named(
        &mut self,
        connection: &Connection,
        prefixes: &[String],
        of: &str,
        so_far: &mut Named,
    ) -> Result<(), FetchError> {
        let broken = || connection.broken("a line of its list of branches is none");
        let mut words = of.split(' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else { return Err(broken()) };
        // What points at nothing yet, as `HEAD` of an empty repository.
        if id == "unborn" {
            return Ok(());
        }
        let id = Oid::from_str(id).ok().filter(|_| id.len() == 40).ok_or_else(broken)?;
        if name != "HEAD" && !prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) {
            so_far.others += 1;
            return match so_far.others > MOST_OTHERS {
                true => Err(connection.broken("it names more than 2,000,000 pull requests and the like")),
                false => Ok(()),
            };
        }
        so_far.bytes += name.len();
        if self.refs.len() >= MOST_REFS || so_far.bytes > MOST_BYTES {
            return Err(connection.broken("it names more than 200,000 branches and tags"));
        }
        if let Some(tag) = name.strip_suffix("^{}") {
            if let Some(last) = self.refs.last_mut().filter(|last| last.name == tag) {
                last.peeled = Some(id);
            }
            return Ok(());
        }
        let peeled = words.find_map(|word| word.strip_prefix("peeled:"));
        let peeled = peeled.map(Oid::from_str).transpose().map_err(|_| broken())?;
        if name.len() <= LONGEST && git2::Reference::is_valid_name(name) {
            self.refs.push(Ref { name: name.to_owned(), target: id, peeled });
        }
        Ok(())
    }
}

/// Refuses a server by the capability that says that its repository names objects otherwise than by SHA-1.
fn check_format(connection: &Connection, capability: &str) -> Result<(), FetchError> {
    match capability.strip_prefix("object-format=") {
        Some(format) if format != "sha1" => {
            Err(connection.broken("its repository names objects by SHA-256, which is not supported"))
        }
        _ => Ok(()),
    }
}
