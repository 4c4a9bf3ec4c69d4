//! The programs that take secrets as arguments under names that do not say so, one row each.

/// How programs take secrets.
pub(super) struct Program {
    /// Beginnings of names; `mysql` is `mysqldump` too.
    pub(super) names: &'static [&'static str],
    /// Flags whose next argument is one.
    pub(super) takes: &'static [&'static str],
    /// Flags that have it without a space behind them.
    pub(super) joined: &'static [&'static str],
    /// Flags whose next argument is a user, this sign, and one.
    pub(super) pair: (&'static [&'static str], char),
    /// Words, parted by spaces, after which, so many arguments later, one stands (flags are not counted). A star ends the
    /// beginning of a word.
    pub(super) words: &'static [(&'static str, &'static [usize])],
}

const NONE: Program = Program { names: &[], takes: &[], joined: &[], pair: (&[], ':'), words: &[] };

const ORACLE: &[(&str, &[usize])] = &[("sqlplus", &[1]), ("expdp", &[1]), ("impdp", &[1]), ("sqlldr", &[1])];

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["redis", "valkey", "keydb", "memtier_benchmark"],
        takes: &["-a", "--pass"],
        words: &[("auth", &[1, 2]), ("requirepass masterauth auth-pass sentinel-pass", &[1])],
        ..NONE
    },
    Program {
        names: &["mysql", "mariadb", "mariabackup", "xtrabackup", "mydumper", "myloader", "mytop", "percona"],
        takes: &["-p"],
        joined: &["-p"],
        words: &[("password", &[1])],
        ..NONE
    },
    Program { names: &["mongo"], takes: &["-p"], joined: &["-p"], ..NONE },
    Program {
        names: &["couchbase-cli", "elasticsearch-users", "doveadm"],
        takes: &["-p"],
        words: &[("test login", &[2])],
        ..NONE
    },
    Program {
        names: &[
            "ldapsear",
            "ldapmod",
            "ldapadd",
            "ldapdel",
            "ldapwho",
            "ldapcomp",
            "ldapvi",
            "basic_ldap",
            "ext_ldap",
            "squid_ldap",
        ],
        takes: &["-w"],
        joined: &["-w"],
        ..NONE
    },
    Program { names: &["ipa-server", "ipa-client", "ipa-replica"], takes: &["-p", "-a", "-w"], ..NONE },
    Program { names: &["ldappasswd", "slappasswd"], takes: &["-w", "-s", "-a"], ..NONE },
    Program { names: &["sshpass"], takes: &["-p"], joined: &["-p"], ..NONE },
    Program {
        names: &["curl", "ab", "siege"],
        pair: (&["-u", "-U", "--user", "--proxy-user", "-A", "-E", "--cert"], ':'),
        ..NONE
    },
    Program { names: &["http", "https", "xh", "xhs"], pair: (&["-a", "--auth"], ':'), ..NONE },
    Program {
        names: &[
            "docker", "podman", "nerdctl", "helm", "oras", "crane", "buildah", "skopeo", "regctl", "az",
            "cf", "oc", "flux",
        ],
        takes: &[],
        pair: (&["--creds", "--src-creds", "--dest-creds", "-u"], ':'),
        ..NONE
    },
    Program { names: &["login"], takes: &["-p"], ..NONE },
    Program {
        names: &["sqlcmd", "bcp", "osql", "mosquitto_", "ipmitool", "asadm", "aql"],
        takes: &["-P"],
        joined: &["-P"],
        words: &[("setClientPassword password", &[2])],
        ..NONE
    },
    Program {
        names: &["rabbitmqctl"],
        words: &[("add_user", &[2]), ("change_password", &[2]), ("authenticate_user", &[2])],
        ..NONE
    },
    Program {
        names: &[
            "rabbitmqa",
            "cqlsh",
            "clickhou",
            "beeline",
            "cypher-s",
            "cbq",
            "jboss-cl",
            "add-user",
            "nodetool",
            "impala-s",
            "influx",
            "arangosh",
            "kcadm",
        ],
        takes: &["-p", "-t", "-pw"],
        ..NONE
    },
    Program {
        names: &["ejabberdctl", "prosodyctl"],
        words: &[("register change_password check_password", &[3])],
        ..NONE
    },
    Program { names: &["kamctl", "opensipsctl"], words: &[("add passwd", &[2])], ..NONE },
    Program { names: &["mc", "mcli"], words: &[("set", &[3, 4]), ("add", &[3, 4])], ..NONE },
    Program { names: &["7z", "7za", "7zr", "rar", "unrar"], joined: &["-p", "-hp"], ..NONE },
    Program { names: &["zip", "unzip"], takes: &["-P"], ..NONE },
    Program {
        names: &["smbclient", "rpcclient", "smbget", "smbcacls", "wbinfo", "winexe", "samba-tool", "net"],
        pair: (&["-U", "--user", "-a", "--authenticate"], '%'),
        ..NONE
    },
    Program { names: &["lftp", "ncftp"], pair: (&["-u", "--user"], ','), ..NONE },
    Program {
        names: &["htpasswd"],
        words: &[
            ("-nb -nbB -bn -Bbn -nbm -nbs", &[2]),
            ("-b -bc -cb -bB -Bb -bcB -Bbc -bBc -cbB -cBb -Bcb -bnBC -nbBC", &[3]),
        ],
        ..NONE
    },
    Program { names: &["vault"], words: &[("login", &[1]), ("unseal", &[1])], ..NONE },
    Program { names: &["neo4j-admin"], words: &[("set-initial-password", &[1])], ..NONE },
    Program { names: &["openssl"], takes: &["-k", "-K"], words: &[("passwd", &[1])], ..NONE },
    Program { names: &["ssh-keygen"], takes: &["-N", "-P"], ..NONE },
    Program { names: &["sqlplus", "expdp", "impdp", "sqlldr"], words: ORACLE, ..NONE },
    Program { names: &["grafana"], words: &[("reset-admin-password", &[1])], ..NONE },
    Program {
        names: &["mkpasswd", "radtest"],
        words: &[("mkpasswd", &[1, 2]), ("radtest", &[2, 5])],
        ..NONE
    },
    Program { names: &["rclone"], words: &[("obscure", &[1])], ..NONE },
    Program {
        names: &["composer"],
        words: &[
            ("github-oauth.* gitlab-oauth.* bearer.*", &[1]),
            // A token alone, or behind its user.
            ("gitlab-token.*", &[1, 2]),
            ("config", &[3]),
        ],
        ..NONE
    },
    Program { names: &["codecov"], takes: &["-t"], ..NONE },
    Program {
        names: &["etcdctl", "aws", "gh", "git", "npm", "yarn", "pip", "doppler", "wp", "gcloud", "airflow"],
        ..NONE
    },
    Program { names: &["check_pgsql", "check_mysql", "check_mssql", "check_oracle"], takes: &["-p"], ..NONE },
    Program { names: &["check_ldap"], takes: &["-P"], ..NONE },
    Program { names: &["check_snmp"], takes: &["-C", "-A", "-X"], ..NONE },
    Program { names: &["snmp"], takes: &["-A", "-X", "-c"], ..NONE },
    Program { names: &["plink", "pscp", "putty"], takes: &["-pw"], ..NONE },
    Program { names: &["nsupdate", "dig"], takes: &["-y"], ..NONE },
    Program { names: &["mosquitto_passwd"], words: &[("-b -bc -cb", &[3])], ..NONE },
    Program { names: &["hey", "oha", "ttyd", "gotty"], pair: (&["-a", "-c", "--credential"], ':'), ..NONE },
    Program { names: &["gitlab-runner"], takes: &["-r", "-t"], ..NONE },
    Program { names: &["kadmin"], takes: &["-w", "-pw"], ..NONE },
    Program { names: &["virsh"], takes: &["--base64"], ..NONE },
    Program { names: &["pulsar"], takes: &["--auth-params"], ..NONE },
    Program {
        names: &["ss-server", "ss-local", "ss-redir", "ssserver", "sslocal", "dnsdist"],
        takes: &["-k"],
        ..NONE
    },
    Program {
        names: &["nmcli"],
        words: &[("password wifi-sec.psk 802-11-wireless-security.psk", &[1])],
        ..NONE
    },
    Program { names: &["ansible-vault"], words: &[("encrypt_string", &[1])], ..NONE },
    Program { names: &["poetry"], words: &[("http-basic.*", &[2]), ("pypi-token.*", &[1])], ..NONE },
    // Of Bitwarden.
    Program { names: &["bw"], words: &[("login", &[2]), ("unlock", &[1])], ..NONE },
    Program { names: &["cargo", "wandb"], words: &[("login", &[1])], ..NONE },
    Program {
        names: &["nuget", "dotnet"],
        takes: &["-k"],
        words: &[("setapikey", &[1]), ("set", &[2])],
        ..NONE
    },
    Program { names: &["securityUtility"], words: &[("encode", &[1])], ..NONE },
    Program { names: &["snyk"], words: &[("auth", &[1])], ..NONE },
    Program { names: &["cloudflared"], words: &[("install", &[1])], ..NONE },
    Program { names: &["wpa_passphrase"], words: &[("wpa_passphrase", &[2])], ..NONE },
    Program { names: &["isql"], words: &[("isql", &[3])], ..NONE },
    Program { names: &["pulumi"], words: &[("--secret", &[2])], ..NONE },
    Program { names: &["consul"], words: &[("set-agent-token", &[2])], ..NONE },
    Program {
        names: &["iscsiadm"],
        words: &[("node.session.auth.password* discovery.sendtargets.auth.password*", &[1])],
        ..NONE
    },
];
