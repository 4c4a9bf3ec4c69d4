//! The screen, drawn of what a real reporter answered.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pipeline_http::admin::wire::Explained;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::state::{KeyAction, Overlay, State};
use super::*;

/// The answer of a reporter of 60 applications: one is slow, one fails.
fn real() -> Top {
    serde_json::from_str(include_str!("case.json")).unwrap()
}

fn key(state: &mut State, code: KeyCode) -> KeyAction {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn drawn(state: &State, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, state)).unwrap();
    terminal
}

fn lines(state: &State, width: u16, height: u16) -> Vec<String> {
    let terminal = drawn(state, width, height);
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn every_list_stands_on_80_by_24() {
    let mut state = State::new(real(), true);
    for (letter, header, first) in [
        ('h', " APPLICATION       SHARD  EVENTS  A MINUTE  REPORTS  FOLDED  FILTERED", " argocd/app-"),
        ('s', " APPLICATION       TRACE      SHARD  SLOWEST    MEAN  EVENTS     AGO", " argocd/app-00007  "),
        ('c', " APPLICATION        SHARD   CALLS    TIME    MEAN", " argocd/app-"),
        (
            'e',
            " APPLICATION       LAST REASON   ITS TRACE   SHARD  FAILED  PARKED     AGO",
            " argocd/app-00007  server error  ",
        ),
        ('l', " WITHIN  APPLICATION       TRACE     EVENTS    TOOK     AGO", " "),
    ] {
        key(&mut state, KeyCode::Char(letter));
        let lines = lines(&state, 80, 24);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&lines[3]), squeezed(header), "{lines:#?}");
        assert!(lines[4].starts_with(first), "{lines:#?}");
        let at = |part: &str| {
            lines.iter().position(|line| line.starts_with(part)).unwrap_or_else(|| panic!("{lines:#?}"))
        };
        assert!(
            lines[0].starts_with(" gitops-runtime top  last ") && lines[0].ends_with(" UTC"),
            "{lines:#?}"
        );
        assert!(lines[1].contains(" queued  ") && lines[1].contains("  p99 <"), "{lines:#?}");
        assert_eq!((at("\u{2500} shards "), at(" q quit")), (16, 23), "{lines:#?}");
        assert!(lines[18].starts_with(" 0 ") && lines[22].starts_with(" 4 "), "{lines:#?}");
        if letter == 'e' {
            assert_eq!(lines[at("\u{2500} errors ") + 1].split_whitespace().next(), Some("PEER"));
        }
    }
}

#[test]
fn trace_ids_are_whole_where_there_is_room() {
    let mut state = State::new(real(), true);
    key(&mut state, KeyCode::Char('s'));
    let whole = state.top.slowest[0].event.trace.clone();
    let has = |width| lines(&state, width, 24).iter().any(|line| line.contains(&whole));
    assert_eq!([has(80), has(109), has(110)], [false, false, true]);
}

#[test]
fn any_size_will_do() {
    let mut state = State::new(real(), true);
    state.top.hottest[0].app = "a-namespace-of-fifty-characters-for-many-teams/".to_owned() + &"x".repeat(60);
    state.trouble = Some("no reporter answers".to_owned());
    for overlay in ["", "?", "\r"] {
        for letter in "hsccel".chars() {
            key(&mut state, KeyCode::Char(letter));
            match overlay {
                "?" => drop(key(&mut state, KeyCode::Char('?'))),
                "\r" => drop(key(&mut state, KeyCode::Enter)),
                _ => {}
            }
            // A terminal is rarely of 1 by 1, and programs have died of it.
            for (width, height) in [(1, 1), (7, 30), (40, 3), (79, 17), (80, 24), (139, 57)] {
                drawn(&state, width, height);
            }
            state.overlay = Overlay::Nothing;
        }
    }
    let narrow = lines(&state, 50, 12);
    assert!(narrow[3].starts_with(" WITHIN  APPLICATION "), "{narrow:#?}");
    key(&mut state, KeyCode::Char('h'));
    let shortened = &lines(&state, 80, 24)[4];
    assert!(shortened.starts_with(" a-namespace-") && shortened.contains("\u{2026}xxx"), "{shortened}");
    assert!(shortened.split_whitespace().count() == 7, "no figure is lost: {shortened}");
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let colours = |wanted| {
        let mut state = State::new(real(), wanted);
        state.paused = true;
        state.top.circuit = "open".to_owned();
        let terminal = drawn(&state, 80, 24);
        let cells = terminal.backend().buffer().content().iter();
        cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert!(colours(true) > 80, "there are some to leave out");
    assert_eq!(colours(false), 0);
}

#[test]
fn keys_choose_lists_and_rows() {
    let mut state = State::new(real(), true);
    let calls = |state: &State| {
        let calls = state.sheet(TraceLength::Short).rows;
        calls.iter().map(|row| row.app.clone()).collect::<Vec<_>>()
    };
    for (code, view) in [
        (KeyCode::Tab, View::Slowest),
        (KeyCode::Left, View::Hottest),
        (KeyCode::BackTab, View::Latency),
        (KeyCode::Right, View::Hottest),
        (KeyCode::Char('c'), View::Calls),
    ] {
        assert_eq!(key(&mut state, code), KeyAction::Nothing);
        assert_eq!(state.view, view);
    }
    let by_number = calls(&state);
    key(&mut state, KeyCode::Char('c'));
    let by_time = calls(&state);
    assert_ne!(by_number, by_time);
    assert_eq!(by_time, state.top.longest_fetch.iter().map(|called| called.app.clone()).collect::<Vec<_>>());
    key(&mut state, KeyCode::Char('c'));
    assert_eq!(calls(&state), by_number);

    for (code, row) in [
        (KeyCode::Up, 0),
        (KeyCode::Down, 1),
        (KeyCode::Char('j'), 2),
        (KeyCode::Char('k'), 1),
        (KeyCode::PageDown, 5),
        (KeyCode::Down, 5),
        (KeyCode::Home, 0),
        (KeyCode::End, 5),
        (KeyCode::PageUp, 0),
    ] {
        key(&mut state, code);
        assert_eq!(state.row, row, "after {code:?}");
    }
    assert_eq!(key(&mut state, KeyCode::Char('p')), KeyAction::Nothing);
    assert!(state.paused && lines(&state, 80, 24)[0].contains("PAUSED"));
    assert_eq!((key(&mut state, KeyCode::Char('p')), state.paused), (KeyAction::Ask, false));
    assert_eq!(key(&mut state, KeyCode::Char('z')), KeyAction::Nothing);
    assert_eq!(key(&mut state, KeyCode::Char('q')), KeyAction::Quit);
    assert_eq!(state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyAction::Quit);
}

#[test]
fn the_chosen_application_stays_chosen_where_it_moves_to() {
    let mut state = State::new(real(), true);
    key(&mut state, KeyCode::Down);
    let mut next = real();
    next.hottest.swap(1, 4);
    let chosen = next.hottest[4].app.clone();
    state.answered(Ok(next));
    assert_eq!((state.row, &state.sheet(TraceLength::Short).rows[state.row].app), (4, &chosen));
    let mut fewer = real();
    fewer.hottest.truncate(2);
    fewer.hottest[1].app = "argocd/other".to_owned();
    state.answered(Ok(fewer));
    assert_eq!(state.row, 1, "one that is gone gives way to what stands there");

    state.answered(Err(anyhow::anyhow!("no reporter answers at here")));
    assert_eq!(lines(&state, 80, 24)[1], " no reporter answers at here");
    assert_eq!(state.top.hottest.len(), 2, "what is known stays");
    state.answered(Ok(real()));
    assert!(state.trouble.is_none());
}

#[test]
fn enter_explains_the_chosen_application() {
    let mut state = State::new(real(), true);
    key(&mut state, KeyCode::Char('e'));
    assert_eq!(key(&mut state, KeyCode::Enter), KeyAction::Ask);
    let app = state.explained().unwrap().to_owned();
    assert_eq!(app, state.top.failing[0].app);
    assert!(lines(&state, 80, 24)[2].contains("asking the reporter"));
    let explained = Explained {
        app: app.clone(),
        shard: 1,
        standing: None,
        acknowledged: None,
        parked: None,
        steps: Vec::new(),
    };
    state.told("argocd/another", Ok(Explained { shard: 4, ..explained.clone() }), None);
    assert!(lines(&state, 80, 24)[2].contains("asking the reporter"), "an answer about another one");
    state.told(&app, Ok(explained), None);
    let shown = lines(&state, 80, 24);
    assert!(shown[1].contains(&app) && shown[2].contains(&format!("application   {app}")), "{shown:#?}");
    // Eight facts and lines more: the last one stays in sight.
    let text_lines = u16::try_from(match &state.overlay {
        Overlay::Explain { text, .. } => text.lines().count(),
        _ => panic!("it is gone"),
    });
    let last = text_lines.unwrap() - 1;
    for (code, line) in [
        (KeyCode::Up, 0),
        (KeyCode::Down, 1),
        (KeyCode::PageDown, last),
        (KeyCode::Down, last),
        (KeyCode::Up, last - 1),
        (KeyCode::Home, 0),
    ] {
        key(&mut state, code);
        let Overlay::Explain { first, .. } = &state.overlay else { panic!("it is gone") };
        assert_eq!(*first, line, "after {code:?}");
    }
    assert_eq!(key(&mut state, KeyCode::Esc), KeyAction::Nothing);
    assert!(state.explained().is_none());
    // Where nothing is chosen there is nothing to explain.
    state.top.failing.clear();
    state.answered(Ok(state.top.clone()));
    assert_eq!(key(&mut state, KeyCode::Enter), KeyAction::Nothing);
}

#[test]
fn percentiles_are_told_as_far_as_the_buckets_go() {
    let mut top = real();
    top.latency.iter_mut().for_each(|bucket| bucket.count = 0);
    assert_eq!(sheet::quantile(&top, 0.5), None);
    (top.latency[2].count, top.latency[5].count) = (98, 2);
    let bound = |at: usize| top.latency[at].up_to_seconds;
    assert_eq!([sheet::quantile(&top, 0.5), sheet::quantile(&top, 0.99)], [bound(2), bound(5)]);
    top.latency[12].count = 100;
    assert_eq!(sheet::quantile(&top, 0.99), Some(f64::INFINITY));
    assert!(lines(&State::new(top, true), 80, 24)[1].ends_with("p99 >5 min"));
}

#[test]
fn text_holds_every_list() {
    let text = text(&real());
    for title in [
        "hottest applications",
        "slowest applications",
        "applications by calls",
        "failing applications",
        "errors",
        "latency",
        "shards",
    ] {
        assert!(text.contains(&format!("\n{title}")), "{title} is not in\n{text}");
    }
    assert!(text.contains(&real().slowest[0].event.trace));
    let mut none = real();
    none.failing.clear();
    assert!(super::text(&none).contains("\nfailing applications\n none\n"));
}
