//! Names that say secret, and names that only sound like it.

use super::*;

#[test]
fn names_that_say_secret() {
    for name in [
        "password",
        "Password",
        "PASSWORD",
        "dbPassword",
        "db_password",
        "DB-PASSWORD",
        "db.password",
        "mysqlRootPassword",
        "dbpassword",
        "passwd",
        "pwd",
        "DB_PWD",
        "secret",
        "clientSecret",
        "client_secret",
        "token",
        "authToken",
        "GITHUB_TOKEN",
        "x-auth-token",
        "apikey",
        "apiKey",
        "API_KEY",
        "api-key",
        "VAULT_DEV_ROOT_TOKEN_ID",
        "TS_AUTHKEY",
        "X-Goog-Signature",
        "node.cookie",
        "APIKey",
        "accesskey",
        "accessKeyId",
        "AWS_SECRET_ACCESS_KEY",
        "privatekey",
        "private_key",
        "signingKey",
        "credential",
        "credentials",
        "gitCredentials",
        "connectionString",
        "dsn",
        "SENTRY_DSN",
        "bearer",
        "passphrase",
        "tls.key",
        "server-key.pem",
        "id_rsa",
        "ssh_host_rsa_key",
        "client-key-data",
        "JWT_SECRET",
        "secret_id",
        "password1",
        "PASSWORD_2",
        "TOKEN_PROD",
        "tokenValue",
        ".dockerconfigjson",
        "global.redis.password",
        "users[0].password",
        "adminPass",
        "passwordHash",
        "licenseKey",
        "Tokens",
        "spring.datasource.password",
        "oauth2ClientSecret",
        "_authToken",
        "encryption_key",
    ] {
        assert!(matches!(classify(name), Class::Secret | Class::Scalar), "{name} is not seen as secret");
    }
    for name in ["auth", "authorization", "Authorization", "proxy-authorization", "cookie"] {
        assert_eq!(classify(name), Class::Header, "{name}");
    }
}

#[test]
fn names_of_logons_hold_a_password_behind_a_user() {
    for name in ["auth.basic", "basicAuth", "basic-auth"] {
        assert_eq!(classify(name), Class::Logon, "{name}");
        assert!(Class::Logon.holds(name, "ada:thistle"), "{name}");
        assert!(!Class::Logon.holds(name, "https://sso.example.org"), "{name}");
    }
}

#[test]
fn names_of_users_hold_passwords_that_somebody_made_up() {
    for name in ["USERS", "ftp_users", "HTTP_USERS", "mail.accounts"] {
        assert_eq!(classify(name), Class::Users, "{name}");
        assert!(Class::Users.holds(name, "ada:th1stle,bob:thistle"), "{name}");
        for text in
            ["ada,bob", "ada:admin,bob:viewer", "prod:123456789012", "github:ada7lace", "ada:{{ .pw9x }}"]
        {
            assert!(!Class::Users.holds(name, text), "{name}: {text}");
        }
    }
    assert_eq!(classify("secretUsers"), Class::Secret);
}

#[test]
fn the_community_of_an_agent_is_secret_and_a_place_of_people_is_not() {
    for name in ["community", "snmpCommunity", "read_community"] {
        assert!(classify(name).holds(name, "thistle-ro"), "{name}");
        assert!(!classify(name).holds(name, "https://discord.example.org"), "{name}");
        assert!(!classify(name).holds(name, "public"), "{name}");
    }
}

#[test]
fn names_that_only_sound_like_it() {
    for name in [
        "secretName",
        "secretRef",
        "secretKeyRef",
        "secretname",
        "tokenExpirationSeconds",
        "automountServiceAccountToken",
        "passwordPolicy",
        "imagePullSecrets",
        "existingSecret",
        "existingSecretPasswordKey",
        "RECAPTCHA_SITE_KEY",
        "SECRET_MANAGER_PROJECT",
        "stopTokens",
        "GPG_KEY_ID",
        "NOPASSWD",
        "VAULT_TOKEN_ID",
        "argocd.argoproj.io/secret-type",
        "tokenUrl",
        "TOKEN_URL",
        "passwordFile",
        "secretStoreRef",
        "tokenizer",
        "tokenizerName",
        "maxTokens",
        "max_tokens",
        "secretary",
        "publicKey",
        "key",
        "topologyKey",
        "labelKey",
        "partitionKey",
        "valuesKey",
        "passThrough",
        "bypass",
        "compass",
        "author",
        "authors",
        "secretProviderClass",
        "token-service",
        "SECRET_NAME",
        "keyboard",
        "monkey",
        "sealedSecrets",
        "image.pullSecrets[0].name",
        "global.pullSecrets[0]",
        "can_read_secret",
        "clientSecretRef",
        "tokenReviews",
        "signature",
        "name",
        "data",
        "config",
        "hostKeyAlgorithm",
        "service-account-issuer",
        "kubernetes.io/metadata.name",
        "",
    ] {
        assert_eq!(classify(name), Class::Plain, "{name} is seen as secret");
    }
}

#[test]
fn words_are_cut_where_people_cut_them() {
    for (name, cut) in [
        ("dbPassword", "db password"),
        ("APIKey", "api key"),
        ("API_KEY", "api key"),
        ("oauth2Token", "oauth2 token"),
        ("a.b-c_d", "a b c d"),
        ("", ""),
    ] {
        assert_eq!(words(name).join(" "), cut);
    }
}

/// The sign of the kelvin is a `k` in lower case.
#[test]
fn a_name_whose_last_words_are_asked_for_is_cut_only_where_its_letters_end_so() {
    for (name, is, may) in [
        ("public_key", true, true),
        ("vapidPublicKey", true, true),
        ("PUBLIC KEY:", true, true),
        ("public_\u{212a}ey", true, true),
        ("publickey", false, true),
        ("pub_lic_key", false, true),
        ("private_key", false, false),
        ("public_keys", false, false),
        ("public_key_2", false, false),
        ("key", false, false),
        ("", false, false),
    ] {
        assert_eq!(words(name).ends_with(&["public".to_owned(), "key".to_owned()]), is, "{name}");
        assert_eq!(may_end(name, "publickey"), may, "{name}");
    }
}

#[test]
fn what_a_name_holds_depends_on_what_stands_there() {
    for (name, text, secret) in [
        // Of Tyk: a shared key, an address, the base64 of both, of a public key.
        ("jwt_source", "YnVja3doZWF0LUdyb2F0cy05", true),
        ("jwt_source", "https://sso.example/certs", false),
        ("jwt_source", "aHR0cHM6Ly9zc28uZXhhbXBsZS9jZXJ0cw==", false),
        ("jwt_source", "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUlJQklqQU5CZ2txaGtpRzl3MEI=", false),
        ("encryption_key", "D34DB33F", false),
        ("encryption_key", "D34DB33F-thistle-9", true),
        ("SSL_KEY_CREDENTIALS", "kafka1_sslkey_creds", false),
        ("SSL_KEY_CREDENTIALS", "thistle9", true),
        ("secretDatabaseKey", "dbname", false),
        ("secret_access_key", "thistle9", true),
        ("delegation.token.secret.key", "thistle", true),
        ("password", "$dsn['password'] ?? null", false),
        ("password", "$dbpass", false),
        ("password", "$ecretive", true),
        ("client_secret", "get_the_secret_of_above_key", false),
        ("client_secret", "GET_THE_SECRET_OF_ABOVE_KEY", false),
        ("client_secret", "horses_the_secret_of_above", true),
        ("User-Password", "&request:User-Password", false),
        ("otp", "application/vnd.oasis.opendocument", false),
        ("id-token", "write", false),
        ("cookie_hash", "4kX3yT6OlIJbYmPM29U76iq7r6iaLzG2kV9iIxp66go=", true),
        ("access_key_encryption", "4kX3yT6OlIJbYmPM29U76iq7r6iaLzG2kV9iIxp66go=", true),
        ("cookie_hash", "sha256", false),
        ("password_encryption", "scram-sha-256", false),
        ("kek", "ebafdb6802ca73f7109e0bd945c56cf0", true),
        ("kek_label", "kek-1", false),
        ("uriSecret", "openfga-dsn", false),
        ("clientSecret", "thistle-dsn", true),
        ("PIN_CODE", "483920", true),
        ("doorPinCode", "4839", true),
        ("PIN_CODE", "GPIO13", false),
    ] {
        assert_eq!(classify(name).holds(name, text), secret, "{name}: {text}");
    }
    assert_eq!(classify("configFromSecret"), Class::Plain);
    assert_eq!(classify("redisSecretInit"), Class::Plain);
}

#[test]
fn the_code_of_a_pin_leaves_in_no_way_that_it_is_written() {
    let redactor = crate::Redactor::new(b"the key of the tests");
    for text in
        ["PIN_CODE: \"483920\"\n", "pin-code: 483920\n", "pinCode: '483920'\n", "a: |\n  PIN_CODE=483920\n"]
    {
        assert!(!redactor.raw(text).contains("483920"), "{text}");
    }
    for text in ["pinCount: 483920\n", "spinCode: 483920\n"] {
        assert_eq!(redactor.raw(text), text);
    }
}
