//! Sentences about secrets, and secrets in sentences: commit messages, errors, documentation.

use std::ops::Range;

use super::words::{ACTS, DIRECTIVES, FILL, FUNCTION, INTRODUCE, OWNS, SAYS, STATES, TELL, TERMS, TYPES};
use super::{keys, names, shape};

/// Whether what follows a name and a colon is a sentence about it.
pub(super) fn follows(name: &str, line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return false };
    if first.starts_with(['"', '\'']) {
        // `no-passwords: 'validation error: PASSWORD must refer'`, of a policy.
        let mut head = line.trim_start().trim_start_matches(['"', '\'']).split(": ");
        let fails = |word: &str| matches!(word, "error" | "failure" | "failed");
        return head.next().is_some_and(|head| head.split(' ').next_back().is_some_and(fails))
            && head.next().is_some_and(|rest| rest.split_whitespace().nth(4).is_some());
    }
    // What Go's client asked for: `failed to get token: Post "https://sso.example/token": EOF`.
    let asked =
        ["get", "head", "post", "put", "patch", "delete"].iter().any(|act| first.eq_ignore_ascii_case(act));
    if asked
        && words.clone().next().is_some_and(|next| next.trim_start_matches(['\\', '"']).starts_with("http"))
    {
        return true;
    }
    let count = 1 + words.clone().take(8).count();
    let plain = is_letters(first);
    let number = first.len() <= 3 && first.bytes().all(|byte| byte.is_ascii_digit());
    if number && words.clone().next().is_some_and(|next| is_letters(next.trim_end_matches('='))) {
        return true;
    }
    if words.clone().next() == Some("/") {
        return false;
    }
    // A command, by which it is read: `kubectl get secret x -o jsonpath=y`.
    if first.len() <= 16
        && first.bytes().all(|byte| byte.is_ascii_lowercase())
        && words.clone().next().is_some_and(is_letters)
        && words.clone().any(|word| word.starts_with("--") || word.len() == 2 && word.starts_with('-'))
    {
        return true;
    }
    // Of several pairs in a line: `client_secret: x, scopes: y`.
    if first.ends_with(',') && words.clone().next().is_some_and(|next| next.len() > 1 && next.ends_with(':'))
    {
        return false;
    }
    if !plain {
        let bare = first.trim_matches(['`', ',', '.', ';']);
        // `Password: \`x\``.
        let made = names::is_password(name) && (shape::is_password(bare) || shape::is_key(bare));
        // `(string) (len=2) "x"`, of Go.
        let typed =
            first.ends_with(')') && words.clone().next().is_some_and(|next| next.starts_with(['(', '"']));
        return first.starts_with('`') && !made || first.starts_with('(') && count > 1 && !typed;
    }
    let word = first.trim_end_matches(['.', ',', ':', ';', '!', '?', ')']).to_ascii_lowercase();
    let made = |word: &str| {
        let word = word.trim_matches(['(', ')', ',', '.', ';', ':']);
        shape::is_key(word) || shape::is_password(word)
    };
    // `password: mask x` is a password of two words.
    let begins = ACTS.contains(word.as_str()) && words.clone().any(made) || behind_verb(name, line).is_some();
    let told = TELL.contains(word.as_str()) && !begins;
    if told && (count > 1 || !names::is_password(name)) {
        return true;
    }
    // A sentence, unless it tells the secret further on.
    let function = words.clone().take(6).any(|word| FUNCTION.contains(word.to_ascii_lowercase().as_str()));
    let foreign = line.chars().any(|letter| letter.is_alphabetic() && !letter.is_ascii());
    let sentence = count >= 5
        && (foreign || first.starts_with(char::is_uppercase))
        && line.split_whitespace().take(12).all(|word| is_letters(word) || is_number(word));
    if sentence || count >= 3 && word.len() > 5 && (word.ends_with("ing") || word.ends_with("ed")) {
        return true;
    }
    if names::is_password(name) {
        let state = line.split_whitespace().take(4).any(is_state);
        let letters = line.split_whitespace().take(12).all(is_letters);
        let counts = || line.split_whitespace().all(|word| is_letters(word) || is_number(word));
        return letters && (count >= 3 && function || count >= 2 && (state || foreign))
            || foreign && count >= 4 && counts();
    }
    let words = words.take(8);
    count >= 2 && words.clone().take(1).all(is_letters) && !words.clone().any(made)
        || count >= 2 && words.take(2).all(is_letters)
        || function
}

/// The password of which nothing is told but what is done with it: `password: rotate th1stle`.
pub(super) fn behind_verb(name: &str, line: &str) -> Option<Range<usize>> {
    let line = line.trim_end();
    let (verb, word) = line.split_once(' ').filter(|_| names::is_password(name))?;
    let made = shape::is_password(word) && word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    (made && verb != "see" && TELL.contains(verb.to_ascii_lowercase().as_str()))
        .then(|| line.len() - word.len()..line.len())
}

/// Whether a name and its text are the subject of a commit: `fix(auth): token refresh races with logout`.
pub(super) fn is_subject(name: &str, text: &str) -> bool {
    let scope = name.trim_end_matches('!').strip_suffix(')').and_then(|name| name.split_once('('));
    scope.is_some_and(|(kind, _)| {
        kind.len() <= 12 && !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase())
    }) && text.split_whitespace().nth(1).is_some()
        && text.split_whitespace().map(|word| word.trim_end_matches([',', '.', ':'])).all(|word| {
            is_letters(word)
                || TERMS.contains(word)
                || !shape::is_password(word) && !shape::is_key(word) && !word.contains('=')
        })
}

/// Whether a word is made of letters alone, but for what ends it.
fn is_letters(word: &str) -> bool {
    let word = word.trim_matches(['.', ',', ':', ';', '!', '?', ')', '(', '"', '\'', '`']);
    !word.is_empty()
        && word.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '-' | '\'' | '/'))
}

/// Whether a word of a sentence counts something: `at least 14 characters`.
fn is_number(word: &str) -> bool {
    word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `text` is the type of a parameter, with nothing or null as its default: `Optional[str] = None`, `&str`.
pub(super) fn is_type(text: &str) -> bool {
    let (bare, default) = text.split_once('=').unwrap_or((text, "null"));
    let default = default.trim().trim_matches([',', ')', ';', '"', '\'']).to_ascii_lowercase();
    let mut words =
        bare.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    text.len() <= 64
        && matches!(default.as_str(), "" | "null" | "none" | "nil")
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" []<>?&|*:.,)(_".contains(&byte))
        && words.clone().next().is_some()
        && words.all(|word| TYPES.contains(word.to_ascii_lowercase().as_str()))
}

/// Whether a single word says how a secret is: `token=expired`, `password=required`.
pub(super) fn is_state(text: &str) -> bool {
    let word = text.trim_matches(['.', ',', ';', ')', '(', '"', '\'']);
    STATES.contains(word.to_ascii_lowercase().as_str())
}

/// Whether a single word says what was done to something: `secret: recreated`.
pub(super) fn is_participle(text: &str) -> bool {
    let word = text.trim_matches(['.', ',', ';', ')', '(']);
    word.len() >= 6 && word.ends_with("ed") && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether `text` is a word that stands behind names in sentences.
pub(super) fn is_word_of_prose(text: &str) -> bool {
    let word = text.trim_end_matches(['.', ',', ':', ';', '!', '?', ')']).to_ascii_lowercase();
    TELL.contains(word.as_str()) || FUNCTION.contains(word.as_str())
}

/// Whether a line is a sentence rather than a command: it begins as messages do, or has words that commands have not.
pub(super) fn is_sentence(line: &str) -> bool {
    let told = |word: &str| TELL.contains(word.to_ascii_lowercase().as_str());
    let mut words = line.split_whitespace().take(24);
    let first = words.next().unwrap_or_default();
    let subject = first.ends_with(':') && words.clone().next().is_some_and(told);
    subject || told(first) || words.any(|word| FUNCTION.contains(word.to_ascii_lowercase().as_str()))
}

/// Whether a quoted word names a field rather than tells what stands in it.
pub(super) fn is_name_of_field(text: &str) -> bool {
    names::classify(text) != names::Class::Plain
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_.".contains(&byte))
        || is_word_of_prose(text)
}

/// Whether configuration files set this name with nothing but space behind it.
pub(super) fn is_directive(name: &str) -> bool {
    DIRECTIVES.contains(name.to_ascii_lowercase().as_str())
}

/// The secret that a sentence tells behind a name: `password is x`, `password changed from x to y`, `password x`.
///
/// What is `owned` is one by the word before it, `the webhook secret`, where others name an object of Kubernetes.
pub(super) fn told(name: &str, class: names::Class, owned: bool, line: &str) -> Option<Range<usize>> {
    let password = names::is_password(name);
    // Of which it may be said whose it is: `pw for the new database is x`, `the shared secret of the switch is x`.
    let spoken = password || owned || name == "PIN";
    let (mut people, mut whose) = (false, 0);
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    // Where what stands in quotes ends.
    let mut closed = 0;
    for (number, word) in line.split([' ', '\t']).take(10).enumerate() {
        let start = at;
        at += word.len() + 1;
        if word.is_empty() || word.len() > 256 || start < closed {
            continue;
        }
        if word.starts_with('&') || line.get(at..).is_some_and(|rest| rest.trim() == "{") {
            // An attribute, `&request:User-Password`; the name of a block.
            break;
        }
        let runs = word.strip_prefix('`').is_some_and(|rest| !rest.is_empty() && !rest.contains('`'));
        if runs || word.contains("={") {
            // A command, `kargo admin password`; what was sent, which is looked at by itself: `body={"password":"x"}`.
            break;
        }
        let bare = word
            .trim_matches(['"', '\'', '`', ',', '.', ';', ')', '(', ':', '“', '”', '‘', '’', '„', '«', '»']);
        let offset = word.find(bare).unwrap_or(0);
        let lower = bare.to_ascii_lowercase();
        let quoted = word.trim_start_matches('(').starts_with(['"', '\'', '`', '“', '‘', '„', '«', '»']);
        let length = bare.len();
        let folded = keys::folded(bare);
        let bare = &*folded;
        let before = line.get(..start).unwrap_or_default().split_whitespace().rev();
        let mut before = before.filter(|word| *word != "«");
        let last = before.next().unwrap_or_default();
        let behind = last.trim_matches(['(', ':']).to_ascii_lowercase();
        // `password for the shop: x`.
        let colon = last.ends_with(':') && !introduces_other(&behind);
        let becomes = behind == "para" && before.next().is_some_and(|word| CHANGED.contains(&word));
        let given = says(&behind)
            || becomes
            || matches!(
                behind.as_str(),
                "to" | "be"
                    | "="
                    | "as"
                    | "from"
                    | "with"
                    | "by"
                    | "value"
                    | "auf"
                    | "naar"
                    | "till"
                    | "til"
                    | "na"
            );
        // What is neither quoted nor holds a digit or a sign is a word.
        let word_only = !quoted && bare.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        // `password is Two-Words-42`, `key changed to <32 hexadecimal digits>`.
        let phrase = password
            && (given || number == 0)
            && bare.matches('-').count() >= 2
            && bare.bytes().any(|byte| byte.is_ascii_digit())
            && bare.bytes().any(|byte| byte.is_ascii_alphabetic())
            && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let phrase = phrase
            || password
                && (given
                    || number == 0
                        && (is_in_humps(bare) || bare.bytes().filter(u8::is_ascii_digit).count() > 1))
                && is_made_up(bare)
            || password && (says(&behind) || behind == "=" || colon) && is_made_up_around_dots(bare)
            || password && says(&behind) && is_run_together(bare.trim_end_matches('!'))
            || password
                && (says(&behind) || number == 0 && line.get(at..).unwrap_or_default().trim().is_empty())
                && is_two_names(bare)
            || password && says(&behind) && is_words_together(bare)
            || password && colon && (is_made_up(bare) || is_two_names(bare.trim_end_matches('!')));
        // `password for the replica is two_words4712`.
        let phrase = phrase
            || password
                && says(&behind)
                && bare.len() >= 8
                && bare.bytes().filter(u8::is_ascii_digit).count() >= 3
                && bare.bytes().any(|byte| byte.is_ascii_alphabetic())
                && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !TERMS.contains(lower.as_str());
        // The id of a key of GnuPG.
        let id = matches!(bare.len(), 8 | 16)
            && bare.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
        // `use API key x`; in capitals it is the fingerprint of one.
        let behind_name = number == 0 && !bare.bytes().any(|byte| byte.is_ascii_uppercase());
        let hash = id || shape::is_hash(bare) && !((given || behind_name) && bare.len() >= 32);
        // `pw changed from one word to another`, of which one was made up.
        let next = || {
            let mut rest = line.get(at..).unwrap_or_default().split_whitespace();
            rest.next().filter(|word| matches!(*word, "to" | "->" | "=>" | "into")).and_then(|_| rest.next())
        };
        let changed = password && behind == "from" && next().is_some_and(shape::is_password)
            // Or both look like names that nobody has.
            || password
                && is_name_and_word(bare)
                && (behind == "from" && next().is_some_and(is_name_and_word) || behind == "to" && found.is_some());
        let like = phrase
            || changed && !is_word_of_prose(bare)
            || !word_only
                && !bare.starts_with('-')
                && if password {
                    shape::is_password(bare)
                        || shape::is_key(bare)
                        || quoted && given && !is_name_of_field(bare)
                } else {
                    shape::is_key(bare)
                        || given && shape::is_password(bare)
                        || (number == 0 || says(&behind)) && is_made_up(bare) && class != names::Class::Key
                        || quoted
                            && (behind == "value" || given && owned && !bare.contains(['/', '.']))
                            && !is_name_of_field(bare)
                };
        // `password of the shop set to x`.
        let strange = |word: &str| {
            word.bytes().any(|byte| b"!@#$%^&*+?".contains(&byte))
                || word.bytes().filter(u8::is_ascii_digit).count() > 1
        };
        let joined = || bare.contains('_') && names::classify(bare) == names::Class::Plain;
        let set = password
            && matches!(behind.as_str(), "to" | "a" | "à")
            && is_made_up(bare)
            && (strange(bare) || joined());
        let is = says(&behind) || becomes || set || colon || matches!(behind.as_str(), "=" | "auf");
        // Whose it is: `the password for ada@example.org was wrong`.
        let whom = matches!(behind.as_str(), "for" | "of" | "user" | "für");
        // `Reset PIN to 4711`.
        let pin = name == "PIN"
            && given
            && (4..=8).contains(&bare.len())
            && bare.bytes().all(|byte| byte.is_ascii_digit());
        let (like, hash) = (like || pin, hash && !pin);
        let like = like && !(whom && shape::is_mail_address(bare));
        // `password changed to "Kx7 two words"`.
        let phrase = quoted.then(|| quoted_words(name, line.get(start..)?)).flatten();
        let phrase = phrase.filter(|_| password && (given || number == 0 && is_phrase(name)));
        if (like || phrase.is_some()) && (whose == 0 || is || pin) && !shape::is_harmless(bare) && !hash {
            let range = start + offset..start + offset + phrase.map_or(length, str::len);
            closed = range.end;
            found = Some(found.map_or(range.clone(), |found| found.start..range.end));
            continue;
        }
        // `unseal key 1 is x`.
        let ordinal = bare.len() <= 2 && bare.bytes().all(|byte| byte.is_ascii_digit());
        // `password was wrong, set it to "x"`.
        let stated = word.ends_with(',') && is_state(bare);
        let filler = FILL.contains(lower.as_str()) || bare.is_empty() || ordinal || stated;
        let between = found.is_some()
            && matches!(
                lower.as_str(),
                "to" | "with" | "by" | "->" | "=>" | "and" | "instead" | "into" | "not" | "nicht" | "statt"
            );
        let owns = |word: &str| OWNS.contains(word);
        let person = owns(&behind) || owns(&lower) || matches!(lower.as_str(), "in" | "on");
        // At most three words, before what it is.
        people = people || spoken && person;
        let owner = people && whose < 3 && !TELL.contains(lower.as_str());
        whose += usize::from(owner && !person && !filler);
        if !(filler || between || number < 6 && (person || owner) && found.is_none()) {
            break;
        }
    }
    found
}

/// Whether a word says that what follows is meant.
pub(super) fn says(word: &str) -> bool {
    SAYS.contains(word)
}

/// Words that say that something was changed, in Portuguese and Spanish.
const CHANGED: [&str; 8] =
    ["alterada", "alterado", "trocada", "trocado", "redefinida", "cambiada", "cambiado", "actualizada"];

/// Whether a name is one of a password of several words.
fn is_phrase(name: &str) -> bool {
    name.get(name.len().saturating_sub(6)..).is_some_and(|end| end.eq_ignore_ascii_case("phrase"))
}

/// Whether what stands in quotes behind the name of a password of several words is one.
pub(super) fn is_phrase_in_quotes(name: &str, words: &str) -> bool {
    is_phrase(name) && (3..=16).contains(&words.split(' ').count()) && !words.split(' ').any(is_word_of_prose)
}

/// Whether what stands behind the name of a password of several words is one: `moss over cold granite`, and no sentence.
pub(super) fn is_phrase_of_words(name: &str, text: &str) -> bool {
    let words = || text.trim().split(' ');
    let small = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let edge = [words().next(), words().next_back()];
    is_phrase(name)
        && (4..=12).contains(&words().count())
        && words().all(small)
        && words().filter(|word| is_word_of_prose(word)).count() < 2
        && !edge.into_iter().flatten().any(is_word_of_prose)
}

/// What stands in the quotes that open a text, where it is several words of which one was made up and none is of a sentence;
/// of a passphrase none need be.
fn quoted_words<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let text = text.trim_start_matches('(');
    let open = text.chars().next()?;
    let close = match open {
        '“' | '„' => ['“', '”'],
        '‘' => ['’', '’'],
        '«' => ['»', '»'],
        other => [other, other],
    };
    let words = text.get(open.len_utf8()..)?.split(close).next()?;
    let made = words.bytes().any(|byte| byte.is_ascii_digit());
    let whole = words.len() + 2 * open.len_utf8() <= text.len() && words.len() <= 64;
    let words_of_one = made && words.contains(' ') && !words.split(' ').any(is_word_of_prose);
    (whole && (words_of_one || is_phrase_in_quotes(name, words))).then_some(words)
}

/// What a check quotes that refuses a secret: `DB_PASSWORD must not be a literal: got "x"`.
pub(super) fn checked(line: &str) -> Option<Range<usize>> {
    let opens = [
        " got \"",
        " got '",
        "value \"",
        "value '",
        " found \"",
        " received \"",
        "actual \"",
        "literal \"",
        "^got \"",
    ];
    // What a check quotes stands near its beginning.
    let begin = line.get(..line.floor_char_boundary(176)).unwrap_or_default();
    begin.find(['"', '\''])?;
    let at = opens.iter().find_map(|open| match open.strip_prefix('^') {
        Some(open) => line.starts_with(open).then_some(open.len()),
        None => begin.find(open).map(|at| at + open.len()),
    })?;
    let quote = line.get(..at)?.chars().next_back()?;
    let text = line.get(at..)?.split(quote).next()?;
    let word = !TYPES.contains(text) && !is_name_of_field(text) && !is_state(text) && !text.contains(' ');
    let told = shape::is_harmless(text) || shape::is_switch(text) || shape::is_address(text);
    (at <= 160 && word && !told).then(|| at..at + text.len())
}

/// Whether what follows this word and a colon is something else than the secret of which the sentence speaks.
pub(super) fn introduces_other(word: &str) -> bool {
    let word = word.trim_matches(['(', '"', '\'', '`']).to_ascii_lowercase();
    INTRODUCE.contains(word.as_str())
}

/// Whether a text is a part of a sentence: four words of letters or more, one of which holds it together.
pub(super) fn is_saying(text: &str) -> bool {
    text.split_whitespace().count() >= 4
        && text.split_whitespace().all(is_letters)
        && text.split_whitespace().any(|word| FUNCTION.contains(word))
}

/// Whether a word of a sentence was made up: `0ld-Faithful`, and neither a term nor a version.
pub(super) fn is_made_up(word: &str) -> bool {
    (6..=64).contains(&word.len())
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_!@#$%^&*+?".contains(&byte))
        && !TERMS.contains(word.to_ascii_lowercase().as_str())
        && !shape::is_version(word)
}

/// Whether two or three words with dots between them were made up, and are no name in a program: `fig.Tree9`.
fn is_made_up_around_dots(word: &str) -> bool {
    let known = |part: &str| TERMS.contains(part.to_ascii_lowercase().as_str());
    matches!(word.matches('.').count(), 1 | 2)
        && !word.split('.').any(known)
        && names::classify(word) == names::Class::Plain
        && is_made_up(&word.replace('.', "-"))
}

/// Whether a word begins small and goes on with a capital letter, as no sentence has it: `figTree-9`.
fn is_in_humps(word: &str) -> bool {
    let rises = |pair: &[u8]| matches!(pair, [first, second] if first.is_ascii_lowercase() && second.is_ascii_uppercase());
    word.starts_with(|letter: char| letter.is_ascii_lowercase()) && word.as_bytes().windows(2).any(rises)
}

/// Whether a word is two that nobody writes as one, and no name of a setting: `waxwingBerry`.
fn is_run_together(word: &str) -> bool {
    (8..=32).contains(&word.len())
        && word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && names::classify(word) == names::Class::Plain
}

/// Whether a word is three or more that hold no sentence together: `correct-horse-battery`.
fn is_words_together(word: &str) -> bool {
    let part = |part: &str| {
        part.len() >= 4 && part.bytes().all(|byte| byte.is_ascii_lowercase()) && !is_word_of_prose(part)
    };
    word.matches('-').count() >= 2 && word.split('-').all(part)
}

/// Whether a word is two that are written like names, and joined as nobody joins them: `Lapland-Bunting`.
pub(super) fn is_two_names(word: &str) -> bool {
    let folded = keys::folded(word);
    let word = &*folded;
    let name = |part: &str| {
        part.len() >= 4
            && part.starts_with(|letter: char| letter.is_ascii_uppercase())
            && part.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
            && !is_word_of_prose(part)
    };
    word.split_once(['-', '.', '_']).is_some_and(|(first, second)| name(first) && name(second))
        && names::classify(word) == names::Class::Plain
        && !TERMS.contains(word.to_ascii_lowercase().as_str())
}

/// Whether a word begins as names do, and goes on behind `_` as none does: `Bunting_old`.
fn is_name_and_word(word: &str) -> bool {
    let letters = |part: &str| part.len() >= 3 && part.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    word.split_once('_').is_some_and(|(first, second)| {
        first.starts_with(|letter: char| letter.is_ascii_uppercase())
            && letters(first)
            && letters(second)
            && second.starts_with(|letter: char| letter.is_ascii_alphabetic())
    }) && names::classify(word) == names::Class::Plain
}

/// Whether a text is a message, though it reads as YAML: a subject of several words, an empty line, and more; or a
/// sentence before the first colon of a line.
pub(super) fn is_message(text: &str) -> bool {
    if text.trim_start().starts_with(['{', '[']) {
        return false;
    }
    let mut lines = text.trim_start().lines();
    let subject = lines.next().unwrap_or_default();
    let words = subject.split_once(": ").is_some_and(|(scope, rest)| {
        !scope.contains(' ')
            && rest.split_whitespace().count() >= 3
            && !rest.starts_with(['"', '\'', '{', '[', '|', '>', '&', '#'])
    });
    let sentence = |line: &str| {
        !line.starts_with([' ', '\t', '#', '-', '"', '\'', '?', '{', '['])
            && line
                .split_once(": ")
                .is_some_and(|(head, _)| head.split_whitespace().count() >= 3 && !head.contains("{{"))
    };
    is_list_of_changes(text)
        || words && lines.next().is_some_and(|line| line.trim().is_empty())
        || text.lines().any(sentence)
}

/// Whether every line says in a sentence what was done to something: `- tokens: shorter lifetime`.
fn is_list_of_changes(text: &str) -> bool {
    let change = |line: &str| {
        line.strip_prefix("- ")
            .or_else(|| line.strip_prefix("* "))
            .and_then(|line| line.split_once(": "))
            .is_some_and(|(scope, rest)| {
                !scope.contains(' ')
                    && rest.split_whitespace().count() >= 2
                    && rest.starts_with(|letter: char| letter.is_alphabetic())
                    && (names::classify(scope) == names::Class::Plain || follows(scope, rest))
            })
    };
    let secret = |line: &str| {
        line.split_once(": ").is_some_and(|(scope, _)| names::classify(scope) != names::Class::Plain)
    };
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    lines().take(2).count() == 2 && lines().all(change) && lines().any(secret)
}

/// Whether a text is made of words of which the first begins as sentences do.
pub(super) fn is_caption(text: &str) -> bool {
    text.starts_with(char::is_uppercase) && text.split_whitespace().all(is_letters)
}

/// Whether a value is the label of a field that people see: `New password`, `Forgot your password?`.
pub(super) fn is_label(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.len() <= 64
        && text.starts_with(|letter: char| letter.is_uppercase())
        && text.split_whitespace().all(is_letters)
        && !names::is_joined_by_chance(text)
        && (words.any(|word| names::classify(word.trim_matches(['?', '!', '.', ':'])) != names::Class::Plain)
            || names::classify(text) != names::Class::Plain)
}
