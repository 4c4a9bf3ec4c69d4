//! How long the text of a GraphQL query may be, and how deep: what reads one has no limit of its own, takes hundreds of bytes for
//! each of the text's, and goes one call deeper for each bracket, until the process has no stack left.
//!
//! takes: the text of a query - gives: nothing, or why it is not to be read - calls: nothing

/// Bytes of a query's text. Values that are long stand in its variables.
const LONGEST: usize = 64 << 10;
/// Brackets of a query that are open at once.
const DEEPEST: usize = 64;

/// Why the text of a query is not to be read. Nothing of the text stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryFault {
    /// It is too long.
    #[error("the query is longer than {LONGEST} bytes: put long values into its variables")]
    TooLong,
    /// Too much of it stands within itself.
    #[error(
        "the query has more than {DEEPEST} brackets open at once: ask for less at a time, and put deep values into its variables"
    )]
    TooDeep,
    /// A string is not closed: where it ends, and so which brackets stand in it, is open to guesses.
    #[error("a string of the query has no end: close it with the quotation marks that it begins with")]
    Unended,
}

/// Whether the text of a query may be given to what reads it. Brackets in strings and comments do not count; whether those that do
/// belong together is not looked at, since what reads the text goes no further where they do not.
///
/// # Errors
/// [`QueryFault`] says what to do.
pub fn check_query(text: &str) -> Result<(), QueryFault> {
    if text.len() > LONGEST {
        return Err(QueryFault::TooLong);
    }
    let (mut rest, mut open) = (text.as_bytes(), 0_usize);
    while let [first, tail @ ..] = rest {
        rest = match first {
            b'(' | b'[' | b'{' if open == DEEPEST => return Err(QueryFault::TooDeep),
            b'(' | b'[' | b'{' => {
                open += 1;
                tail
            }
            b')' | b']' | b'}' => {
                open = open.saturating_sub(1);
                tail
            }
            b'"' => match tail {
                [b'"', b'"', tail @ ..] => after_block(tail)?,
                _ => after_string(tail)?,
            },
            b'#' => after_comment(tail),
            _ => tail,
        };
    }
    Ok(())
}

/// What stands behind a string, which begins before `rest` and ends in the same line.
fn after_string(mut rest: &[u8]) -> Result<&[u8], QueryFault> {
    loop {
        rest = match rest {
            [b'"', tail @ ..] => return Ok(tail),
            [] | [b'\n' | b'\r', ..] => return Err(QueryFault::Unended),
            [b'\\', b'"' | b'\\', tail @ ..] | [_, tail @ ..] => tail,
        };
    }
}

/// What stands behind a string of any number of lines, which begins before `rest`. A backslash counts before three quotation marks
/// alone.
fn after_block(mut rest: &[u8]) -> Result<&[u8], QueryFault> {
    loop {
        rest = match rest {
            [b'"', b'"', b'"', tail @ ..] => return Ok(tail),
            [] => return Err(QueryFault::Unended),
            [b'\\', b'"', b'"', b'"', tail @ ..] | [_, tail @ ..] => tail,
        };
    }
}

/// What stands behind a comment: it ends with its line.
fn after_comment(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    end.and_then(|end| rest.get(end..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(open: &str, times: usize, close: &str) -> String {
        format!("{}{}", open.repeat(times), close.repeat(times))
    }

    #[test]
    fn a_query_is_as_long_and_as_deep_as_may_be_and_no_more() {
        assert_eq!(check_query(&"a".repeat(65_536)), Ok(()));
        assert_eq!(check_query(&"a".repeat(65_537)), Err(QueryFault::TooLong));
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}")] {
            assert_eq!(check_query(&nested(open, 64, close)), Ok(()), "{open}");
            assert_eq!(check_query(&nested(open, 65, close)), Err(QueryFault::TooDeep), "{open}");
            assert_eq!(check_query(&open.repeat(65)), Err(QueryFault::TooDeep), "{open}");
        }
        assert_eq!(check_query(&nested("{a(b:[", 22, "])}")), Err(QueryFault::TooDeep), "of several kinds");
        assert_eq!(check_query(&"{a(b:[])}".repeat(1_000)), Ok(()), "what is closed is not open");
        assert_eq!(check_query(&format!("{}{}", "}".repeat(99), "{".repeat(65))), Err(QueryFault::TooDeep));
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        let many = "[".repeat(99);
        for text in [
            format!(r#"{{ a(b: "{many}") }}"#),
            format!(r#"{{ a(b: "\"{many}\\") }}"#),
            format!("{{ a(b: \"\"\"{many}\n\\\"\"\"{many}\"\"\") }}"),
            format!("{{ a(b: \"\", c: \"{many}\") }}"),
            format!("{{ a # \"{many}\n }}"),
            format!("{{ a }} #{many}"),
        ] {
            assert_eq!(check_query(&text), Ok(()), "{text}");
        }
        for text in [
            format!(r#"{{ a(b: "\\", c: {many}) }}"#),
            format!(r#"{{ a(b: "", c: {many}) }}"#),
            format!(r##"{{ a(b: "#", c: {many}) }}"##),
            format!("{{ a(b: \"\"\"\\\\\"\"\"\"\"\", c: {many}) }}"),
            format!("{{ a(b: \"\"\"\"\"\", c: {many}) }}"),
            format!("{{ a # b\r{many}"),
        ] {
            assert_eq!(check_query(&text), Err(QueryFault::TooDeep), "{text}");
        }
    }

    #[test]
    fn a_string_without_an_end_is_refused_since_two_readers_end_it_at_two_places() {
        let many = "[".repeat(99);
        for text in [
            "{ a(b: \"".to_owned(),
            "{ a(b: \"\n\") }".to_owned(),
            "{ a(b: \"\\".to_owned(),
            // An empty string, one of a bracket, and then lists; or one string up to the end.
            format!("{{ a(b: [\"\"\" [ \" {many}"),
            "{ a(b: \"\"\"\\\"\"\"".to_owned(),
        ] {
            assert_eq!(check_query(&text), Err(QueryFault::Unended), "{text}");
        }
    }

    #[test]
    fn whoever_asks_is_told_what_to_do() {
        let said =
            [QueryFault::TooLong, QueryFault::TooDeep, QueryFault::Unended].map(|fault| fault.to_string());
        assert_eq!(
            said,
            [
                "the query is longer than 65536 bytes: put long values into its variables",
                "the query has more than 64 brackets open at once: ask for less at a time, and put deep values into its variables",
                "a string of the query has no end: close it with the quotation marks that it begins with",
            ]
        );
    }
}
