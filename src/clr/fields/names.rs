//! Names of types in signatures, in the style of [`crate::clr::type_names`].

use super::resolve::{Context, Types};
use crate::base::{Addr, Token, TokenTable};
use crate::clr::metadata::signature::TypeSig;
use crate::clr::render::{Level, levels, split_arity};

/// Maximum nesting of types.
const MAX_DEPTH: u32 = 32;
/// Maximum length of a name in bytes.
const LONGEST: usize = 4096;
/// Placeholder for parts that exceed a limit.
const CUT: &str = "…";

/// Formats the types of a signature.
pub(super) struct SignatureNames<'t> {
    types: &'t Types,
    context: &'t Context,
    out: String,
}

impl<'t> SignatureNames<'t> {
    pub(super) fn new(types: &'t Types, context: &'t Context) -> SignatureNames<'t> {
        SignatureNames { types, context, out: String::new() }
    }

    pub(super) fn name(mut self, sig: &TypeSig) -> String {
        self.write(sig, 0);
        self.out
    }

    fn push(&mut self, text: &str) {
        if self.out.len().saturating_add(text.len()) <= LONGEST {
            self.out.push_str(text);
        } else if !self.out.ends_with(CUT) {
            self.out.push_str(CUT);
        }
    }

    fn write(&mut self, sig: &TypeSig, depth: u32) {
        if depth > MAX_DEPTH {
            return self.push(CUT);
        }
        let inner = depth.saturating_add(1);
        match sig {
            TypeSig::Primitive(element) => self.push(element.type_name().unwrap_or("?")),
            TypeSig::Class(token) | TypeSig::ValueType(token) => self.token(*token, &[], inner),
            TypeSig::Generic { token, arguments, .. } => self.token(*token, arguments, inner),
            TypeSig::Var(n) => self.variable("!", *n, &self.context.arguments),
            TypeSig::MethodVar(n) => self.variable("!!", *n, &self.context.of_method),
            TypeSig::SzArray(element) => self.with_suffix(element, "[]", inner),
            TypeSig::Array(element, 1) => self.with_suffix(element, "[*]", inner),
            TypeSig::Array(element, rank) => {
                let commas = usize::try_from(rank.saturating_sub(1)).unwrap_or(0);
                self.with_suffix(element, &format!("[{}]", ",".repeat(commas)), inner);
            }
            TypeSig::Pointer(to) => self.with_suffix(to, "*", inner),
            TypeSig::ByRef(to) => self.with_suffix(to, "&", inner),
            TypeSig::Function(method) => {
                self.write(&method.result, inner);
                self.push("(");
                for (i, p) in method.parameters.iter().enumerate() {
                    self.push(if i == 0 { "" } else { ", " });
                    self.write(p, inner);
                }
                self.push(")");
            }
            TypeSig::Internal(mt) => {
                let name = self.types.names().name(Addr(*mt)).name.clone();
                self.push(&name);
            }
        }
    }

    /// Writes type variable `n`: its argument, or `mark` and its number if the argument is unknown.
    fn variable(&mut self, mark: &str, n: u32, arguments: &[Addr]) {
        let argument = usize::try_from(n).ok().and_then(|n| arguments.get(n));
        let name = argument.map_or_else(|| format!("{mark}{n}"), |a| self.types.names().handle_name(*a).name.clone());
        self.push(&name);
    }

    fn with_suffix(&mut self, element: &TypeSig, suffix: &str, depth: u32) {
        self.write(element, depth);
        self.push(suffix);
    }

    fn token(&mut self, token: Token, arguments: &[TypeSig], depth: u32) {
        let (table, row) = (token.table(), token.rid());
        if table == Some(TokenTable::TypeSpec) {
            let module = self.types.names().module(self.context.module);
            return match module.metadata.as_ref().and_then(|m| m.type_spec(row)) {
                Some(spec) => self.write(&spec, depth),
                None => self.push("?"),
            };
        }
        let by_name = |text: String| text.split('+').map(|n| Level { name: n.into(), arity: split_arity(n).1 }).collect::<Vec<_>>();
        let list = if table == Some(TokenTable::TypeRef) {
            self.types.reference_name(self.context.module, row, 0).map(by_name)
        } else {
            self.types.names().module(self.context.module).metadata.as_ref().and_then(|m| levels(m, row))
        };
        let Some(list) = list else { return self.push(&token.to_string()) };
        let (mut rest, last) = (arguments, list.len().saturating_sub(1));
        for (i, level) in list.iter().enumerate() {
            if i > 0 {
                self.push("+");
            }
            let mine = if i == last { rest.len() } else { level.arity.min(rest.len()) };
            let (now, later) = rest.split_at_checked(mine).unwrap_or((rest, &[]));
            self.push(if now.is_empty() { &level.name } else { level.plain_name() });
            for (n, argument) in now.iter().enumerate() {
                self.push(if n == 0 { "<" } else { ", " });
                self.write(argument, depth.saturating_add(1));
            }
            if !now.is_empty() {
                self.push(">");
            }
            rest = later;
        }
    }
}
