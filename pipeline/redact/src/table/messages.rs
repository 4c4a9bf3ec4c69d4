//! What databases, services and people say, which quotes a secret.

use super::{Row, line};

pub(super) const MESSAGES: &[Row] = &[
    line(
        "value-of-a-column",
        "PostgreSQL: Key (api_key)=(x) already exists; MySQL: Duplicate entry 'x' for key 'users.api_key'",
        &["key (", "ate entry '"],
        r"(?i)\bkey \(\w*(?:passw(?:or)?d|secret|token|api_?key|access_?key)\)=\(([^()\s]*[0-9][^()\s]*)\)|\bduplicate entry '([^'\s]*[0-9][^'\s]*)' for key '(?:\w+\.)?\w*(?:secret|token|api_?key|access_?key)(?:_unique|_key|_idx|_index|_uniq|_uq|_uk)?'",
        [
            "DETAIL:  Key (api_key)=(th1stle9thorn) already exists.",
            "Duplicate entry 'th1stle9thorn' for key 'clients.api_key'",
        ],
        ["Key (id, token_id)=(7, 42) already exists.", "Duplicate entry 'ada-1' for key 'users.name'"],
    ),
    line(
        "host-that-is-a-password",
        "libpq: an address whose password holds an @, of which the rest is taken for the host",
        &["host name \""],
        r#"\bcould not translate host name "([^"\s]+)@[^"@\s]+" to address"#,
        [
            "could not translate host name \"stle9@db\" to address: Name or service not known",
            "OperationalError: could not translate host name \"9@th@pg.example\" to address: x",
        ],
        ["could not translate host name \"db\" to address", "host name \"ada@db\" is odd"],
    ),
    line(
        "filled-in-by-printf",
        "a shell: printf 'password=%s' password",
        &["printf "],
        r#"(?i)\bprintf\s+(?:"(?:[^"\n]*(?:passw(?:or)?d|secret|token)\s*=|(?:[^"\n]*\\n)?\s*[\w.-]*(?:passw(?:or)?d|secret|token)\s*:)\s*%s(?:\\n)?"|'(?:[^'\n]*(?:passw(?:or)?d|secret|token)\s*=|(?:[^'\n]*\\n)?\s*[\w.-]*(?:passw(?:or)?d|secret|token)\s*:)\s*%s(?:\\n)?')(?:\s+[^\s>|;&()]+){0,4}?\s+["']?([^\s"'$>|;&()`]{4,})["']?\s*(?:$|[>|;&)])"#,
        [
            "printf \"[client]\\npassword=%s\\n\" thistle > /root/.my.cnf",
            "mysql --defaults-extra-file=<(printf 'user=%s\\npassword=%s' ada \"th1stle\") shop",
        ],
        ["printf \"password=%s\\n\" \"$PW\" > /x", "printf \"created secret: %s\\n\" web-tls-2"],
    ),
    line(
        "keys-of-a-vault",
        "HashiCorp Vault: the keys that unseal it, told in a sentence",
        // Without its first letter, as the whole word is a name, at which the reader of names looks.
        &["nseal key", "recovery k"],
        r"(?i)\b(?:unseal|recovery)\s+keys?\b[^\n]{0,48}?[\s:`'\x22(]([A-Za-z0-9+/]{43}=(?:[`'\x22]?,?\s+(?:and\s+)?[`'\x22]?[A-Za-z0-9+/]{43}=)*)",
        [
            "unseal key 1 is /thistlethistlethistlethistlethistlethistle=",
            "unseal keys: 9thistlethistlethistlethistlethistlethistle=, /thistlethistlethistlethistlethistlethistle=",
        ],
        ["unseal keys: 5, threshold 3", "unseal key 1 is kept by ada"],
    ),
    line(
        "key-that-begins-as-a-path",
        "people: a key in base64 that happens to begin with a slash",
        &[": /", " is /", " was /", " now /", " to /", "= /", "`/", " '/", " \"/"],
        r"(?i)\b(?:(?:private|secret|signing|encryption|api|access|master|shared|account|storage|unseal|session|cookie|root)[ _-]?key|secret|token|password)(?:\s+(?:is|was|now|to|of\s+\w+|for\s+\w+)){0,3}\s*[:=]?\s+[`'\x22]?((?-i:/[A-Za-z0-9+/]{21}==|/[A-Za-z0-9+/]{42}=|/[A-Za-z0-9+/]{85}==))(?:[\s,.;)`'\x22]|$)",
        [
            "private key: /thistlethistlethistlethistlethistlethistle=",
            "the secret key is now `/thist1ethist1ethist1e==`",
        ],
        ["private key: /thistle/thorn", "public key: /thistlethistlethistlethistlethistlethistle="],
    ),
    line(
        "refused-key",
        "OpenAI and who speaks as it does: Incorrect API key provided: x",
        &["y provided:", "y supplied:", "y given:"],
        r"(?i)\b(?:incorrect|invalid|wrong|unknown)\s+api[ _-]?key\s+(?:provided|supplied|given):\s*[`'\x22]?([a-z0-9_-]*[0-9][a-z0-9_-]{11,})(?:[\s,.;)`'\x22]|$)",
        [
            "Incorrect API key provided: th1stle9thorn4bramble. You can find yours at",
            "invalid api key supplied: 'th1stle9thorn4bramble'",
        ],
        ["Incorrect API key provided: sk-th***le.", "invalid API key given: none"],
    ),
    line(
        "encrypted-by-a-database",
        "PostgreSQL, pgcrypto: crypt('password', gen_salt('bf')), pgp_sym_encrypt(x, 'key')",
        &["crypt('", "pgp_sym_"],
        r"(?i)\bcrypt\(\s*'([^']+)'\s*,\s*gen_salt\(|\bpgp_sym_(?:en|de)crypt(?:_bytea)?\([^,()\n]+,\s*'([^']+)'",
        [
            "INSERT INTO users VALUES ('ada', crypt('thistle', gen_salt('bf')));",
            "SELECT pgp_sym_decrypt(card, 'thistle') FROM cards",
        ],
        ["crypt($1, gen_salt('bf'))", "pgp_sym_encrypt(card, :key)"],
    ),
    line(
        "private-key-in-xml",
        ".NET: RSAKeyValue, of which all but the modulus and the exponent is private",
        &["<d>", "<p>", "<q>", "<dp>", "<dq>", "<inverseq>"],
        r"<(?:D|P|Q|DP|DQ|InverseQ)>\s*([A-Za-z0-9+/]{40,}={0,2}(?:\s*</\w+>\s*<(?:D|P|Q|DP|DQ|InverseQ)>\s*[A-Za-z0-9+/]{40,}={0,2})*)\s*</",
        [
            "<RSAKeyValue><D>thistlethistlethistlethistlethistlethistle=</D></RSAKeyValue>",
            "<P>thistlethistlethistlethistlethistlethistle=</P><Q>thistlethistlethistlethistlethistlethistle=</Q>",
        ],
        ["<D>thistle</D>", "<Modulus>thistlethistlethistlethistlethistlethistle=</Modulus>"],
    ),
    line(
        "key-in-other-languages",
        "people: clé API : x, API-Schlüssel: x, clave de la API: x",
        &[
            "api-schl",
            "api schl",
            "i-sleutel",
            "i sleutel",
            "pi-nyckel",
            "pi-nøkkel",
            "clé api",
            "clé d",
            "clé sec",
            "clave api",
            "clave de ",
            "clave sec",
            "chiave api",
            "chiave seg",
            "chave api",
            "chave da ",
            "chave de ",
            "chave sec",
            "klucz api",
            "ключ api",
            "jeton",
        ],
        r#"(?i)\b(?:api[- ]?(?:schl\xc3\xbcssel|sleutel|nyckel|n\xc3\xb8kkel)|cl\xc3\xa9\s(?:api|d'api|d\xe2\x80\x99api|de\sl'api|secr\xc3\xa8te)|clave\s(?:de\s(?:la\s)?)?(?:api|secreta)|chiave\s(?:api|segreta)|chave\s(?:da\s|de\s)?(?:api|secreta)|klucz\sapi|jeton(?:\sd'acc\xc3\xa8s)?)(?:\s[a-z0-9\x80-\xff_.-]{1,24}){0,4}?\s*(?::|=|\s(?:lautet|ist|est|es|\xc3\xa9|\xc3\xa8|is|\xc3\xa4r))(?:\s(?:jetzt|nun|maintenant|ahora|agora|ora|nu))?\s*["'`]?([a-z0-9_+/.~-]{16,}={0,2})"#,
        ["API-Schlüssel für die Post: th1stle9Thorn4Bramble7", "clé API du portail : th1stle9Thorn4Bramble7"],
        ["clé API : voir le coffre-fort-de-production", "API-Schlüssel: mindestens"],
    ),
    line(
        "program-that-hashes",
        "OpenSSL: dgst -hmac key; Caddy: hash-password --plaintext password",
        &["-hmac ", "plaintext "],
        r#"\bopenssl\s+dgst\s[^|;&]*?-hmac\s+["']?([^\s"'$-][^\s"'$]*)|\bhash-password\s[^|;&]*?--plaintext\s+["']?([^\s"'$-][^\s"'$]*)"#,
        ["openssl dgst -sha256 -hmac thistle body.json", "caddy hash-password --plaintext 'thistle'"],
        ["openssl dgst -sha256 -hmac \"$KEY\" body.json", "caddy hash-password --plaintext \"$PW\""],
    ),
];
