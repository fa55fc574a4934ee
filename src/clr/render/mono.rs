//! Names of types that a `MonoType` describes: arguments of generic instances that are not classes, and types of fields.

use super::Renderer;
use super::places::Home;
use crate::base::Addr;
use crate::clr::method_table::{Mono, MonoForm};

impl Renderer<'_> {
    pub(super) fn mono_type(&mut self, mono: &Mono, ty: Addr, depth: u32) -> Option<Home> {
        if !self.enter(depth) {
            return None;
        }
        let inner = depth.saturating_add(1);
        match mono.form(self.memory, ty) {
            Some(MonoForm::Class(class)) => self.method_table(mono.handle(self.memory, class), inner),
            Some(MonoForm::Array(class, rank)) => {
                let home = self.method_table(mono.handle(self.memory, class), inner);
                let suffix = format!("[{}]", ",".repeat(usize::from(rank.saturating_sub(1))));
                self.push(&suffix);
                home
            }
            Some(MonoForm::Pointer(to)) => {
                let home = self.mono_type(mono, to, inner);
                self.push("*");
                home
            }
            Some(MonoForm::Plain(element)) => {
                match element.type_name() {
                    Some(name) => self.push(name),
                    None => return self.unknown(ty, depth),
                }
                None
            }
            None => self.unknown(ty, depth),
        }
    }
}
