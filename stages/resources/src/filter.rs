//! Which objects of a kind are reported: an expression in CEL (the Common Expression Language) over `object`.
//!
//! takes: an object, redacted - gives: whether it is taken - calls: nobody - fails: an expression that has no answer for an
//! object (a member is of another type) says why, and what a member that is not there is compared with is false
//!
//! Whoever writes an expression decides how much it costs, and the objects are anybody's: so its length, its macros and what
//! they may go over are bounded when it is compiled, and the steps of one evaluation are reckoned before it begins.

mod cost;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program, Value};
use serde_json::Value as Json;

use self::cost::ExpressionCost;

/// The most bytes of an expression.
const MAX_LENGTH: usize = 2_048;
/// The most brackets within one another.
const MAX_DEPTH: usize = 32;
/// The most steps of one evaluation.
const MAX_STEPS: usize = 1_000_000;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

/// A compiled expression.
#[derive(Clone)]
pub struct Filter {
    text: Arc<str>,
    program: Arc<Program>,
    cost: ExpressionCost,
}

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is empty.
    #[error("an expression is missing, such as object.status.phase == 'Failed'")]
    Empty,
    /// It is too long.
    #[error("the expression is longer than {MAX_LENGTH} bytes")]
    Long,
    /// It is nested too deeply.
    #[error("the expression is nested more than {MAX_DEPTH} brackets deep")]
    Deep,
    /// It is no expression of CEL.
    #[error("not an expression, at line {line} column {column}: {what}")]
    Syntax {
        /// The line, from 1.
        line: isize,
        /// The column, from 1.
        column: isize,
        /// The message of the parser.
        what: String,
    },
    /// It names an unknown variable.
    #[error("`{0}` is not known: an expression speaks of `object`, such as object.status.phase == 'Failed'")]
    Name(String),
    /// It calls an unknown function.
    #[error("there is no function `{0}`; there are {known}", known = cost::FUNCTIONS.join(", "))]
    Function(String),
    /// Its macros stand too deep within each other.
    #[error("macros stand more than {} deep within each other", cost::MAX_MACROS)]
    Macros,
    /// A macro goes over a computed list, whose length cannot be bounded.
    #[error(
        "a macro goes over what is computed: let it go over a member of the object, or what another macro gives"
    )]
    Range,
    /// Its value is never true or false, but of this type.
    #[error("the expression is a {0}, not true or false")]
    NoCondition(&'static str),
}

/// Why an expression has no answer for an object. It quotes nothing of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// It would take too many steps.
    #[error("the object's lists are too long for the expression")]
    Steps,
    /// A member has another type than the expression expects.
    #[error("a member is not of the type that the expression takes it for")]
    Type,
    /// The value is neither true nor false.
    #[error("the value is neither true nor false")]
    NoCondition,
}

impl Filter {
    /// Compiles an expression.
    ///
    /// # Errors
    /// [`FilterError`] says what is wrong with it, and where.
    pub fn compile(text: &str) -> Result<Self, FilterError> {
        if text.trim().is_empty() {
            return Err(FilterError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(FilterError::Long);
        }
        if depth(text) > MAX_DEPTH {
            return Err(FilterError::Deep);
        }
        let program = ENV.compile(text).map_err(|errors| {
            let first = errors.errors.first();
            let (line, column) = first.map_or((1, 1), |error| error.pos);
            let what =
                first.map_or("it cannot be read", |error| error.msg.lines().next().unwrap_or_default());
            FilterError::Syntax { line, column, what: what.to_owned() }
        })?;
        let cost = ExpressionCost::of(program.expression())?;
        Ok(Self { text: text.into(), program: Arc::new(program), cost })
    }

    /// Whether it is true of an object; it is false where it needs a member that is not there.
    ///
    /// # Errors
    /// [`EvaluationError`] if there is no answer.
    pub fn takes(&self, object: &Json) -> Result<bool, EvaluationError> {
        if self.cost.steps(longest(object)) > MAX_STEPS {
            return Err(EvaluationError::Steps);
        }
        let mut context = Context::with_env(ENV.clone());
        context.add_variable_from_value("object", value(object));
        match self.program.execute(&context) {
            Ok(Value::Bool(takes)) => Ok(takes),
            Ok(_) => Err(EvaluationError::NoCondition),
            Err(ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_)) => Ok(false),
            Err(_) => Err(EvaluationError::Type),
        }
    }
}

/// The text of the expression.
impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

/// How deep brackets stand within each other; brackets in string literals count too.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => now += 1,
            ')' | ']' | '}' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// The number of members of the largest list or object within a value.
fn longest(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.iter().map(longest).fold(items.len(), usize::max),
        Json::Object(members) => members.values().map(longest).fold(members.len(), usize::max),
        _ => 0,
    }
}

/// A value as expressions see it: a whole number is `int`, whatever its sign, so that it compares with one that is written.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(is) => Value::Bool(*is),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(value).collect())),
        Json::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), value(member)));
            Value::Map(members.collect::<HashMap<_, _>>().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn takes(expression: &str, object: &Json) -> Result<bool, EvaluationError> {
        Filter::compile(expression).unwrap().takes(object)
    }

    #[test]
    fn an_expression_speaks_of_the_object_and_what_is_not_there_does_not_apply() {
        let object = json!({
            "metadata": {"name": "web", "labels": {"team": "a"}},
            "spec": {"replicas": 3, "weight": 1.5, "paused": true},
            "status": {"conditions": [{"type": "Available", "status": "True"}, {"type": "Paused", "status": "False"}]},
        });
        for (expression, expected) in [
            ("object.spec.replicas == 3", true),
            ("object.spec.replicas > 5 || object.spec.paused", true),
            ("object.spec.weight < 1.6", true),
            ("object.metadata.labels['team'] in ['a', 'b']", true),
            ("'team' in object.metadata.labels", true),
            ("'other' in object.metadata.labels", false),
            ("has(object.metadata.labels.team)", true),
            ("!has(object.metadata.annotations)", true),
            ("object.metadata.annotations.x == 'y'", false),
            ("object.metadata.name.matches('^w.b$')", true),
            ("object.metadata.name.startsWith('w') && size(object.status.conditions) == 2", true),
            ("object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')", true),
            ("object.status.conditions.filter(c, c.status == 'True').exists(c, c.type == 'Paused')", false),
            ("object.status.conditions[0].type == 'Available'", true),
            ("object.status.conditions[7].type == 'Available'", false),
        ] {
            assert_eq!(takes(expression, &object), Ok(expected), "{expression}");
        }
        assert_eq!(takes("object.spec.replicas.startsWith('a')", &object), Err(EvaluationError::Type));
        assert_eq!(takes("object.spec.replicas", &object), Err(EvaluationError::NoCondition));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_place_and_a_reason() {
        let refused = |text: &str| Filter::compile(text).unwrap_err().to_string();
        assert_eq!(refused(" "), "an expression is missing, such as object.status.phase == 'Failed'");
        assert_eq!(refused(&"a".repeat(2_049)), "the expression is longer than 2048 bytes");
        assert_eq!(
            refused(&format!("{}1{}", "(".repeat(33), ")".repeat(33))),
            "the expression is nested more than 32 brackets deep"
        );
        let text = refused("object.status.phase = 'Failed'");
        assert!(text.starts_with("not an expression, at line 1 column 21: "), "{text}");
        assert_eq!(
            refused("objekt.status.phase == 'Failed'"),
            "`objekt` is not known: an expression speaks of `object`, such as object.status.phase == 'Failed'"
        );
        assert_eq!(
            refused("lower(object.kind) == 'pod'"),
            "there is no function `lower`; there are bool, bytes, contains, double, dyn, endsWith, int, matches, size, \
             startsWith, string, type, uint"
        );
        assert_eq!(
            refused("object.a.all(a, a.b.all(b, b.c.all(c, c.d.all(d, d))))"),
            "macros stand more than 3 deep within each other"
        );
        assert_eq!(
            refused("(object.a + object.b).exists(x, x == 1)"),
            "a macro goes over what is computed: let it go over a member of the object, or what another macro gives"
        );
        assert_eq!(refused("'yes'"), "the expression is a text, not true or false");
        assert_eq!(refused("[true]"), "the expression is a list, not true or false");
    }

    #[test]
    fn what_would_take_too_long_for_an_object_is_not_begun() {
        let filter = Filter::compile("object.a.exists(x, object.a.exists(y, x == y + 1))").unwrap();
        let list = |length: usize| json!({"a": vec![0; length]});
        assert_eq!(filter.takes(&list(50)), Ok(false));
        assert_eq!(filter.takes(&list(5_000)), Err(EvaluationError::Steps));
        let one = Filter::compile("object.a.exists(x, x == 1)").unwrap();
        assert_eq!(one.takes(&list(5_000)), Ok(false));
    }
}
