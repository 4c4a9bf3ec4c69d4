//! How the screen is drawn.

use pipeline_core::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::super::show::span;
use super::sheet::short;
use super::sheet::{self, Order, Sheet, TraceLength, View};
use super::state::{Overlay, State};

/// From this width on trace ids are shown whole.
const WIDE: u16 = 110;
/// Below this height shards are left out.
const TALL: u16 = 18;
/// A figure's column is at least so wide: spans of time, which change, leave the others where they are.
const FIGURE: usize = 6;
/// A name is shortened to this width before a column is left out.
const NAME: usize = 16;
/// A change that is unreported for so long is worth a look, and for so long a worry.
const LATE: [f64; 2] = [60.0, 300.0];

const HELP: &str = "
 h  the hottest, by events that were seen
 s  the slowest, by their slowest event
 c  those with most calls of Argo CD; again: the longest
 e  those that fail, and errors by peer and reason
 l  latency, with the last events of each bucket

 up, down, page up, page down, home, end    choose a row
 tab, left, right                           another list
 enter                                      explain the chosen one
 p                                          pause, and go on
 q, escape                                  quit

 A + after a number says that it may be more: of many that
 are busy only the largest are counted from the beginning.

 Any key goes back.";

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    let trace = if area.width >= WIDE { TraceLength::Whole } else { TraceLength::Short };
    let shards = shown_shards(state, area.height);
    let errors = match state.view {
        View::Errors => u16::try_from(state.top.errors.len().min(5)).unwrap_or_default(),
        _ => 0,
    };
    let some = |rows: u16| if rows > 0 { rows + 2 } else { 0 };
    let [head, tabs, main, more, below, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(some(errors)),
        Constraint::Length(some(shards)),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(header(state, head.width), head);
    frame.render_widget(Paragraph::new(tab_line(state)), tabs);
    list(frame, main, state, &state.sheet(trace), Some(state.row));
    if errors > 0 {
        titled(frame, more, state, "errors", &sheet::errors(&state.top, trace));
    }
    if shards > 0 {
        let all = state.top.shards.len();
        let title = match usize::from(shards) < all {
            true => format!("shards: {shards} of {all}, the latest first"),
            false => "shards".to_owned(),
        };
        titled(frame, below, state, &title, &sheet::shards(&state.top, shards.into()));
    }
    frame.render_widget(Paragraph::new(key_line(state)), keys);
    overlay(frame, area, state);
}

/// Shards that there is room for.
fn shown_shards(state: &State, height: u16) -> u16 {
    let all = u16::try_from(state.top.shards.len()).unwrap_or(u16::MAX);
    if height < TALL { 0 } else { all.min((height / 4).max(5)) }
}

fn header(state: &State, width: u16) -> Text<'static> {
    let top = &state.top;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let circuit = match top.circuit.as_str() {
        "closed" => Style::new(),
        _ => tint(state, Color::Red).add_modifier(Modifier::BOLD),
    };
    let mut first = vec![
        Span::styled(" gitops-runtime top", bold),
        Span::raw(format!("  last {}  up {}  circuit ", span(top.window_seconds), span(top.uptime_seconds))),
        Span::styled(top.circuit.clone(), circuit),
    ];
    if state.paused {
        first.push(Span::raw("  "));
        first.push(Span::styled("PAUSED", tint(state, Color::Yellow).add_modifier(Modifier::BOLD)));
    }
    let time = clock(top.at);
    let used: usize = first.iter().map(Span::width).sum();
    let gap = usize::from(width).saturating_sub(used + time.len() + 1);
    first.push(Span::raw(format!("{}{time}", " ".repeat(gap))));
    if let Some(trouble) = &state.trouble {
        let trouble = Span::styled(format!(" {trouble}"), tint(state, Color::Red));
        return Text::from(vec![Line::from(first), Line::from(trouble)]);
    }
    let sum =
        |of: fn(&pipeline_http::admin::wire::ShardFigures) -> u64| top.shards.iter().map(of).sum::<u64>();
    let oldest = top.shards.iter().map(|shard| shard.oldest_unreported_seconds).fold(0.0, f64::max);
    let mut second = vec![
        Span::raw(format!(
            " {} queued  {} in flight  {} waiting  oldest ",
            sum(|shard| shard.queued),
            sum(|shard| shard.in_flight),
            sum(|shard| shard.waiting),
        )),
        Span::styled(if oldest > 0.0 { short(oldest) } else { "-".to_owned() }, lateness(state, oldest)),
    ];
    if let (Some(half), Some(most)) = (sheet::quantile(top, 0.5), sheet::quantile(top, 0.99)) {
        second.push(Span::raw(format!("  p50 {}  p99 {}", bound(half, top), bound(most, top))));
    }
    Text::from(vec![Line::from(first), Line::from(second)])
}

/// A percentile as far as the buckets tell.
fn bound(seconds: f64, top: &pipeline_http::admin::wire::Top) -> String {
    let last = top.latency.iter().filter_map(|bucket| bucket.up_to_seconds).fold(0.0, f64::max);
    if seconds.is_finite() { format!("<{}", short(seconds)) } else { format!(">{}", short(last)) }
}

fn clock(at: Timestamp) -> String {
    // RFC 3339 in UTC: the time stands between T and the fraction.
    let text = at.to_string();
    let time = text.split_once('T').map_or("", |(_, time)| time);
    format!("{} UTC", time.chars().take(8).collect::<String>())
}

fn tab_line(state: &State) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    for view in View::ALL {
        let mut style = Style::new();
        if view == state.view {
            style = style.add_modifier(Modifier::REVERSED | Modifier::BOLD);
        }
        let order = match (view, state.order) {
            (View::Calls, Order::Second) => " by time",
            _ => "",
        };
        let (first, rest) = view.name().split_at(1);
        spans.push(Span::styled(" ", style));
        spans.push(Span::styled(first, style.add_modifier(Modifier::UNDERLINED)));
        spans.push(Span::styled(format!("{rest}{order} "), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn key_line(state: &State) -> Line<'static> {
    let pause = if state.paused { "go on" } else { "pause" };
    let keys = [
        ("q", "quit"),
        ("up/down", "choose"),
        ("enter", "explain"),
        ("tab", "next list"),
        ("p", pause),
        ("?", "help"),
    ];
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::raw(" ")];
    for (key, what) in keys {
        spans.push(Span::styled(key, bold));
        spans.push(Span::raw(format!(" {what}   ")));
    }
    Line::from(spans)
}

fn titled(frame: &mut Frame<'_>, area: Rect, state: &State, title: &str, sheet: &Sheet) {
    let [line, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let title = format!("{:\u{2500}<1$}", format!("\u{2500} {title} "), usize::from(line.width));
    frame.render_widget(Paragraph::new(title).style(dim(state)), line);
    list(frame, rest, state, sheet, None);
}

fn list(frame: &mut Frame<'_>, area: Rect, state: &State, sheet: &Sheet, chosen: Option<usize>) {
    if sheet.rows.is_empty() {
        frame.render_widget(Paragraph::new("\n none in this time").style(dim(state)), area);
        return;
    }
    let widths = widths(sheet, area.width);
    let line = |cells: Vec<&str>| {
        let cells = cells.into_iter().zip(&widths).enumerate();
        let padded = cells.map(|(at, (cell, width))| {
            let cell = shortened(cell, *width);
            if at < sheet.texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        Row::new(padded.collect::<Vec<_>>())
    };
    let rows = sheet.rows.iter().map(|row| line(row.cells.iter().map(String::as_str).collect()));
    let header = line(sheet.header.clone()).style(Style::new().add_modifier(Modifier::BOLD));
    let lengths = widths.iter().map(|width| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
    let table = Table::new(rows, lengths)
        .header(header)
        .column_spacing(2)
        .block(Block::new().padding(ratatui::widgets::Padding::left(1)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut at = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut at);
}

/// The width of each column: what its cells need. Where that is too much the widest gives, and the last ones go.
fn widths(sheet: &Sheet, width: u16) -> Vec<usize> {
    let cells = |at: usize| {
        sheet.rows.iter().filter_map(move |row| row.cells.get(at)).map(|cell| cell.chars().count())
    };
    let mut widths: Vec<usize> = sheet
        .header
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let least = if at < sheet.texts { 0 } else { FIGURE };
            cells(at).chain([name.chars().count(), least]).max().unwrap_or_default()
        })
        .collect();
    loop {
        let room = usize::from(width).saturating_sub(2 * widths.len());
        let excess = widths.iter().sum::<usize>().saturating_sub(room);
        let Some(widest) = widths.iter_mut().max() else { return widths };
        if excess == 0 || *widest >= excess + NAME {
            *widest -= excess;
            return widths;
        }
        widths.pop();
    }
}

/// A text in so much room: names that differ do so at their beginning or their end.
fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let start: String = text.chars().take(kept.div_ceil(2)).collect();
    let end: String = text.chars().skip(length - kept / 2).collect();
    format!("{start}\u{2026}{end}")
}

fn overlay(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let (title, text, first) = match &state.overlay {
        Overlay::Nothing => return,
        Overlay::Help => (" help ".to_owned(), HELP, 0),
        Overlay::Explain { app, text, first } => (format!(" {app} "), text.as_str(), *first),
    };
    let area = area.inner(ratatui::layout::Margin::new(u16::from(area.width > 100) * 2, 1));
    let lines = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
    let block = Block::bordered().title(title).title_style(Style::new().add_modifier(Modifier::BOLD));
    let block = match state.overlay {
        Overlay::Explain { .. } => block.title_bottom(" up/down scroll, escape back, q quit "),
        _ => block,
    };
    // The last line stays in sight.
    let first = first.min(lines.saturating_sub(1));
    let text = Paragraph::new(text.to_owned()).wrap(Wrap { trim: false }).scroll((first, 0)).block(block);
    frame.render_widget(Clear, area);
    frame.render_widget(text, area);
}

fn lateness(state: &State, seconds: f64) -> Style {
    match LATE.map(|late| seconds >= late) {
        [_, true] => tint(state, Color::Red).add_modifier(Modifier::BOLD),
        [true, _] => tint(state, Color::Yellow),
        _ => Style::new(),
    }
}

/// A colour, where there are any.
fn tint(state: &State, colour: Color) -> Style {
    if state.colours { Style::new().fg(colour) } else { Style::new() }
}

fn dim(state: &State) -> Style {
    if state.colours { Style::new().fg(Color::DarkGray) } else { Style::new() }
}
