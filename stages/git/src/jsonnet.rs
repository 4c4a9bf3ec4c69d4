//! What a file of Jsonnet names of others: `import`, `importstr` and `importbin` take a text as it is written, and nothing computed.

/// Files that are read of one.
const MAX_IMPORTS: usize = 256;

/// The paths that a file imports, as they are written.
pub(crate) fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut imports = false;
    let mut after_first = rest.chars();
    while let Some(first) = after_first.next() {
        if found.len() >= MAX_IMPORTS {
            break;
        }
        if first.is_whitespace() {
            rest = after_first.as_str();
        } else if first == '#' || rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else if let Some(block) = rest.strip_prefix("|||") {
            rest = behind_block(block);
            imports = false;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            imports = matches!(word, "import" | "importstr" | "importbin");
            rest = after;
        } else if let Some((path, after)) = text_at(rest) {
            found.extend(path.filter(|_| imports));
            (rest, imports) = (after, false);
        } else {
            (rest, imports) = (after_first.as_str(), false);
        }
        after_first = rest.chars();
    }
    found
}

/// What stands behind a text of several lines: it ends with a line that begins with the same three bars.
fn behind_block(block: &str) -> &str {
    let mut rest = block;
    while let Some((_, after)) = rest.split_once('\n') {
        if let Some(behind) = after.trim_start_matches([' ', '\t']).strip_prefix("|||") {
            return behind;
        }
        rest = after;
    }
    ""
}

/// The text in quotes that begins here, unless it has no end, and what stands behind it.
fn text_at(code: &str) -> Option<(Option<String>, &str)> {
    let verbatim = code.strip_prefix('@').filter(|after| after.starts_with(['"', '\'']));
    let quoted = verbatim.unwrap_or(code);
    let mut rest = quoted.chars();
    let quote = rest.next().filter(|first| matches!(first, '"' | '\''))?;
    let (mut text, mut rest) = (String::new(), rest.as_str());
    loop {
        let Some(at) = rest.find(|c: char| c == quote || (c == '\\' && verbatim.is_none())) else {
            return Some((None, ""));
        };
        let (before, marked) = rest.split_at(at);
        text.push_str(before);
        let mut after = marked.chars();
        let mark = after.next()?;
        let next = after.clone().next();
        // A quote stands for itself behind `\`, and of a verbatim text when it stands twice.
        let is_escaped = mark == '\\' || (verbatim.is_some() && next == Some(quote));
        if !is_escaped {
            return Some((Some(text), after.as_str()));
        }
        text.extend(after.next());
        rest = after.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn a_file_names_what_it_imports_and_nothing_that_stands_in_comments_or_texts() {
        for (text, expected) in [
            ("local k = import 'k.libsonnet'; k", vec!["k.libsonnet"]),
            (
                "(import \"../lib/a.libsonnet\") + (importstr '../a.txt') + importbin\n  'b'",
                vec!["../lib/a.libsonnet", "../a.txt", "b"],
            ),
            ("import/* here */'a'", vec!["a"]),
            ("// import 'a'\n# import 'b'\n/* import 'c' */ import 'd'", vec!["d"]),
            (
                "{ a: 'import', b: \"import 'x' \\\" import 'y'\", c: @'import ''z'' ', d: import @'e''f' }",
                vec!["e'f"],
            ),
            ("local a = |||\n  import 'x'\n  |\n|||; import 'b'", vec!["b"]),
            ("importer 'a' + an_import 'b' + import + 'c'", vec![]),
            ("import 'a\\'b'", vec!["a'b"]),
            ("import 'a' + import 'never ends", vec!["a"]),
            ("{ é: 'é' } + import 'é.libsonnet'", vec!["é.libsonnet"]),
            ("||| never ends\n import 'a'", vec![]),
        ] {
            assert_eq!(imports(text), expected, "{text}");
        }
        // What would be gone through once for each of its quotes.
        assert_eq!(imports(&"'\\".repeat(500_000)), [""; 0]);
        assert_eq!(imports(&"import 'a' ".repeat(1_000)).len(), super::MAX_IMPORTS);
    }
}
