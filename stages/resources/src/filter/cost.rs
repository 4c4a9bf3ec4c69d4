//! The cost of an expression, computed from its syntax tree.

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue};

use super::FilterError;

/// The functions that an expression may call, sorted.
pub(super) const FUNCTIONS: [&str; 13] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];
/// The most macros within one another.
pub(super) const MAX_MACROS: usize = 3;

/// How the steps of an evaluation grow with the lists of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpressionCost {
    /// The nodes of its tree.
    nodes: usize,
    /// How deep its macros stand within one another.
    macros: usize,
}

impl ExpressionCost {
    /// The cost of a tree, whose names and macros are checked.
    pub(super) fn of(tree: &IdedExpr) -> Result<Self, FilterError> {
        if let Some(what) = no_condition(&tree.expr) {
            return Err(FilterError::NoCondition(what));
        }
        let mut walk = ExpressionWalk { names: vec!["object"], nodes: 0, deepest: 0 };
        walk.expression(tree, 0)?;
        Ok(Self { nodes: walk.nodes, macros: walk.deepest })
    }

    /// An upper bound of the steps for an object whose longest list has so many members.
    pub(super) fn steps(self, longest: usize) -> usize {
        // Lists that are written in the expression itself have fewer members than it has nodes.
        let longest = longest.max(self.nodes);
        (0..self.macros).fold(self.nodes, |steps, _| steps.saturating_mul(longest))
    }
}

/// The type of a tree that can never be true or false.
fn no_condition(tree: &Expr) -> Option<&'static str> {
    match tree {
        Expr::List(_) => Some("list"),
        Expr::Map(_) | Expr::Struct(_) => Some("map"),
        Expr::Literal(LiteralValue::String(_)) => Some("text"),
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(_) => Some("value"),
        _ => None,
    }
}

/// Counts the nodes of a tree, and checks its names and macros.
struct ExpressionWalk<'e> {
    /// The variables that are in scope.
    names: Vec<&'e str>,
    nodes: usize,
    deepest: usize,
}

impl<'e> ExpressionWalk<'e> {
    fn expression(&mut self, tree: &'e IdedExpr, macros: usize) -> Result<(), FilterError> {
        self.nodes += 1;
        match &tree.expr {
            Expr::Ident(name) if name.starts_with('@') || self.names.contains(&name.as_str()) => Ok(()),
            Expr::Ident(name) => Err(FilterError::Name(name.clone())),
            Expr::Select(select) => self.expression(&select.operand, macros),
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !FUNCTIONS.contains(&name) {
                    return Err(FilterError::Function(name.to_owned()));
                }
                let target = call.target.as_deref();
                target.into_iter().chain(&call.args).try_for_each(|part| self.expression(part, macros))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|part| self.expression(part, macros)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr, macros)),
            Expr::Struct(of) => Err(FilterError::Name(of.type_name.clone())),
            Expr::Comprehension(of) => self.comprehension(of, macros),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn entry(&mut self, entry: &'e EntryExpr, macros: usize) -> Result<(), FilterError> {
        match entry {
            EntryExpr::StructField(field) => self.expression(&field.value, macros),
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key, macros)?;
                self.expression(&entry.value, macros)
            }
        }
    }

    /// Its range is evaluated once for each iteration of the macros around it, its steps for each member of the range.
    fn comprehension(&mut self, of: &'e ComprehensionExpr, macros: usize) -> Result<(), FilterError> {
        let within = macros + 1;
        if within > MAX_MACROS {
            return Err(FilterError::Macros);
        }
        self.deepest = self.deepest.max(within);
        if !is_range(&of.iter_range.expr) {
            return Err(FilterError::Range);
        }
        self.expression(&of.iter_range, macros)?;
        let known = self.names.len();
        self.names.extend([of.iter_var.as_str(), of.accu_var.as_str()]);
        self.names.extend(of.iter_var2.as_deref());
        for part in [&of.accu_init, &of.loop_cond, &of.loop_step, &of.result] {
            self.expression(part, within)?;
        }
        self.names.truncate(known);
        Ok(())
    }
}

/// Whether the range of a macro is no longer than a list of the object or of the expression.
fn is_range(tree: &Expr) -> bool {
    match tree {
        Expr::Ident(_) | Expr::List(_) | Expr::Map(_) => true,
        Expr::Select(select) => is_range(&select.operand.expr),
        Expr::Comprehension(of) => is_range(&of.iter_range.expr),
        Expr::Call(call) if call.func_name == "_[_]" => {
            call.args.first().is_some_and(|of| is_range(&of.expr))
        }
        _ => false,
    }
}
