//! Over SSH, of the real server of OpenSSH: one for each connection, so that it listens nowhere and ends with it.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stages_git::remote::{Access, Credential, Credentials, KnownHosts};
use tempfile::TempDir;

use crate::ssh::{LOCKED, changed_key, no_repository, refused_key, unknown_host, unusable};
use crate::support::{Cache, Forge, commit, git, text};

/// As root the server wants an account of its own and a directory of the system's: it finds them where it alone sees them.
const AS_ROOT: &str = "set -e; mount --bind \"$1/passwd\" /etc/passwd; mount --bind \"$1/shadow\" /etc/shadow; \
                       mount --bind \"$1/run\" /run; exec \"$2\" -i -e -f \"$1/config\"";

/// What `LOADTEST_OPENSSH` names, else what `.ci/setup` unpacked: a folder with the programs of OpenSSH.
fn program(name: &str) -> PathBuf {
    let named = std::env::var_os("LOADTEST_OPENSSH").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = named.or_else(|| Some(loadtest_sim::installed::folder()?.join("openssh/bin")));
    let found = folder.map(|folder| folder.join(name)).filter(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} of OpenSSH is not there: run .ci/setup, or name a folder with its programs by LOADTEST_OPENSSH")
    })
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A pair of keys, made by OpenSSH.
struct Pair {
    private: PathBuf,
    public: String,
}

impl Pair {
    /// Of one of OpenSSH's kinds, such as `ecdsa-521`.
    fn new(folder: &Path, name: &str, kind: &str) -> Self {
        let private = folder.join(name);
        let (kind, bits) = kind.split_once('-').unwrap_or((kind, ""));
        let mut command = Command::new(program("ssh-keygen"));
        command.args(["-q", "-N", "", "-C", "", "-t", kind, "-f"]).arg(&private);
        if !bits.is_empty() {
            command.args(["-b", bits]);
        }
        run(&mut command);
        let public = std::fs::read_to_string(private.with_extension("pub")).unwrap().trim().to_owned();
        Self { private, public }
    }

    /// Of a private key that is there.
    fn read(folder: &Path, name: &str, text: &str) -> Self {
        let private = folder.join(name);
        std::fs::write(&private, text).unwrap();
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
        let public = run(Command::new(program("ssh-keygen")).args(["-y", "-f"]).arg(&private));
        Self { private, public }
    }

    /// Gives it a passphrase.
    fn lock(&self) {
        let mut command = Command::new(program("ssh-keygen"));
        run(command.args(["-q", "-p", "-P", "", "-N", "a passphrase", "-f"]).arg(&self.private));
    }

    /// Writes it in another form.
    fn write_as(&self, form: &str) {
        let mut command = Command::new(program("ssh-keygen"));
        run(command.args(["-q", "-p", "-P", "", "-N", "", "-m", form, "-f"]).arg(&self.private));
    }

    fn fingerprint(&self) -> String {
        let said = run(Command::new(program("ssh-keygen")).arg("-lf").arg(&self.private));
        said.split(' ').nth(1).unwrap().to_owned()
    }

    fn private(&self) -> String {
        std::fs::read_to_string(&self.private).unwrap()
    }
}

/// A host that runs whatever who shows the right key asks for, as whoever runs the test.
struct Sshd {
    folder: TempDir,
    port: u16,
    user: String,
    hosts: Vec<Pair>,
}

impl Sshd {
    /// With keys of these kinds; it lets the version of Git's protocol through, or does not.
    fn new(kinds: &[&str], second_version: bool) -> Self {
        Self::with(kinds, if second_version { "AcceptEnv GIT_PROTOCOL\n" } else { "" })
    }

    /// With these lines in its settings.
    fn with(kinds: &[&str], lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let hosts: Vec<Pair> =
            kinds.iter().map(|kind| Pair::new(at, &format!("host-{kind}"), kind)).collect();
        let mut config = format!(
            "AuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n",
            at.join("authorized").display()
        );
        config.extend(hosts.iter().map(|host| format!("HostKey {}\n", host.private.display())));
        config.push_str(lines);
        let home = at.display();
        let passwd = format!("root:x:0:0::{home}:/bin/sh\nsshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n");
        for (name, content) in [
            ("config", config.as_str()),
            ("authorized", ""),
            ("passwd", &passwd),
            ("shadow", "root:*:20000:0:99999:7:::\nsshd:!:20000::::::\n"),
        ] {
            std::fs::write(at.join(name), content).unwrap();
        }
        let own = at.join("run/sshd");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        let is_root = std::fs::metadata(at).unwrap().uid() == 0;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sshd, of) = (program("sshd"), at.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut command = if is_root { Command::new("unshare") } else { Command::new(&sshd) };
                if is_root {
                    command.args(["--mount", "sh", "-c", AS_ROOT, "sh"]).arg(&of).arg(&sshd);
                } else {
                    command.args(["-i", "-e", "-f"]).arg(of.join("config"));
                }
                let stream = OwnedFd::from(stream);
                let both = stream.try_clone().map(|other| [stream, other].map(Stdio::from));
                let Ok([input, output]) = both else { continue };
                command.stdin(input).stdout(output).stderr(Stdio::null());
                std::thread::spawn(move || command.status());
            }
        });
        let user = run(Command::new("id").arg("-un"));
        Self { folder, port, user, hosts }
    }

    /// Whoever shows it is let in from now on.
    fn authorize(&self, key: &Pair) {
        std::fs::write(self.folder.path().join("authorized"), format!("{}\n", key.public)).unwrap();
    }

    fn url(&self, path: &Path) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, path.display())
    }

    fn access(&self, key: &str, hosts: KnownHosts) -> Access {
        let credential = Credential {
            from: "the Secret argocd/ssh".to_owned(),
            url: format!("ssh://{}@127.0.0.1:{}", self.user, self.port),
            is_prefix: true,
            ssh_key: Some(key.to_owned().into()),
            ..Credential::default()
        };
        Access { credentials: Credentials::new(vec![credential]), hosts, ..Access::default() }
    }

    /// A line of known hosts.
    fn line(&self, host: &Pair) -> String {
        format!("[127.0.0.1]:{} {}\n", self.port, host.public)
    }

    fn known(&self) -> KnownHosts {
        KnownHosts::read(&self.hosts.iter().map(|host| self.line(host)).collect::<String>())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_gives_what_is_asked_for_to_keys_of_each_kind() {
    let forge = Forge::new();
    let path = forge.repository("it's a");
    let old = git(&path, &["rev-parse", "main"]);
    for second_version in [true, false] {
        let host = Sshd::new(&["ed25519"], second_version);
        let url = host.url(&path);
        for kind in ["ed25519", "rsa-3072", "ecdsa-256", "ecdsa-384", "ecdsa-521"] {
            let key = Pair::new(host.folder.path(), &format!("of-{kind}"), kind);
            host.authorize(&key);
            let cache = Cache::new(|_| {}).await;
            cache.checkouts.set_access(host.access(&key.private(), host.known()));
            let at = cache.checkout(&url, "main").await.unwrap();
            let whole = text(&at, "a.yaml").await.unwrap();
            let new = commit(&path, "main", "a.yaml", &format!("{whole}# {kind}, {second_version}\n"));
            assert_eq!(cache.checkout(&url, "HEAD").await.unwrap().commit.to_string(), new, "{kind}");
            assert_eq!(cache.checkout(&url, &old).await.unwrap().commit.to_string(), old, "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_that_knows_few_exchanges_of_keys_is_spoken_with_as_argo_cd_does() {
    let forge = Forge::new();
    let path = forge.repository("a");
    for lines in [
        "KexAlgorithms ecdh-sha2-nistp256\n",
        "KexAlgorithms ecdh-sha2-nistp384\n",
        "KexAlgorithms ecdh-sha2-nistp521\n",
        "KexAlgorithms diffie-hellman-group14-sha1\n",
        "KexAlgorithms curve25519-sha256\nMACs hmac-sha1\nCiphers aes256-ctr\n",
    ] {
        let host = Sshd::with(&["ed25519"], lines);
        let key = Pair::new(host.folder.path(), "key", "ed25519");
        host.authorize(&key);
        let cache = Cache::new(|_| {}).await;
        cache.checkouts.set_access(host.access(&key.private(), host.known()));
        let found = cache.checkout(&host.url(&path), "main").await;
        assert!(found.is_ok(), "{lines}: {:?}", found.err().map(|error| error.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_lets_in_a_key_whose_number_is_short() {
    // Made by OpenSSH, for this test alone: one key of P-256 in 256 has a number of 31 bytes or less.
    const SHORT: &str = include_str!("keys/short_p256");
    let forge = Forge::new();
    let path = forge.repository("a");
    let host = Sshd::new(&["ed25519"], true);
    let key = Pair::read(host.folder.path(), "short", SHORT);
    host.authorize(&key);
    let cache = Cache::new(|_| {}).await;
    for text in [SHORT.to_owned(), format!(" \n{}", SHORT.replace('\n', "\r\n"))] {
        cache.checkouts.set_access(host.access(&text, host.known()));
        cache.checkout(&host.url(&path), "main").await.unwrap();
    }
    // With a passphrase or with a part missing it is as unusable as any other.
    let locked = Pair::read(host.folder.path(), "locked", SHORT);
    locked.lock();
    let cut = SHORT.replacen("AAAA", "", 1);
    let damaged = "its SSH key is damaged: give the whole file as ssh-keygen wrote it";
    for (text, why) in [(locked.private(), LOCKED), (cut, damaged)] {
        cache.checkouts.set_access(host.access(&text, host.known()));
        assert_eq!(cache.refusal(&host.url(&path), "main").await, unusable(why));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_lets_in_keys_in_each_form_of_their_files() {
    // Made by OpenSSH, for this test alone, and those of PuTTY from them.
    const KEYS: [(&str, &str); 8] = [
        ("ed25519", include_str!("keys/ed25519")),
        ("rsa_2048", include_str!("keys/rsa_2048")),
        ("rsa_3072", include_str!("keys/rsa_3072")),
        ("rsa_4096", include_str!("keys/rsa_4096")),
        ("ecdsa_256", include_str!("keys/ecdsa_256")),
        ("ecdsa_384", include_str!("keys/ecdsa_384")),
        ("ecdsa_521", include_str!("keys/ecdsa_521")),
        ("short_p256", include_str!("keys/short_p256")),
    ];
    const OF_PUTTY: [(&str, &str); 3] = [
        ("ed25519", include_str!("keys/ed25519.ppk")),
        ("rsa_2048", include_str!("keys/rsa_2048.ppk")),
        ("ecdsa_256", include_str!("keys/ecdsa_256.ppk")),
    ];
    let forge = Forge::new();
    let path = forge.repository("a");
    let host = Sshd::new(&["ed25519"], true);
    for (name, text) in KEYS {
        let key = Pair::read(host.folder.path(), name, text);
        host.authorize(&key);
        // PKCS#1 and SEC1, and PKCS#8; OpenSSH has one form of Ed25519.
        let mut forms = vec![("OpenSSH", key.private())];
        for form in ["PEM", "PKCS8"].into_iter().filter(|_| name != "ed25519") {
            key.write_as(form);
            assert!(!key.private().contains("OPENSSH"), "{name}: {}", key.private());
            forms.push((form, key.private()));
        }
        forms.extend(
            OF_PUTTY.iter().filter(|(of, _)| *of == name).map(|(_, text)| ("PuTTY", (*text).to_owned())),
        );
        for (form, text) in forms {
            let cache = Cache::new(|_| {}).await;
            cache.checkouts.set_access(host.access(&text, host.known()));
            let found = cache.checkout(&host.url(&path), "main").await;
            assert!(found.is_ok(), "{name} as {form}: {:?}", found.err().map(|error| error.to_string()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_is_believed_by_any_key_that_is_known_of_it_and_by_no_other() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let kinds = ["ed25519", "rsa-3072", "ecdsa-256"];
    let host = Sshd::new(&kinds, true);
    let (port, url) = (host.port, host.url(&path));
    let key = Pair::new(host.folder.path(), "of-one", "ed25519");
    host.authorize(&key);
    let cache = Cache::new(|_| {}).await;
    let set = |hosts: &str| {
        cache.checkouts.set_access(host.access(&key.private(), KnownHosts::read(hosts)));
    };
    let ed25519 = host.hosts[0].fingerprint();
    set("");
    assert_eq!(cache.refusal(&url, "main").await, unknown_host(port, &ed25519));
    for (kind, of) in kinds.into_iter().zip(&host.hosts) {
        // Another key of the same kind is known.
        let other = Pair::new(host.folder.path(), &format!("other-{kind}"), kind);
        set(&host.line(&other));
        let fingerprint = &of.fingerprint();
        assert_eq!(cache.refusal(&url, "main").await, changed_key(port, fingerprint), "{kind}");
        // It alone is known, by its name and by a digest of that.
        set(&host.line(of));
        cache.checkout(&url, "main").await.unwrap();
        let hashed = host.folder.path().join(format!("known-{kind}"));
        std::fs::write(&hashed, host.line(of)).unwrap();
        run(Command::new(program("ssh-keygen")).arg("-H").arg("-f").arg(&hashed));
        let hashed = std::fs::read_to_string(&hashed).unwrap();
        assert!(hashed.starts_with("|1|"), "{hashed}");
        set(&hashed);
        cache.checkout(&url, "main").await.unwrap();
        // What was revoked is none any more, whatever else is known.
        set(&format!("{}@revoked * {}\n", host.line(of), of.public));
        assert_eq!(cache.refusal(&url, "main").await, changed_key(port, fingerprint), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_refuses_a_wrong_key_and_has_no_repository_and_another_host_is_asked_as_before() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let (host, other) = (Sshd::new(&["ed25519"], true), Sshd::new(&["ed25519"], true));
    let right = Pair::new(host.folder.path(), "right", "ed25519");
    let wrong = Pair::new(host.folder.path(), "wrong", "rsa-3072");
    host.authorize(&right);
    other.authorize(&right);
    let url = host.url(&path);
    let cache = Cache::new(|_| {}).await;
    cache.checkouts.set_access(host.access(&wrong.private(), host.known()));
    assert_eq!(cache.refusal(&url, "main").await, refused_key(&url));
    let elsewhere = Cache::new(|_| {}).await;
    elsewhere.checkouts.set_access(other.access(&right.private(), other.known()));
    elsewhere.checkout(&other.url(&path), "main").await.unwrap();
    // A key with a passphrase is one for people.
    let locked = Pair::new(host.folder.path(), "locked", "ed25519");
    locked.lock();
    cache.checkouts.set_access(host.access(&locked.private(), host.known()));
    assert_eq!(cache.refusal(&url, "main").await, unusable(LOCKED));
    cache.checkouts.set_access(host.access(&right.private(), host.known()));
    cache.checkout(&url, "main").await.unwrap();
    let none = host.url(Path::new("/none.git"));
    assert_eq!(cache.refusal(&none, "main").await, no_repository(&none));
}
