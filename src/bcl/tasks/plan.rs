//! The plan for reading objects of one type.

use std::sync::Arc;

use super::{AsyncType, Tasks};
use crate::base::{Addr, CorElementType, len64};
use crate::clr::fields::{Field, Storage, Types};
use crate::clr::library::{FieldAt, Kinds};
use crate::clr::type_names::TypeNames;
use crate::gc::GcDesc;

/// Maximum nesting of structures in which callbacks are searched for.
const MAX_DEPTH: u32 = 8;
/// Maximum size of a state machine, in bytes.
const MAX_MACHINE: u64 = 1 << 20;
/// Maximum number of base types.
const MAX_BASES: usize = 64;
/// The field of `ManualResetValueTaskSourceCore` and of the operations of channels that contains the state object of a callback.
pub(super) const STATE: &str = "_continuationState";
/// The field beside [`STATE`] that contains the callback.
const CALLBACK: &str = "_continuation";
/// Flags beside [`STATE`] that are set when the source has completed. The operations of channels have the second one.
const COMPLETED: [&str; 2] = ["_completed", "_completionReserved"];
/// Static fields of the operations of channels: the delegates that replace the callback in operations that have completed or are not in use.
const SENTINELS: [&str; 2] = ["s_completedSentinel", "s_availableSentinel"];
/// Maximum number of fields with callbacks of one type.
const MAX_HOOKS: usize = 64;

/// The fields of a type that concern asynchronous work, with their offsets.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The async types that the type is or derives from.
    pub(crate) kinds: Kinds<AsyncType>,
    /// The kind of a type outside the core library. The names of the type and its base types determine the kind, because searching the modules
    /// for the definitions of the types would cost more.
    pub(crate) outside: Option<Outside>,
    /// The state machine of a box.
    pub(crate) machine: Option<MachineAt>,
    /// `_items` and `_size` of a list.
    pub(crate) list: Option<(FieldAt, FieldAt)>,
    /// The field of a continuation object that refers to the next object on the way to its waiter.
    pub(crate) next: Option<FieldAt>,
    /// The fields of the continuation of an `await` that refer to the awaited object.
    pub(crate) awaited: Vec<FieldAt>,
    /// Whether the type is the continuation of a suspended method of runtime async.
    pub(crate) suspends: bool,
    /// Whether the type is `System.Action`.
    pub(crate) is_action: bool,
    /// The callbacks with a state ([`STATE`]), including those in nested structures.
    pub(crate) states: Vec<Callback>,
    /// Offsets of fields of type `Action`, including fields in nested structures.
    pub(crate) actions: Vec<u64>,
    /// Whether the type is an array of `Action`.
    pub(crate) array_of_actions: bool,
}

/// Offsets of the fields that describe a callback and whether it is still due. A source keeps the state of its callback after it has completed,
/// until it is used again.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    /// The state of the callback.
    pub(super) state: u64,
    /// The callback. A source without one is not awaited.
    callback: Option<u64>,
    /// Flags of a completed source.
    completed: Vec<u64>,
    /// Delegates of the library that replace the callback when it is no longer due.
    sentinels: Vec<Addr>,
}

impl Callback {
    /// Whether the callback in the object at `object` may still be called. If the fields cannot be read, it may.
    pub(super) fn is_due(&self, tasks: &Tasks, object: Addr) -> bool {
        let memory = tasks.library().types().memory();
        let completed = self.completed.iter().any(|offset| memory.u8(object.plus(*offset)).is_ok_and(|flag| flag != 0));
        let callback = || self.callback.and_then(|offset| memory.ptr(object.plus(offset)).ok());
        !completed && callback().is_none_or(|at| !at.is_null() && !self.sentinels.contains(&at))
    }
}

/// Kinds of types outside System.Private.CoreLib.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// A channel.
    Channel,
    /// The arguments and result of a socket operation.
    SocketOperation,
}

impl Outside {
    /// The kind of the type at `method_table`, or of its nearest base type that has a kind.
    fn of(tasks: &Tasks, method_table: Addr) -> Option<Outside> {
        let types = tasks.library().types();
        let names = types.names();
        let all = [
            (tasks.channels, "System.Threading.Channels.Channel", Outside::Channel),
            (tasks.sockets, "System.Net.Sockets.SocketAsyncEventArgs", Outside::SocketOperation),
        ];
        if all.iter().all(|(module, _, _)| module.is_none()) {
            return None;
        }
        let tables = names.method_tables();
        let info = |mt: Addr| (!mt.is_null()).then(|| tables.read(mt).ok())?;
        let mut bases = std::iter::successors(info(method_table), |i| info(i.parent)).take(MAX_BASES).filter(|i| !i.is_array);
        bases.find_map(|base| {
            let home = tables.module(&base).ok()?;
            let (_, full, found) = all.iter().find(|(module, _, _)| *module == Some(home))?;
            let name = names.name(base.address);
            (name.name.split('<').next() == Some(full)).then_some(*found)
        })
    }
}

/// The state machine of a box.
#[derive(Clone, Debug)]
pub(crate) enum MachineAt {
    /// A structure in the box. Offsets are relative to the start of the box.
    Inside(Arc<Machine>),
    /// An object to which a field of the box refers, in code compiled without optimization.
    Behind(FieldAt),
}

/// The type of a state machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Method table of the state machine.
    pub(crate) method_table: Addr,
    /// `<>1__state`.
    pub(crate) state: Option<FieldAt>,
    /// For each awaiter field `<>u__N`, the offsets of the references in it.
    pub(crate) awaiters: Vec<Vec<u64>>,
    /// Whether the state machine belongs to an `async void` method.
    pub(crate) is_void: bool,
}

impl Plan {
    pub(super) fn make(tasks: &Tasks, method_table: Addr) -> Plan {
        let types = tasks.library().types();
        let kinds = tasks.kinds(method_table);
        let is = |kind| kinds.is(kind);
        let field = |names| types.field_at(method_table, names).ok();
        let next = match () {
            // The second name is that of NativeAOT up to .NET 10.
            () if is(AsyncType::Delegate) => field("_target|_firstParameter"),
            () if is(AsyncType::ContinueWith) => field("m_task"),
            () if is(AsyncType::AwaitContinuation) => field("m_action"),
            () if is(AsyncType::ContinuationWrapper) => field("_continuation"),
            // The type may be an `ITaskCompletionAction` that is not a task. Programs may have fields with the same names.
            () if kinds.is_empty() => field("_stateMachineBox|m_innerTask|_task").filter(|_| is_core(types, method_table)),
            () => None,
        };
        let mut plan = Plan {
            kinds,
            outside: if kinds.is_empty() { Outside::of(tasks, method_table) } else { None },
            machine: if is(AsyncType::Box) || is(AsyncType::PoolingBox) { machine(tasks, method_table) } else { None },
            list: if is(AsyncType::List) { field("_items").zip(field("_size")) } else { None },
            next,
            awaited: Vec::new(),
            suspends: false,
            is_action: is(AsyncType::Action),
            states: Vec::new(),
            actions: Vec::new(),
            array_of_actions: false,
        };
        if is(AsyncType::RuntimeContinuation) {
            plan.set_continuation(tasks, method_table);
        }
        let resolved = [
            AsyncType::RuntimeContinuation,
            AsyncType::Delegate,
            AsyncType::TaskContinuation,
            AsyncType::ContinuationWrapper,
            AsyncType::List,
        ];
        if is(AsyncType::Task) || resolved.into_iter().any(is) {
            return plan;
        }
        let tables = types.names().method_tables();
        if tables.read(method_table).is_ok_and(|info| info.is_array) {
            let element = tables.element_type(method_table).ok().and_then(TypeNames::method_table_of);
            plan.array_of_actions = element.is_some_and(|e| tasks.kinds(e).is(AsyncType::Action));
            return plan;
        }
        callbacks(tasks, method_table, (0, 0), &mut plan);
        if is(AsyncType::PoolingBox) {
            // The `Action`s in the box run the method of the box itself, so they are not continuations of the method.
            plan.actions.clear();
        }
        plan
    }

    /// Whether the object is a task or an async method.
    pub(crate) fn is_node(&self) -> bool {
        self.kinds.is(AsyncType::Task) || self.kinds.is(AsyncType::PoolingBox)
    }

    /// Whether the object may hold callbacks.
    pub(crate) fn is_source(&self) -> bool {
        self.array_of_actions || !self.states.is_empty() || !self.actions.is_empty()
    }
}

/// Whether the core library defines the type.
fn is_core(types: &Types, method_table: Addr) -> bool {
    types.names().method_tables().read(method_table).is_ok_and(|info| !info.is_array && types.is_core(&info))
}

/// Adds to `plan` the fields of the type at `method_table` that contain a callback or its state. `base` is added to the offsets of the fields.
fn callbacks(tasks: &Tasks, method_table: Addr, (base, depth): (u64, u32), plan: &mut Plan) {
    let types = tasks.library().types();
    let Some(fields) = types.instance_fields(method_table).filter(|f| tasks.afford(len64(f.len()))) else { return };
    for field in fields.iter().filter(|f| f.storage == Storage::Instance) {
        if plan.states.len().saturating_add(plan.actions.len()) >= MAX_HOOKS {
            return;
        }
        let offset = base.saturating_add(field.offset);
        if field.is_reference() {
            if field.name == STATE {
                plan.states.push(callback(tasks, field, &fields, base));
            } else if field.type_name == "System.Action" {
                plan.actions.push(offset);
            }
        } else if let Some(inner) = field.method_table.filter(|_| field.is_structure() && depth < MAX_DEPTH) {
            // Field offsets in a structure are relative to its boxed form.
            callbacks(tasks, inner, (offset.saturating_sub(types.pointer_bytes()), depth.saturating_add(1)), plan);
        }
    }
}

/// The callback whose state is in `state`, one of `fields`. `base` is added to the offsets of the fields.
fn callback(tasks: &Tasks, state: &Field, fields: &[Field], base: u64) -> Callback {
    let beside = || fields.iter().filter(|f| f.storage == Storage::Instance && f.declaring == state.declaring);
    let at = |f: &Field| f.offset.saturating_add(base);
    let completed: Vec<u64> =
        beside().filter(|f| f.element == CorElementType::Boolean && COMPLETED.contains(&f.name.as_str())).map(at).collect();
    let tables = tasks.library().types().names().method_tables();
    // Up to .NET 9, a base type of the generic type that has the callback declares the sentinels.
    let next = |mt: &Addr| tables.read(*mt).ok().map(|info| info.parent).filter(|parent| !parent.is_null());
    let types = std::iter::successors(Some(state.declaring), next).take(MAX_BASES);
    let sentinels = |mt| SENTINELS.into_iter().filter_map(move |name| tasks.library().static_object(mt, name).ok().flatten());
    Callback {
        state: at(state),
        callback: beside().find(|f| f.is_reference() && f.name == CALLBACK).map(at),
        completed,
        sentinels: types.flat_map(sentinels).collect(),
    }
}

fn machine(tasks: &Tasks, method_table: Addr) -> Option<MachineAt> {
    let types = tasks.library().types();
    let own = types.instance_fields(method_table)?;
    let field = own.iter().rev().find(|f| f.storage == Storage::Instance && f.name == "StateMachine")?;
    let at = types.field_at(method_table, "StateMachine").ok()?;
    let Some(inner) = field.method_table.filter(|_| field.is_structure()) else {
        return field.is_reference().then_some(MachineAt::Behind(at));
    };
    // Field offsets in a structure are relative to its boxed form.
    let base = field.offset.saturating_sub(types.pointer_bytes());
    let fields = types.instance_fields(inner)?;
    let others = own.iter().filter(|f| f.token != field.token || f.declaring != field.declaring);
    let ends = fields.iter().map(|f| f.offset.saturating_add(base)).chain(others.map(|f| f.offset)).collect();
    Some(MachineAt::Inside(Arc::new(Machine::of_fields(tasks, (method_table, inner), &fields, base, ends)?)))
}

impl Machine {
    /// The state machine that is a class.
    pub(super) fn of_class(tasks: &Tasks, method_table: Addr) -> Option<Machine> {
        let fields = tasks.library().types().instance_fields(method_table)?;
        let ends = fields.iter().map(|f| f.offset).collect();
        Machine::of_fields(tasks, (method_table, method_table), &fields, 0, ends)
    }

    /// Finds the fields of a state machine of type `own` in objects of type `object`, at offset `base`. `ends` are the offsets of all
    /// fields of the object: a reference belongs to the last field that starts at or before it.
    fn of_fields(tasks: &Tasks, (object, own): (Addr, Addr), fields: &[Field], base: u64, mut ends: Vec<u64>) -> Option<Machine> {
        let types = tasks.library().types();
        ends.sort_unstable();
        let info = types.names().method_tables().read(object).ok()?;
        let size = u64::from(info.base_size);
        let memory = types.memory();
        if size > MAX_MACHINE {
            return None;
        }
        let places = GcDesc::offsets(memory, &info, MAX_MACHINE);
        let instance = || fields.iter().filter(|f| f.storage == Storage::Instance);
        let awaiter = |f: &Field| {
            let from = f.offset.saturating_add(base);
            let end = ends.get(ends.partition_point(|e| *e <= from)).copied().unwrap_or(u64::MAX);
            let first = places.partition_point(|at| *at < from);
            places.iter().skip(first).copied().take_while(|at| *at < end).collect::<Vec<u64>>()
        };
        let at = |f: &Field| FieldAt { offset: f.offset.saturating_add(base), element: f.element, method_table: f.method_table };
        let builder = instance().find(|f| f.name == "<>t__builder");
        Some(Machine {
            method_table: own,
            state: instance().find(|f| f.name == "<>1__state").map(at),
            awaiters: instance().filter(|f| f.name.starts_with("<>u__")).map(awaiter).collect(),
            is_void: builder.is_some_and(|f| f.type_name == "System.Runtime.CompilerServices.AsyncVoidMethodBuilder"),
        })
    }
}
