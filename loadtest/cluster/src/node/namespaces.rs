//! The namespaces that a node lives in: processes, mounts and network of its own, a folder and a control group.
//!
//! takes: nothing - gives: the networks that lead to it, and how to start a program inside
//! calls: `unshare`, `nsenter` and `setpriv` (util-linux), `ip` - fails: when this is not root, or the kernel refuses one
//!
//! When this program ends in any way, the first process of the namespaces does, and with it the kernel ends every process in
//! them, undoes their mounts and removes the link. The folder and the control group bear the name of the process they were
//! made by: whoever starts a node next removes those whose process is gone.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use loadtest_sim::child::{Child, Spec, is_alive};
use loadtest_sim::command::fed;

use crate::network::Network;

/// How long a step may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Between two looks at what the kernel is about to end.
const LOOK: Duration = Duration::from_millis(10);
/// Of folders and control groups; what follows is a process.
const PREFIX: &str = "gitops-runtime-node-";
/// What the first process does.
const INIT: &str = include_str!("init.sh");
/// Of the route that is taken when the link is gone: without it what is for the node would leave by the machine's own.
const LAST: &str = "9999";
/// Where control groups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Namespaces, and what belongs to them. All of it goes when this value is dropped.
#[derive(Debug)]
pub struct Namespaces {
    holder: Child,
    /// The first process inside, by its number outside.
    id: u32,
    name: String,
    folder: PathBuf,
    network: Network,
    /// Set when everything is gone.
    has_ended: bool,
}

impl Namespaces {
    /// Makes them; the log of the first process goes to `logs`. What processes that are gone have left is removed before.
    pub async fn start(logs: &Path) -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let user = std::fs::metadata("/proc/self").context("ask who runs this")?.uid();
        permitted(user)?;
        sweep()?;
        let name = format!("{PREFIX}{}-{}", owner()?, COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
        let folder = folder.canonicalize().context("find the folder of the node")?;
        let spec = Spec::new("namespaces", "unshare", logs)
            .args([
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child=KILL",
                "--",
                "sh",
                "-c",
                INIT,
                "init",
            ])
            .args([&folder]);
        let mut all = Self {
            holder: Child::start(&spec)?,
            id: 0,
            name,
            folder,
            network: Network::new(0),
            has_ended: false,
        };
        let told = all.folder.join("id");
        all.holder.ready(LIMIT, async || told.exists()).await?;
        let id = std::fs::read_to_string(&told).context("read the number of the first process")?;
        all.id = id.trim().parse().context("read the number of the first process")?;
        for group in groups()? {
            let group = group.join(&all.name);
            std::fs::create_dir(&group).with_context(|| format!("make {}", group.display()))?;
        }
        all.connect()?;
        Ok(all)
    }

    /// The networks that lead to the node.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network
    }

    /// The folder of the node, the same inside and outside.
    #[must_use]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process that holds them, outside.
    pub(super) fn holder(&self) -> &Child {
        &self.holder
    }

    /// What its folder and its control group are called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its control group, as a path below each hierarchy.
    pub(super) fn group(&self) -> String {
        format!("/{}", self.name)
    }

    /// Starts `program` inside: what stands before it and its arguments. It ends with the process that stands for it outside.
    pub(super) fn inside(&self, program: &Path) -> (&'static str, Vec<OsString>) {
        let mut args: Vec<OsString> =
            ["--net", "--mount", "--pid", "--target"].into_iter().map(Into::into).collect();
        args.push(self.id.to_string().into());
        args.extend(["--", "setpriv", "--pdeathsig", "KILL", "--"].into_iter().map(OsString::from));
        args.push(program.into());
        ("nsenter", args)
    }

    /// Starts `program` in the network alone, as a process that is none of the node's.
    pub(super) fn beside(&self, program: &Path) -> (&'static str, Vec<OsString>) {
        let id = self.id.to_string();
        let args = ["--net", "--target", &id, "--"].map(OsString::from);
        ("nsenter", args.into_iter().chain([program.into()]).collect())
    }

    /// Ends every process, and removes what is left of them.
    pub fn end(&mut self) -> anyhow::Result<()> {
        if self.has_ended {
            return Ok(());
        }
        self.has_ended = true;
        // The link goes with the namespace, but that is when the kernel gets to it.
        let _ = fed(Command::new("ip").args(["link", "delete", &self.network.link()]), b"");
        for id in [self.holder.id(), self.id].into_iter().filter(|id| *id != 0) {
            // It may be gone already.
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
        }
        let began = Instant::now();
        while self.id != 0 && is_alive(self.id) {
            ensure!(began.elapsed() < LIMIT, "the processes of {} do not end within {LIMIT:?}", self.name);
            std::thread::sleep(LOOK);
        }
        stop_nowhere(self.network);
        remove(&self.name)
    }

    /// Links the machine and the node, by the first of the networks that nothing else uses.
    fn connect(&mut self) -> anyhow::Result<()> {
        let first = fastrand::u8(..);
        for block in 0..Network::ALL {
            let network = Network::new(first.wrapping_add(block));
            let routes =
                fed(Command::new("ip").args(["-4", "route", "show", "root", &network.range()]), b"")?;
            let link = network.link();
            let id = self.id.to_string();
            let add = ["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &id];
            // Whoever comes second is refused by the kernel.
            if !routes.trim().is_empty() || fed(Command::new("ip").args(add), b"").is_err() {
                continue;
            }
            self.network = network;
            let (host, node) = (network.host(), network.node());
            let (pods, services) = (network.pods(), network.services());
            let outside = format!(
                "route add unreachable {range} metric {LAST}\naddress add {host}/30 dev {link}\nlink set {link} up\n\
                 route add {pods} via {node}\nroute add {services} via {node}\n",
                range = network.range(),
            );
            fed(Command::new("ip").args(["-batch", "-"]), outside.as_bytes())?;
            // An address of a Service must lead somewhere before it can be changed to that of a pod.
            let inside = format!(
                "link set lo up\naddress add {node}/30 dev eth0\nlink set eth0 up\n\
                 route add {services} dev lo src {node}\n"
            );
            let enter = ["--net", "--target", &id, "--", "ip", "-batch", "-"];
            fed(Command::new("nsenter").args(enter), inside.as_bytes())?;
            return Ok(());
        }
        bail!(
            "no link to a node can be made: the kernel refuses a pair of virtual links, or 198.18.0.0/15 is in use"
        );
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What is left is removed by the next one.
        let _ = self.end();
    }
}

/// Removes the folders and control groups of nodes whose process is gone, and tells their names.
pub fn sweep() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for place in places()? {
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        for entry in entries {
            let name = entry.with_context(|| format!("read {}", place.display()))?.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_left(name) {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names.dedup();
    for name in &names {
        remove(name)?;
    }
    let nowhere = fed(Command::new("ip").args(["-4", "route", "show", "type", "unreachable"]), b"")?;
    for network in (0..Network::ALL).map(Network::new) {
        let is_linked = Path::new("/sys/class/net").join(network.link()).exists();
        if !is_linked && nowhere.contains(&network.range()) {
            stop_nowhere(network);
        }
    }
    Ok(names)
}

/// Removes the route that leads nowhere once the link is gone; whoever comes second finds none.
fn stop_nowhere(network: Network) {
    let route = ["route", "delete", "unreachable", &network.range(), "metric", LAST];
    let _ = fed(Command::new("ip").args(route), b"");
}

/// Whether a folder or a control group of this name is a node's whose process is gone.
fn is_left(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'));
    owner.is_some_and(|(owner, _)| !is_there(owner))
}

fn permitted(user: u32) -> anyhow::Result<()> {
    ensure!(user == 0, "a node needs namespaces and containers, which root alone may make; run this as root");
    Ok(())
}

/// What the kernel calls the namespaces of a process.
pub(super) type Spaces = Vec<PathBuf>;

/// The namespaces of the node of this name, which runs.
pub(super) fn spaces_of(name: &str) -> anyhow::Result<Spaces> {
    let told = std::env::temp_dir().join(name).join("id");
    let id = std::fs::read_to_string(told).context("read the number of the first process")?;
    let kinds = ["pid", "mnt", "net"].into_iter();
    let read = kinds.map(|kind| std::fs::read_link(format!("/proc/{}/ns/{kind}", id.trim())));
    read.collect::<Result<_, _>>().context("ask for the namespaces of a node")
}

/// The processes in any of these namespaces: number and name.
pub(super) fn processes(spaces: &Spaces) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").context("look for processes")? {
        let entry = entry.context("look for processes")?;
        // One that ends meanwhile is in none.
        let is_in = |kind| {
            std::fs::read_link(entry.path().join("ns").join(kind)).is_ok_and(|one| spaces.contains(&one))
        };
        if ["pid", "mnt", "net"].into_iter().any(is_in) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!("the process {} ({})", entry.file_name().display(), name.trim()));
        }
    }
    Ok(found)
}

/// What there is of a node on this machine: its folder, control groups, processes, mounts, links and routes.
pub(super) fn left(name: &str, network: Network, spaces: &Spaces) -> anyhow::Result<Vec<String>> {
    let mut left = processes(spaces)?;
    left.extend(
        places()?
            .iter()
            .map(|place| place.join(name))
            .filter(|one| one.exists())
            .map(|one| one.display().to_string()),
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("look for mounts")?;
    left.extend(mounts.lines().filter(|mount| mount.contains(name)).map(str::to_owned));
    let links = fed(Command::new("ip").args(["-brief", "link", "show"]), b"")?;
    left.extend(links.lines().filter(|link| link.starts_with(&network.link())).map(str::to_owned));
    let routes = fed(Command::new("ip").args(["-4", "route", "show", "root", &network.range()]), b"")?;
    left.extend(routes.lines().map(str::to_owned));
    Ok(left)
}

/// Removes the folder and the control groups of this name; their processes have ended, or do so now.
fn remove(name: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    for group in groups()? {
        while let Err(why) = remove_group(&group.join(name)) {
            if began.elapsed() > LIMIT {
                return Err(why).with_context(|| format!("remove the control group {name}"));
            }
            std::thread::sleep(LOOK);
        }
    }
    match std::fs::remove_dir_all(std::env::temp_dir().join(name)) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            Err(why).with_context(|| format!("remove the folder {name}"))
        }
        _ => Ok(()),
    }
}

/// Removes a control group and those in it; the kernel removes the files in them.
fn remove_group(group: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(group) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_group(&entry.path())?;
        }
    }
    std::fs::remove_dir(group)
}

/// Where a node leaves something: the temporary folder, and each hierarchy of control groups.
fn places() -> anyhow::Result<Vec<PathBuf>> {
    let mut places = groups()?;
    places.push(std::env::temp_dir());
    Ok(places)
}

/// The hierarchies of control groups: one of version 2, or one for each controller.
fn groups() -> anyhow::Result<Vec<PathBuf>> {
    let top = Path::new(GROUPS);
    if top.join("cgroup.controllers").exists() {
        return Ok(vec![top.to_path_buf()]);
    }
    let entries = std::fs::read_dir(top).context("find the control groups of this machine")?;
    let mut groups = Vec::new();
    for entry in entries {
        let entry = entry.context("find the control groups of this machine")?;
        // Two controllers of one hierarchy have links to it.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link && entry.path().join("cgroup.procs").exists() {
            groups.push(entry.path());
        }
    }
    Ok(groups)
}

/// This process: its number and when it began, since numbers come again.
fn owner() -> anyhow::Result<String> {
    let id = std::process::id();
    let began = began(id).context("ask when this process began")?;
    Ok(format!("{id}-{began}"))
}

/// Whether the process of that name runs.
fn is_there(owner: &str) -> bool {
    let Some((id, begun)) = owner.split_once('-') else { return false };
    id.parse().is_ok_and(|id| is_alive(id) && began(id).as_deref() == Some(begun))
}

/// When a process began, in ticks of the machine.
fn began(id: u32) -> Option<String> {
    // The name of a program stands in brackets, and may hold anything.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_root_is_told() {
        permitted(0).unwrap();
        let refused = permitted(1000).unwrap_err().to_string();
        let expected = "a node needs namespaces and containers, which root alone may make; run this as root";
        assert_eq!(refused, expected);
    }

    #[test]
    fn what_is_left_is_a_nodes_whose_very_process_is_gone() {
        let own = owner().unwrap();
        assert!(!is_left(&format!("{PREFIX}{own}-0")), "this process runs");
        assert!(is_left(&format!("{PREFIX}{}-1-0", std::process::id())), "one before had the same number");
        assert!(is_left(&format!("{PREFIX}4194305-1-0")), "no process has that number");
        assert!(!is_left("somebody-elses-4194305-1-0"));
        assert!(!is_left(PREFIX));
    }
}
