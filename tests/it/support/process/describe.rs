//! Bookkeeping, GC facts, and the descriptors.

use serde_json::{Map, Value, json};

use super::super::image::HEADERS;
use super::super::{GcPart, Hostile, Spec};
use super::{ARRAYS, Builder, CARD_INFO, DATA, Global, Globals, hex};

impl Builder {
    /// Bookkeeping and the free regions of the process.
    pub(super) fn bookkeeping(&mut self) {
        let mut next = 0;
        let mut rows = Vec::new();
        for (recount, size) in [(3u64, 0x5000u64), (0, 0x6000), (1, 0x7000)] {
            let at = self.native(CARD_INFO);
            self.set(at, "CardTableInfo", "Recount", recount);
            self.set(at, "CardTableInfo", "Size", size);
            // The pointer refers to the end of the next header.
            self.set(at, "CardTableInfo", "NextCardTable", if next == 0 { 0 } else { next + CARD_INFO });
            if recount != 0 {
                let range = json!({"start": hex(at), "end": hex(at + size)});
                rows.push(
                    json!({"list": "bookkeeping", "heap": null, "size_class": null, "address": hex(at), "range": range, "bytes": size, "segment": null}),
                );
            }
            next = at;
        }
        self.free.extend(rows);
        let start = self.pointer_var(next);
        self.gc_slot("BookkeepingStart", start);
        self.gc.push(("CardTableInfoSize".into(), Global::Number(CARD_INFO, "uint32")));
        if self.spec.regions {
            let bytes = self.lay.size("RegionFreeList");
            let (huge, decommit) = (self.var(bytes), self.var(3 * bytes));
            let head = self.free_chain("free-huge", None, Some("huge"), 1);
            self.set(huge, "RegionFreeList", "HeadFreeRegion", head);
            self.free_lists(decommit, "decommit", None, [1, 1, 0]);
            self.gc_slot("GlobalFreeHugeRegions", huge);
            self.gc_slot("GlobalRegionsToDecommit", decommit);
            self.gc.push(("CountFreeRegionKinds".into(), Global::Number(3, "uint32")));
        }
    }

    /// Facts of the collector.
    pub(super) fn facts(&mut self) {
        let busy = self.spec.gc_in_progress;
        let server = self.spec.server.is_some();
        for (name, value) in [
            ("MaxGeneration", 2),
            ("StructureInvalidCount", u64::from(busy)),
            ("CurrentGCState", if busy || self.spec.sweeping { 1 } else { 2 }),
        ] {
            let at = self.number_var(value);
            self.gc_slot(name, at);
        }
        let mut text = format!(
            "{}, {}, background,",
            if server { "server" } else { "workstation" },
            if self.spec.regions { "regions" } else { "segments" }
        );
        if server && self.spec.regions {
            let at = self.number_var(1);
            self.gc_slot("DynamicAdaptationMode", at);
            text += " dynamic_heap";
        }
        self.gc.push(("GCIdentifiers".into(), Global::Text(text)));
        if !server {
            let at = self.var(6 * self.p);
            for i in 0..6 {
                self.mem.p(at + i * self.p, 900 + i);
            }
            self.gc_slot("GCGlobalMechanisms", at);
        }
        let numbers = [("TotalGenerationCount", 5), ("CFinalizeFillPointersLength", 7), ("GlobalMechanismsLength", 6)];
        for (name, n) in numbers {
            self.gc.push((name.into(), Global::Number(n, "uint32")));
        }
        for (name, _, len) in ARRAYS {
            self.gc.push((format!("{name}Length"), Global::Number(len, "uint32")));
        }
        self.vm.push(("RuntimeProductVersionString".into(), Global::Text("11.0.0-synthetic".into())));
        for (name, value) in self.spec.features {
            self.vm.push(((*name).into(), Global::Number(*value, "uint8")));
        }
        self.vm.push(("RecommendedReaderVersion".into(), Global::Number(1, "uint32")));
    }

    pub(super) fn text_of(&self, types: &[String], globals: &Globals, contracts: Vec<(&str, Value)>, sub: Value) -> String {
        let typed = self.spec.typed;
        let types: Map<String, Value> = types
            .iter()
            .map(|name| {
                let t = &self.lay.types[name];
                let field = |f: &(String, u64, String, u64)| {
                    let written = f.2.split_once('*').map_or(f.2.clone(), |(e, _)| format!("{e}[]"));
                    (f.0.clone(), if typed { json!([f.1, written]) } else { json!(f.1) })
                };
                let mut fields: Map<String, Value> = t.fields.iter().map(field).collect();
                if t.sized {
                    fields.insert("!".into(), json!(t.bytes));
                }
                (name.clone(), Value::Object(fields))
            })
            .collect();
        let mut slots = 0u64;
        let globals: Map<String, Value> = globals
            .iter()
            .map(|(name, g)| {
                let value = match g {
                    Global::Number(n, t) if typed => json!([format!("{n:#x}"), t]),
                    Global::Number(n, _) if n % 2 == 0 => json!(n),
                    Global::Number(n, _) => json!(format!("{n}")),
                    Global::Text(t) => json!([t, "string"]),
                    Global::Slot(_) => {
                        slots += 1;
                        if self.spec.descriptor_version == 0 { json!([slots]) } else { json!([[slots], "pointer"]) }
                    }
                };
                (name.clone(), value)
            })
            .collect();
        let contracts: Map<String, Value> = contracts.into_iter().map(|(n, v)| (n.into(), v)).collect();
        json!({"version": self.spec.descriptor_version, "baseline": "empty", "types": types, "globals": globals, "subDescriptors": sub,
            "contracts": contracts})
        .to_string()
    }

    /// Writes JSON, pointer data and header of both descriptors.
    pub(super) fn descriptors(&mut self, base: u64, vm_types: &[String]) {
        let (gc_at, root_at) = (base + DATA + 0x20, base + DATA + 0x80);
        let one = |s: &Spec| if s.string_contracts { json!("c1") } else { json!(1) };
        let version = one(&self.spec);
        let slots =
            |g: &Globals| -> Vec<u64> { g.iter().filter_map(|(_, g)| if let Global::Slot(a) = g { Some(*a) } else { None }).collect() };
        let gc_types: Vec<String> = self.lay.types.keys().filter(|t| !vm_types.contains(t)).cloned().collect();
        let gc_contract = match &self.spec.gc {
            GcPart::NotAdvertised => Vec::new(),
            GcPart::Version(v) => vec![("GC", json!(v))],
            _ => vec![("GC", version.clone())],
        };
        let gc_pointer = self.pointer_var(if self.spec.gc == GcPart::NotYet { 0 } else { gc_at });
        let (mut vm_slots, mut gc_slots) = (slots(&self.vm), slots(&self.gc));
        let mut gc_sub = json!({});
        if self.spec.hostile == Hostile::Cycle {
            for (i, at) in [root_at, gc_at].into_iter().enumerate() {
                gc_slots.push(self.pointer_var(at));
                gc_sub[format!("Again{i}")] = json!([[gc_slots.len()], "pointer"]);
            }
        }
        vm_slots.push(gc_pointer);
        let root_sub = json!({"GC": [[vm_slots.len()], "pointer"]});
        let contracts = ["Thread", "Object", "RuntimeTypeSystem", "Exception", "Loader"].map(|n| (n, version.clone())).to_vec();
        let texts = [
            (root_at, self.text_of(vm_types, &self.vm, contracts, root_sub), vm_slots),
            (gc_at, self.text_of(&gc_types, &self.gc, gc_contract, gc_sub), gc_slots),
        ];
        let total: usize = texts.iter().map(|(_, t, s)| t.len() + 16 + s.len() * 8 + 8).sum();
        assert!(total as u64 <= DATA - HEADERS, "{total:#x}");
        let mut at = base + HEADERS;
        self.mem.map(at, (total as u64).next_multiple_of(0x100), false);
        let p = self.p;
        let hostile = self.spec.hostile;
        for (header, text, slots) in texts {
            let json_at = at;
            self.mem.bytes(at, text.as_bytes());
            at = (at + text.len() as u64 + 1).next_multiple_of(8);
            let slots_at = at;
            for (i, slot) in std::iter::once(0).chain(slots.iter().copied()).enumerate() {
                self.mem.p(slots_at + i as u64 * p, slot);
            }
            let mut count = slots.len() as u64 + 1;
            at = (at + count * p).next_multiple_of(8);
            let mut len = text.len() as u64;
            match hostile {
                Hostile::HugeJson if header == root_at => len = 0xffff_fff0,
                Hostile::HugeSlots if header == root_at => count = 0xffff_ffff,
                Hostile::CutJson if header == root_at => len /= 2,
                _ => {}
            }
            let magic = b"DNCCDAC\0".iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
            let fields = [(magic, 8), (if p == 4 { 3 } else { 1 }, 4), (len, 4), (json_at, p), (count, 4), (0, 4), (slots_at, p)];
            let mut to = header;
            for (value, bytes) in fields {
                self.mem.put(to, bytes, value);
                to += bytes;
            }
        }
        assert!(self.var_at <= base + DATA + 0x1000, "{:#x} bytes of variables", self.var_at - base - DATA);
    }
}
