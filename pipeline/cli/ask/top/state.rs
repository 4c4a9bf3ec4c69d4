//! What the screen shows, and what keys do to it. No clock, no terminal, no reporter.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use pipeline_http::admin::wire::{Explained, Top};

use super::super::explain;
use super::sheet::{self, Order, Row, Sheet, Trace, View};

/// What is to be done after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    /// Ask the reporter now.
    Ask,
    Quit,
}

/// What lies over the lists.
#[derive(Debug, Default)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help,
    /// What happened to an application, as far as it was answered.
    Explain {
        app: String,
        text: String,
        first: u16,
    },
}

/// What the screen shows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) top: Top,
    pub(super) view: View,
    pub(super) order: Order,
    /// The chosen row, and what it was about: a row that moves stays chosen.
    pub(super) row: usize,
    chosen: Option<Row>,
    pub(super) paused: bool,
    /// Why the last answer did not come.
    pub(super) trouble: Option<String>,
    pub(super) over: Over,
    pub(super) colours: bool,
}

impl State {
    pub(super) fn new(top: Top, colours: bool) -> Self {
        let mut state = Self {
            top,
            view: View::Hottest,
            order: Order::First,
            row: 0,
            chosen: None,
            paused: false,
            trouble: None,
            over: Over::Nothing,
            colours,
        };
        state.choose(0);
        state
    }

    /// The list that is shown.
    pub(super) fn sheet(&self, trace: Trace) -> Sheet {
        sheet::of(self.view, self.order, &self.top, trace)
    }

    /// The application that is explained.
    pub(super) fn explained(&self) -> Option<&str> {
        match &self.over {
            Over::Explain { app, .. } => Some(app),
            Over::Nothing | Over::Help => None,
        }
    }

    /// The reporter answered, or did not.
    pub(super) fn answered(&mut self, answer: anyhow::Result<Top>) {
        match answer {
            Ok(top) => {
                self.top = top;
                self.trouble = None;
                self.find();
            }
            Err(error) => self.trouble = Some(format!("{error:#}")),
        }
    }

    /// The reporter explained an application, on the route that is asked about, or did not.
    pub(super) fn told(&mut self, of: &str, answer: anyhow::Result<Explained>, route: Option<&str>) {
        if let Over::Explain { app, text, .. } = &mut self.over
            && app == of
        {
            *text = match answer {
                Ok(explained) => explain::text(&explained, route),
                Err(error) => format!(" {error:#}\n"),
            };
        }
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Act {
        if key.kind == KeyEventKind::Release {
            return Act::Nothing;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Act::Quit;
        }
        match &mut self.over {
            Over::Explain { first, text, .. } => {
                let last = u16::try_from(text.lines().count().saturating_sub(1)).unwrap_or(u16::MAX);
                match key.code {
                    KeyCode::Char('q') => return Act::Quit,
                    KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => *first = first.saturating_add(1).min(last),
                    KeyCode::PageUp => *first = first.saturating_sub(10),
                    KeyCode::PageDown => *first = first.saturating_add(10).min(last),
                    KeyCode::Home => *first = 0,
                    KeyCode::Char('p') => return self.pause(),
                    _ => self.over = Over::Nothing,
                }
                Act::Nothing
            }
            Over::Help => {
                self.over = Over::Nothing;
                if key.code == KeyCode::Char('q') { Act::Quit } else { Act::Nothing }
            }
            Over::Nothing => self.list_key(key.code),
        }
    }

    fn list_key(&mut self, code: KeyCode) -> Act {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return Act::Quit,
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('?') => self.over = Over::Help,
            KeyCode::Char('c') if self.view == View::Calls => {
                self.order = if self.order == Order::First { Order::Second } else { Order::First };
                self.choose(0);
            }
            KeyCode::Char(letter) => {
                if let Some(view) = View::ALL.into_iter().find(|view| view.name().starts_with(letter)) {
                    self.show(view);
                } else if letter == 'j' {
                    self.choose(self.row.saturating_add(1));
                } else if letter == 'k' {
                    self.choose(self.row.saturating_sub(1));
                }
            }
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(View::ALL.len() - 1),
            KeyCode::Down => self.choose(self.row.saturating_add(1)),
            KeyCode::Up => self.choose(self.row.saturating_sub(1)),
            KeyCode::PageDown => self.choose(self.row.saturating_add(10)),
            KeyCode::PageUp => self.choose(self.row.saturating_sub(10)),
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX),
            KeyCode::Enter => return self.explain(),
            _ => {}
        }
        Act::Nothing
    }

    fn pause(&mut self) -> Act {
        self.paused = !self.paused;
        if self.paused { Act::Nothing } else { Act::Ask }
    }

    fn explain(&mut self) -> Act {
        let Some(row) = self.chosen.as_ref().filter(|row| !row.app.is_empty()) else { return Act::Nothing };
        let (app, text) = (row.app.clone(), " asking the reporter\n".to_owned());
        self.over = Over::Explain { app, text, first: 0 };
        Act::Ask
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.order = Order::First;
        self.choose(0);
    }

    fn turn(&mut self, by: usize) {
        let at = View::ALL.iter().position(|view| *view == self.view).unwrap_or_default();
        self.show(View::ALL[(at + by) % View::ALL.len()]);
    }

    fn choose(&mut self, row: usize) {
        let rows = self.sheet(Trace::Whole).rows;
        self.row = row.min(rows.len().saturating_sub(1));
        self.chosen = rows.into_iter().nth(self.row);
    }

    /// Finds the chosen row in a new answer: the same event where rows are events, else the same application.
    fn find(&mut self) {
        let rows = self.sheet(Trace::Whole).rows;
        let chosen = self.chosen.take();
        let trace = |row: &Row| match self.view {
            View::Latency => row.cells.get(2).cloned(),
            _ => None,
        };
        let same = |row: &Row| {
            chosen.as_ref().is_some_and(|chosen| chosen.app == row.app && trace(chosen) == trace(row))
        };
        let row = rows.iter().position(same).unwrap_or(self.row);
        self.choose(row);
    }
}
