//! Options that select objects.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use super::args::size;
use super::command::At;
use super::completion::types;
use super::exit::UsageError;
use super::values::{address, number, type_pattern};
use crate::analysis::{Condition, Selection};
use crate::analysis::{DiffSort, RefSort, StatSort, StringSort};
use crate::base::Addr;
use crate::model::{
    ExceptionSort, FinalizerSort, Generation, HandleSort, ObjectSort, Order, RootSort, SegmentSort, SortDirection, StaticSort, ThreadSort,
    TimerSort,
};
use crate::output::{ColumnOrder, Paging};
use crate::session::TypePattern;

/// Selects types. All commands whose rows have a type share it.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct TypesArg {
    /// Only this type, or these types separated by commas (repeatable): full or simple name, part of one, glob (* and ?), or method table; see
    /// gcdump help patterns.
    #[arg(short = 't', long = "type", value_name = "TYPE", value_parser = type_pattern, add = ArgValueCompleter::new(types))]
    types: Vec<TypePattern>,
}

impl TypesArg {
    /// Returns the patterns; an empty list matches every type.
    pub(super) fn patterns(&self) -> Vec<TypePattern> {
        self.types.clone()
    }

    /// Whether the list of patterns is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}

/// Limits the rows of lists that are sorted by importance or may be very long.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct TopArg {
    /// Number of rows to list, 0 for all; totals always cover everything [default: what fits a terminal; all in pipes, files and other
    /// formats].
    #[arg(short = 'n', long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    top: Option<usize>,

    #[command(flatten)]
    skip: SkipArg,
}

/// Removes rows for which a condition does not hold. All commands with tables share it, except those that list objects.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct FilterArg {
    /// Only rows for which this holds, such as 'count > 10 and type ~ "Lab.*"', with the columns of the table, named as in CSV; see
    /// gcdump help conditions.
    #[arg(long = "where", value_name = "CONDITION")]
    filter: Option<Condition>,
}

impl FilterArg {
    /// Returns the number of rows that an analysis must find so that `rows` remain: all (0) with a condition.
    pub(super) fn before(&self, rows: usize) -> usize {
        if self.filter.is_some() { 0 } else { rows }
    }

    /// Adds the condition to `page`.
    pub(super) fn of(&self, mut page: Paging) -> Paging {
        page.filter.clone_from(&self.filter);
        page
    }
}

/// Skips the first rows of a list.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct SkipArg {
    /// Number of rows to leave out before those listed: --skip 20 --top 20 lists the second twenty.
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true, default_value_t = 0, hide_default_value = true)]
    skip: usize,
}

impl SkipArg {
    /// Returns how many rows an analysis must find so that `top` remain; 0 for all.
    pub(super) fn rows(self, top: usize) -> usize {
        if top == 0 { 0 } else { top.saturating_add(self.skip) }
    }

    /// Like [`SkipArg::rows`], for a list that does not report its number of rows: all rows (0) if some rows are skipped.
    pub(super) fn counted(self, top: usize) -> usize {
        if self.skip > 0 { 0 } else { top }
    }

    /// Returns the page with at most `top` rows.
    pub(super) fn page(self, top: usize) -> Paging {
        Paging::new(None, self.skip, top)
    }
}

impl TopArg {
    /// Returns the maximum number of rows that an analysis must find, 0 for all.
    pub(super) fn rows(self, at: &At<'_>) -> usize {
        self.skip.rows(at.rows(self.top))
    }

    /// Like [`TopArg::rows`], for lists that do not report their number of rows.
    pub(super) fn counted(self, at: &At<'_>) -> usize {
        self.skip.counted(at.rows(self.top))
    }

    /// Like [`TopArg::counted`], with `few` rows by default on a terminal.
    pub(super) fn counted_or(self, at: &At<'_>, few: usize) -> usize {
        self.skip.counted(at.rows_or(self.top, few))
    }

    /// Returns the page for lists that are already sorted.
    pub(super) fn page(self, at: &At<'_>) -> Paging {
        self.skip.page(at.rows(self.top))
    }

    /// Like [`TopArg::page`], with `few` rows by default on a terminal.
    pub(super) fn page_or(self, at: &At<'_>, few: usize) -> Paging {
        self.skip.page(at.rows_or(self.top, few))
    }
}

/// Limits the rows of a list that is complete by default.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MostArg {
    /// Number of rows to list, 0 for all; totals always cover everything [default: all].
    #[arg(short = 'n', long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    top: Option<usize>,

    #[command(flatten)]
    skip: SkipArg,

    #[command(flatten)]
    filter: FilterArg,
}

impl MostArg {
    /// Returns the page for a list that is already sorted.
    pub(super) fn page(&self) -> Paging {
        self.filter.of(self.skip.page(self.top.unwrap_or(0)))
    }
}

/// Limits the rows of an answer that always has all rows, and of which a terminal shows those that fit.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct FitArg {
    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,
}

impl FitArg {
    /// Whether neither a number of rows nor rows are chosen.
    pub(super) fn is_usual(&self) -> bool {
        self.top.top.is_none() && self.top.skip.skip == 0 && self.filter.filter.is_none()
    }

    /// Returns the page for a list that is already sorted. The lists stay complete if no rows are chosen.
    pub(super) fn page(&self, at: &At<'_>) -> Paging {
        let top = if self.is_usual() { 0 } else { at.rows(self.top.top) };
        self.filter.of(self.top.skip.page(top))
    }

    /// Returns the maximum number of rows to print of each table; `None` for all rows.
    pub(super) fn on_screen(&self, at: &At<'_>) -> Option<usize> {
        Some(at.rows(None)).filter(|rows| self.is_usual() && *rows > 0)
    }
}

/// Sorts the rows of a finished list by a column of the table.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ColumnArg {
    /// Sort by this column of the table, amounts descending, all else ascending, unless COLUMN:asc or COLUMN:desc. Columns are
    /// named as in CSV; a column that the list does not have is refused, with those that it has.
    #[arg(short, long, value_name = "COLUMN", value_parser = column_order)]
    sort: Option<ColumnOrder>,
}

impl ColumnArg {
    /// Whether an order is given.
    pub(super) fn is_given(&self) -> bool {
        self.sort.is_some()
    }

    /// Returns the number of rows that an analysis must find: `rows`, or all (0) if the rows are sorted afterwards.
    pub(super) fn before(&self, rows: usize) -> usize {
        if self.is_given() { 0 } else { rows }
    }

    /// Adds this order to `page`.
    pub(super) fn of(&self, mut page: Paging) -> Paging {
        page.sort.clone_from(&self.sort);
        page
    }
}

/// The rows of a list to show: order by a column of the table, number, and condition.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RowsArgs {
    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,
}

impl RowsArgs {
    /// Returns the page of the list.
    pub(super) fn page(&self, at: &At<'_>) -> Paging {
        self.filter.of(self.sort.of(self.top.page(at)))
    }

    /// Returns the number of rows that an analysis must find, 0 for all, if the list does not report its number of rows.
    pub(super) fn counted(&self, at: &At<'_>) -> usize {
        self.sort.before(self.filter.before(self.top.counted(at)))
    }
}

/// The rows of a list to show, for commands with their own option `--top`: first row, condition, and order by a column of the table.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PageArgs {
    #[command(flatten)]
    skip: SkipArg,

    #[command(flatten)]
    filter: FilterArg,

    #[command(flatten)]
    sort: ColumnArg,
}

impl PageArgs {
    /// Whether an order is given.
    pub(super) fn is_sorted(&self) -> bool {
        self.sort.is_given()
    }

    /// Returns the page with at most `top` rows, 0 for all.
    pub(super) fn of(&self, top: usize) -> Paging {
        self.filter.of(self.sort.of(self.skip.page(top)))
    }

    /// Returns the number of rows that an analysis must find so that `top` remain; 0 for all.
    pub(super) fn found(&self, top: usize) -> usize {
        self.sort.before(self.filter.before(self.skip.rows(top)))
    }

    /// Like [`PageArgs::found`], for a list that does not report its number of rows.
    pub(super) fn counted(&self, top: usize) -> usize {
        self.sort.before(self.filter.before(self.skip.counted(top)))
    }
}

/// Parses `COLUMN`, `COLUMN:asc`, `COLUMN:desc`.
fn column_order(text: &str) -> Result<ColumnOrder, String> {
    let split = text.rsplit_once(':').and_then(|(column, way)| Some((column, SortDirection::from_str(way, true).ok()?)));
    let (column, direction) = split.map_or((text, None), |(column, direction)| (column, Some(direction)));
    match column {
        "" => Err("expected the name of a column".into()),
        _ => Ok(ColumnOrder { column: column.into(), direction }),
    }
}

/// Columns by which a list can be sorted.
pub(super) trait Columns: ValueEnum + Send + Sync + 'static {
    /// The order without `--sort`.
    const USUAL: &'static str;
}

/// Implements [`Columns`] with the default orders.
macro_rules! usual {
    ($($Columns:ident: $usual:literal,)+) => {
        $(impl Columns for $Columns {
            const USUAL: &'static str = $usual;
        })+
    };
}

usual! {
    DiffSort: "bytes",
    ExceptionSort: "as on the heap; with --stat, count",
    FinalizerSort: "the most objects first; with --objects, as in the queues",
    ObjectSort: "address",
    HandleSort: "as in the handle tables; with --by, count",
    RefSort: "as in the heap; by type, references",
    RootSort: "as found; with --stat, count",
    SegmentSort: "as on the GC's lists",
    StatSort: "bytes; generations, heaps, segments and sizes keep their own",
    StaticSort: "as in the modules; with --retained, retained",
    StringSort: "waste; with a size, bytes",
    ThreadSort: "as on the runtime's list",
    TimerSort: "due",
}

/// Selects the order of rows: one that the analysis has, or another column of the table.
#[derive(Clone, Debug, Args)]
pub(super) struct SortArg<C: Columns> {
    #[arg(short, long, value_name = "COLUMN", ignore_case = true, value_parser = OrderParser::<C>(PhantomData), help = sort_help::<C>())]
    sort: Option<RowOrder<C>>,
}

/// An order of rows.
#[derive(Clone, Debug)]
enum RowOrder<C> {
    /// An order that the analysis has.
    Known(Order<C>),
    /// The order by another column, named as in CSV, of the finished list.
    Column(ColumnOrder),
}

impl<C: Columns + Copy> SortArg<C> {
    /// Returns the order that the analysis has, if such an order is given.
    pub(super) fn given(&self) -> Option<Order<C>> {
        match &self.sort {
            Some(RowOrder::Known(order)) => Some(*order),
            _ => None,
        }
    }

    /// Returns the order, for commands that do not sort finished lists.
    ///
    /// # Errors
    /// A message about an order that the analysis does not have.
    pub(super) fn known(&self) -> Result<Option<Order<C>>, UsageError> {
        let Some(RowOrder::Column(ColumnOrder { column, .. })) = &self.sort else { return Ok(self.given()) };
        let names: Vec<String> = C::value_variants().iter().filter_map(|v| Some(v.to_possible_value()?.get_name().to_string())).collect();
        Err(UsageError(format!("cannot sort by {column}: this can be sorted by {}", names.join(", "))))
    }

    /// Whether an order is given.
    pub(super) fn is_given(&self) -> bool {
        self.sort.is_some()
    }

    /// Returns the number of rows that an analysis must find: `rows`, or all (0) if the finished list is sorted.
    pub(super) fn before(&self, rows: usize) -> usize {
        if matches!(self.sort, Some(RowOrder::Column(_))) { 0 } else { rows }
    }

    /// Adds the order by a column of the finished list to `page`.
    pub(super) fn of(&self, mut page: Paging) -> Paging {
        if let Some(RowOrder::Column(order)) = &self.sort {
            page.sort = Some(order.clone());
        }
        page
    }
}

/// The rows of a list to show, for commands whose analyses sort them: order, number, and condition.
#[derive(Clone, Debug, Args)]
pub(super) struct SortedRowsArgs<C: Columns> {
    #[command(flatten)]
    sort: SortArg<C>,

    #[command(flatten)]
    top: TopArg,

    #[command(flatten)]
    filter: FilterArg,
}

impl<C: Columns + Copy> SortedRowsArgs<C> {
    /// Returns the order that the analysis has, if such an order is given.
    pub(super) fn order(&self) -> Option<Order<C>> {
        self.sort.given()
    }

    /// Returns the page of the list.
    pub(super) fn page(&self, at: &At<'_>) -> Paging {
        self.sort.of(self.filter.of(self.top.page(at)))
    }

    /// Returns the maximum number of rows that an analysis must find, 0 for all.
    pub(super) fn found(&self, at: &At<'_>) -> usize {
        self.sort.before(self.filter.before(self.top.rows(at)))
    }

    /// Like [`SortedRowsArgs::found`], for a list that does not report its number of rows.
    pub(super) fn counted(&self, at: &At<'_>) -> usize {
        self.sort.before(self.filter.before(self.top.counted(at)))
    }
}

/// Parses a column and its direction.
#[derive(Clone)]
struct OrderParser<C>(PhantomData<C>);

impl<C: Columns> TypedValueParser for OrderParser<C> {
    type Value = RowOrder<C>;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<RowOrder<C>, clap::Error> {
        let text = value.to_string_lossy();
        let split = text.rsplit_once(':').and_then(|(column, way)| Some((column, SortDirection::from_str(way, true).ok()?)));
        let (column, direction) = split.map_or((&*text, None), |(column, direction)| (column, Some(direction)));
        let known = column.replace('_', "-");
        match EnumValueParser::<C>::new().parse_ref(command, arg, OsStr::new(&known)) {
            Ok(by) => Ok(RowOrder::Known(Order { by, direction })),
            // Whether a list has another column is known once the list is made.
            Err(_) if is_name(column) => Ok(RowOrder::Column(ColumnOrder { column: column.into(), direction })),
            Err(e) => Err(e),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(C::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// Whether `column` may be the name of a column.
fn is_name(column: &str) -> bool {
    column.starts_with(|c: char| c.is_ascii_alphabetic()) && column.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn sort_help<C: Columns>() -> String {
    let order = "amounts descending, all else ascending, unless COLUMN:asc or COLUMN:desc";
    format!("Sort by this column or another one of the list, named as in CSV: {order} [default: {}]", C::USUAL)
}

/// Selects objects.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Object selection")]
pub struct Select {
    #[command(flatten)]
    types: TypesArg,

    /// Only objects in this generation (repeatable).
    #[arg(long, value_name = "GEN", value_enum, ignore_case = true)]
    generation: Vec<Generation>,

    /// Only objects in the GC heap with this index (repeatable).
    #[arg(long, value_name = "N")]
    heap: Vec<u64>,

    /// Only objects in this segment, given by its address or any address inside (repeatable).
    #[arg(long, value_name = "ADDR", value_parser = address)]
    segment: Vec<Addr>,

    /// Only objects of at least this size (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", default_value = "0", hide_default_value = true, value_parser = size)]
    min_size: u64,

    /// Only objects of at most this size (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", value_parser = size)]
    max_size: Option<u64>,

    /// Only objects for which this holds, such as 'size > 1K and field("_state") = 3'; see gcdump help conditions.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
}

impl Select {
    /// Returns the equivalent [`Selection`].
    pub(super) fn selection(&self) -> Selection {
        Selection {
            types: self.types.patterns(),
            generations: self.generation.clone(),
            heaps: self.heap.clone(),
            segments: self.segment.clone(),
            min_size: self.min_size,
            max_size: self.max_size,
            condition: self.condition.clone(),
        }
    }
}
