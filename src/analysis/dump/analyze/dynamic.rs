//! Very many assemblies without a file.
//!
//! Rule: at least `dynamic` assemblies do not have a file. Serializers, proxies, compiled expressions and scripts emit assemblies. An emitted
//! assembly is never freed, nor are its types and code, unless it is collectible and unreferenced.
//!
//! The title names likely causes: the library that uses such assembly names, the method whose variables hold an `AssemblyBuilder`, and the holder of
//! objects of these assemblies' types.
//!
//! Source: the runtime's list of modules, as `modules` shows it; paths from roots.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Skip};
use super::async_waits::held_by;
use super::line::{counted, listed};
use crate::analysis::walk::objects_of;
use crate::analysis::{ModuleModel, Problem, ProblemId, ProblemSeverity};
use crate::analysis::{PathsQuery, paths};
use crate::base::{Addr, Count, len64, thousands};
use crate::model::{RootKind, Stacks};
use crate::session::TypePattern;

/// Name patterns listed in the title.
const NAMED: usize = 3;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let list = answers.dynamic()?;
    let count = len64(list.len());
    if count < answers.thresholds().dynamic {
        return Ok(Vec::new());
    }
    let mut patterns: BTreeMap<String, u64> = BTreeMap::new();
    list.iter().for_each(|m| patterns.entry(pattern(m.name.as_deref().unwrap_or("?"))).or_default().bump());
    let mut patterns: Vec<(String, u64)> = patterns.into_iter().collect();
    patterns.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = if patterns.len() > NAMED {
        format!(" and {}", counted(len64(patterns.len().saturating_sub(NAMED)), "other name"))
    } else {
        String::new()
    };
    let named = listed(patterns.iter().take(NAMED).map(|(name, n)| format!("{} × {name}", thousands(*n))));
    let contexts: BTreeSet<_> = list.iter().filter_map(|m| m.load_context).collect();
    let within = if contexts.is_empty() { String::new() } else { format!(", in {}", counted(len64(contexts.len()), "load context")) };
    let collectible = len64(list.iter().filter(|m| m.collectible == Some(true)).count());
    let from: Vec<String> =
        makers(patterns.iter().map(|(name, _)| name.as_str())).chain(emitter(answers)).chain(holder(answers, list)).collect();
    let from = from.into_iter().map(|clause| format!("; {clause}")).collect::<String>();
    let title = format!("{} made at run time: {named}{more}{within}; {} can be unloaded{from}", assemblies(count), thousands(collectible));
    Ok(vec![Problem { count: Some(count), ..answers.finding(ProblemId::DynamicAssemblies, ProblemSeverity::Warning, title, &["modules"]) }])
}

/// Libraries that emit assemblies: the prefix of the assembly names, and a clause for the title.
///
/// Source: `XmlSerializationILGen` and `TempAssembly` (System.Private.Xml), `DispatchProxyGenerator.ProxyAssembly` (System.Reflection.DispatchProxy),
/// `ModuleScope` (Castle.Core), `ScriptBuilder` (Microsoft.CodeAnalysis.Scripting).
const MAKERS: [(&str, &str); 4] = [
    (
        "Microsoft.GeneratedCode",
        "XmlSerializer makes assemblies with this name, one in each call of a constructor that takes more than a type and a namespace; reuse the serializers",
    ),
    ("ProxyBuilder", "DispatchProxy makes an assembly with this name"),
    (
        "DynamicProxyGenAssembly",
        "Castle DynamicProxy makes assemblies with this name, one for each ProxyGenerator; share one ProxyGenerator",
    ),
    ("ℛ*", "C# scripting makes assemblies with such names, one for each evaluation of a script; compile a script once and run it often"),
];

fn makers<'n>(names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = String> {
    let names: Vec<&str> = names.take(NAMED).collect();
    MAKERS.into_iter().filter(move |(begin, _)| names.iter().any(|name| name.starts_with(begin))).map(|(_, maker)| maker.into())
}

/// Names a method whose variables hold an `AssemblyBuilder`, because it is creating an assembly or has just created one.
fn emitter(answers: &Answers<'_>) -> Option<String> {
    let heap = answers.heap().ok().filter(|_| answers.query.graph)?;
    let types = vec![TypePattern::Name("System.Reflection.Emit.*AssemblyBuilder".into())];
    let query = PathsQuery { object: None, types, paths: 1, weak: false, stacks: Stacks::default(), depth: 1, lines: 1, full: false };
    // Without paths, the finding does not name a method.
    let found = paths(heap, &query).ok()?.data;
    let roots = found.paths.iter().flat_map(|path| &path.roots).filter(|root| root.kind == RootKind::Stack);
    let method = roots.filter_map(|root| root.method()).find(|method| method.contains('('))?;
    Some(format!("{method} made one of them"))
}

/// Names the field that holds most objects in a sample of the objects whose types are in these assemblies.
fn holder(answers: &Answers<'_>, list: &[ModuleModel]) -> Option<String> {
    /// Size of the sample, in objects.
    const SAMPLE: usize = 8;
    let heap = answers.heap().ok().filter(|_| answers.query.graph)?;
    let modules: BTreeSet<Addr> = list.iter().filter_map(|m| m.module).collect();
    let tables = heap.walker().tables();
    let found = objects_of(heap, |mt| tables.loader_module(mt).is_some_and(|module| modules.contains(&module))).data;
    let step = found.len().div_ceil(SAMPLE).max(1);
    let mut holders: BTreeMap<String, u64> = BTreeMap::new();
    for (object, _) in found.iter().step_by(step) {
        if let Some(by) = held_by(answers, *object) {
            holders.entry(by).or_default().bump();
        }
    }
    let (by, _) = holders.into_iter().max_by_key(|(_, n)| *n)?;
    Some(format!("{by} holds objects of their types"))
}

fn assemblies(n: u64) -> String {
    if n == 1 { "1 assembly".into() } else { format!("{} assemblies", thousands(n)) }
}

/// Replaces each number and id in a name with a star.
fn pattern(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let (word, end) = match part.char_indices().last().filter(|(_, c)| !c.is_alphanumeric()) {
            Some((at, _)) => part.split_at(at),
            None => (part, ""),
        };
        match word.split_once(|c: char| c.is_ascii_digit()) {
            Some((before, _)) => out.push_str(&format!("{before}*")),
            None => out.push_str(word),
        }
        out.push_str(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{makers, pattern};

    #[test]
    fn names_identify_the_library_that_emits_assemblies() {
        let of = |names: &[&str]| makers(names.iter().copied()).count();
        assert_eq!([of(&["Microsoft.GeneratedCode*"]), of(&["ℛ**-*#*-*", "DynamicProxyGenAssembly*"]), of(&["Lab.Emitted*"])], [1, 2, 0]);
    }

    #[test]
    fn names_that_differ_in_numbers_are_equal() {
        assert_eq!(pattern("Microsoft.GeneratedCode17"), "Microsoft.GeneratedCode*");
        assert_eq!(pattern("DynamicProxyGenAssembly2"), "DynamicProxyGenAssembly*");
        assert_eq!(pattern("a"), "a");
        assert_eq!(pattern(""), "");
        assert_eq!(pattern("ℛ*1e2d-3f#1-0"), "ℛ**-*#*-*");
    }
}
