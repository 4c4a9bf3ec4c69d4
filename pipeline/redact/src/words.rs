//! The words by which names and sentences are judged, as data.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

type Words = LazyLock<HashSet<&'static str>>;

fn set(text: &'static str) -> HashSet<&'static str> {
    text.split_ascii_whitespace().collect()
}

/// Secret wherever they stand in a name, also run together (`dbpassword`).
pub(super) static STEMS: Words = LazyLock::new(|| {
    set(
        "password passwd passwort kennwort passphrase passcode secret token credential apikey accesskey privatekey privkey \
         signingkey encryptionkey masterkey sharedkey accountkey storagekey sealingkey deploykey clientkeydata \
         connectionstring connstring connstr dockerconfigjson dockercfg idrsa ided25519 idecdsa stringdata \
         amzsignature masterauth authtok securejsondata fernet secretkeybase presharedkey storepass mnemonic \
         rediscliauth erlangcookie setcookie pepper totpseed otpseed walletseed seedphrase recoverycode \
         authstring codeverifier honeycombteam googsignature nodecookie releasecookie authkey cleartext loginpas \
         distributedcookie authphrase privphrase passsha256 passbcrypt pass4symmkey vernemquser recoveryphrase backupphrase motdepasse \
         contrasena contraseña wachtwoord",
    )
});

/// Longer words that hold a stem by chance.
static NOT_STEMS: Words = LazyLock::new(|| {
    set("tokenizer tokenize tokenization tokenreview secretary secretariat secretion passwordless tokenless \
         secretless tokenomics serviceaccounttokenprojection nontoken externalsecrets sealedsecrets jsonwebtoken")
});

static STEM: LazyLock<Regex> = LazyLock::new(|| any_of(&STEMS));
static NOT_STEM: LazyLock<Regex> = LazyLock::new(|| any_of(&NOT_STEMS));

/// Finds any of these, the longest that begins at a place, in one pass.
#[expect(clippy::expect_used, reason = "the words are constants, which every test builds")]
fn any_of(words: &HashSet<&str>) -> Regex {
    let mut words: Vec<&str> = words.iter().copied().collect();
    words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    Regex::new(&words.join("|")).expect("letters and digits are a pattern")
}

/// Whether a name in small letters and digits holds a stem, and not merely a longer word that holds one by chance.
pub(super) fn holds_stem(name: &str) -> bool {
    STEM.is_match(name) && STEM.is_match(&NOT_STEM.replace_all(name, ""))
}

/// Secret as the last word of a name.
pub(super) static WEAK: Words = LazyLock::new(|| {
    set(
        "pass pwd dsn bearer jwt psk otp totp cred creds pgpass sig pfx p12 jks keytab passwords pw htpasswd \
         htdigest seckey gslt community dbroot mdp senha heslo haslo hasło salasana adgangskode passord lösenord losenord \
         jelszo jelszó parola geheimnis lösenordet adgangskoden passordet parolası",
    )
});

/// Make a secret of the word `key` that follows them.
pub(super) static KEY_OWNERS: Words = LazyLock::new(|| {
    set(
        "api access private signing sign encryption encrypt crypt crypto master shared account storage hmac ssh \
         deploy tls ssl client server ca session cookie sealing store auth service webhook jwt root aes rsa gpg \
         pgp unseal app openssl license ingestion enc csrf xsrf host cert fernet preshared wireguard vapid pepper signature props \
         sec",
    )
});

/// With `key` behind them they name the key of a Secret's data, or a key as one of many: secret when it looks like one.
pub(super) static KEPT_KEYS: Words = LazyLock::new(|| {
    set("password passwd username user token credentials credential pass email name cert ca")
});

/// With `key` behind them they name no secret.
pub(super) static NOT_KEY_OWNERS: Words = LazyLock::new(|| {
    set("topology label partition primary foreign public sort cache row map values value group order dedup \
         idempotency match toleration node object index config file annotation field column lookup registry hot \
         project issue pub authorized known shard range context attribute metadata image header parent unique \
         composite mon don tur hoc jac whis hac publishable resource translation i18n message topic record attr \
         property region zone tenant queue site check single count")
});

/// Words that end like a password.
pub(super) static NOT_PASS: Words = LazyLock::new(|| {
    set(
        "bypass compass encompass trespass surpass overpass underpass multipass singlepass onepass firstpass \
         twopass tcpw",
    )
});

/// Make a value of `secret` that follows them, not the name of one.
pub(super) static VALUE_OWNERS: Words = LazyLock::new(|| {
    set(
        "client shared app api oauth oauth2 oidc jwt session cookie webhook signing hmac consumer access master \
         github gitlab encryption auth csrf hash totp token user admin",
    )
});

/// Terms of the trade with digits in them.
pub(super) static TERMS: Words = LazyLock::new(|| {
    set(
        "sha256 sha512 sha384 sha224 sha1 oauth2 oauth1 base64 base32 md5 http2 http3 ipv4 ipv6 x509 pkcs1 pkcs5 \
         pkcs7 pkcs8 pkcs11 pkcs12 ed25519 rs256 rs512 es256 es384 hs256 hs384 hs512 utf8 utf-8 i18n l10n argon2 \
         argon2id argon2i pbkdf2 aes256 aes128 aes-256 aes-256-gcm aes-256-cbc tls12 tls13 sslv3 ldap3 oauth2.0 \
         log4j log4j2 web3 neo4j mysql8 postgres15 redis7 keycloak26 k8s eks ec2 s3 r53 route53 scram-sha-256 \
         scram-sha-512 sha-256 sha-512 rsa2048 rsa4096 rsa-2048 rsa-4096 p256 p384 curve25519 secp256k1 chacha20 \
         chacha20poly1305 poly1305 blake2b bcrypt2 v1alpha1 v1beta1 v1alpha2 v1beta2 v2beta1 v2beta2 oauth2-proxy \
         aad-pod java17 java21 python3 node18 node20 node22 php8 net8 amd64 arm64 x86_64 win32 win64 bcrypt \
         scrypt plaintext scram-sha-1 hs1 es512 eddsa ps256 sha256sum id_token access_token refresh_token \
         client_secret_basic client_secret_post client_secret_jwt private_key_jwt workload-identity \
         managed-identity pod-identity instance-profile",
    )
});

/// Last words that make a name one of a *place or property of* a secret, not of its value.
pub(super) static ABOUT: Words = LazyLock::new(|| {
    set(
        "name names ref refs reference references type types kind path paths file files dir directory mount url \
         uri endpoint seconds minutes hours days ttl expiration expiry timeout interval age lifetime duration \
         policy length size count limit algorithm format provider store stores class namespace namespaces enabled \
         disabled required rotation audience audiences issuer selector service server manager controller operator \
         driver webhook review reviews objects method methods scope scopes claim claims mode version versions \
         prefix suffix header headers field fields annotation annotations label labels encryption backend \
         backends engine engines source sources validator validators validation strength prompt reset recovery \
         change changed complexity history requirements rules attempts retries regex pattern hint description \
         title placeholder message column attribute query scheme hasher hashers encoder generator handler plugin \
         module request requests created updated at date time window grace period cache index usage usages phase \
         error errors reason metrics rate cost rounds iterations bits strategy resolver authenticator \
         authentication login grant exchange introspection revocation verification support management sync \
         replication reflector revision scanning detection volume volumes mounts refresh renewal delay threshold \
         max min per second host hosts port domain group groups role roles permissions enable require location \
         folder entropy charset digits symbols bucket buckets requested counter creation allowed lifespan expires \
         expired in parameter param kinds helper process minlength maxage uses alias aliases num hashing storage \
         enabledby stdin fd env envvar envvars var variable variables command cmd script template schema status \
         state ready check checks exporter proxy gateway agent sidecar job cronjob schedule image repository tag \
         replicas resources quota arn username usernames owner holder expiresin expire validity lookup filter \
         parser alg serializer minimum maximum total consumed remaining generation filename filenames encoding present minute hour \
         day checker policies reviewer page screen form view dialog button event events listener quality example \
         docs documentation flow flows project projects prompts ms millis milliseconds sec secs mins bytes kb mb \
         reuse fill leeway skew separator delimiter matcher matchers injector injection watcher syncer rotator \
         bindings visibility level tier priority notice warning alert alerts notification notifications audit \
         log logs logging dashboard burst lookback algo algos algorithms ciphers live init realm timestamp timestamps \
         kwargs meter scan scans lambda function mtime position stage stages handling symbol within broker table \
         epoch budget gate preset cidr cidrs subnet subnets cipher report reports tags retention weight cooldown \
         deadline tooltip icon cleanup chars characters mapping mappings mapper deprecated display summary connector \
         connectors",
    )
});

/// Last words that are dropped before a name is judged: `PASSWORD_PROD`, `tokenValue`.
pub(super) static SUFFIXES: Words = LazyLock::new(|| {
    set(
        "value string hex b64 base64 plain plaintext encoded raw prod production dev staging test old new primary secondary \
         backup",
    )
});

/// Names that hold a stem and name something else. `imagePullSecrets` lists names of Secrets,
/// `existing...` too; the component names are those of well-known charts and kinds.
pub(super) static EXEMPT: Words = LazyLock::new(|| {
    set("automountserviceaccounttoken imagepullsecrets imagepullsecret pullsecrets pullsecret sealedsecrets \
         sealedsecret externalsecrets externalsecret secretgenerator secretkeyselector secretproviderclass \
         secretlist createsecret createtoken usepassword sigterm secretstores secretstore credhelpers credsstore \
         tokenauth secretslist keycloak publickey publickeys sshpublickey authorizedkeys sshauthorizedkeys \
         sshknownhosts apikeyauth secretrefs passwordauthentication nopasswd privatekeyid \
         initialclustertoken etcdinitialclustertoken fromconnectionsecretkey \
         connectionsecretkeys wpcachekeysalt adyenclientkey")
});

/// Words behind which something is told of a secret, not the secret: `secret: rotate`, `token: expired`.
pub(super) static TELL: Words = LazyLock::new(|| {
    set(
        "must is was are were be should shall may require requires required information missing invalid illegal incorrect wrong empty expired not the \
         a an your my our this that these use used uses using set sets reset change changed changes update \
         updated updates rotate rotated rotates rotating rotation add added adds remove removed removes fix fixed \
         fixes cannot too never for of to from in and or with without at by please enter string optional field \
         value values authentication auth failed fails failure refresh refreshed revoke revoked renew renewed \
         bump move moved rename renamed drop dropped clean cleanup generate generated read load loaded store \
         stored encrypt encrypted hash hashed unknown denied mismatch confirmed none provided supplied given cipher ciphers does doesn't \
         did has have will no new only make allow allows enable disable support supports introduce implement \
         improve refactor revert handle ensure check validate migrate switch replace create created creates \
         delete deleted deletes mount mounted sync synced configure configured document documented test tests \
         skip keep kept prevent avoid stop start let do don't it its if when where which what how who why see \
         name names type unauthorized forbidden unsupported malformed timeout context error errors already still \
         after before unable could can can't couldn't lookup reload reloaded restore bootstrap import export \
         share split merge pin upgrade downgrade extend shorten leaked secret token password unchanged configmap \
         key file path on as all any each every other we they you i managed comes lives stays object resource \
         default defaults unexpected length minimum maximum exceeded ok valid verified verify accepted rejected \
         issued signature signed via unset needs need want wants more less than two one both off takes gets keeps \
         expires expiring prompts prompt reads goes belongs works looks appears seems looked checks sent passed \
         ignored deprecated enforce enforced enforces supported got being been yet into onto over under between because while until since \
         unless instead rather also always sometimes here there now then them their us page button screen dialog \
         form link endpoint handling handler expiry lifetime parsing validation leak storage manager provider \
         generation flow review controller fallback logic module plugin backend cache limit limits min max current remaining quota exhausted \
         but so however though although once during against about raise raises return returns throw throws show shows \
         hide hides trim trims trimmed strip strips stripped mask masks masked \
         argument arguments flag flags option options parameter parameters minlength maxlength environment variable \
         variables debe debes deve devem moet moeten doit doivent musi muss müssen darf siehe steht liegt voir",
    )
});

/// Of these, what is done to a secret as often as they begin one: a key or a password behind them is hidden.
pub(super) static ACTS: Words =
    LazyLock::new(|| set("trim trims trimmed strip strips stripped mask masks masked"));

/// Words that stand between a name and the secret that is told.
pub(super) static FILL: Words = LazyLock::new(|| {
    set(
        "is was are to as of be now the new old changed set from for value with temporarily currently still = -> \
         => - – — into a default string updated reset will back again should initial temporary using use it it's rotate \
         rotated replace replaced by ist war jetzt nun lautet auf geändert gesetzt zurückgesetzt wurde gewijzigd naar nieuw nieuwe has been neu neue neues der \
         den dem des das est es é è nueva nuevo nova nouveau alterada alterado trocada trocado redefinida cambiada cambiado \
         actualizada para är nu nå ahora agora ora adesso maintenant teraz ändrat till endret ændret til zmienione na",
    )
});

/// Words that say that what follows is meant, in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish and the
/// languages of Scandinavia.
pub(super) static SAYS: Words = LazyLock::new(|| {
    set("is was now ist war jetzt nun lautet est maintenant es ahora é agora è ora adesso nu är nå teraz")
});

/// Words behind which it is said whose something is, in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish,
/// Czech and the languages of Scandinavia.
pub(super) static OWNS: Words = LazyLock::new(|| {
    set("for of user für von der des du de del do da della di per van voor dla pro för av till til")
});

/// What follows these and a colon is something else than the secret of which a sentence speaks.
pub(super) static INTRODUCE: Words = LazyLock::new(|| {
    set(
        "user username account host name id version namespace reason code status image error server see ticket \
         issue at commit email role database realm client",
    )
});

/// Words that hold sentences together.
pub(super) static FUNCTION: Words = LazyLock::new(|| {
    set(
        "the a an to of for in is are not and or with from by on at be must has have it as that which when if no \
         can should was will this per",
    )
});

/// Single words that say how a secret is: `token=expired`, `password=required`.
pub(super) static STATES: Words = LazyLock::new(|| {
    set("missing invalid expired empty required unknown denied revoked failed unset wrong incorrect absent \
         present set malformed unauthorized string <nil> generated rotated renewed found stale valid ok accepted \
         rejected verified ready pending loading hashed encrypted sealed minlength maxlength obligatoria obligatorio \
         requerida requerido incorrecta incorrecto obrigatoria obrigatorio incorreta verplicht onjuist ongeldig povinne")
});

/// Names that configuration files set with nothing but space behind them.
pub(super) static DIRECTIVES: Words = LazyLock::new(|| {
    set("requirepass masterauth auth_pass rootpw bindpw http_passwd insecure-password olcrootpw \
         ldap_default_authtok smtp_password default_pass primary_pass sasl_passwd mailpass dbpass db_password \
         bindpassword ldapbindpassword authldapbindpassword sslkeypassword ssl_password keypassword auth_token \
         neighbor-password enable-password auth-password proxy-password secret-access-key secret_access_key \
         proxypassword http_password es_password shared_key self_password aws_secret_access_key aws_access_key_id \
         masteruser_password tls-key-file-pass tls-client-key-file-pass ldapadminpassword adminpw userpw cloud_auth")
});

/// The first folders of paths under which files with secrets lie.
pub(super) static PLACES: Words = LazyLock::new(|| {
    set(
        "etc run var vault mnt secrets secret opt usr home tmp data config certs root app srv dev keys bitnami \
         credentials tls",
    )
});

/// How references to stores of secrets begin.
pub(super) static STORES: Words = LazyLock::new(|| {
    set("vault: ref+ secretref+ op:// arn:aws:secretsmanager: arn:aws:ssm: arn:aws:kms: awssm:// awsssm:// \
         aws-secret:// gcp-secret:// gcpsm:// sm:// azurekeyvault:// secret:// secrets:// secretref: keyring: \
         env:// env: env. k8s:// k8s: kubernetes:// doppler:// keyvault: @microsoft.keyvault ssm: secretsmanager: \
         bao: sealed: lookup( file:// path: pass:// akeyless: infisical:// keepass: projects/ configmap: bws:// \
         >>vault: awssecret:// berglas:// gcp:secretmanager: azure:keyvault:")
});

/// How the expressions of programs begin that refer to what is given elsewhere.
pub(super) static EXPRESSIONS: Words = LazyLock::new(|| {
    set("os.environ os.getenv( process.env. env( getenv( ENV[ ENV.fetch( System.getenv config( var. local. \
         module. random_password. each.value self. secrets. vars. steps. needs. inputs. github. lookup( file( \
         sensitive( settings. Env. env::var( viper.Get Deno.env import.meta.env data. kubernetes_secret. \
         vault_generic_secret. values. Values. params. credentials( $Env: $env: app.config !Ref !Sub !GetAtt !Env !File !KeyOf \
         !ImportValue !secret !env_var std.extVar( importstr props. this. options. args. cfg. conf. data.vault \
         SECRET[ !vault System.get_env( System.fetch_env $_ENV[ $_SERVER[ fs.readFile crypto.random nonsensitive( remote.vault. remote.kubernetes. aws_secretsmanager_ google_secret_manager_ azurerm_key_vault_ tls_private_key. \
         google_service_account_key. aws_iam_access_key.")
});

/// Words that stand for a value that is not shown.
pub(super) static MASKS: Words = LazyLock::new(|| {
    set(
        "redacted masked hidden filtered none null nil undefined n/a tbd todo fixme sanitized omitted unset removed",
    )
});

/// Programs that print secrets: what calls them is none.
pub(super) static TELLERS: Words = LazyLock::new(|| {
    set("vault pass op gopass bw aws gcloud az kubectl oc sops doppler security secret-tool chamber consul \
         terraform tofu pulumi gh glab heroku openssl pwgen uuidgen keyring lpass rbw akeyless infisical")
});

/// How far something is: a feature of that name, `apiKeys: beta`.
pub(super) static STAGES: Words =
    LazyLock::new(|| set("alpha beta preview experimental stable deprecated ga canary"));

/// Words that ask for a value, and those that stand beside them: `REPLACE_ME`, `your-api-key-here`.
pub(super) static FILLERS: Words = LazyLock::new(|| {
    set(
        "changeme change replaceme replace your here placeholder dummy fill fillin fillme insert enter todo fixme \
         tbd me with this in the a an my to be set real actual value secret password passwd pass token key api \
         apikey user username and or example goes put provide some please it must before use deploy deploying \
         production not default client access id account database db string example-only generated by from of \
         mine own strong random long",
    )
});

/// Those of them that ask.
pub(super) static ASKS: Words = LazyLock::new(|| {
    set(
        "changeme replaceme me change replace example your here placeholder dummy fillin fillme insert fixme todo \
         goes",
    )
});

/// How a phrase begins that asks for a value, whatever words it goes on with: `your-32-character-encryption-key`.
pub(super) static PLEAS: Words = LazyLock::new(|| {
    set("your change replace insert enter put generate paste provide get set fill choose pick")
});

/// What such a phrase asks for.
pub(super) static ASKED: Words = LazyLock::new(|| {
    set(
        "secret secrets key password passwd token value here it this id credentials passphrase random string salt \
         webhook url",
    )
});

/// How passwords are hashed: below these names stand settings.
pub(super) static HASHES: Words =
    LazyLock::new(|| set("argon2 argon2i argon2id bcrypt scrypt pbkdf2 sha2crypt sha512 sha256 shacrypt"));

/// Members of the settings of a component, as charts have them.
pub(super) static COMPONENT: Words = LazyLock::new(|| {
    set(
        "image resources nodeSelector tolerations affinity podAnnotations podLabels securityContext replicas \
         containerSecurityContext podSecurityContext serviceAccount replicaCount extraArgs extraEnv jobAnnotations \
         priorityClassName topologySpreadConstraints livenessProbe readinessProbe initContainers sidecars",
    )
});

/// The members of the schema of one property.
pub(super) static SCHEMA: Words = LazyLock::new(|| {
    set(
        "type title description format default example examples enum const pattern minLength maxLength minimum \
         maximum nullable writeOnly readOnly properties items required additionalProperties $ref deprecated \
         x-kubernetes-preserve-unknown-fields form hidden sensitive ui:widget ui:help ui:options ui:field \
         ui:autofocus ui:autocomplete",
    )
});

/// With `tokens` behind them they name pieces of text, which models read and write.
pub(super) static PIECES: Words = LazyLock::new(|| {
    set(
        "stop special eos bos pad added input output prompt completion context cached new banned bad reasoning",
    )
});

/// With `token` behind them they name one piece that models know: `stop_token`.
pub(super) static MARKERS: Words = LazyLock::new(|| set("stop eos bos pad unk unknown mask cls sep special"));

/// Below these names stand texts that people see: `labels: {password: Passwort}`.
pub(super) static CAPTIONS: Words = LazyLock::new(|| {
    set(
        "labels label captions translations i18n l10n locale messages texts strings placeholders titles headings",
    )
});

/// Files that list users and their passwords, by their last two words.
pub(super) static USER_FILES: Words = LazyLock::new(|| {
    set("realm.properties users.properties users.txt userlist.txt chap.secrets pap.secrets ipsec.secrets \
         users.passwd mosquitto.passwd user.properties rsyncd.secrets users.htdigest psk.txt")
});

/// Types of values, which checks name in the place of values.
pub(super) static TYPES: Words = LazyLock::new(|| {
    set(
        "string map array object integer number boolean bool null int float list nothing slice struct undefined \
         str bytes buffer uint8array optional option none any secretstr secretstring varchar char union box arc",
    )
});

/// Words in the names of Secrets.
pub(super) static OBJECTS: Words = LazyLock::new(|| {
    set(
        "secret secrets tls cert certs cred creds credentials credential token auth keys key password passwords \
         registry regcred ca config login ssl pull pw pass passwd db database env users login logins s3",
    )
});

/// With `secret` behind them they name a Secret.
pub(super) static REFERRERS: Words = LazyLock::new(|| {
    set(
        "config tls ssl cert certificate objstore storage pull registry ca ingress image extra issuer repo git \
         backup env password passwords credentials credential existing key keystore truststore username login \
         database db license licence conf uri dsn enterprise configuration initdb",
    )
});

/// Members that say what the other of a pair holds.
pub(super) static PAIR_NAMES: Words = LazyLock::new(|| {
    set(
        "name key id label field header headername variable var env envname param parameter parameterkey property \
         setting option optionname attribute configkey k",
    )
});

/// Members that carry it.
pub(super) static PAIR_VALUES: Words = LazyLock::new(|| {
    set("value values val v default defaultvalue string stringvalue array map enum literal plaintext text \
         headervalue secretvalue configvalue content")
});

/// Members of an object under a secret name that are settings, beside what is about a secret.
pub(super) static SETTINGS: Words = LazyLock::new(|| {
    set(
        "id realm encoding registry region username email create optional enable annotations labels keep immutable",
    )
});
