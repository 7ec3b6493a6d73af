//! From the parsed tree to one that runs: macros are recognised, names and functions resolved, constant regular
//! expressions compiled.

use std::sync::{Arc, LazyLock};

use cel::Env;
use cel::common::ast::{CallExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, operators};

use crate::cel::functions::{self, Function};
use crate::cel::nesting;
use crate::go_regex::GoRegex;

/// An expression ready to run.
#[derive(Debug)]
pub(crate) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(String),
    Bytes(Vec<u8>),
    Type(&'static str),
    This,
    Old,
    /// A variable of a macro, counted from the outermost.
    Local(usize),
    Field(Box<Expr>, Name),
    OptField(Box<Expr>, Name),
    Has(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    OptIndex(Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// Flagged members are left out when they are empty optionals.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Loop(Box<Loop>),
    /// `optMap`, and with the flag `optFlatMap`.
    OptMap(Box<Expr>, Box<Expr>, bool),
    Matches(Box<Expr>, Arc<GoRegex>),
    Call(Function, Vec<Expr>),
}

/// A name as it is written, and what it stands for when it is an escaped one.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) written: String,
    pub(crate) unescaped: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) range: Expr,
    /// Two variables: index and item, or key and value.
    pub(crate) two: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// `map` and `transformList`.
    Collect,
    TransformMap,
    TransformMapEntry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    In,
}

/// The grammar without macros: they stay calls, and are recognised here.
static GRAMMAR: LazyLock<Env> = LazyLock::new(Env::default);

/// Longer rules are refused: upstream's limit on a whole request is not far above.
const MAX_SOURCE: usize = 64 * 1024;

/// What the two values are called that an expression sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) this: &'static str,
    pub(crate) other: &'static str,
}

/// In rules of a schema.
pub(crate) const IN_SCHEMAS: Names = Names { this: "self", other: "oldSelf" };

/// Parses an expression; also says whether it names the other value.
pub(crate) fn compile(source: &str, names: Names) -> Result<(Expr, bool), String> {
    nesting::compiling(|| {
        let ast = parse(source)?;
        let mut scope = Scope { names, locals: Vec::new(), uses_old: false };
        let expr = scope.lower(&ast)?;
        Ok((expr, scope.uses_old))
    })
}

/// Checks only the syntax. The error reads like upstream's.
pub(crate) fn check(source: &str) -> Result<(), String> {
    nesting::compiling(|| parse(source).map(drop))
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    if source.len() > MAX_SOURCE {
        return Err("the rule is too long".to_owned());
    }
    if nesting::depth(source) > nesting::MAX_DEPTH {
        return Err(format!(
            "ERROR: <input>:-1:0: expression recursion limit exceeded: {}",
            nesting::MAX_DEPTH
        ));
    }
    let parser = GRAMMAR.parser().enable_ident_escape_syntax(true);
    parser.parse(source).map_err(|errors| errors.to_string().replace("\n| ", "\n | "))
}

struct Scope {
    names: Names,
    locals: Vec<String>,
    uses_old: bool,
}

type Lowered = Result<Expr, String>;

impl Scope {
    fn boxed(&mut self, ast: &IdedExpr) -> Result<Box<Expr>, String> {
        self.lower(ast).map(Box::new)
    }

    fn lower(&mut self, ast: &IdedExpr) -> Lowered {
        match &ast.expr {
            Ast::Unspecified => Err("an empty expression".to_owned()),
            Ast::Literal(literal) => Ok(constant(literal)),
            Ast::Ident(name) => self.ident(name),
            Ast::Select(select) => {
                if let Some(type_name) = qualified(ast).as_deref().and_then(type_constant) {
                    return Ok(Expr::Type(type_name));
                }
                let operand = self.boxed(&select.operand)?;
                let name = Name::new(&select.field);
                Ok(if select.test { Expr::Has(operand, name) } else { Expr::Field(operand, name) })
            }
            Ast::List(list) => {
                let item = |(index, item): (usize, &IdedExpr)| {
                    Ok((self.lower(item)?, list.optional_indices.contains(&index)))
                };
                list.elements.iter().enumerate().map(item).collect::<Result<_, String>>().map(Expr::List)
            }
            Ast::Map(map) => {
                let entry = |entry: &cel::common::ast::IdedEntryExpr| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        Ok((self.lower(&entry.key)?, self.lower(&entry.value)?, entry.optional))
                    }
                    EntryExpr::StructField(_) => Err("messages are not supported".to_owned()),
                };
                map.entries.iter().map(entry).collect::<Result<_, String>>().map(Expr::Map)
            }
            Ast::Struct(message) => Err(format!("unknown type {}", message.type_name)),
            Ast::Comprehension(_) => Err("unexpected comprehension".to_owned()),
            Ast::Call(call) => self.call(call),
        }
    }

    fn ident(&mut self, name: &str) -> Lowered {
        let name = name.trim_start_matches('.');
        if let Some(slot) = self.locals.iter().rposition(|local| local == name) {
            return Ok(Expr::Local(slot));
        }
        match name {
            _ if name == self.names.this => Ok(Expr::This),
            _ if name == self.names.other => {
                self.uses_old = true;
                Ok(Expr::Old)
            }
            _ => type_constant(name)
                .map(Expr::Type)
                .ok_or_else(|| format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Lowered {
        let args = call.args.as_slice();
        if let Some(target) = &call.target {
            return self.member_call(target, &call.func_name, args);
        }
        if let Some(operator) = operator(&call.func_name)
            && let [a, b] = args
        {
            return Ok(Expr::Binary(operator, self.boxed(a)?, self.boxed(b)?));
        }
        match (call.func_name.as_str(), args) {
            (operators::LOGICAL_AND, [a, b]) => Ok(Expr::And(self.boxed(a)?, self.boxed(b)?)),
            (operators::LOGICAL_OR, [a, b]) => Ok(Expr::Or(self.boxed(a)?, self.boxed(b)?)),
            (operators::LOGICAL_NOT, [a]) => Ok(Expr::Not(self.boxed(a)?)),
            (operators::NEGATE, [a]) => Ok(Expr::Negate(self.boxed(a)?)),
            (operators::CONDITIONAL, [a, b, c]) => {
                Ok(Expr::If(self.boxed(a)?, self.boxed(b)?, self.boxed(c)?))
            }
            (operators::INDEX, [a, b]) => Ok(Expr::Index(self.boxed(a)?, self.boxed(b)?)),
            (operators::OPT_INDEX, [a, b]) => Ok(Expr::OptIndex(self.boxed(a)?, self.boxed(b)?)),
            (operators::OPT_SELECT, [a, b]) => match &b.expr {
                Ast::Literal(LiteralValue::String(name)) => {
                    Ok(Expr::OptField(self.boxed(a)?, Name::new(name.inner())))
                }
                _ => Err("unexpected optional selection".to_owned()),
            },
            ("has", [only]) => match &only.expr {
                Ast::Select(select) => Ok(Expr::Has(self.boxed(&select.operand)?, Name::new(&select.field))),
                _ => Err("invalid argument to has() macro".to_owned()),
            },
            ("dyn", [only]) => self.lower(only),
            ("matches", [text, pattern]) => self.matches(text, pattern),
            (name, _) => self.function(name, name, None, args),
        }
    }

    fn member_call(&mut self, target: &IdedExpr, name: &str, args: &[IdedExpr]) -> Lowered {
        if let Some(space) = qualified(target)
            && !self.locals.contains(&space)
        {
            let full = format!("{space}.{name}");
            if functions::is_namespace(&space) {
                return self.function(&full, &full, None, args);
            }
        }
        if let Some(expr) = self.macro_call(target, name, args)? {
            return Ok(expr);
        }
        match (name, args) {
            ("matches", [pattern]) => self.matches(target, pattern),
            _ => self.function(name, name, Some(target), args),
        }
    }

    fn function(&mut self, name: &str, shown: &str, target: Option<&IdedExpr>, args: &[IdedExpr]) -> Lowered {
        let function = functions::find(name, target.is_some(), args.len())
            .ok_or_else(|| format!("undeclared reference to '{shown}' (in container '')"))?;
        let args = target.into_iter().chain(args).map(|arg| self.lower(arg)).collect::<Result<_, _>>()?;
        Ok(Expr::Call(function, args))
    }

    fn matches(&mut self, text: &IdedExpr, pattern: &IdedExpr) -> Lowered {
        let text = self.lower(text)?;
        if let Ast::Literal(LiteralValue::String(pattern)) = &pattern.expr {
            let regex = GoRegex::new(pattern.inner())?;
            return Ok(Expr::Matches(Box::new(text), Arc::new(regex)));
        }
        let function = functions::find("matches", true, 1).ok_or("no matches function")?;
        Ok(Expr::Call(function, vec![text, self.lower(pattern)?]))
    }

    fn with_locals(&mut self, variables: &[&IdedExpr], body: &IdedExpr) -> Lowered {
        let depth = self.locals.len();
        for variable in variables {
            let Ast::Ident(name) = &variable.expr else {
                return Err("argument must be a simple name".to_owned());
            };
            self.locals.push(name.clone());
        }
        let body = self.lower(body);
        self.locals.truncate(depth);
        body
    }

    fn macro_call(
        &mut self,
        target: &IdedExpr,
        name: &str,
        args: &[IdedExpr],
    ) -> Result<Option<Expr>, String> {
        use LoopKind as K;
        let (kind, two, has_filter) = match (name, args.len()) {
            ("all", 2) => (K::All, false, false),
            ("all", 3) => (K::All, true, false),
            ("exists", 2) => (K::Exists, false, false),
            ("exists", 3) => (K::Exists, true, false),
            ("exists_one" | "existsOne", 2) => (K::ExistsOne, false, false),
            ("exists_one" | "existsOne", 3) => (K::ExistsOne, true, false),
            ("filter", 2) => (K::Filter, false, false),
            ("map", 2) => (K::Collect, false, false),
            ("map", 3) => (K::Collect, false, true),
            ("transformList", 3) => (K::Collect, true, false),
            ("transformList", 4) => (K::Collect, true, true),
            ("transformMap", 3) => (K::TransformMap, true, false),
            ("transformMap", 4) => (K::TransformMap, true, true),
            ("transformMapEntry", 3) => (K::TransformMapEntry, true, false),
            ("transformMapEntry", 4) => (K::TransformMapEntry, true, true),
            ("optMap" | "optFlatMap", 2) => {
                let of = self.boxed(target)?;
                let body = self.with_locals(&[&args[0]], &args[1])?;
                return Ok(Some(Expr::OptMap(of, Box::new(body), name == "optFlatMap")));
            }
            _ => return Ok(None),
        };
        let range = self.lower(target)?;
        let variables: Vec<&IdedExpr> = args.iter().take(if two { 2 } else { 1 }).collect();
        let rest = &args[variables.len()..];
        let (filter, body) = match rest {
            [filter, body] if has_filter => (Some(self.with_locals(&variables, filter)?), body),
            [body] => (None, body),
            _ => return Ok(None),
        };
        let body = self.with_locals(&variables, body)?;
        Ok(Some(Expr::Loop(Box::new(Loop { kind, range, two, filter, body }))))
    }
}

impl Name {
    fn new(written: &str) -> Self {
        Self { written: written.to_owned(), unescaped: unescape(written) }
    }
}

/// `a.b.c` of plain names.
fn qualified(ast: &IdedExpr) -> Option<String> {
    match &ast.expr {
        Ast::Ident(name) => Some(name.clone()),
        Ast::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

fn constant(literal: &LiteralValue) -> Expr {
    match literal {
        LiteralValue::Boolean(b) => Expr::Bool(*b.inner()),
        LiteralValue::Bytes(bytes) => Expr::Bytes(bytes.inner().to_vec()),
        LiteralValue::Double(d) => Expr::Double(*d.inner()),
        LiteralValue::Int(i) => Expr::Int(*i.inner()),
        LiteralValue::Null => Expr::Null,
        LiteralValue::String(text) => Expr::Str(text.inner().to_owned()),
        LiteralValue::UInt(u) => Expr::Uint(*u.inner()),
    }
}

fn type_constant(name: &str) -> Option<&'static str> {
    const TYPES: [&str; 16] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "net.IP",
        "net.CIDR",
        "kubernetes.URL",
        "kubernetes.Quantity",
    ];
    TYPES.into_iter().find(|known| *known == name)
}

fn operator(name: &str) -> Option<Operator> {
    use Operator as O;
    Some(match name {
        operators::EQUALS => O::Equal,
        operators::NOT_EQUALS => O::NotEqual,
        operators::LESS => O::Less,
        operators::LESS_EQUALS => O::LessEqual,
        operators::GREATER => O::Greater,
        operators::GREATER_EQUALS => O::GreaterEqual,
        operators::ADD => O::Add,
        operators::SUBSTRACT => O::Subtract,
        operators::MULTIPLY => O::Multiply,
        operators::DIVIDE => O::Divide,
        operators::MODULO => O::Remainder,
        operators::IN => O::In,
        _ => return None,
    })
}

/// What names of fields are escaped because the language reserves them.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The field that an escaped name stands for. `None`: it is not escaped.
pub(crate) fn unescape(name: &str) -> Option<String> {
    if !name.contains("__") {
        return None;
    }
    if let Some(word) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return Some(word.to_owned());
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    let mut changed = false;
    'next: while let Some(c) = rest.chars().next() {
        for (escaped, plain) in
            [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")]
        {
            if let Some(after) = rest.strip_prefix(escaped) {
                out.push_str(plain);
                rest = after;
                changed = true;
                continue 'next;
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    changed.then_some(out)
}
