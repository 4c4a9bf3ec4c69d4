//! The state of the screen, and how keys and answers change it; pure.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use pipeline_http::admin::wire::{Explained, Top};

use super::super::explain;
use super::sheet::{self, Order, Row, Sheet, TraceLength, View};

/// What the caller does after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Nothing,
    /// Ask the reporter now.
    Ask,
    Quit,
}

/// What is shown above the lists.
#[derive(Debug, Default)]
pub(super) enum Overlay {
    #[default]
    Nothing,
    Help,
    /// The explanation of an application, once it was answered.
    Explain {
        app: String,
        text: String,
        first: u16,
    },
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct State {
    pub(super) top: Top,
    pub(super) view: View,
    pub(super) order: Order,
    /// The index of the chosen row. A row that moves in a new answer stays chosen.
    pub(super) row: usize,
    chosen: Option<Row>,
    pub(super) paused: bool,
    /// The error of the last request, if it failed.
    pub(super) trouble: Option<String>,
    pub(super) overlay: Overlay,
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
            overlay: Overlay::Nothing,
            colours,
        };
        state.choose(0);
        state
    }

    /// The list that is shown.
    pub(super) fn sheet(&self, trace: TraceLength) -> Sheet {
        sheet::of(self.view, self.order, &self.top, trace)
    }

    /// The application that is explained.
    pub(super) fn explained(&self) -> Option<&str> {
        match &self.overlay {
            Overlay::Explain { app, .. } => Some(app),
            Overlay::Nothing | Overlay::Help => None,
        }
    }

    /// Takes an answer, or why there is none.
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

    /// Takes the explanation of an application, or why there is none.
    pub(super) fn told(&mut self, of: &str, answer: anyhow::Result<Explained>, route: Option<&str>) {
        if let Overlay::Explain { app, text, .. } = &mut self.overlay
            && app == of
        {
            *text = match answer {
                Ok(explained) => explain::text(&explained, route),
                Err(error) => format!(" {error:#}\n"),
            };
        }
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Nothing;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return KeyAction::Quit;
        }
        match &mut self.overlay {
            Overlay::Explain { first, text, .. } => {
                let last = u16::try_from(text.lines().count().saturating_sub(1)).unwrap_or(u16::MAX);
                match key.code {
                    KeyCode::Char('q') => return KeyAction::Quit,
                    KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => *first = first.saturating_add(1).min(last),
                    KeyCode::PageUp => *first = first.saturating_sub(10),
                    KeyCode::PageDown => *first = first.saturating_add(10).min(last),
                    KeyCode::Home => *first = 0,
                    KeyCode::Char('p') => return self.pause(),
                    _ => self.overlay = Overlay::Nothing,
                }
                KeyAction::Nothing
            }
            Overlay::Help => {
                self.overlay = Overlay::Nothing;
                if key.code == KeyCode::Char('q') { KeyAction::Quit } else { KeyAction::Nothing }
            }
            Overlay::Nothing => self.list_key(key.code),
        }
    }

    fn list_key(&mut self, code: KeyCode) -> KeyAction {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return KeyAction::Quit,
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('?') => self.overlay = Overlay::Help,
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
        KeyAction::Nothing
    }

    fn pause(&mut self) -> KeyAction {
        self.paused = !self.paused;
        if self.paused { KeyAction::Nothing } else { KeyAction::Ask }
    }

    fn explain(&mut self) -> KeyAction {
        let Some(row) = self.chosen.as_ref().filter(|row| !row.app.is_empty()) else {
            return KeyAction::Nothing;
        };
        let (app, text) = (row.app.clone(), " asking the reporter\n".to_owned());
        self.overlay = Overlay::Explain { app, text, first: 0 };
        KeyAction::Ask
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
        let rows = self.sheet(TraceLength::Whole).rows;
        self.row = row.min(rows.len().saturating_sub(1));
        self.chosen = rows.into_iter().nth(self.row);
    }

    /// Finds the chosen row in a new answer: the same event where rows are events, else the same application.
    fn find(&mut self) {
        let rows = self.sheet(TraceLength::Whole).rows;
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
